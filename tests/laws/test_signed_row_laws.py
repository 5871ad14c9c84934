"""Signed rows of each kind of plan node, alone and on each other kind: their sum is the difference of the two results.

The oracle evaluates small plans over small tables before and after changes of one or both tables.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tablestore_engine.queryplan import plan_rules, signed_rows
from tablestore_engine.queryplan.known_columns import KnownColumns
from tablestore_engine.queryplan.no_delta import NoDelta
from tablestore_engine.queryplan.occurrences import TableColumns, find_occurrences, output_ids
from tablestore_engine.queryplan.plan_nodes import PlanNode
from tablestore_engine.queryplan.signed_parts import SignedPart
from tablestore_engine.queryplan.signed_rows import (
    KEYED,
    LINEAR,
    LINEAR_SIDES,
    SignedRows,
    Turns,
)
from tablestore_engine.queryplan.trace_steps import Stored
from tests.doses import examples
from tests.laws import traced_nodes
from tests.laws.test_node_trace_laws import CHANGES, KINDS, ONE_INPUT, TWO_INPUTS, L, R, plans_of
from tests.laws.traced_nodes import Fails, Spec, Tables, rows_of, table, traced_rows

FOLLOWED = {*LINEAR, *KEYED, *(f"{one} join" for one in LINEAR_SIDES)}
BRANCHING = sorted({*ONE_INPUT, *TWO_INPUTS} - plan_rules.PASSED - plan_rules.LIMITS.keys() | {"Filter"})


def parts_of(root: PlanNode, moved: Sequence[str]) -> tuple[SignedPart, ...] | None:
    """None: no deltas."""
    sources = {
        output_ids(leaf)[0]: TableColumns(leaf.facts["table"], is_fixed=False)
        for leaf in root.walk()
        if not leaf.children
    }
    changed = [one for one in find_occurrences(root, sources) if one.table in moved]
    try:
        return SignedRows(KnownColumns(root, changed, {})).of(root)
    except NoDelta:
        return None


def difference(root: PlanNode, before: Tables, after: Tables) -> Counter[Any] | None:
    """Row → how often more than before; None where one of the states cannot be."""
    ids, found = output_ids(root), Counter[Any]()
    try:
        for state, sign in ((after, 1), (before, -1)):
            for row in rows_of(root, state):
                found[tuple(row[one] for one in ids)] += sign
    except Fails:
        return None
    return found


def signed(root: PlanNode, parts: Sequence[SignedPart], before: Tables, after: Tables) -> Counter[Any]:
    """The same by the parts."""
    ids, found = output_ids(root), Counter[Any]()
    for part in parts:
        for row in traced_rows(root, part.step, before, after):
            sign = 1
            for one in part.signs:
                sign *= row[one]
            found[tuple(row[one] for one in ids)] += sign
    return found


def check(kind: str, most: int) -> int:
    """How many plans of a kind have deltas for changes of both tables."""
    return check_plans(plans_of(kind), random.Random(kind), most)


def check_plans(plans: Iterable[tuple[str, PlanNode]], rng: random.Random, most: int) -> int:
    """The same of any plans, each with so many changes."""
    count = 0
    for name, plan in plans:
        parts = {moved: parts_of(plan, moved) for moved in ((L,), (R,), (L, R))}
        count += parts[L, R] is not None
        for before, after in rng.sample(CHANGES, most):
            made = parts[tuple(one for one in (L, R) if before[one] != after[one])]
            expected = None if made is None else difference(plan, before, after)
            if made is None or expected is None:
                continue
            try:
                found = signed(plan, made, before, after)
            except Fails:  # a scalar subquery over the rows of two states: such a run has no deltas
                continue
            assert {one: n for one, n in found.items() if n} == {
                one: n for one, n in expected.items() if n
            }, name
    return count


def random_plan(rng: random.Random, depth: int) -> Spec:
    """A tree of nodes over both tables, each of which it may read several times."""
    if depth == 0:
        return table(rng.choice((L, R)))
    kind = rng.choice(BRANCHING)
    if kind in ONE_INPUT:
        return rng.choice(ONE_INPUT[kind])(random_plan(rng, depth - 1))
    sides = [random_plan(rng, depth - 1), random_plan(rng, rng.randrange(depth))]
    rng.shuffle(sides)
    made: Spec = rng.choice(TWO_INPUTS[kind])(*sides)
    return made


@pytest.mark.parametrize("kind", KINDS)
def test_signed_rows_of_each_node_kind_add_up_to_the_difference(kind: str) -> None:
    """A kind alone and over each other kind; kinds that are neither linear nor fall into parts have none."""
    assert (check(kind, examples(4, 12)) > 0) == (kind in FOLLOWED)


@pytest.mark.parametrize("seed", range(4))
def test_signed_rows_of_random_plans_add_up_to_the_difference(seed: int) -> None:
    """Trees of three and four nodes over each other."""
    rng = random.Random(seed)
    plans = ((f"{seed}: {at}", random_plan(rng, 3 + at % 2)(())) for at in range(60))
    assert check_plans(plans, rng, 10) > 5


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(40))
def test_signed_rows_of_random_plans_in_a_large_dose(seed: int) -> None:
    """The same with other trees."""
    rng = random.Random(1000 + seed)
    check_plans(((f"{seed}: {at}", random_plan(rng, 3 + at % 3)(())) for at in range(200)), rng, 20)


def test_each_traced_kind_is_followed_or_has_a_clause() -> None:
    """A kind or join type that the tracer learns is decided upon here: it has no deltas by default."""
    assert {*LINEAR, *KEYED, *signed_rows.CLAUSES, "Join"} == plan_rules.TRACED
    assert {*LINEAR_SIDES} == plan_rules.JOINS


def _stored(node: PlanNode) -> SignedPart:
    return SignedPart(Stored(node.path), frozenset(output_ids(node)))


def _all_new(right: Callable[..., SignedPart]) -> Callable[..., SignedPart]:
    """Every other source has the rows of now."""
    return lambda self, node, _: _stored(node)


def _unsigned(right: Callable[..., SignedPart]) -> Callable[..., SignedPart]:
    """A join keeps the signs of its first child alone."""

    def wrong(node: PlanNode, parts: Sequence[SignedPart]) -> SignedPart:
        found = right(node, parts)
        return SignedPart(found.step, found.columns, found.signs[:1])

    return wrong


def _never_old(right: Callable[..., SignedPart]) -> Callable[..., SignedPart]:
    """The old rows of a part are its new ones."""
    return lambda self, child, key, parts, *, is_old: right(self, child, key, parts, is_old=False)


def _kept_new(right: Callable[..., SignedPart]) -> Callable[..., SignedPart]:
    """The kept side of a join has its new rows while the other one changes."""

    def wrong(self: SignedRows, child: PlanNode, key: Any, parts: Any) -> SignedPart:
        return replace(_stored(child), step=parts.of(Stored(child.path), key))

    return wrong


def _vanished_kept(right: Callable[..., Any]) -> Callable[..., Any]:
    """A part that has no row any more keeps its old ones."""

    def wrong(rows: Any, columns: Any, sign: int) -> Any:
        found = right(rows, columns, sign)
        return found if any(n > 0 for n in found.values()) else type(found)()

    return wrong


def _without_null(right: Callable[..., Any]) -> Callable[..., Any]:
    """NULL is the key of no part."""
    return lambda keys: {one for one in right(keys) if None not in one}


PLANTED = {
    "old state is new state": (Turns, "state", _all_new, "Inner join"),
    "lost sign": (signed_rows, "_joined", _unsigned, "Inner join"),
    "old part is new part": (SignedRows, "_own_rows", _never_old, "Aggregate"),
    "kept side is new": (SignedRows, "_kept_rows", _kept_new, "LeftOuter join"),
    "NULL is no part": (traced_nodes, "part_keys", _without_null, "Aggregate"),
    "vanished part is kept": (traced_nodes, "_net", _vanished_kept, "Aggregate"),
}


@pytest.mark.parametrize("name", sorted(PLANTED))
def test_planted_error_of_signed_rows_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them makes the sum another one."""
    owner, attribute, plant, kind = PLANTED[name]
    monkeypatch.setattr(owner, attribute, plant(getattr(owner, attribute)))
    with pytest.raises(AssertionError):
        check(kind, 60)


def test_planted_join_side_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A left join is not linear in its right side."""
    monkeypatch.setitem(LINEAR_SIDES, "LeftOuter", (0, 1))
    with pytest.raises((AssertionError, KeyError)):  # a row without a partner has no sign
        check("LeftOuter join", 60)
