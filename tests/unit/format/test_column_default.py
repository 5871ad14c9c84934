"""Defaults of columns: which texts are values of which type, and where a column has none."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest

from tablestore_engine.errors import FixRequest, Unsupported
from tablestore_engine.format.capability import check_readable, check_writable
from tablestore_engine.format.column_default import (
    check_defaults,
    default_value,
    literal_default,
    shown_default,
    take_options,
    without_defaults,
)
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.schema import TableSchema, new_schema
from tablestore_engine.format.type_text import parse_type

COLUMNS = pa.schema([("id", pa.int64()), ("v", pa.string()), ("n", pa.int32())])


def _schema(**defaults: str) -> TableSchema:
    made = new_schema(COLUMNS, primary_keys=["id"], options={"bucket": "1"})
    fields = (replace(one, default_value=defaults.get(one.name)) for one in made.fields)
    return replace(made, fields=tuple(fields))


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        ("STRING", "x", "x"),
        ("STRING", "'x'", "x"),
        ("STRING", "''", ""),
        ("STRING", "it''s", "it''s"),
        ("VARCHAR(3)", "äöü", "äöü"),
        ("INT", "'-5'", -5),
        ("BIGINT", "+9223372036854775807", 2**63 - 1),
        ("BOOLEAN", "TRUE", True),
        ("DECIMAL(4, 2)", "1.005", Decimal("1.01")),
        ("DECIMAL(4, 2)", "-1.005", Decimal("-1.01")),
        ("DOUBLE", "1e3", 1000.0),
        ("FLOAT", "0.5", 0.5),
        ("DATE", "2024-02-29", dt.date(2024, 2, 29)),
        ("TIMESTAMP(6)", "'2024-02-29 01:02:03.5'", dt.datetime.fromisoformat("2024-02-29 01:02:03.5")),
    ],
)
def test_a_text_is_the_value_that_java_casts_it_to(type_: str, text: str, value: object) -> None:
    """One pair of quotes goes, as in Java; a DECIMAL is rounded half up."""
    found = default_value(DataField(1, "v", parse_type(type_), default_value=text))
    assert found is not None
    assert found.as_py() == value


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        ("STRING", "'"),
        ("VARCHAR(3)", "four"),
        ("TINYINT", "128"),
        ("INT", "5.0"),
        ("INT", ""),
        ("INT", " 5"),
        ("BOOLEAN", "1"),
        ("DECIMAL(4, 2)", "100"),
        ("DOUBLE", "1e999"),
        ("FLOAT", "nan"),
        ("DATE", "2023-02-29"),
        ("TIMESTAMP(6)", "2024-02-29"),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", "2024-02-29 01:02:03"),
        ("BYTES", "x"),
        ("TIME(0)", "01:02:03"),
    ],
)
def test_another_text_is_refused_and_keeps_a_table_from_being_written(type_: str, text: str) -> None:
    """TS1153 where it is set. A table of another engine that has it is read, and not written."""
    field = DataField(1, "v", parse_type(type_), default_value=text)
    with pytest.raises(FixRequest, match="TS1153"):
        default_value(field)
    theirs = replace(_schema(), fields=(_schema().fields[0], field, _schema().fields[2]))
    check_readable(theirs)
    with pytest.raises(Unsupported, match=r"TS1127.*column v DEFAULT"):
        check_writable(theirs)


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("'x y'", "'x y'"),
        ('"x"', "'x'"),
        ("-5", "-5"),
        ("1.5e3", "1.5e3"),
        ("TRUE", "TRUE"),
        ("date '2024-01-01'", "'2024-01-01'"),
        ("timestamp_ntz'2024-01-01 00:00:00'", "'2024-01-01 00:00:00'"),
    ],
)
def test_a_literal_of_sql_is_kept_as_text(sql: str, text: str) -> None:
    """What it means to Spark is what Java casts the text to, and SHOW CREATE TABLE prints it as it can be read."""
    assert literal_default(sql, "v") == text
    assert shown_default(text) == text


@pytest.mark.parametrize("sql", ["current_date()", "1 + 1", "'it''s'", r"'a\n'", "reflect('a', 'b')", "5L"])
def test_an_expression_is_refused(sql: str) -> None:
    """Java would take the text of an expression for the value; a doubled quote or a backslash means another text."""
    with pytest.raises(FixRequest, match="TS1153"):
        literal_default(sql, "v")


def test_a_text_without_quotes_is_shown_with_them() -> None:
    """Flink's procedure stores texts as they are."""
    assert shown_default("it's new") == r"'it\'s new'"


def test_options_become_defaults_of_columns() -> None:
    """Names have no case; an empty text takes the default away; a stored option that nobody gives now stays."""
    given = {"fields.V.default-value": "x", "fields.n.default-value": ""}
    schema = replace(_schema(n="1"), options={**given, "fields.id.default-value": "7", "bucket": "1"})
    made = take_options(schema, given)
    assert [one.default_value for one in made.fields] == [None, "x", None]
    assert made.options == {"fields.id.default-value": "7", "bucket": "1"}
    with pytest.raises(FixRequest, match=r"TS1153.*names no column"):
        take_options(replace(schema, options={"fields.w.default-value": "x"}), ["fields.w.default-value"])


def test_keys_have_no_default() -> None:
    """The bucket of a row is computed before NULL is replaced. A default that the table had already is not refused."""
    with pytest.raises(FixRequest, match=r"TS1153.*'id'"):
        check_defaults(_schema(id="1"))
    check_defaults(_schema(id="1"), _schema(id="1"))
    with pytest.raises(FixRequest, match=r"TS1153.*'n'"):
        check_defaults(_schema(id="1", n="x"), _schema(id="1"))
    assert not any(one.default_value for one in without_defaults(_schema(n="1")).fields)
