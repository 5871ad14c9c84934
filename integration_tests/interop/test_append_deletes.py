"""Rows deleted from append-only tables: our vectors are everybody's, theirs are ours, and the changelog tells both.

Each kind of table goes through replacements by interval, keys and positions; every reader shows the oracle's rows at
every snapshot. Then Java, paimon-spark and we delete, append and compact in turns.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyroaring import BitMap

from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.ours import Ours
from integration_tests.interop.peers import ProcessPeer
from integration_tests.interop.rows import arrow_rows, assert_same
from integration_tests.interop.schemas import Schema, schema
from tablestore_engine.store.rows.row_filter import Interval, RowFilter, RowPositions, SameKeys
from tablestore_engine.store.write.write_request import WriteMode, WriteRequest
from tests.doses import cases

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
COLUMNS = {"day": "DATE", "id": "BIGINT", "at": "TIMESTAMP(6) WITH LOCAL TIME ZONE", "v": "STRING"}
SHAPES: dict[str, dict[str, Any]] = {
    "unaware": {},
    "partitioned": {"partitions": ("day",)},
    "bucketed": {"options": {"bucket": "2", "bucket-key": "id"}},
    "without_vectors": {"options": {"deletion-vectors.enabled": "false"}},
}
Plain = dict[str, Any]


def rows(numbers: range, text: str = "a") -> list[Plain]:
    """One row per hour."""
    moments = [START + dt.timedelta(hours=n) for n in numbers]
    return [{"day": at.date(), "id": n, "at": at, "v": text} for n, at in zip(numbers, moments, strict=True)]


class Table:
    """Our table, and the rows it must have."""

    def __init__(self, location: Path, made: Schema) -> None:
        """Empty."""
        self.location, self.made, self.us = location, made, Ours()
        self.rows: list[Plain] = []
        self.shown: dict[int, list[Plain]] = {}
        self.us.create(location, made)

    def replace(self, new: list[Plain], picks: RowFilter, gone: Any) -> None:
        """One commit that replaces the rows for which `gone` is true."""
        self.rows = [row for row in self.rows if not gone(row)] + new
        request = WriteRequest(rows=arrow_rows(self.made, new), mode=WriteMode.REPLACE, replaces=picks)
        self.us.store(self.location).write(request)
        self.note()

    def append(self, new: list[Plain]) -> None:
        """One commit."""
        self.rows = self.rows + new
        self.us.write(self.location, arrow_rows(self.made, new))
        self.note()

    def note(self) -> None:
        """What the newest snapshot must show."""
        self.shown[self.us.snapshots(self.location)[-1][0]] = self.rows

    def expected(self, snapshot: int | None = None) -> list[Any]:
        """Plain rows, as readers' answers are compared: moments as wall clocks of UTC."""
        found = self.rows if snapshot is None else self.shown[snapshot]
        return [(row["day"], row["id"], row["at"].replace(tzinfo=None), row["v"]) for row in found]

    def check(self, java: JavaPaimon, *readers: Any) -> None:
        """All readers, newest and every noted snapshot; Java's and Spark's counts; our own checks."""
        for reader in (self.us, java, *readers):
            assert_same(self.expected(), reader.read(self.location), f"{reader.name}, newest")
            for number in self.shown:
                assert_same(
                    self.expected(number), reader.read(self.location, number), f"{reader.name}, {number}"
                )
        assert java.count(self.location) in {None, len(self.rows)}
        assert self.us.store(self.location).verify() == ()

    def replayed(self) -> Counter[Any]:
        """Rows after replaying our changelog from the beginning."""
        found: Counter[Any] = Counter()
        for kind, row in self.us.changelog(self.location, 0, self.us.snapshots(self.location)[-1][0]):
            found[row] += 1 if kind in ("+I", "+U") else -1
        return +found


@pytest.mark.parametrize("shape", cases(SHAPES, 1))
def test_every_reader_shows_what_we_deleted_from_append_tables(
    shape: str, java: JavaPaimon, spark: ProcessPeer, pypaimon: ProcessPeer, rust: ProcessPeer, tmp_path: Path
) -> None:
    """Intervals, keys, positions, whole files, a compaction: equal in all readers at every snapshot."""
    table = Table(tmp_path / "ours.db" / shape, schema(COLUMNS, **SHAPES[shape]))
    table.append(rows(range(72)))
    table.append(rows(range(60, 90)))
    noon = START + dt.timedelta(hours=12)
    later = noon + dt.timedelta(hours=6)
    table.replace(
        rows(range(14, 20), "b"), Interval("at", noon, later), lambda row: noon <= row["at"] < later
    )
    table.replace(rows(range(64, 67), "c"), SameKeys(("id",)), lambda row: row["id"] in (64, 65, 66))
    live = [file for file in table.us.store(table.location).plan_scan().files if file.deleted is None]
    whole = {file.meta.file_name: BitMap(range(file.meta.row_count)) for file in live[:1]}
    store = table.us.store(table.location)
    dead = store.read(type(store.plan_scan())(store.latest(), store.schema, tuple(live[:1]))).to_pylist()
    table.replace([], RowPositions(whole), lambda row: row in dead)
    table.check(java, spark, pypaimon, rust)
    assert spark.count(table.location) == len(table.rows)
    table.us.compact(table.location)
    table.append(rows(range(3), "d"))
    table.check(java, spark, pypaimon, rust)
    assert Counter(table.us.read(table.location)) == table.replayed()


@pytest.mark.nightly  # by day the test above, with deletes of ours alone
@pytest.mark.parametrize("shape", cases(["unaware", "partitioned", "bucketed"], 1))
def test_deletes_of_all_engines_in_turns(
    shape: str, java: JavaPaimon, spark: ProcessPeer, pypaimon: ProcessPeer, rust: ProcessPeer, tmp_path: Path
) -> None:
    """We delete, paimon-spark deletes on top, Java appends and joins files, we delete again: nothing comes back, and
    our changelog tells the deletes of paimon-spark as well.
    """
    table = Table(tmp_path / "ours.db" / shape, schema(COLUMNS, **SHAPES[shape]))
    table.append(rows(range(40)))
    table.append(rows(range(40, 60)))
    hour = START + dt.timedelta(hours=3)
    table.replace([], Interval("at", START, hour), lambda row: row["at"] < hour)
    spark.sql(table.location, "DELETE FROM {table} WHERE id % 7 = 4")
    table.rows = [row for row in table.rows if row["id"] % 7 != 4]
    table.check(java, spark, pypaimon, rust)
    table.replace(rows(range(5, 9), "e"), SameKeys(("id",)), lambda row: row["id"] in range(5, 9))
    table.check(java, spark, pypaimon, rust)
    more = rows(range(100, 104))
    java.write(table.location, arrow_rows(table.made, more))
    table.rows = table.rows + more
    java.compact(table.location)
    table.check(java, spark, pypaimon, rust)
    table.replace([], SameKeys(("id",), arrow_rows(table.made, rows(range(100, 102))).select(["id"])),
                  lambda row: row["id"] in (100, 101))  # fmt: skip
    spark.sql(table.location, "DELETE FROM {table} WHERE id = 103")
    table.rows = [row for row in table.rows if row["id"] != 103]
    table.check(java, spark, pypaimon, rust)
    assert Counter(table.us.read(table.location)) == table.replayed()
