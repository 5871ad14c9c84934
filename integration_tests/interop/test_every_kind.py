"""Each engine follows and writes our tables of each kind: the columns `stream` and `write` of docs/engines.md."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from integration_tests.interop.engine_matrix import CELL, INSERTS, UPSERTS
from integration_tests.interop.flink_tables import FlinkTables
from integration_tests.interop.golden import Golden
from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.oracle import Oracle
from integration_tests.interop.our_tables import OURS, key_rows
from integration_tests.interop.ours import Ours
from integration_tests.interop.peers import Peer, PeerRefused, ProcessPeer
from integration_tests.interop.rows import Change, Row, arrow_rows, as_it_is, assert_same
from integration_tests.interop.sample_data import make_rows
from integration_tests.interop.schemas import Schema, schema
from integration_tests.interop.spark_faults import LIMITS, as_spark_shows
from tablestore_engine.errors import Unsupported

pytestmark = pytest.mark.nightly  # two JVMs and some minutes
UNTOLD = "without_changelog"
EVOLVING, SNAPPY = "evolving_append", "rolled_manifests"
SHIFTED = ("c_date", "c_ltz3", "c_ltz6", "n_deep")
Note = Callable[[str, object], None]
KEYLESS = {name for name in OURS if not OURS[name]().schema.keys}


# streams --------------------------------------------------------------------------------------------------------


def told(location: Path) -> list[Change]:
    """What Paimon's streams give: all changes, of tables without key those of snapshots that replace nothing."""
    replaced = {number for number, kind in Ours().snapshots(location) if kind == "OVERWRITE"}
    passed = replaced if not Ours().store(location).schema.primary_keys else set()
    batches = Ours().follow(location, "earliest")
    return [change for number, changes in batches if number not in passed for change in changes]


def limit(name: str) -> str:
    """What such a stream leaves out."""
    return INSERTS if name in KEYLESS else UPSERTS if name == UNTOLD else "OK"


@pytest.mark.parametrize("name", OURS)
def test_java_follows(
    ours: Callable[[str], Golden], java: JavaPaimon, name: str, record_property: Note
) -> None:
    """From snapshot 1, in the columns of today."""
    words = {"scan__mode": "from-snapshot", "scan__snapshot_id": "1"}
    stream = java.stream(ours(name).location, columns_of_today=True, **words)
    assert_same(told(ours(name).location), [change for _, batch in stream.poll() for change in batch], name)
    record_property(CELL, limit(name))


@pytest.mark.parametrize("name", OURS)
def test_pypaimon_follows(
    ours: Callable[[str], Golden], pypaimon: ProcessPeer, name: str, record_property: Note
) -> None:
    """By its streaming scan from snapshot 1."""
    table = ours(name)
    last = max(number for number, kind in Ours().snapshots(table.location) if kind == "APPEND")
    assert_same(told(table.location), pypaimon.follow(table.location, last), name)
    record_property(CELL, limit(name))


@pytest.mark.parametrize("name", OURS)
def test_rust_follows(
    ours: Callable[[str], Golden], rust: ProcessPeer, name: str, record_property: Note
) -> None:
    """By incremental scans, snapshot by snapshot after the first, in the columns of each."""
    table = ours(name)
    mode = "delta" if name in {*KEYLESS, UNTOLD} else "changelog"
    for number, kind in Ours().snapshots(table.location)[1:]:
        if kind == "APPEND":
            expected = Ours().changelog(table.location, number - 1, number)
            got = rust.changelog(table.location, number - 1, number, mode)
            assert_same(expected, got, f"{name}, snapshot {number}")
    record_property(CELL, limit(name))


@pytest.mark.parametrize("name", OURS)
def test_spark_follows(
    ours: Callable[[str], Golden], spark: ProcessPeer, name: str, record_property: Note
) -> None:
    """By a structured stream from snapshot 1 that ends at the newest. What 0.9.0 cannot do is shown here, too."""
    table = ours(name)
    if any(str(one.type).startswith(("CHAR", "VARCHAR")) for one in table.kind.schema.columns):
        with pytest.raises(PeerRefused, match="should not have output of char/varchar type"):
            spark.follow(table.location)
        said = "refused: Spark 3.5 has no streams of tables with CHAR or VARCHAR, and says [BUG]"
    elif name not in {*KEYLESS, UNTOLD}:
        assert spark.follow(table.location) == []
        said = (
            "cannot: 0.9.0 finds no changelog of APPEND snapshots, and a newer paimon-spark is missing here"
        )
    elif name == EVOLVING:
        assert_same(Ours().changelog(table.location, 0, 1), spark.follow(table.location), name)
        said = "cannot: a stream of 0.9.0 ends where columns change, and a newer paimon-spark is missing here"
    else:
        shown = [(kind, *as_spark_shows(name, [row])) for kind, row in told(table.location)]
        assert_same(shown, spark.follow(table.location), name)
        said = limit(name)
    record_property(CELL, said)


# writes ---------------------------------------------------------------------------------------------------------


class SharedTable:
    """A copy of one of our tables, and new rows for it: new keys, and keys that the table has."""

    def __init__(self, golden: Golden, folder: Path) -> None:
        """`fresh`, beside the copy, is a table of the new rows alone."""
        self.name, self.us = golden.location.name, Ours()
        self.location = folder / "shared.db" / self.name
        shutil.copytree(golden.location, self.location)
        steps = [step.schema for step in golden.kind.steps if step.schema is not None]
        self.schema: Schema = steps[-1] if steps else golden.kind.schema
        self.before: list[Row] = golden.history.rows[max(golden.history.rows)]
        self.replace_new(_new_rows(self.name, self.schema))

    def replace_new(self, new: list[dict[str, Any]]) -> None:
        """Other rows for the engine."""
        self.new = new
        stored = self.us.store(self.location).schema.arrow_schema()
        self.rows = arrow_rows(self.schema, self.new).cast(stored)
        self.fresh = self.location.with_name("fresh")
        if not self.fresh.exists():
            self.us.create(self.fresh, schema({one.name: one.type for one in self.schema.columns}))
        fresh = self.us.store(self.fresh).schema.arrow_schema()
        self.us.write(self.fresh, self.rows.cast(fresh), overwrite={})

    def check(self, reader: Peer, shown: Callable[[Sequence[Row]], list[Row]] = as_it_is) -> None:
        """After the engine has written: new rows of a keyed table are invisible before our compaction, then all are
        there, and our checks find nothing. `shown`: what the reader makes of the rows.
        """
        if self.schema.keys:
            assert_same(self.before, self.us.read(self.location), f"ours, {self.name}, before the compaction")
        self.us.compact(self.location)
        expected = self._expected()
        assert_same(expected, self.us.read(self.location), f"ours, {self.name}")
        assert_same(shown(expected), reader.read(self.location), f"{reader.name}, {self.name}")
        assert self.us.store(self.location).verify() == ()

    def _expected(self) -> list[Row]:
        oracle = Oracle(self.schema)
        oracle.apply([("+I", row) for row in self.new])
        if not self.schema.keys:
            return [*self.before, *oracle.rows()]
        at = [self.schema.names.index(key) for key in self.schema.keys]
        return list({tuple(row[one] for one in at): row for row in [*self.before, *oracle.rows()]}.values())


def _new_rows(name: str, made: Schema) -> list[dict[str, Any]]:
    if name == "key_types":
        return key_rows(4, "theirs", 12)
    columns = {one.name: one.type for one in made.columns}
    rows = make_rows(columns, [*range(4), *range(1000, 1004)], seed=77, required=made.keys)
    fixed = {"dt": "new"} if "dt" in columns else {"at": 100} if name == "sequence_field" else {}
    return [{**row, **fixed} for row in rows]


@pytest.fixture
def shared(ours: Callable[[str], Golden], tmp_path: Path, name: str) -> SharedTable:
    """Of the kind that the test names."""
    return SharedTable(ours(name), tmp_path)


@pytest.mark.parametrize("name", OURS)
def test_java_writes(shared: SharedTable, java: JavaPaimon, name: str) -> None:
    """A batch write."""
    java.write(shared.location, shared.rows)
    shared.check(java)


@pytest.mark.parametrize("name", OURS)
def test_pypaimon_writes(shared: SharedTable, pypaimon: ProcessPeer, name: str) -> None:
    """A batch write."""
    pypaimon.write(shared.location, shared.rows)
    shared.check(pypaimon)


@pytest.mark.parametrize("name", OURS)
def test_rust_writes(shared: SharedTable, rust: ProcessPeer, name: str) -> None:
    """A batch write."""
    rust.write(shared.location, shared.rows)
    shared.check(rust)


@pytest.mark.parametrize("name", OURS)
def test_spark_writes(shared: SharedTable, spark: ProcessPeer, name: str, record_property: Note) -> None:
    """INSERT INTO, without dates and times that 0.9.0 shifts: those before 1582 with a zone or in a struct."""
    shifted = [one for one in SHIFTED if one in shared.schema.names]
    if shifted:
        shared.replace_new([row | dict.fromkeys(shifted) for row in shared.new])
    fresh = spark.ask("name", location=str(shared.fresh))
    spark.sql(shared.location, f"INSERT INTO {{table}} SELECT * FROM {fresh}")
    if name == SNAPPY:
        with pytest.raises(Unsupported, match="snappy"):
            shared.us.compact(shared.location)
        record_property(
            CELL, "refused: TS1134, 0.9.0 compresses manifests with snappy if the table says null"
        )
        return
    shared.check(spark, lambda rows: as_spark_shows(name, rows))
    shift = "OK: dates and some times before 1582 are shifted by days, a fault of 0.9.0"
    record_property(CELL, shift if shifted else LIMITS.get(name, "OK"))


@pytest.mark.parametrize("name", OURS)
def test_flink_writes(shared: SharedTable, flink_tables: FlinkTables, name: str) -> None:
    """INSERT INTO."""
    flink_tables.sql(shared.location, "INSERT INTO {table} SELECT * FROM p.`shared`.`fresh`")
    shared.check(flink_tables)
