"""Append-only tables against a multiset, keyed ones against a dict: whatever replaces what, rows, counts and changelog
are the difference, and nothing else is committed.
"""

from __future__ import annotations

import datetime as dt
import math
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.store.changelog import ChangelogReader
from tablestore_engine.store.commit.commit_report import CommitReport
from tablestore_engine.store.rows.row_filter import Interval, RowFilter, RowPositions, SameKeys
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.write_request import WriteMode
from tests.doses import cases
from tests.unit.store.table_world import Row, make_table, put, rows_of

COLUMNS = {
    "day": "DATE",
    "at": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "id": "INT",
    "v": "STRING",
    "x": "DOUBLE",
}
MIDNIGHT = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
Key = tuple[Any, ...]


def _row(hour: int | None, number: int | None, text: str | None) -> Row:
    at = None if hour is None else MIDNIGHT + dt.timedelta(hours=hour)
    day = dt.date(2024, 1, 1) + dt.timedelta(days=(hour or 0) // 24)
    return {"day": day, "at": at, "id": number, "v": text, "x": [None, 0.0, -0.0, math.nan, 1.5][number or 0]}


ROWS = st.lists(
    st.builds(
        _row,
        st.none() | st.integers(0, 71),
        st.none() | st.integers(0, 4),
        st.sampled_from([None, "", "a", "é"]),
    ),
    max_size=9,
)
SHAPES: dict[str, dict[str, Any]] = {
    "vectors": {"options": {"deletion-vectors.enabled": "true"}},
    "rewritten": {},
    "partitioned": {"partitions": ("day",), "options": {"deletion-vectors.enabled": "true"}},
    "bucketed": {"options": {"bucket": "2", "bucket-key": "v", "deletion-vectors.enabled": "true"}},
}
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), ROWS),
        st.tuples(st.just("overwrite"), ROWS),
        st.tuples(st.just("interval"), ROWS, st.integers(0, 60), st.integers(0, 40)),
        st.tuples(st.just("keys"), ROWS),
        st.tuples(st.just("positions"), ROWS, st.sets(st.integers(0, 12))),
        st.tuples(st.just("repeat"), ROWS),
        st.tuples(st.just("compact"), ROWS),
    ),
    min_size=1,
    max_size=7,
)


def frozen(rows: Iterable[Row]) -> Counter[Key]:
    """Rows as a multiset."""
    return Counter((row["day"], row["at"], row["id"], row["v"], repr(row["x"])) for row in rows)


def _positions(store: TableStore, chosen: set[int]) -> tuple[RowFilter, Counter[Key]]:
    """Visible rows by their number in the scan, and what they are."""
    plan, by_file, gone, number = store.plan_scan(), {}, Counter[Key](), 0
    for file in plan.files:
        visible = np.setdiff1d(
            np.arange(file.meta.row_count), np.asarray((file.deleted or BitMap()).to_array())
        )
        rows = store.read(type(plan)(plan.snapshot, plan.schema, (file,))).to_pylist()
        picked = [at for at in range(len(visible)) if number + at in chosen]
        number += len(visible)
        if picked:
            by_file[file.meta.file_name] = BitMap([int(visible[at]) for at in picked])
            gone += frozen(rows[at] for at in picked)
    return RowPositions(by_file), gone


class Multiset:
    """The oracle: rows, and what replacing them changes."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.rows: Counter[Key] = Counter()

    def replaced(self, gone: Counter[Key], new: Counter[Key]) -> tuple[Counter[Key], Counter[Key], int]:
        """(came, went, unchanged)"""
        same = gone & new
        self.rows = self.rows - gone + new
        return new - same, gone - same, sum(same.values())


def _play(store: TableStore, oracle: Multiset, step: tuple[Any, ...]) -> None:
    what, rows, before = step[0], step[1], store.snapshots.find_latest_id() or 0
    new = frozen(rows)
    if what == "compact":
        store.compact(full=True)
        assert all(
            not ChangelogReader(store.context).has_changes(store.snapshots.get(n))
            for n in _since(store, before)
        )
        return
    gone: Counter[Key] = Counter()
    request: dict[str, Any] = {}
    if what in ("overwrite", "repeat"):
        if what == "repeat":
            rows = store.read().to_pylist()
            new = frozen(rows)
        gone, request = Counter(oracle.rows), {"mode": WriteMode.OVERWRITE_TABLE}
    elif what == "interval":
        start, end = (MIDNIGHT + dt.timedelta(hours=h) for h in (step[2], step[2] + step[3]))
        gone = Counter(
            {key: n for key, n in oracle.rows.items() if key[1] is not None and start <= key[1] < end}
        )
        request = {"mode": WriteMode.REPLACE, "replaces": Interval("AT", start, end)}
    elif what == "keys":
        keys = {row["id"] for row in rows} - {None}
        gone = Counter({key: n for key, n in oracle.rows.items() if key[2] in keys})
        request = {"mode": WriteMode.REPLACE, "replaces": SameKeys(("id",))}
    elif what == "positions":
        picks, gone = _positions(store, step[2])
        request = {"mode": WriteMode.REPLACE, "replaces": picks}
    came, went, unchanged = oracle.replaced(gone, new)
    report = put(store, *rows, **request)
    _check_report(store, report, before, (came, went, unchanged))


def _since(store: TableStore, before: int) -> range:
    return range(before + 1, (store.snapshots.find_latest_id() or 0) + 1)


def _check_report(
    store: TableStore, report: CommitReport, before: int, told: tuple[Counter[Key], Counter[Key], int]
) -> None:
    came, went, unchanged = told
    counts = (report.inserted, report.updated, report.deleted, report.unchanged)
    assert counts == (sum(came.values()), 0, sum(went.values()), unchanged)
    found: dict[int, Counter[Key]] = {int(RowKind.INSERT): Counter(), int(RowKind.DELETE): Counter()}
    for number in _since(store, before):
        for batch in ChangelogReader(store.context).read(store.snapshots.get(number)):
            for one in batch.rows.to_pylist():
                found[one["_ROW_KIND"]] += frozen([one])
    assert found == {int(RowKind.INSERT): came, int(RowKind.DELETE): went}
    if not came and not went:
        assert not [n for n in _since(store, before) if store.snapshots.get(n).commit_kind != "COMPACT"]


@pytest.mark.parametrize("shape", cases(SHAPES, 2))
@settings(max_examples=8, deadline=None)
@given(steps=STEPS)
def test_every_replacement_is_the_difference_of_multisets(shape: str, steps: list[tuple[Any, ...]]) -> None:
    """Appends, overwrites, intervals, keys, positions and compactions: rows, counts and changes are the oracle's,
    what changes nothing commits nothing, and every earlier snapshot still reads as it did.
    """
    with tempfile.TemporaryDirectory() as folder:
        store = make_table(Path(folder), keys=(), columns=COLUMNS, **SHAPES[shape])
        oracle, shown = Multiset(), {}
        for step in steps:
            _play(store, oracle, step)
            assert frozen(rows_of(store)) == oracle.rows
            newest = store.snapshots.find_latest_id()
            if newest is not None:
                shown[newest] = Counter(oracle.rows)
        for number, rows in shown.items():
            assert frozen(rows_of(store, number)) == rows
        assert store.verify() == ()


def _keyed_expectation(
    stored: dict[int, Row], rows: list[Row], gone: set[int]
) -> tuple[dict[int, Row], tuple[int, int, int, int]]:
    """The table after the rows of `gone` gave way to `rows`, and (inserted, updated, deleted, unchanged)."""
    new = {int(row["id"]): row for row in rows}  # type: ignore[call-overload]
    after = {key: row for key, row in stored.items() if key not in gone} | new
    same = sum(frozen([stored[key]]) == frozen([row]) for key, row in new.items() if key in stored)
    updated = sum(key in stored for key in new) - same
    return after, (len(new) - same - updated, updated, len(gone - set(new)), same)


@settings(max_examples=8, deadline=None)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["interval", "keys", "overwrite"]), ROWS, st.integers(0, 60), st.integers(0, 40)
        ),
        max_size=5,
    )
)
def test_replacing_in_a_keyed_table_deletes_what_is_picked_and_upserts_the_rest(
    steps: list[tuple[str, list[Row], int, int]],
) -> None:
    """Picked keys without a new row go, new rows win over whatever row their key has, equal rows are untouched."""
    with tempfile.TemporaryDirectory() as folder:
        store = make_table(Path(folder), columns=COLUMNS, options={"bucket": "2"})
        stored: dict[int, Row] = {}
        for what, drawn, hour, length in steps:
            rows = list({row["id"]: row for row in drawn if row["id"] is not None}.values())
            start, end = MIDNIGHT + dt.timedelta(hours=hour), MIDNIGHT + dt.timedelta(hours=hour + length)
            texts = {row["v"] for row in rows} - {None}
            picks: dict[str, set[int]] = {
                "interval": {k for k, r in stored.items() if r["at"] is not None and start <= r["at"] < end},  # type: ignore[operator]
                "keys": {k for k, r in stored.items() if r["v"] in texts},
                "overwrite": set(stored),
            }
            request: dict[str, dict[str, Any]] = {
                "interval": {"mode": WriteMode.REPLACE, "replaces": Interval("at", start, end)},
                "keys": {"mode": WriteMode.REPLACE, "replaces": SameKeys(("V",))},
                "overwrite": {"mode": WriteMode.OVERWRITE_TABLE},
            }
            before = store.snapshots.find_latest_id()
            stored, counts = _keyed_expectation(stored, rows, picks[what])
            report = put(store, *rows, **request[what])
            assert (report.inserted, report.updated, report.deleted, report.unchanged) == counts
            assert frozen(rows_of(store)) == frozen(stored.values())
            if not any(counts[:3]):
                assert store.snapshots.find_latest_id() == before
            else:
                changed = sum(b.rows.num_rows for b in ChangelogReader(store.context).read(store.latest()))
                assert changed == counts[0] + 2 * counts[1] + counts[2]
        assert store.verify() == ()
