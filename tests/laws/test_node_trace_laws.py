"""The trace of each kind of plan node, alone and on each other kind, has every key whose rows a change makes others.

The oracle evaluates small plans over small tables before and after each single change.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, combinations_with_replacement
from typing import Any

import pytest

from tablestore_engine.queryplan import key_trace, plan_rules
from tablestore_engine.queryplan.known_columns import KnownColumns
from tablestore_engine.queryplan.occurrences import TableColumns, find_occurrences, output_ids
from tablestore_engine.queryplan.plan_nodes import PlanNode
from tablestore_engine.queryplan.trace_sources import find_sources
from tests.doses import cases, examples
from tests.laws.traced_nodes import (
    Fails,
    Maker,
    Row,
    Spec,
    Tables,
    alias,
    attribute,
    call,
    literal,
    new_attribute,
    node,
    number_of_rows,
    rows_of,
    table,
    traced_rows,
)

L, R = "l", "r"


def join(kind: str, *, is_conditional: bool = True) -> Maker:
    """On the first column of each side."""
    facts = {"joinType": {"object": f"org.apache.spark.sql.catalyst.plans.{kind}$"}}

    def made(left: Spec, right: Spec) -> Spec:
        def fields(one: tuple[int, ...], other: tuple[int, ...]) -> dict[str, Any]:
            on = [call("EqualTo", attribute(one[0]), attribute(other[0]))] if is_conditional else []
            exists = {"joinType.exists": [new_attribute()]} if kind == "ExistenceJoin" else {}
            return {"condition": on, **exists}

        return node("Join", (left, right), fields, **facts)

    return made


def passed(kind: str) -> Maker:
    """A node without a meaning of its own."""
    return lambda child: node(kind, (child,), lambda _: {})


def filtered(condition: Any) -> Maker:
    """On the last column: of an outer join, that of the optional side."""
    return lambda child: node("Filter", (child,), lambda ids: {"condition": [condition(attribute(ids[-1]))]})


def aggregate(*, is_total: bool, kind: str = "Count", at: int = 0) -> Maker:
    """With a constant, and with the group, column `at`."""

    def fields(ids: tuple[int, ...]) -> dict[str, Any]:
        groups = [] if is_total else [attribute(ids[at])]
        items = [*groups, alias(literal(0)), alias(number_of_rows(kind))]
        return {"groupingExpressions": groups, "aggregateExpressions": items}

    return lambda child: node("Aggregate", (child,), fields)


def window(*, is_whole: bool) -> Maker:
    """count(*) over a partition."""

    def fields(ids: tuple[int, ...]) -> dict[str, Any]:
        made = alias(call("WindowExpression", number_of_rows("Count")))
        return {
            "windowExpressions": [made],
            "partitionSpec": [] if is_whole else [attribute(ids[0])],
            "orderSpec": [],
        }

    return lambda child: node("Window", (child,), fields)


def _expand(ids: tuple[int, ...]) -> dict[str, Any]:
    rows = [[attribute(ids[0]), literal(0)], [literal(None), literal(1)]]
    return {"projections": [one for row in rows for one in row], "output": [new_attribute(), new_attribute()]}


def _generate(ids: tuple[int, ...]) -> dict[str, Any]:
    return {"generator": [call("Explode", attribute(ids[0]))], "generatorOutput": [new_attribute()]}


# kind → makers of nodes of one input, of two inputs
ONE_INPUT: dict[str, list[Maker]] = {
    **{kind: [passed(kind)] for kind in (plan_rules.PASSED | plan_rules.LIMITS.keys()) - {"Filter"}},
    "Filter": [
        filtered(lambda one: call("IsNull", one)),
        filtered(lambda one: call("EqualTo", one, literal(0))),
    ],
    "Project": [
        lambda child: node(
            "Project",
            (child,),
            lambda ids: {"projectList": [alias(attribute(ids[-1])), attribute(ids[0]), alias(literal(0))]},
        )
    ],
    "Aggregate": [  # an average makes a part that has to be traced
        aggregate(is_total=True, kind="Average"),
        aggregate(is_total=True),
        aggregate(is_total=False),
        aggregate(is_total=False, at=-1),
    ],
    "Window": [window(is_whole=True), window(is_whole=False)],
    "Expand": [lambda child: node("Expand", (child,), _expand)],
    "Generate": [lambda child: node("Generate", (child,), _generate)],
}
TWO_INPUTS: dict[str, list[Maker]] = {
    "Union": [
        lambda left, right: node(
            "Union", (_two_columns(left), _two_columns(right)), lambda *_: {}, byName=False
        )
    ],
    **{f"{kind} join": [join(kind), join(kind, is_conditional=False)] for kind in plan_rules.JOINS},
}


def _over_value(left: Spec, right: Spec) -> Spec:
    """Rows of the left side whose last column is how many rows the right one has, as a scalar subquery asks."""
    total = node(
        "Aggregate",
        (right,),
        lambda _: {"groupingExpressions": [], "aggregateExpressions": [alias(number_of_rows("Count"))]},
    )
    values = node(
        "Project",
        (join("Cross", is_conditional=False)(left, total),),
        lambda ids: {
            "projectList": [
                *map(attribute, dict.fromkeys(ids[:-1])),
                alias(call("EqualTo", *map(attribute, ids[-2:]))),
            ]
        },
    )  # fmt: skip
    return node("Filter", (values,), lambda ids: {"condition": [attribute(ids[-1])]})


def _two_columns(child: Spec) -> Spec:
    return node(
        "Project",
        (child,),
        lambda ids: {"projectList": [alias(attribute(ids[0])), alias(attribute(ids[-1]))]},
    )


TWO_INPUTS["Cross join"].append(_over_value)


# ---- tables and changes ------------------------------------------------------------------------------------

_LEFT_ROWS = ((0, 0), (0, 1), (1, 0), (None, 1))
_RIGHT_ROWS = ((0, 0), (1, 0), (1, None))
Change = tuple[Tables, Tables]
State = tuple[tuple[Any, ...], ...]


def _states(rows: State, most: int) -> list[State]:
    return [one for size in range(most + 1) for one in combinations_with_replacement(rows, size)]


def _neighbours(states: list[State]) -> list[tuple[State, State]]:
    """One row is added, removed or replaced."""
    return [
        (one, other)
        for one in states
        for other in states
        if one != other
        and (Counter(one) - Counter(other)).total() <= 1
        and (Counter(other) - Counter(one)).total() <= 1
    ]


def _changes() -> list[Change]:
    alone: list[Change]
    together: list[Change]
    left, right = _states(_LEFT_ROWS, 2), _states(_RIGHT_ROWS, 2)
    alone = [({L: a, R: r}, {L: b, R: r}) for a, b in _neighbours(left) for r in right]
    alone += [({L: one, R: a}, {L: one, R: b}) for a, b in _neighbours(right) for one in left]
    together = [({L: a, R: c}, {L: b, R: d}) for a, b in _neighbours(left) for c, d in _neighbours(right)]
    return alone + random.Random(1).sample(together, len(alone))


CHANGES = _changes()
BESIDE_EMPTY = [one for one in CHANGES if any(one[0][name] == one[1][name] == () for name in (L, R))]


def missed(root: PlanNode, changes: Sequence[tuple[Tables, Tables]]) -> list[str]:
    """What the traces lack of all keys of one column, and of some keys of two."""
    assert plan_rules.find_unknown(root) is None
    ids, found = output_ids(root), list[str]()
    pairs = list(combinations(dict.fromkeys(ids), 2))
    rows = _Rows(root, ids)
    for key in [(one,) for one in dict.fromkeys(ids)] + random.Random(len(ids)).sample(
        pairs, min(2, len(pairs))
    ):
        traces: dict[tuple[str, ...], list[Any] | None] = {
            moved: _traces(root, key, moved) for moved in ((L,), (R,), (L, R))
        }
        for before, after in changes:
            steps = traces[tuple(one for one in (L, R) if before[one] != after[one])]
            differing = set() if steps is None else rows.differing(before, after, key)
            if not differing or steps is None:
                continue
            try:
                traced = {tuple(row[one] for one in key) for step in steps
                          for row in traced_rows(root, step, before, after)}  # fmt: skip
            except Fails:  # a scalar subquery over the rows of two states: such a run compares all rows
                continue
            if not differing <= traced:
                found.append(f"key {key}: {before} -> {after}: {differing - traced}")
    return found


class _Rows:
    """Of one plan, each state evaluated once."""

    def __init__(self, root: PlanNode, ids: Sequence[int]) -> None:
        self._root, self._ids = root, ids
        self._known: dict[tuple[Any, ...], list[Row] | None] = {}

    def differing(self, before: Tables, after: Tables, key: Sequence[int]) -> set[Any]:
        """Keys whose rows differ; none, where one of the states cannot be."""
        old, new = (self._of(state, key) for state in (before, after))
        return set() if old is None or new is None else {one for one, _ in (old - new) + (new - old)}

    def _of(self, state: Tables, key: Sequence[int]) -> Counter[Any] | None:
        at = (state[L], state[R])
        if at not in self._known:
            try:
                self._known[at] = rows_of(self._root, state)
            except Fails:
                self._known[at] = None
        rows = self._known[at]
        if rows is None:
            return None
        return Counter((tuple(row[one] for one in key), tuple(row[one] for one in self._ids)) for row in rows)


def _traces(root: PlanNode, key: tuple[int, ...], moved: Sequence[str]) -> list[Any] | None:
    sources = {
        output_ids(leaf)[0]: TableColumns(leaf.facts["table"], is_fixed=False)
        for leaf in root.walk()
        if not leaf.children
    }
    occurrences = find_occurrences(root, sources)
    known = KnownColumns(root, [one for one in occurrences if one.table in moved], {})
    found = find_sources(known, occurrences, key).all
    return None if any(one.step is None for one in found) else [one.step for one in found]


_ALIKE = (plan_rules.PASSED | plan_rules.LIMITS.keys()) - {"Filter", "Sort", "GlobalLimit"}


def plans_of(kind: str) -> Iterator[tuple[str, PlanNode]]:
    """A kind alone, and over each other kind."""
    yield from ((kind, spec(())) for spec in _over(kind, table(L), table(R)))
    for other in (*ONE_INPUT, *TWO_INPUTS) if kind not in _ALIKE else ():
        for inner in _over(other, table(L), table(R)) if other not in _ALIKE else ():
            yield from ((f"{kind} over {other}", spec(())) for spec in _over(kind, table(L), inner))


def _over(kind: str, first: Spec, second: Spec) -> list[Spec]:
    """`second`: the input of a node of one."""
    if kind in ONE_INPUT:
        return [maker(second) for maker in ONE_INPUT[kind]]
    return [made for maker in TWO_INPUTS[kind] for made in (maker(first, second), maker(second, first))]


KINDS = sorted({*ONE_INPUT, *TWO_INPUTS})


@pytest.mark.parametrize("kind", cases(KINDS, 15))
def test_trace_of_each_node_kind_has_every_key_that_a_change_makes_different(kind: str) -> None:
    """A kind alone and over each other kind, for a sample of all changes of one row in each table."""
    check(kind, alone=examples(60, 100), stacked=examples(4, 6))


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_trace_of_each_node_kind_has_every_key_in_a_large_dose(kind: str) -> None:
    """The same with half of all changes of a kind alone."""
    check(kind, alone=len(CHANGES), stacked=80)


def check(kind: str, *, alone: int, stacked: int) -> None:
    """So many changes of a plan."""
    rng = random.Random(kind)
    for name, plan in plans_of(kind):
        most = (alone if name == kind else stacked) // 2
        found = missed(
            plan, rng.sample(CHANGES, most) + rng.sample(BESIDE_EMPTY, min(most, len(BESIDE_EMPTY)))
        )
        assert not found, (name, found[:3])


@pytest.mark.parametrize("plant", ["PRESERVING", "rows_of_nothing"])
def test_planted_error_of_the_tracer_is_found(plant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Joins that forget rows without a partner, and totals without their row: the cases see both."""
    monkeypatch.setattr(key_trace, plant, {"PRESERVING": {}, "rows_of_nothing": lambda _: 0}[plant])
    with pytest.raises(AssertionError, match=r"LeftSingle join|Aggregate"):
        check("LeftSingle join" if plant == "PRESERVING" else "Cross join", alone=200, stacked=40)


def test_each_traced_kind_has_a_case() -> None:
    """A kind or a join type that the tracer learns has to be added to the cases, with its rows over none."""
    joins = {f"{one} join" for one in plan_rules.JOINS}
    assert {*ONE_INPUT, "Union", "Join"} == plan_rules.TRACED
    assert {*TWO_INPUTS} == joins | {"Union"}
    empty: Tables = {L: (), R: ()}
    for name, makers in {**ONE_INPUT, **TWO_INPUTS}.items():
        for maker in makers:
            inputs = (table(L), table(R))[: 1 if name in ONE_INPUT else 2]
            plan = maker(*inputs)(())
            assert len(rows_of(plan, empty)) == plan_rules.rows_of_nothing(plan), name
