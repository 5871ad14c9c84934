"""Statements about functions, from text; other kinds of functions are refused by name."""

from __future__ import annotations

import pytest

from tablestore_engine.errors import FixRequest, Unsupported
from tablestore_engine.sql.as_of_clause import called_names
from tablestore_engine.sql.function_parser import parse_definition
from tablestore_engine.sql.parser import parse
from tablestore_engine.sql.statement import (
    ColumnDefinition,
    CreateFunction,
    DescribeFunction,
    DropFunction,
    SessionSql,
    Show,
    TableName,
)

F = TableName("demo", "f")


def test_create_keeps_the_text_after_the_name() -> None:
    """Byte for byte, without a semicolon; the clauses are read."""
    definition = (
        "(x INT DEFAULT 1 + 1 COMMENT 'the x', y MAP<STRING, INT>)\n RETURNS INT NOT DETERMINISTIC "
        "LANGUAGE SQL READS SQL DATA COMMENT 'a;b' RETURN x -- ;\n + y['a']"
    )
    found = parse(f"/* dbt */ create or replace function `demo`.f {definition};")
    assert found == CreateFunction(
        name=F,
        definition=definition,
        body="x -- ;\n + y['a']",
        parameters=(
            ColumnDefinition("x", "INT", default="1 + 1", comment="the x"),
            ColumnDefinition("y", "MAP<STRING, INT>"),
        ),
        returns="INT",
        is_deterministic=False,
        comment="a;b",
        replace=True,
    )
    assert parse_definition(F, definition).body == found.body


@pytest.mark.parametrize(
    ("text", "returns", "is_table", "is_deterministic"),
    [
        ("() returns table(a int, b string) return select 1, 'x'", "table(a int, b string)", True, None),
        ("() returns table return select 1 as a", "table", True, None),
        ("() return 1", None, False, None),
        (
            "(x int) returns struct<a: int> deterministic return named_struct('a', x)",
            "struct<a: int>",
            False,
            True,
        ),
        (
            "() returns decimal(18, 2) contains sql return (select max(n) from demo.t)",
            "decimal(18, 2)",
            False,
            None,
        ),
    ],
)
def test_create_reads_result_and_determinism(
    text: str,
    returns: str | None,
    is_table: bool,
    is_deterministic: bool | None,
) -> None:
    """A table function says so in RETURNS; what is not declared is not known."""
    found = parse(f"create function if not exists demo.f{text}")
    assert isinstance(found, CreateFunction)
    assert (found.returns, found.is_table, found.is_deterministic) == (returns, is_table, is_deterministic)
    assert (found.if_not_exists, found.replace) == (True, False)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("create function f() returns int return 1", "TS1459"),
        ("create function default.f() returns int return 1", "TS1459"),
        ("drop function f", "TS1459"),
        ("create or replace function if not exists demo.f() returns int return 1", "TS1501"),
        ("create function demo.f returns int return 1", "TS1501"),
        ("create function demo.f(x) returns int return 1", "TS1501"),
        ("create function demo.f() returns int", "TS1501"),
        ("create function demo.f() returns int return", "TS1501"),
        ("create function demo.f() returns int language python as $$ 1 $$", "TS1534"),
        ("create function demo.f() returns int as $$ select 1 $$", "TS1534"),
        ("create function demo.f as 'org.example.F'", "TS1534"),
        ("create aggregate function demo.f(x int) returns int return sum(x)", "TS1534"),
    ],
)  # fmt: skip
def test_other_functions_are_refused(text: str, code: str) -> None:
    """Nothing of it reaches Spark."""
    with pytest.raises((FixRequest, Unsupported), match=code):
        parse(text)


def test_other_statements_about_functions() -> None:
    """Of a schema they are the warehouse's, else the session's."""
    assert parse("drop function if exists demo.f") == DropFunction(F, if_exists=True)
    assert parse("describe function extended demo.f") == DescribeFunction(F, extended=True)
    assert parse("desc function spark_catalog.demo.f") == DescribeFunction(F)
    assert parse("show user functions in demo like 'a*'") == Show("functions", "demo", None, "a*")
    assert parse("show functions from spark_catalog.demo") == Show("functions", "demo")
    session = ("show functions", "show system functions", "show functions like 'abs'", "describe function abs",
               "create temporary function f as 'org.example.F'", "drop temporary function f")  # fmt: skip
    assert [parse(text) for text in session] == [SessionSql(text) for text in session]


def test_called_names_are_dotted_names_before_a_parenthesis() -> None:
    """Not in strings and comments, not bare names; tables with a list of columns count too, which does no harm."""
    text = """select demo.f(1), `Demo`.`g h` /* x */ (2), spark_catalog.more.k(3), abs(4), t.id, 'demo.no(1)',
        a.b.c.d(5) -- demo.no(6)
        from demo.t, lateral demo.tf(t.id)"""
    assert called_names(text) == (("demo", "f"), ("Demo", "g h"), ("more", "k"), ("demo", "tf"))
