"""Names in SQL reach our tables at one state each, through native Parquet."""
# ruff: noqa: E501 - schemas read best on one line

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from integration_tests.spark.tables import LOCAL_READS, StubTables, parquet_file, scan
from tablestore_engine.catalog.resolved_names import Overrides
from tablestore_engine.errors import FixRequest, NotFound, Unsupported
from tablestore_engine.format.data_type import DataField, DataType
from tablestore_engine.format.schema import TableSchema, new_schema
from tablestore_engine.runtime.scratch import ScratchPlace
from tablestore_engine.spark.resolver import Resolver
from tablestore_engine.spark.session import session_scratch
from tablestore_engine.spark.spark_settings import SparkSettings
from tablestore_engine.sql.table_version import TableVersion


@pytest.fixture
def tables() -> StubTables:
    """An empty warehouse."""
    return StubTables()


@pytest.fixture
def resolver(spark: SparkSession, warehouse: str, tables: StubTables) -> Resolver:
    """A resolver over it."""
    return Resolver(
        spark, tables, session_scratch(ScratchPlace(warehouse), SparkSettings("local[2]")), reads=LOCAL_READS
    )


_ROWS = pa.table({"id": pa.array(range(200), pa.int64()), "name": [f"n{i}" for i in range(200)]})
_SCHEMA = new_schema(_ROWS.schema)


def _ids(resolver: Resolver, text: str, overrides: Overrides | None = None) -> list[int]:
    frame = resolver.query(text, overrides) if overrides else resolver.query(text)
    return sorted(row[0] for row in frame.collect())


def test_deleted_rows_are_hidden(resolver: Resolver, tables: StubTables, tmp_path: Path) -> None:
    """Deleted positions of each file are left out, whatever is selected; files without deletions are whole."""
    plan = scan(
        _SCHEMA,
        parquet_file(tmp_path, "a.parquet", _ROWS.slice(0, 70), _SCHEMA, [0, 63, 64, 69]),
        parquet_file(tmp_path / "b", "b.parquet", _ROWS.slice(70, 65), _SCHEMA, [64]),
        parquet_file(tmp_path / "c", "c.parquet", _ROWS.slice(135), _SCHEMA),
    )
    tables.put("demo", "dead", "s1", plan)
    alive = [i for i in range(200) if i not in (0, 63, 64, 69, 134)]
    assert _ids(resolver, "select id from demo.dead") == alive
    assert resolver.query("select count(*) from demo.dead").collect()[0][0] == len(alive)
    assert _ids(resolver, "select d.id from demo.dead d where d.id in (63, 65, 134, 199)") == [65, 199]


def test_one_look_up_per_statement_and_moves(resolver: Resolver, tables: StubTables, tmp_path: Path) -> None:
    """A name is looked up once per statement, its files are planned once per state, and a new state is seen."""
    tables.put(
        "demo",
        "moving",
        "s1",
        scan(_SCHEMA, parquet_file(tmp_path, "m1.parquet", _ROWS.slice(0, 3), _SCHEMA)),
    )
    twice = "select a.id from demo.moving a join demo.moving b on a.id = b.id"
    assert _ids(resolver, twice) == [0, 1, 2]
    aliases = [entry for entry in tables.lookups if entry[0] in ("a", "b")]
    assert len(aliases) <= 1, "behind the first name that is no relation, no alias is looked up"
    assert _ids(resolver, "select id from `demo`.moving -- demo.other") == [0, 1, 2]
    assert [entry[:2] for entry in tables.lookups].count(("demo", "moving")) == 2
    assert len(tables.loaded) == 1
    lazy = resolver.query("select id from demo.moving")
    tables.put(
        "demo",
        "moving",
        "s2",
        scan(_SCHEMA, parquet_file(tmp_path, "m2.parquet", _ROWS.slice(5, 2), _SCHEMA)),
    )
    assert _ids(resolver, twice) == [5, 6]
    assert sorted(row[0] for row in lazy.collect()) == [0, 1, 2], "an analysed query keeps its state"


def test_schema_evolution(resolver: Resolver, tables: StubTables, tmp_path: Path) -> None:
    """Old files show renamed, widened, added and nested columns as the table has them now, by field id."""
    inner = DataType("ROW", fields=(DataField(3, "x", DataType("INT")), DataField(4, "y", DataType("INT"))))
    old = TableSchema(
        0,
        (DataField(0, "k", DataType("INT")), DataField(1, "v", DataType("INT")), DataField(2, "s", inner)),
        4,
    )
    renamed = DataType("ROW", fields=(DataField(4, "why", DataType("BIGINT")), DataField(3, "x", DataType("INT")), DataField(6, "z", DataType("DATE"))))  # fmt: skip
    new = TableSchema(1, (DataField(0, "key", DataType("BIGINT")), DataField(5, "v", DataType("DATE")), DataField(2, "s", renamed)), 6)  # fmt: skip
    rows = pa.table({"k": pa.array([1, 2], pa.int32()), "v": pa.array([7, 8], pa.int32()),
                     "s": pa.array([{"x": 1, "y": 2}, None], pa.struct([("x", pa.int32()), ("y", pa.int32())]))})  # fmt: skip
    tables.put("demo", "evolved", "s1", scan(new, parquet_file(tmp_path, "e.parquet", rows, old)))
    frame = resolver.query("select * from demo.evolved order by key")
    assert frame.dtypes == [("key", "bigint"), ("v", "date"), ("s", "struct<why:bigint,x:int,z:date>")]
    assert [tuple(row) for row in frame.collect()] == [(1, None, (2, 1, None)), (2, None, None)]


def test_empty_table_and_comments(resolver: Resolver, tables: StubTables) -> None:
    """A table without files has no rows but its columns, with their comments."""
    fields = (replace(_SCHEMA.fields[0], description="it's the key"), _SCHEMA.fields[1])
    tables.put("demo", "empty", "s0", scan(replace(_SCHEMA, fields=fields)))
    frame = resolver.query("select * from demo.empty")
    assert (frame.dtypes, frame.collect()) == ([("id", "bigint"), ("name", "string")], [])
    assert resolver.query("describe table demo.empty").collect()[0]["comment"] == "it's the key"


def test_dropped_and_made_anew(resolver: Resolver, tables: StubTables) -> None:
    """A table that another process dropped and made anew, with other columns and as empty, shows its new columns."""
    tables.put("demo", "anew", "empty", scan(_SCHEMA))
    assert resolver.query("select * from demo.anew").columns == ["id", "name"]
    tables.put("demo", "anew", "empty", scan(replace(_SCHEMA, fields=_SCHEMA.fields[1:])))
    assert resolver.query("select * from demo.anew").columns == ["name"]


def test_time_travel(resolver: Resolver, tables: StubTables, tmp_path: Path) -> None:
    """A state selected by id, tag or time is read beside the current one in one statement."""
    old = scan(_SCHEMA, parquet_file(tmp_path, "t1.parquet", _ROWS.slice(0, 2), _SCHEMA))
    tables.put(
        "demo", "timed", "s2", scan(_SCHEMA, parquet_file(tmp_path, "t2.parquet", _ROWS.slice(0, 4), _SCHEMA))
    )
    for selector in (
        TableVersion(snapshot=1),
        TableVersion(tag="it's"),
        TableVersion(timestamp_ms=1_767_225_600_000),
    ):
        tables.put("demo", "timed", "s1", old, selector)
    both = "select now.id from demo.timed now left join demo.timed {} as past on now.id = past.id where past.id is null"
    for clause in ("version as of 1", "FOR SYSTEM_VERSION AS OF 1", "version as of 'it''s'",
                   "timestamp as of '2026-01-01'", "timestamp as of 1767225600"):  # fmt: skip
        assert _ids(resolver, both.format(clause)) == [2, 3], clause
    assert _ids(resolver, "select timed.id from demo.timed version as of 1") == [0, 1]
    with pytest.raises(FixRequest, match="TS1503"):
        resolver.query("select * from demo.timed timestamp as of current_timestamp()")


def test_overrides(resolver: Resolver, tables: StubTables, tmp_path: Path) -> None:
    """A statement can be given another state for a plain name (staged, as-of); the next one is not affected."""
    tables.put(
        "demo", "gated", "s1", scan(_SCHEMA, parquet_file(tmp_path, "g1.parquet", _ROWS.slice(0, 1), _SCHEMA))
    )
    staged = TableVersion(branch="ts_staged_x")
    tables.put(
        "demo",
        "gated",
        "b",
        scan(_SCHEMA, parquet_file(tmp_path, "g2.parquet", _ROWS.slice(0, 2), _SCHEMA)),
        staged,
    )
    tables.views["demo", "over_gated"] = "select id from demo.gated"
    for name in ("gated", "over_gated"):
        assert _ids(resolver, f"select id from demo.{name}") == [0]
        assert _ids(resolver, f"select id from demo.{name}", Overrides({("demo", "gated"): staged})) == [0, 1]


def test_views(resolver: Resolver, tables: StubTables, tmp_path: Path) -> None:
    """Stored views resolve recursively, follow their tables, and are made again when columns change."""
    tables.put(
        "demo", "base", "s1", scan(_SCHEMA, parquet_file(tmp_path, "v1.parquet", _ROWS.slice(0, 2), _SCHEMA))
    )
    tables.views["demo", "inner_view"] = "select * from demo.base where id > 0"
    tables.views["demo", "outer_view"] = "select * from demo.inner_view"
    assert _ids(resolver, "select * from demo.outer_view") == [1]
    wider = _ROWS.append_column("extra", pa.array(range(200)))
    schema = replace(new_schema(wider.schema), id=1)
    tables.put(
        "demo", "base", "s2", scan(schema, parquet_file(tmp_path, "v2.parquet", wider.slice(0, 3), schema))
    )
    assert resolver.query("select * from demo.outer_view").columns == ["id", "name", "extra"]
    tables.views["demo", "inner_view"] = "select id from demo.base version as of 9"
    tables.put("demo", "base", "s9", scan(_SCHEMA), TableVersion(snapshot=9))
    assert resolver.query("select * from demo.outer_view").collect() == []
    tables.views["demo", "cycle"] = "select * from demo.cycle"
    with pytest.raises(FixRequest, match="TS2141"):
        resolver.query("select * from demo.cycle")
    with pytest.raises(Unsupported, match="TS1514"):
        resolver.query("select * from demo.outer_view version as of 1")


def test_unknown_and_dropped_names(resolver: Resolver, tables: StubTables) -> None:
    """A name that is nowhere, or no longer there, is an error that names it."""
    with pytest.raises(NotFound, match=r"table or view demo\.nowhere does not exist"):
        resolver.query("select * from demo.nowhere")
    with pytest.raises(NotFound, match=r"default\.nowhere"):
        resolver.query("select * from nowhere")
    tables.put("demo", "leaving", "s1", scan(_SCHEMA))
    tables.put("default", "plain", "s1", scan(_SCHEMA))
    assert resolver.query("select * from demo.leaving, PLAIN, Demo.Leaving x").collect() == []
    tables.states.clear()
    for text in ("select * from demo.leaving", "select * from plain"):
        with pytest.raises(NotFound, match="TS1515"):
            resolver.query(text)


def test_spark_errors_are_short(resolver: Resolver, tables: StubTables) -> None:
    """An analysis error keeps its condition and sentence, without plan dump and JVM stack."""
    tables.put("demo", "short", "s1", scan(_SCHEMA))
    with pytest.raises(FixRequest) as caught:
        resolver.query("select nope from demo.short")
    assert caught.value.code == "TS1505"
    assert "UNRESOLVED_COLUMN" in caught.value.why
    assert "nope" in caught.value.why
    for noise in ("Project", "org.apache", "\n", "+-"):
        assert noise not in caught.value.why


def test_many_files(resolver: Resolver, tables: StubTables, tmp_path: Path) -> None:
    """A table of 400 files reads them all, once each."""
    files = [
        parquet_file(tmp_path / str(i % 7), f"f{i}.parquet", _ROWS.slice(i % 200, 1), _SCHEMA)
        for i in range(400)
    ]
    tables.put("demo", "many", "s1", scan(_SCHEMA, *files))
    assert resolver.query("select count(*), sum(id) from demo.many").collect()[0] == (
        400,
        2 * sum(range(200)),
    )
