"""Signed rows of each kind of plan node, alone and on each other kind: their sum is the difference of the two results.

The oracle evaluates small plans over small tables before and after changes of one or both tables.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tablestore_engine.queryplan import plan_rules, signed_rows
from tablestore_engine.queryplan.known_columns import KnownColumns
from tablestore_engine.queryplan.occurrences import TableColumns, find_occurrences, output_ids
from tablestore_engine.queryplan.plan_nodes import PlanNode
from tablestore_engine.queryplan.signed_rows import LINEAR, LINEAR_SIDES, NoDelta, SignedPart, SignedRows
from tests.laws.test_node_trace_laws import CHANGES, KINDS, L, R, plans_of
from tests.laws.traced_nodes import Fails, Tables, rows_of, traced_rows

FOLLOWED = {*LINEAR, *(f"{one} join" for one in LINEAR_SIDES)}


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
    """How many plans have deltas for changes of both tables."""
    rng, count = random.Random(kind), 0
    for name, plan in plans_of(kind):
        parts = {moved: parts_of(plan, moved) for moved in ((L,), (R,), (L, R))}
        count += parts[L, R] is not None
        for before, after in rng.sample(CHANGES, most):
            made = parts[tuple(one for one in (L, R) if before[one] != after[one])]
            expected = None if made is None else difference(plan, before, after)
            if made is None or expected is None:
                continue
            found = signed(plan, made, before, after)
            assert {one: n for one, n in found.items() if n} == {
                one: n for one, n in expected.items() if n
            }, name
    return count


@pytest.mark.parametrize("kind", KINDS)
def test_signed_rows_of_each_node_kind_add_up_to_the_difference(kind: str) -> None:
    """A kind alone and over each other kind; kinds that are not linear have none."""
    assert (check(kind, 25) > 0) == (
        kind in FOLLOWED and LINEAR_SIDES.get(kind.split(maxsplit=1)[0], (0, 1)) == (0, 1)
    )


def test_each_traced_kind_is_linear_or_has_a_clause() -> None:
    """A kind or join type that the tracer learns is decided upon here: it has no deltas by default."""
    assert {*LINEAR, *signed_rows.CLAUSES, "Join"} == plan_rules.TRACED
    assert {*LINEAR_SIDES, "FullOuter"} == plan_rules.JOINS


def _all_new(right: Callable[..., SignedPart]) -> Callable[..., SignedPart]:
    """Every other occurrence has the rows of now."""
    return lambda self, node, _: signed_rows.SignedPart(
        signed_rows.Stored(node.path), frozenset(output_ids(node))
    )


def _unsigned(right: Callable[..., SignedPart]) -> Callable[..., SignedPart]:
    """A join keeps the signs of its first child alone."""

    def wrong(self: SignedRows, node: PlanNode, parts: Sequence[SignedPart]) -> SignedPart:
        found = right(self, node, parts)
        return SignedPart(found.step, found.columns, found.signs[:1])

    return wrong


@pytest.mark.parametrize(("method", "plant"), [("_state", _all_new), ("_joined", _unsigned)])
def test_planted_error_of_signed_rows_is_found(
    method: str, plant: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old state = new state, and a lost sign."""
    monkeypatch.setattr(SignedRows, method, plant(getattr(SignedRows, method)))
    with pytest.raises(AssertionError):
        check("Inner join", 60)


def test_planted_join_side_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A left join is not linear in its right side."""
    monkeypatch.setitem(LINEAR_SIDES, "LeftOuter", (0, 1))
    with pytest.raises((AssertionError, KeyError)):  # a row without a partner has no sign
        check("LeftOuter join", 60)
