"""The difference of any two snapshots against a dict, or a multiset, of the rows of each: counts and sample rows."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore_engine.api import Engine, Table, TableSpec, WriteMode, WriteSpec
from tablestore_engine.warehouse import net_ends
from tablestore_engine.warehouse.compared_states import ComparedStates
from tests.doses import cases, examples

SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.float64()), ("s", pa.string()), ("n", pa.list_(pa.int64()))])
Row = dict[str, Any]
ROWS = st.lists(
    st.builds(
        lambda number, x, s, n: {"id": number, "x": x, "s": s, "n": n},
        st.integers(0, 5),
        st.sampled_from([None, 0.0, -0.0, math.nan, 1.5]),
        st.sampled_from([None, "", "a"]),
        st.sampled_from([None, [], [1]]),
    ),
    max_size=5,
    unique_by=lambda row: row["id"],
)
STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "put", "delete", "replace", "restore", "compact"]), ROWS),
    min_size=2,
    max_size=6,
)
OPTIONS = {
    "changelogs": {"tablestore.compaction": "dedicated"},
    "states": {"changelog-producer": "none"},
}


def _same(row: Row | None) -> str | None:
    """Equal texts for equal rows: NaN equals NaN, -0.0 differs from 0.0."""
    return None if row is None else repr(sorted(row.items()))


def _apply(table: Table, spec: TableSpec, step: str, rows: list[Row], states: dict[int, list[Row]]) -> None:
    """Perform a step, and keep the rows of each snapshot that it made, as the oracle has them."""
    now = dict(enumerate(states[max(states)]))
    if spec.primary_key:
        now = {row["id"]: row for row in now.values()}
    arrow = pa.Table.from_pylist(rows, SCHEMA)
    if step == "restore" and max(states) > 0:
        number = 1 + len(rows) % max(states)
        table.restore(snapshot=number)
        result = states[number]
    elif step == "compact":
        table.compact(full=True)
        result = list(now.values())
    elif step == "delete" and spec.primary_key:
        kinds = pa.array([3] * len(rows), pa.int8())
        table.write(arrow.append_column("_ROW_KIND", kinds), WriteSpec(table=spec))
        result = [row for key, row in now.items() if key not in {one["id"] for one in rows}]
    elif step == "replace":
        table.write(arrow, WriteSpec(table=spec, mode=WriteMode.OVERWRITE_TABLE))
        result = rows
    elif spec.primary_key:
        table.write(arrow, WriteSpec(table=spec))
        result = list({**now, **{row["id"]: row for row in rows}}.values())
    else:
        table.write(arrow, WriteSpec(table=spec, mode=WriteMode.APPEND))
        result = [*now.values(), *rows]
    for number in range(max(states) + 1, (table.latest_snapshot_id() or 0) + 1):
        states[number] = result


def _expected(
    before: list[Row], after: list[Row], *, is_keyed: bool
) -> Counter[tuple[str | None, str | None]]:
    """(row before, row after) of each change."""
    if is_keyed:
        old, new = ({row["id"]: _same(row) for row in rows} for rows in (before, after))
        return Counter(
            (old.get(key), new.get(key)) for key in old.keys() | new if old.get(key) != new.get(key)
        )
    gone, came = (Counter(map(_same, rows)) for rows in (before, after))
    found: Counter[tuple[str | None, str | None]] = Counter()
    found.update({(row, None): count for row, count in (gone - came).items()})
    found.update({(None, row): count for row, count in (came - gone).items()})
    return found


def _check(states: ComparedStates, expected: Counter[tuple[str | None, str | None]]) -> None:
    found = states.samples(100)
    assert Counter((_same(one.before), _same(one.after)) for one in found) == expected  # type: ignore[arg-type]
    kinds = Counter(one.kind for one in found)
    counts = states.count()
    assert (counts.inserted, counts.updated, counts.deleted) == tuple(
        kinds[kind] for kind in ("inserted", "updated", "deleted")
    )


@pytest.mark.parametrize("options", cases(OPTIONS, 1))
@pytest.mark.parametrize("keys", [("id",), ()])
@given(steps=STEPS, pass_rows=st.sampled_from([2, 1000]))
@settings(max_examples=examples(3, 150), deadline=None)
def test_diff_of_any_two_snapshots(
    keys: tuple[str, ...], options: str, steps: list[tuple[str, list[Row]]], pass_rows: int
) -> None:
    """Both ways, in one turn and in many; by changelogs, and by the rows of both states."""
    spec = TableSpec(keys, options=OPTIONS[options] if keys else {})
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(net_ends, "PASS_ROWS", pass_rows)
        engine = Engine(folder)
        engine.create_table("d.t", SCHEMA, primary_key=keys, options=spec.options)
        table, states = engine.table("d.t"), {0: []}
        for step, rows in steps:
            _apply(table, spec, step, rows, states)
        for (first, before), (second, after) in product(states.items(), repeat=2):
            expected = _expected(before, after, is_keyed=bool(keys))
            _check(table.compare(first, second), expected)
