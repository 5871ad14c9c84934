"""CREATE, ALTER and CREATE VIEW are checked before they change anything, as far as Spark and the format can check."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tablestore_engine.api import Engine, TableSpec, TableVersion, WriteSpec
from tablestore_engine.errors import TablestoreError
from tablestore_engine.format import schema_check
from tests.doses import case_rows
from tests.unit.store.table_world import make_table

KEYED = WriteSpec(TableSpec(primary_key=("id",), options={"bucket": "1"}))
BEFORE = {"t": [(1, "a")], "v": [(1,)], "over": [(1,)]}


@pytest.fixture(scope="module")
def engine(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The table demo.t, the view demo.v of it and the view demo.over of that; `spark` is the session it adopts."""
    del spark
    with Engine(str(tmp_path_factory.mktemp("ddl") / "warehouse")) as made:
        made.write("demo.t", pa.table({"id": [1], "name": ["a"]}), KEYED)
        made.sql("create view demo.v as select id from demo.t")
        made.sql("create view demo.over as select * from demo.V")
        yield made


REFUSED = [
    # types that the format does not have
    ("alter table demo.t add column c varchar(0)", "TS1138"),
    ("alter table demo.t add columns (c char(0))", "TS1138"),
    ("create table demo.new (c decimal(0,0))", "TS1138"),
    ("create table demo.new (c struct<>)", "TS1138"),
    ("create table demo.new as select named_struct() as c", "TS1138"),
    # names that differ only in case
    ("alter table demo.t add column NAME int", "TS1139"),
    ("alter table demo.t add columns (p int, P int)", "TS1139"),
    ("alter table demo.t rename column name to ID", "TS1139"),
    ("create table demo.new (c array<struct<x:int,X:int>>)", "TS1139"),
    ("create table demo.new as select named_struct('x', 1, 'X', 2) as c", "TS1139"),
    ("create table demo.new as select 1 as a, 2 as A", "TS1024"),
    # unknown options
    ("create table demo.new (c int) tblproperties ('bukcet' = '2')", "TS1006"),
    ("create or replace table demo.t tblproperties ('compression' = 'zstd') as select 1 as id", "TS1006"),
    ("alter table demo.t set tblproperties ('snapshot.time-retention' = '1 d')", "TS1006"),
    # collations
    ("create table demo.new (k string collate utf8_lcase)", "TS1140"),
    ("create table demo.new (k varchar(3) collate utf8_lcase)", "TS2140"),
    ("create table demo.new as select 'a' collate utf8_lcase as k", "TS1140"),
    ("create table demo.new as select array('a' collate unicode_ci) as k", "TS1140"),
    ("create table demo.new as select map('a' collate unicode_ci, 1) as k", "TS1140"),
    ("create table demo.new as select map(1, named_struct('f', 'a' collate unicode_ci)) as k", "TS1140"),
    ("create or replace table demo.t as select 1 as id, 'a' collate utf8_lcase as name", "TS1140"),
    ("alter table demo.t add column k string collate utf8_lcase", "TS1140"),
    # views
    ("create or replace view demo.v as select * from demo.v", "TS2141"),
    ("create or replace view demo.v as select * from demo.Over", "TS2141"),
    ("create or replace view demo.v as select 1 as a, 2 as A", "TS1505"),
    ("create or replace view demo.v (x, X) as select 1, 2", "TS1505"),
    ("create or replace view demo.v as select * from demo.nowhere", "TS1515"),
    ("create or replace view demo.v as select nothing from demo.t", "TS1505"),
    ("create or replace view demo.t as select 1 as one", "TS1406"),
]


@pytest.mark.parametrize(("statement", "code"), case_rows(REFUSED, 10))
def test_refused_statement_changes_nothing(engine: Engine, statement: str, code: str) -> None:
    """Tables and views are as before, and no other one is there."""
    with pytest.raises(TablestoreError) as refused:
        engine.sql(statement)
    assert refused.value.code == code
    assert {name: list(engine.sql(f"select * from demo.{name}").rows) for name in BEFORE} == BEFORE
    assert {row[1] for row in engine.sql("show tables in demo").rows} == set(BEFORE)


def test_collated_values_go_into_columns_without_collation(engine: Engine) -> None:
    """INSERT, UPDATE and MERGE store the text, as Spark casts it; a view may have a collation."""
    engine.sql("create schema coll")
    engine.sql("create table coll.t as select 1 as id, 'a' collate utf8_binary as k, array('x') as l")
    engine.sql("insert into coll.t select 2, 'B' collate utf8_lcase, array('Y' collate utf8_lcase)")
    engine.sql("update coll.t set k = 'C' collate utf8_lcase where id = 1")
    engine.sql("create view coll.v as select id, k collate utf8_lcase as k from coll.t")
    assert sorted(engine.sql("select * from coll.t").rows) == [(1, "C", ["x"]), (2, "B", ["Y"])]
    assert engine.sql("select id from coll.v where k = 'b'").rows == ((2,),)
    assert engine.sql("select id from coll.t where k = 'b'").rows == ()


def test_view_over_a_staged_table_is_created(engine: Engine) -> None:
    """As `dbt build` makes a view of a model whose rows are not yet published."""
    engine.write("held.t", pa.table({"id": [7]}), replace(KEYED, stage="s"))
    staged = {"held.t": TableVersion(branch="s")}
    engine.sql("create or replace view held.v as select id from held.t", versions=staged)
    assert engine.sql("select * from held.v", versions=staged).rows == ((7,),)
    with pytest.raises(TablestoreError, match="TS1417"):
        engine.sql("select * from held.v")


def test_table_with_an_unknown_type_is_listed_and_dropped(engine: Engine) -> None:
    """A table that an earlier release made with VARCHAR(0) stops no statement about others, and can be dropped."""
    engine.sql("create schema bad")
    engine.sql("create table bad.t (id int)")
    engine.sql("create table bad.u (id int)")
    file = Path(engine.warehouse) / "bad.db/t/schema/schema-0"
    content = json.loads(file.read_bytes())
    content["fields"][0]["type"] = "VARCHAR(0)"
    file.write_text(json.dumps({key: content[key] for key in content if not key.startswith("tablestore.")}))
    assert [row[1] for row in engine.sql("show tables in bad").rows] == ["t", "u"]
    listed = "select table_name, comment from information_schema.tables where table_schema = 'bad'"
    assert [row[1] is None for row in sorted(engine.sql(listed).rows)] == [False, True]
    with pytest.raises(TablestoreError, match="TS1111"):
        engine.sql("select * from bad.t")
    engine.sql("drop table bad.t")
    assert [row[1] for row in engine.sql("show tables in bad").rows] == ["u"]


def test_columns_of_others_that_differ_only_in_case(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another engine may make them: SQL refuses to read the table until one is renamed."""
    monkeypatch.setattr(schema_check, "check_schema", lambda *_: None)
    made = make_table(tmp_path, keys=(), columns={"a": "BIGINT", "A": "BIGINT"})
    shutil.copytree(made.location, Path(engine.warehouse) / "demo.db" / "twins")
    for statement in (
        "select 1 from demo.twins",
        "update demo.twins set a = 1",
        "create view demo.w as from demo.twins",
    ):
        with pytest.raises(TablestoreError, match="TS2170"):
            engine.sql(statement)
    engine.sql("alter table demo.twins rename column A to b")
    assert engine.sql("select a, b from demo.twins").rows == ()
    engine.sql("drop table demo.twins")
