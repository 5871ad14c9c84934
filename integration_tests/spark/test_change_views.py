"""Changes between two states as a table in SQL: the same rows as Table.changes gives, from files of every kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tablestore_engine.api import (
    Engine,
    OnSchemaChange,
    SparkSettings,
    Table,
    TableSpec,
    WriteMode,
    WriteSpec,
)
from tablestore_engine.errors import TablestoreError
from tablestore_engine.format import schema as table_schema
from tests.doses import examples

KEYED = WriteSpec(table=TableSpec(primary_key=("id",), options={"bucket": "2"}))
GROWING = replace(KEYED, on_schema_change=OnSchemaChange.APPEND_NEW_COLUMNS)


@pytest.fixture
def engine(spark: SparkSession, tmp_path: Path) -> Iterator[Engine]:
    """A warehouse of its own in the shared session."""
    del spark
    with Engine(str(tmp_path / "w"), spark=SparkSettings("local[2]")) as opened:
        opened.create_database("d")
        yield opened


def rows(*pairs: tuple[int, str], **more: list[Any]) -> pa.Table:
    """Rows with id and name."""
    return pa.table({"id": [one for one, _ in pairs], "name": [name for _, name in pairs], **more})


def selected(engine: Engine, between: str, name: str = "t") -> Counter[Any]:
    """What SQL gives, by (kind, snapshot, values)."""
    frame = engine.query(f"select * from d__changes_{between}.{name}")
    *columns, kind, snapshot = frame.columns
    assert (kind, snapshot) == ("_row_kind", "_snapshot_id")
    return Counter((one[kind], one[snapshot], *(one[name] for name in columns)) for one in frame.collect())


def told(table: Table, since: int, until: int) -> Counter[Any]:
    """What the engine gives without Spark."""
    found = table.changes(since, until)
    names = found.column_names[:-2]
    return Counter(
        (one["_row_kind"], one["_snapshot_id"], *(one[name] for name in names)) for one in found.to_pylist()
    )


def test_every_range_of_a_keyed_table(engine: Engine) -> None:
    """Puts, updates, deletes, an overwrite, a fold, a new column: any two snapshots, in the columns of the end."""
    for number in range(1, 4):
        engine.write("d.t", rows((number, "a"), (number + 1, f"b{number}")), KEYED)
    engine.sql("delete from d.t where id = 2")
    engine.table("d.t").compact(full=True)
    engine.write("d.t", rows((7, "x"), (3, "b3")), replace(KEYED, mode=WriteMode.OVERWRITE_TABLE))
    engine.write("d.t", rows((3, "c"), (8, "y"), more=[1, 2]), GROWING)
    table = engine.table("d.t")
    newest = table.latest_snapshot_id() or 0
    for since in range(newest + 1):
        for until in range(max(since, 1), newest + 1)[:: examples(2, 1)]:
            width = 5 if until == newest else 4  # columns are those of the end
            expected = Counter(one[:width] for one in told(table, since, until).elements())
            assert selected(engine, f"{since}_to_{until}") == expected, (since, until)


def test_from_the_start_all_rows_come_as_inserts(engine: Engine) -> None:
    """Those of the state at the end, whatever happened before; of an empty table none."""
    engine.write("d.t", rows((1, "a"), (2, "b")), KEYED)
    engine.write("d.t", rows((2, "c")), KEYED)
    engine.sql("delete from d.t where id = 1")
    assert selected(engine, "start_to_3") == Counter({("+I", 3, 2, "c"): 1})
    assert selected(engine, "start_to_1") == Counter({("+I", 1, 1, "a"): 1, ("+I", 1, 2, "b"): 1})
    assert selected(engine, "3_to_3") == Counter()


@pytest.mark.nightly  # by day every range of a keyed table; tests/laws/test_diff_laws.py
def test_a_table_without_a_key(engine: Engine) -> None:
    """Its rows come as inserts; rows that a DELETE or an overwrite takes away come from a comparison."""
    plain = WriteSpec(table=TableSpec())
    engine.write("d.t", rows((1, "a"), (1, "a"), (2, "b")), plain)
    engine.write("d.t", rows((3, "c")), plain)
    engine.sql("delete from d.t where id = 1")
    engine.write("d.t", rows((3, "c"), (4, "d")), replace(plain, mode=WriteMode.OVERWRITE_TABLE))
    table = engine.table("d.t")
    newest = table.latest_snapshot_id() or 0
    for since in range(newest + 1):
        for until in range(max(since, 1), newest + 1):
            assert selected(engine, f"{since}_to_{until}") == told(table, since, until), (since, until)
    assert {one[0] for one in selected(engine, f"2_to_{newest}")} == {"+I", "-D"}


def test_conditions_reach_the_files(engine: Engine) -> None:
    """The scan is Spark's own: filters are pushed, columns that nobody asks for are not read."""
    engine.write("d.t", rows((1, "a"), (2, "b")), KEYED)
    engine.write("d.t", rows((2, "c")), KEYED)
    frame = engine.query("select name from d__changes_0_to_2.t where id > 1 and _snapshot_id = 2")
    plan = frame._jdf.queryExecution().toString()
    assert "GreaterThan(id,1)" in plan
    assert "PartitionFilters: [isnotnull(_snapshot_id" in plan
    assert "_SEQUENCE_NUMBER" not in plan
    assert sorted(one["name"] for one in frame.collect()) == ["b", "c"]


def test_what_is_staged_comes_behind_the_rest(engine: Engine) -> None:
    """Its changes have the number that it was staged with."""
    engine.write("d.t", rows((1, "a")), KEYED)
    engine.write("d.t", rows((2, "b")), KEYED)
    engine.write("d.t", rows((1, "z")), replace(KEYED, stage="s"))
    assert selected(engine, "1_to_branch_s") == Counter(
        {("+I", 2, 2, "b"): 1, ("-U", 3, 1, "a"): 1, ("+U", 3, 1, "z"): 1}
    )
    assert selected(engine, "start_to_branch_s") == Counter({("+I", 3, 1, "z"): 1, ("+I", 3, 2, "b"): 1})


def test_what_is_refused(engine: Engine) -> None:
    """Snapshots that are gone (TS1472), backwards and names of its own (TS1473), a state that never was."""
    spec = WriteSpec(
        table=TableSpec(primary_key=("id",), options={"bucket": "2", "tablestore.expire-grace": "0 s"})
    )
    for number in range(1, 5):
        engine.write("d.t", rows((number, "a")), spec)
    engine.table("d.t").expire(keep=1, older_than_ms=0)
    with pytest.MonkeyPatch.context() as patch:  # another engine makes such a table
        patch.setattr(table_schema, "CHANGE_COLUMNS", ())
        engine.write("d.u", rows((1, "a")).append_column("_row_kind", pa.array(["x"])), KEYED)
    for code, text in (
        ("TS1472", "d__changes_1_to_4.t"),
        ("TS1473", "d__changes_5_to_4.t"),
        ("TS1473", "d__changes_0_to_1.u"),
        ("TS1302", "d__changes_4_to_9.t"),
    ):
        with pytest.raises(TablestoreError, match=code):
            engine.query(f"select * from {text}")
    assert selected(engine, "start_to_4")
