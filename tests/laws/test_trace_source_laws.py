"""Keys that follow from results of aggregates and windows: whatever changes, none whose rows differ is missing.

Random trees of nodes over two tables, against the brute-force oracle of test_node_trace_laws.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from tablestore_engine.queryplan import key_trace, plan_rules
from tablestore_engine.queryplan.key_trace import TracedPart
from tablestore_engine.queryplan.known_columns import KnownColumns
from tablestore_engine.queryplan.occurrences import TableColumns, find_occurrences, output_ids
from tablestore_engine.queryplan.plan_nodes import PlanNode
from tablestore_engine.queryplan.signed_rows import SignedRows
from tablestore_engine.queryplan.trace_sources import find_sources
from tablestore_engine.queryplan.trace_steps import RowsOverValue, Stored
from tests.doses import examples
from tests.laws.test_node_trace_laws import (
    BESIDE_EMPTY,
    CHANGES,
    ONE_INPUT,
    TWO_INPUTS,
    L,
    R,
    missed,
    plans_of,
)
from tests.laws.test_signed_row_laws import random_plan
from tests.laws.traced_nodes import Spec, table


def parts_used(root: PlanNode) -> int:
    """For how many columns as a key a part of the plan counts as a table, if both tables change."""
    sources = {
        output_ids(leaf)[0]: TableColumns(leaf.facts["table"], is_fixed=False)
        for leaf in root.walk()
        if not leaf.children
    }
    changed = find_occurrences(root, sources)
    known, count = KnownColumns(root, changed, {}), 0
    for one in dict.fromkeys(output_ids(root)):
        found = find_sources(known, changed, [one]).all
        is_known = all(known.clause(leaf, [one]) is None for leaf in changed)
        count += not is_known and all(source.step is not None for source in found)
    return count


def check(plans: Iterable[PlanNode], rng: random.Random, most: int) -> int:
    """How many keys need a part as a table."""
    used = 0
    for plan in plans:
        used += parts_used(plan)
        found = missed(plan, rng.sample(CHANGES, most) + rng.choices(BESIDE_EMPTY, k=most // 2))
        assert not found, found[:3]
    return used


def random_plans(seed: int, count: int, depth: int) -> Iterable[PlanNode]:
    """Trees of nodes."""
    rng = random.Random(seed)
    return (random_plan(rng, depth + at % 2)(()) for at in range(count))


@pytest.mark.parametrize("seed", range(3))
def test_random_plans_have_every_key_that_a_change_makes_different(seed: int) -> None:
    """Trees of two and three nodes; some keys are results of aggregates and windows."""
    assert check(random_plans(seed, examples(40, 40), 2), random.Random(seed), 8) > 5


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(40))
def test_random_plans_have_every_key_in_a_large_dose(seed: int) -> None:
    """The same with other trees of up to four nodes."""
    check(random_plans(1000 + seed, 150, 2 + seed % 2), random.Random(seed), 20)


def over_values() -> list[PlanNode]:
    """Rows beside a total, alone and with nodes above and below."""
    made: Callable[[Spec, Spec], Spec] = TWO_INPUTS["Cross join"][-1]
    group = ONE_INPUT["Aggregate"][-1]
    specs = [
        made(table(L), table(R)), made(group(table(L)), table(R)), made(group(table(L)), table(L)),
        made(table(L), group(table(R))), group(made(table(L), table(R))),
    ]  # fmt: skip
    return [spec(()) for spec in specs]


def test_a_total_as_a_value_affects_the_rows_for_which_it_makes_a_difference() -> None:
    """A total in a condition, over tables and over groups: no key is missing, and rows that differ alone are traced."""
    assert check(over_values(), random.Random(1), len(CHANGES) // examples(16, 4)) > 0


@pytest.mark.parametrize("kind", ["Aggregate", "Window", "ExistenceJoin join"])
def test_a_node_whose_result_is_the_key_has_every_key(kind: str) -> None:
    """Each kind that makes such columns, over each other kind."""
    plans = [plan for _, plan in plans_of(kind)]
    assert check(plans, random.Random(kind), examples(6, 30)) > 5


def _not_over_value(right: Callable[..., Any]) -> Callable[..., Any]:
    """The value is taken to be of no effect."""

    def wrong(*given: Any) -> TracedPart:
        found = right(*given)
        is_over = isinstance(found.step, RowsOverValue)
        return TracedPart(replace(found.step, values=()), found.columns) if is_over else found

    return wrong


def _without_past(_: Callable[..., Any]) -> Callable[..., Any]:
    """A part has the rows that it has now alone."""
    return lambda node, changes: TracedPart(Stored(node.path), frozenset(output_ids(node)))


def _new_part(right: Callable[..., Any]) -> Callable[..., Any]:
    """The old rows of a changed part are taken to be its new ones."""
    return lambda self, child, key, parts, *, is_old: right(self, child, key, parts, is_old=False)


PLANTS = {
    "no-effect": (key_trace._Builder, "_over_value", _not_over_value),
    "no-past": (key_trace, "_with_past", _without_past),
    "new-is-old": (SignedRows, "_own_rows", _new_part),
}


@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_error_is_found(plant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Old rows that are forgotten in three ways."""
    owner, name, spoil = PLANTS[plant]
    monkeypatch.setattr(owner, name, spoil(getattr(owner, name)))
    with pytest.raises(AssertionError, match="key"):
        check([*over_values(), *random_plans(5, 60, 2)], random.Random(2), 60)


def test_parts_are_of_use_for_kinds_that_make_columns_alone() -> None:
    """A plan of projections, filters and joins needs no part: each table is traced by itself."""
    for kind in sorted(plan_rules.PASSED | {"Project", "Inner join"}):
        plans = [plan for name, plan in plans_of(kind) if name == kind]
        assert check(plans, random.Random(kind), 4) == 0, kind
