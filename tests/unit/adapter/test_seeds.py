"""A seed's values arrive exactly, or not at all."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from dbt_common.clients import agate_helper

from dbt.adapters.tablestore.write.seeds import arrow_type, read_decimals_exactly, seed_to_arrow
from tablestore_engine.errors import FixData, FixRequest


def load(
    folder: Path, text: str, types: dict[str, str] | None = None, zone: str = "UTC"
) -> tuple[pa.Table, dict[str, str]]:
    """The CSV through dbt's own reader and then ours."""
    path = folder / "seed.csv"
    path.write_text(text)
    read_decimals_exactly()
    table = agate_helper.from_csv(str(path), text_columns=types or {})
    rows, kinds = seed_to_arrow(table, types or {}, zone=zone)
    return rows, dict(kinds)


def test_values_that_sql_literals_lose(tmp_path: Path) -> None:
    """Quotes, percent signs, backslashes, NULL, 2**53+1 and a 30-digit number come through."""
    rows, kinds = load(
        tmp_path,
        'a,b,c\n"O\'Brien 100% \\n",9007199254740993,123456789012345678901234567890\n,,\n',
    )
    assert rows.to_pylist() == [
        {"a": "O'Brien 100% \\n", "b": 9007199254740993, "c": Decimal(123456789012345678901234567890)},
        {"a": None, "b": None, "c": None},
    ]
    assert kinds == {"a": "string", "b": "bigint", "c": "decimal(38,0)"}


def test_fractions_stay_double_only_where_double_is_exact(tmp_path: Path) -> None:
    """0.1 is a double as everywhere in dbt; twenty digits make the column a decimal."""
    rows, kinds = load(tmp_path, "a,b\n0.1,0.12345678901234567891\n2,1\n")
    assert kinds == {"a": "double", "b": "decimal(38,20)"}
    assert rows["b"].to_pylist()[0] == Decimal("0.12345678901234567891")


def test_numbers_with_nan_or_infinity_are_doubles(tmp_path: Path) -> None:
    """No other type of a table has them; also beside integers alone."""
    rows, kinds = load(tmp_path, "a,b,c\nNaN,Infinity,NaN\n0.5,-Infinity,1\n")
    assert kinds == {"a": "double", "b": "double", "c": "double"}
    assert [repr(row) for row in rows.to_pylist()] == [
        "{'a': nan, 'b': inf, 'c': nan}",
        "{'a': 0.5, 'b': -inf, 'c': 1.0}",
    ]


def test_dates_booleans_and_moments(tmp_path: Path) -> None:
    """A moment without an offset is in the session's zone."""
    rows, kinds = load(tmp_path, "d,t,b\n2026-01-31,2026-01-31 14:00:00,true\n", zone="Asia/Tokyo")
    assert kinds == {"d": "date", "t": "timestamp", "b": "boolean"}
    assert rows["d"].to_pylist() == [date(2026, 1, 31)]
    assert rows["t"].to_pylist()[0].astimezone(UTC) == datetime(2026, 1, 31, 5, 0, tzinfo=UTC)


def test_column_types_override(tmp_path: Path) -> None:
    """Leading zeros stay in a string column, and a decimal column has its own scale."""
    rows, kinds = load(
        tmp_path, "zip,price,n\n00123,1.50,7\n", {"zip": "string", "price": "decimal(10,2)", "n": "smallint"}
    )
    assert rows.to_pylist() == [{"zip": "00123", "price": Decimal("1.50"), "n": 7}]
    assert kinds["n"] == "smallint"
    assert rows.schema.field("n").type == pa.int16()


@pytest.mark.parametrize(
    ("text", "type_text"),
    [
        ("1.005", "decimal(10,2)"),
        ("70000", "smallint"),
        ("1.5", "bigint"),
        ("maybe", "boolean"),
        ("x", "date"),
    ],
)
def test_a_value_that_does_not_fit_is_named(tmp_path: Path, text: str, type_text: str) -> None:
    """Nothing is rounded, wrapped or made NULL: the column is in the message."""
    with pytest.raises(FixData, match="'a'") as caught:
        load(tmp_path, f"a,b\n{text},1\n", {"a": type_text})
    assert caught.value.code == "TS1831"


def test_an_unknown_type_is_refused() -> None:
    """`money` is no Spark type; words of other databases for text without a length are."""
    assert {arrow_type("a", one, "UTC") for one in ("text", "varchar", "character varying")} == {pa.string()}
    with pytest.raises(FixRequest) as caught:
        arrow_type("a", "money", "UTC")
    assert caught.value.code == "TS1830"


def test_a_header_without_rows_makes_an_empty_table(tmp_path: Path) -> None:
    """The columns are there."""
    rows, _ = load(tmp_path, "a,b\n")
    assert rows.num_rows == 0
    assert rows.column_names == ["a", "b"]


@pytest.mark.parametrize("header", ["id|name", "id;name", "id\tname"])
def test_a_header_that_was_not_cut_is_a_wrong_delimiter(tmp_path: Path, header: str) -> None:
    """One column whose name is the whole header line is refused, and the message names the likely delimiter."""
    with pytest.raises(FixRequest, match="delimiter") as refused:
        load(tmp_path, f"{header}\n1\n")
    assert refused.value.code == "TS1895"
    assert repr(header) in refused.value.what


def test_names_that_may_hold_a_separator(tmp_path: Path) -> None:
    """quote_columns says that odd names are meant; with several columns the header was cut."""
    path = tmp_path / "seed.csv"
    path.write_text("a|b\n1\n")
    rows, _ = seed_to_arrow(agate_helper.from_csv(str(path), text_columns={}), {}, quote_columns=True)
    assert rows.column_names == ["a|b"]
    assert load(tmp_path, "a|b,c\n1,2\n")[0].column_names == ["a|b", "c"]
