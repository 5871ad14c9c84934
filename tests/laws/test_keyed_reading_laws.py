"""A query over only those rows of its tables that have some keys gives the same rows of these keys.

Random trees of nodes over two tables, against the brute-force oracle of test_node_trace_laws.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tablestore_engine.queryplan import keyed_readings
from tablestore_engine.queryplan.keyed_readings import KeyedReading, find_keyed_readings
from tablestore_engine.queryplan.known_columns import KnownColumns
from tablestore_engine.queryplan.occurrences import TableColumns, find_occurrences, output_ids
from tablestore_engine.queryplan.plan_nodes import PlanNode
from tests.doses import examples
from tests.laws.test_node_trace_laws import CHANGES, ONE_INPUT, TWO_INPUTS, L, R, plans_of
from tests.laws.test_signed_row_laws import random_plan
from tests.laws.traced_nodes import Fails, rows_of

Rows = Sequence[tuple[Any, ...]]


def by_leaf(plan: PlanNode) -> PlanNode:
    """Each leaf reads a table of its own."""
    if not plan.children:
        return replace(plan, facts={**plan.facts, "table": (plan.facts["table"], plan.path)})
    return replace(plan, children=tuple(map(by_leaf, plan.children)))


def rows_with(readings: Sequence[KeyedReading], path: object, rows: Rows, keys: set[tuple[Any, ...]]) -> Rows:
    """Those of a leaf with one of the keys; all of a leaf that is no keyed reading."""
    for one in readings:
        if one.occurrence.path == path:
            at = [list(one.occurrence.columns.values()).index(name) for name in one.names]
            return [row for row in rows if tuple(row[number] for number in at) in keys]
    return rows


def wrong(root: PlanNode, rng: random.Random, most: int) -> tuple[list[str], int]:
    """(what is not the same; of how many keys fewer rows were read)."""
    plan, found, count = by_leaf(root), list[str](), 0
    leaves = [one for one in root.walk() if one.kind == "LocalRelation" and not one.children]
    sources = {output_ids(one)[0]: TableColumns(one.facts["table"], is_fixed=False) for one in leaves}
    occurrences = find_occurrences(root, sources)
    names = {one.path: output_ids(one) for one in leaves}
    occurrences = tuple(
        replace(one, columns={number: str(names[one.path].index(number)) for number in names[one.path]})
        for one in occurrences
    )
    known, ids = KnownColumns(root, (), {}), output_ids(root)
    for key in [(one,) for one in dict.fromkeys(ids)] + [tuple(dict.fromkeys(ids))[:2]]:
        readings = find_keyed_readings(known, occurrences, key)
        for tables, _ in rng.sample(CHANGES, most) if readings else ():
            given = {(one.facts["table"], one.path): tables[one.facts["table"]] for one in leaves}
            try:
                whole = keyed(rows_of(plan, given), key)
            except Fails:
                continue
            keys = {one for one in whole if None not in one and rng.random() < 0.7} | {(7,) * len(key)}
            fewer = {one: rows_with(readings, one[1], rows, keys) for one, rows in given.items()}
            count += any(len(rows) < len(given[one]) for one, rows in fewer.items())
            part = keyed(rows_of(plan, fewer), key)
            found += [f"{key}, {keys}: {tables}" for one in keys if whole.get(one) != part.get(one)]
    return found, count


def keyed(rows: Sequence[Mapping[int, Any]], key: Sequence[int]) -> dict[tuple[Any, ...], Counter[str]]:
    """Key → its rows."""
    found: dict[tuple[Any, ...], Counter[str]] = {}
    for row in rows:
        found.setdefault(tuple(row[one] for one in key), Counter())[str(row)] += 1
    return found


def checked(seeds: range, depth: int) -> tuple[list[str], int]:
    """Over random trees."""
    found, count = list[str](), 0
    for seed in seeds:
        rng = random.Random(seed)
        more, used = wrong(random_plan(rng, depth)(()), rng, 12)
        found, count = found + more, count + used
    return found, count


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_rows_of_keys_do_not_depend_on_rows_of_other_keys(depth: int) -> None:
    """Trees of one to three nodes: of many of them fewer rows are read, and no row of the keys differs."""
    found, count = checked(range(depth * 1000, depth * 1000 + examples(60, 60)), depth)
    assert not found, found[:3]
    assert count > 40


@pytest.mark.parametrize("kind", sorted({**ONE_INPUT, **TWO_INPUTS}))
def test_rows_of_keys_of_each_node_kind_do_not_depend_on_others(kind: str) -> None:
    """Each kind of node over each other kind, and below it."""
    for _, plan in plans_of(kind):
        found, _ = wrong(plan, random.Random(kind), 6)
        assert not found, found[:3]


def test_a_reading_by_the_wrong_column_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The law fails, if the first column of a table is taken for the key of what it affects."""
    inner = keyed_readings._columns

    def first(step: Any, occurrence: Any, ids: Any) -> Any:
        right = inner(step, occurrence, ids)
        return None if right is None else (next(iter(occurrence.columns)),) * len(right)

    monkeypatch.setattr(keyed_readings, "_columns", first)
    assert checked(range(200), 2)[0]


def test_tables_are_those_of_the_oracle() -> None:
    """Both tables are among the readings that are found."""
    rng, seen = random.Random(5), set[str]()
    for _ in range(60):
        root = random_plan(rng, 2)(())
        sources = {
            output_ids(one)[0]: TableColumns(one.facts["table"], is_fixed=False)
            for one in root.walk()
            if one.kind == "LocalRelation" and not one.children
        }
        occurrences = find_occurrences(root, sources)
        found = find_keyed_readings(KnownColumns(root, (), {}), occurrences, output_ids(root)[:1])
        seen |= {one.occurrence.table for one in found}
    assert seen == {L, R}
