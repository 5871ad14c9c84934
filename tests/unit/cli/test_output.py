"""Values as JSON and as cells of a table."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from tablestore_engine.cli.output import layout_table, print_json, to_size, to_text, to_utc
from tablestore_engine.cli.sql import unique_names
from tablestore_engine.runtime.json_plain import to_plain


def test_values_that_json_lacks() -> None:
    """Times are ISO text, decimals exact text, bytes base64, NaN text; nested values likewise."""
    day = dt.date(2024, 1, 31)
    assert to_plain({"a": [day, dt.datetime(2024, 1, 31, 12, 0, 0, 5, dt.UTC)]}) == {
        "a": ["2024-01-31", "2024-01-31T12:00:00.000005Z"]
    }
    assert to_plain((Decimal("1E+3"), Decimal("0.10"))) == ["1000", "0.10"]
    assert to_plain(b"\x00\xff") == "AP8="
    assert to_plain(float("nan")) == "nan"
    assert to_plain(2**63) == 2**63


def test_json_is_one_document(capsys) -> None:
    """Text stays readable and no value makes the document invalid."""
    print_json({"name": "Zürich", "infinite": float("inf")})
    assert capsys.readouterr().out == '{\n  "name": "Zürich",\n  "infinite": "inf"\n}\n'


def test_columns_are_aligned() -> None:
    """Numbers stand to the right, text to the left, and wide characters take two places."""
    assert layout_table(("id", "name", "n"), [(1, "東京", None), (20, "a", 3.5)]) == [
        "id  name     n",
        "──  ────  ────",
        " 1  東京  NULL",
        "20  a      3.5",
    ]


def test_a_table_without_rows() -> None:
    """No rows still give header and rule."""
    assert layout_table(("id", "name"), []) == ["id  name", "──  ────"]


def test_cells_are_one_short_line() -> None:
    """Line breaks and control characters never break the table; long text ends in an ellipsis."""
    assert to_text("a\nb\x1b[31m") == "a\\nb\\x1b[31m"
    assert len(to_text("x" * 100)) == 60
    assert to_text("x" * 100).endswith("…")
    assert to_text({"a": [1]}) == '{"a": [1]}'


def test_sizes_and_times() -> None:
    """Sizes have a fitting unit; epoch milliseconds are ISO text in UTC."""
    assert [to_size(n) for n in (0, 999, 1000, 3_440_000)] == ["0 B", "999 B", "1.0 kB", "3.4 MB"]
    assert to_utc(1_706_702_400_005) == "2024-01-31T12:00:00.005Z"
    assert to_utc(None) is None


def test_same_column_names_stay_apart() -> None:
    """Columns of one name, which SQL allows, are numbered so that JSON objects lose none."""
    assert unique_names(["a", "a", "a_2", "a"]) == ["a", "a_2", "a_2_2", "a_3"]
