"""Statements: what is understood, and what is refused instead of being passed to Spark."""
# ruff: noqa: E501, ISC004 - one statement and its value read best side by side

from __future__ import annotations

import pytest

from tablestore_engine.errors import FixRequest, Unsupported
from tablestore_engine.sql.maintenance_parser import _WHY
from tablestore_engine.sql.parser import parse
from tablestore_engine.sql.statement import (
    AddColumns,
    Alter,
    AlterColumn,
    Analyze,
    ColumnDefinition,
    CommentOn,
    CreateSchema,
    CreateTable,
    CreateView,
    Delete,
    Describe,
    DescribeHistory,
    Drop,
    DropColumns,
    DropPartitions,
    DropSchema,
    Insert,
    Merge,
    NoEffect,
    Optimize,
    Query,
    RenameColumn,
    RenameTo,
    Restore,
    SessionSql,
    SetProperties,
    Show,
    Statement,
    TableName,
    Truncate,
    UnsetProperties,
    Update,
    Vacuum,
)

T = TableName("d", "t")

KNOWN: list[tuple[str, Statement]] = [
    (
        "/* dbt */ create or replace table d.t using tablestore partitioned by (dt) "
        "tblproperties ('log.system'='kafka', bucket=4) comment 'it''s' as with a as (select 1) select * from a;",
        CreateTable(T, replace=True, provider="tablestore", partition_by=("dt",), comment="it's",
                    properties=(("log.system", "kafka"), ("bucket", "4")), query="with a as (select 1) select * from a"),
    ),
    (
        "CREATE TABLE IF NOT EXISTS `d`.`t` (id bigint not null comment 'k', m map<string, array<decimal(10,2)>>, "
        "v int default 1 + (2), primary key (id) not enforced)",
        CreateTable(T, if_not_exists=True, primary_key=("id",), columns=(
            ColumnDefinition("id", "bigint", nullable=False, comment="k"),
            ColumnDefinition("m", "map<string, array<decimal(10,2)>>"),
            ColumnDefinition("v", "int", default="1 + (2)"))),
    ),
    (
        "create table d.t (v int, check (v > 0), constraint c check (v in (1, 2)), check (v < 9)) as select 1 as v",
        CreateTable(T, columns=(ColumnDefinition("v", "int"),), query="select 1 as v",
                    checks=(("check_1", "v > 0"), ("c", "v in (1, 2)"), ("check_3", "v < 9"))),
    ),
    ("create table d.t (select 1 as as_x)", CreateTable(T, query="(select 1 as as_x)")),
    ("create view d.t (a comment 'c', b) comment 'v' as select 1, 2",
     CreateView(T, "select 1, 2", columns=(("a", "c"), ("b", "")), comment="v")),
    ("drop table if exists d.t", Drop("table", T, if_exists=True)),
    ("drop view spark_catalog.d.t", Drop("view", T)),
    ("create schema if not exists d comment 'x'", CreateSchema("d", if_not_exists=True, comment="x")),
    ("drop database d cascade", DropSchema("d", cascade=True)),
    ("insert into d.t values (1,'a;b')", Insert(T, "values (1,'a;b')", head="insert into d.t")),
    ("insert overwrite table d.t partition (dt='x', h) (a) select 1",
     Insert(T, "select 1", overwrite=True, partition=(("dt", "'x'"), ("h", None)), columns=("a",),
            head="insert overwrite table d.t partition (dt='x', h) (a)")),
    ("insert into d.t (select 1)", Insert(T, "(select 1)", head="insert into d.t")),
    ("insert into t by name select 1 a",
     Insert(TableName(None, "t"), "select 1 a", by_name=True, head="insert into t by name")),
    ("with q as (select 1) insert into d.t select * from q",
     Insert(T, "with q as (select 1) select * from q", head="insert into d.t")),
    *((text, kind(T, text)) for text, kind in [
        ("delete from d.t as x where x.id in (select 1)", Delete),
        ("update d.t set a = case when x then 1 else 2 end, t.b = f(1, 2) where c", Update),
        ("merge into d.t using b.s version as of 5 as q on t.id = q.id when not matched then insert *", Merge)]),
    ("delete from d.t", Delete(T, "delete from d.t", all_rows=True)),
    ("truncate table d.t", Truncate(T)),
    ("restore table d.t to version as of 5", Restore(T, snapshot=5)),
    ("restore d.t to version as of 'good'", Restore(T, tag="good")),
    ("restore table d.t to timestamp as of '2026-01-31'", Restore(T, timestamp="2026-01-31")),
    ("alter table d.t rename to d.u", Alter("table", T, RenameTo(TableName("d", "u")))),
    ("alter table d.t add columns (x int, y struct<a:int,b:array<int>> comment 'q')",
     Alter("table", T, AddColumns((ColumnDefinition("x", "int"),
                                   ColumnDefinition("y", "struct<a:int,b:array<int>>", comment="q"))))),
    ("alter table d.t drop column if exists x", Alter("table", T, DropColumns(("x",), if_exists=True))),
    ("alter table d.t rename column x to y", Alter("table", T, RenameColumn("x", "y"))),
    ("alter table d.t alter column x type decimal(20, 2)", Alter("table", T, AlterColumn("x", type_text="decimal(20, 2)"))),
    ("alter table d.t change column x comment 'hi'", Alter("table", T, AlterColumn("x", comment="hi"))),
    ("alter table d.t alter column x drop not null", Alter("table", T, AlterColumn("x", nullable=True))),
    ("alter table d.t set tblproperties ('a.b'='c', d.e = -1, f = TRUE)",
     Alter("table", T, SetProperties((("a.b", "c"), ("d.e", "-1"), ("f", "true"))))),
    ("alter table d.t unset tblproperties if exists ('a', b.c)",
     Alter("table", T, UnsetProperties(("a", "b.c"), if_exists=True))),
    ("comment on table d.t is null", CommentOn("table", T, None)),
    ("show tables in d like 'x*'", Show("tables", "d", pattern="x*")),
    ("show databases", Show("schemas")),
    ("describe table extended d.t", Describe(T, extended=True)),
    ("desc d.t", Describe(T)),
    ("describe history d.t", DescribeHistory(T)),
    ("desc history d.t limit 3", DescribeHistory(T, 3)),
    ("describe history", Describe(TableName(None, "history"))),
    ("show table extended in d like 'x*'", Show("table extended", "d", pattern="x*")),
    ("show create table d.t", Show("create table", name=T)),
    ("optimize d.t", Optimize(T)),
    (
        "alter table d.t drop if exists partition (day < '2026-01-01', r = null), partition (n == -1) purge",
        Alter("table", T, DropPartitions(("`day` < '2026-01-01' and `r` is null", "`n` = -1"), True)),
    ),
    ("optimize d.t where day = '2026-01-01' zorder by (a, b)", Optimize(T, True, ("a", "b"))),
    ("vacuum d.t", Vacuum(T)),
    ("vacuum d.t retain 1.5 hours dry run", Vacuum(T, 1.5, dry_run=True)),
    ("analyze table d.t compute statistics for all columns", Analyze(T, None)),
    ("analyze table d.t compute statistics noscan", Analyze(T)),
    ("analyze table d.t compute statistics for columns a, `b c`", Analyze(T, ("a", "b c"))),
    ("analyze table d.t partition (p) compute statistics", NoEffect("ANALYZE", _WHY["ANALYZE"])),
    ("analyze tables in d compute statistics", NoEffect("ANALYZE", _WHY["ANALYZE"])),
    ("select * from None.d.t", Query("select * from d.t")),
    ("select 'insert into x' from insert_into", Query("select 'insert into x' from insert_into")),
    ("(select 1) union (select 2)", Query("(select 1) union (select 2)")),
    ("explain select 1", Query("explain select 1")),
    ("set a.b = 1", SessionSql("set a.b = 1")),
    ("create temporary view v as select 1", SessionSql("create temporary view v as select 1")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "statement"), KNOWN, ids=[text[:40] for text, _ in KNOWN])
def test_understood(text: str, statement: Statement) -> None:
    """Each clause of a statement we offer arrives in its value, with texts cut exactly."""
    assert parse(text) == statement


@pytest.mark.parametrize(
    "text",
    [
        "optimize d.t garbage", "vacuum d.t retain x hours", "use d", "cache table t as select * from d.t",
        "create table d.t location '/x' as select 1", "create external table d.t (a int)", "describe history d.t limit x",
        "from d.t insert into d.u select 1", "with q as (select 1) from q insert overwrite d.u select 1",
        "with q as (select 1) delete from d.t", "explain insert into d.t select 1", "truncate table d.t partition (a=1)",
        "create materialized view d.t as select 1", "load data inpath 'x' into table d.t", "show table extended in d",
        "begin insert into d.t select 1; end", "create table d.t like d.u", "drop index x on d.t",
        "execute immediate 'drop table d.t'", "alter table d.t add constraint c check (v > 0)",
    ],
)  # fmt: skip
def test_refused(text: str) -> None:
    """Whatever is SQL but not ours is refused with a code, so that Spark never runs it on its own catalog."""
    with pytest.raises((Unsupported, FixRequest)) as caught:
        parse(text)
    assert caught.value.code in ("TS1501", "TS1502")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("create table d.t (v int, check (v > 0))", "CHECK WITHOUT AS"),
        ("create table if not exists d.t (v int, constraint c check (v > 0))", "CHECK WITHOUT AS"),
        ("create table d.t (v int, constraint c check (v > 0), constraint C check (v < 9)) as select 1 as v", "SECOND CONSTRAINT C"),
    ],
)  # fmt: skip
def test_a_check_that_nothing_would_hold_is_refused(text: str, word: str) -> None:
    """A table keeps no constraints: only the rows of CREATE TABLE … AS are checked, by every one of its conditions."""
    with pytest.raises(Unsupported, match="TS1502") as caught:
        parse(text)
    assert word in str(caught.value)


@pytest.mark.parametrize(
    ("text", "where", "expected"),
    [
        ("select 1;\nselect 2", "line 1, column 9", "one statement only"),
        ("select 'a\n  b", "line 1, column 8", "to end"),
        ("drop table a.b.c", "line 1, column 12", "at most two parts"),
        ("drop table d.t d.u", "line 1, column 16", "the end of the statement"),
        ("alter table d.t\n set location 'x'", "line 2, column 2", "RENAME TO"),
        ("insert into d.t partition (a) if not exists select 1", "line 1, column 31", "not offered"),
        ("", "line 1, column 1", "a statement"),
    ],
)
def test_malformed(text: str, where: str, expected: str) -> None:
    """A malformed statement names line, column and what was expected there."""
    with pytest.raises(FixRequest) as caught:
        parse(text)
    assert caught.value.code == "TS1501"
    assert where in caught.value.what
    assert expected in caught.value.why


def test_default_null_is_no_default() -> None:
    """`DEFAULT NULL` says what holds without it, so ADD COLUMN need not refuse it."""
    statement = parse("alter table demo.t add column note string default null comment 'n'")
    assert isinstance(statement, Alter)
    assert statement.action == AddColumns((ColumnDefinition("note", "string", comment="n"),))
