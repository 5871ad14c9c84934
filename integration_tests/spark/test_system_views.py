"""information_schema tells what the warehouse holds, at the moment of the statement."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tablestore_engine.api import Engine
from tablestore_engine.errors import TablestoreError

_SETUP = (
    "create schema demo",
    "create schema other",
    "create table demo.orders (id int not null comment 'the key', v string, primary key (id))",
    "create table other.`select_1` (a decimal(10,2), b array<struct<x: int>>)",
    "create view demo.totals as select count(*) as n, max(v) as v from demo.orders",
)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """A warehouse with two schemas, two tables and a view."""
    with Engine(str(tmp_path)) as made:
        for text in _SETUP:
            made.sql(text)
        yield made


def rows(engine: Engine, text: str) -> list[tuple[object, ...]]:
    """Of a query."""
    return [tuple(row) for row in engine.sql(text).rows]


def test_schemata_and_tables(engine: Engine) -> None:
    """Names, kinds and comments; whatever the case of the names that ask."""
    assert rows(engine, "select schema_name from information_schema.schemata order by 1") == [
        ("demo",),
        ("other",),
    ]
    found = rows(
        engine,
        "select table_schema, table_name, table_type, is_insertable_into from INFORMATION_SCHEMA.Tables order by 1, 2",
    )
    assert found == [
        ("demo", "orders", "BASE TABLE", "YES"),
        ("demo", "totals", "VIEW", "NO"),
        ("other", "select_1", "BASE TABLE", "YES"),
    ]


def test_columns_of_tables_and_views(engine: Engine) -> None:
    """In their order, with Spark's types; a view's are those that it has now."""
    text = """select table_name, column_name, ordinal_position, is_nullable, data_type, comment
              from spark_catalog.information_schema.columns order by 1, 3"""
    assert rows(engine, text) == [
        ("orders", "id", 1, "NO", "int", "the key"),
        ("orders", "v", 2, "YES", "string", None),
        ("select_1", "a", 1, "YES", "decimal(10,2)", None),
        ("select_1", "b", 2, "YES", "array<struct<`x`:int>>", None),
        ("totals", "n", 1, "NO", "bigint", None),
        ("totals", "v", 2, "YES", "string", None),
    ]
    engine.sql("alter table demo.orders add column w double")
    engine.sql("create or replace view demo.totals as select w from demo.orders")
    text = "select column_name from information_schema.columns where table_schema = 'demo' order by table_name, 1"
    assert rows(engine, text) == [("id",), ("v",), ("w",), ("w",)]


def test_views_and_what_changes_between_statements(engine: Engine) -> None:
    """Quotes and backslashes of a definition come back as they are."""
    engine.sql(r"create view demo.odd as select 'it''s \\ ${x} \n' as `a b`")
    text = "select view_definition from information_schema.views where table_name = 'odd'"
    assert rows(engine, text) == [(r"select 'it''s \\ ${x} \n' as `a b`",)]
    engine.sql("drop view demo.odd")
    assert rows(engine, text) == []


def test_a_broken_view_hides_nothing(engine: Engine) -> None:
    """It is listed without columns; a table beside it is whole."""
    engine.sql("create view other.broken as select a from other.select_1")
    engine.sql("drop table other.select_1")
    names = "select distinct table_name from information_schema.{} where table_schema = 'other'"
    assert rows(engine, names.format("tables")) == [("broken",)]
    assert rows(engine, names.format("columns")) == []


def test_a_stored_view_may_read_it(engine: Engine) -> None:
    """Each statement sees it anew; a view over `columns` is not among the views whose columns are listed."""
    engine.sql("create view other.names as select table_name from information_schema.tables")
    engine.sql("create table demo.later (id int)")
    assert ("later",) in rows(engine, "select * from other.names")
    engine.sql("create view other.shapes as select table_name, column_name from information_schema.columns")
    assert ("totals", "n") in rows(engine, "select * from other.shapes")


def test_a_template_without_a_catalog(engine: Engine) -> None:
    """What packages make of an empty database."""
    for prefix in ("None.", ".", "`None`."):
        text = f"select count(*) from {prefix}information_schema.tables where table_schema ilike 'DEMO'"
        assert rows(engine, text) == [(2,)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("create schema information_schema", "TS1539"),
        ("create table information_schema.tables (a int)", "TS14"),
        ("insert into information_schema.tables select 1", "TS1"),
        ("drop table information_schema.tables", "TS1"),
        ("create or replace view information_schema.tables as select 1 as a", "TS14"),
        ("select * from information_schema.nothing", "TS1515"),
        ("select * from information_schema.tables version as of 1", "TS1514"),
    ],
)
def test_it_is_read_only(engine: Engine, text: str, code: str) -> None:
    """Nothing gets into it, and what it lacks is named."""
    before = rows(engine, "select * from information_schema.tables order by 2, 3")
    with pytest.raises(TablestoreError, match=code):
        engine.sql(text)
    assert rows(engine, "select * from information_schema.tables order by 2, 3") == before
