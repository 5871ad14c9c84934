"""Values in messages, as SQL writes them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest

from tablestore_engine.error_values import LENGTH_MAX, sql_literal, sql_row


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (-7, "-7"),
        (Decimal("1E+3"), "1000"),
        (Decimal("1.50"), "1.50"),
        (1.5, "1.5"),
        (float("nan"), "double('nan')"),
        ("it's", "'it''s'"),
        ("a\\b\x1b[31m", "'a\\\\b\\x1b[31m'"),
        (b"\x00\xff", "X'00FF'"),
        (date(2026, 1, 31), "DATE '2026-01-31'"),
        (datetime(2026, 1, 31, 10, 0, 0, 5), "TIMESTAMP '2026-01-31 10:00:00.000005'"),  # noqa: DTZ001 - a wall clock
        (datetime(2026, 1, 31, 10, tzinfo=UTC), "TIMESTAMP '2026-01-31 10:00:00+00:00'"),
        (time(10, 30), "TIME '10:30:00'"),
        ([1, None], "array(1, NULL)"),
        ({"a": 1, "b": {"c": "x"}}, "named_struct('a', 1, 'b', named_struct('c', 'x'))"),
        ([("k", 2)], "map('k', 2)"),
    ],
)
def test_literals(value: object, text: str) -> None:
    """Each kind of value has the literal of Spark SQL, never Python's form."""
    assert sql_literal(value) == text


def test_long_values_are_cut() -> None:
    """Their length is named, so that nobody takes the part for the whole."""
    assert sql_literal("x" * 500) == f"'{'x' * LENGTH_MAX}…' (500 characters)"
    assert sql_literal(b"x" * 500).endswith("(500 bytes)")
    assert len(sql_literal([1000] * 500)) <= 2 * LENGTH_MAX + 1


def test_a_row_reads_like_a_condition() -> None:
    """NULL is no value that = finds."""
    assert sql_row({"id": 7, "v": None}) == "id = 7, v IS NULL"
