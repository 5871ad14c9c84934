"""The judge of the pipelines sees each kind of wrong row, and lets DuckDB's floating point differ in the last place."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from integration_tests.pipelines.oracle import difference
from integration_tests.pipelines.play import Played
from integration_tests.pipelines.report import summary, table

_RIGHT = ({"id": 1, "total": "10.00", "name": "a"}, {"id": 2, "total": "20.00", "name": None})


def _rows(*rows: dict[str, Any]) -> pa.Table:
    values = [{**row, "total": Decimal(row["total"])} for row in rows]
    schema = pa.schema([("id", pa.int64()), ("total", pa.decimal128(10, 2)), ("name", pa.string())])
    return pa.Table.from_pylist(values, schema)


def test_equal_rows_in_any_order_with_wider_types_are_equal() -> None:
    """DuckDB sums integers in a wider type, and no order is promised."""
    wide = pa.schema([("name", pa.string()), ("id", pa.decimal128(38, 0)), ("total", pa.decimal128(38, 2))])
    expected = _rows(*reversed(_RIGHT)).select(["name", "id", "total"]).cast(wide)
    assert difference(_rows(*_RIGHT), expected, ["id"]) == ""


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ((_RIGHT[0],), "0 keys too many"),
        ((*_RIGHT, {"id": 3, "total": "1.00", "name": "c"}), "1 keys too many"),
        ((*_RIGHT, _RIGHT[0]), "3 rows, expected 2"),
        (({**_RIGHT[0], "total": "10.01"}, _RIGHT[1]), "1 rows differ in total"),
        (({**_RIGHT[0], "name": None}, _RIGHT[1]), "1 rows differ in name"),
        ((_RIGHT[0], {**_RIGHT[1], "name": "b"}), "1 rows differ in name"),
    ],
)
def test_a_wrong_row_is_seen(found: tuple[dict[str, Any], ...], says: str) -> None:
    """Missing, too many, twice, another value, NULL for a value and a value for NULL."""
    assert says in difference(_rows(*found), _rows(*_RIGHT), ["id"])


def test_floating_point_may_differ_in_the_last_place_only() -> None:
    """An average that DuckDB computes in floating point is the decimal within one unit of its last place."""
    floats = _rows(*_RIGHT).set_column(1, "total", pa.array([10.0049, 20.0]))
    assert difference(_rows(*_RIGHT), floats, ["id"]) == ""
    floats = floats.set_column(1, "total", pa.array([10.02, 20.0]))
    assert "differ in total" in difference(_rows(*_RIGHT), floats, ["id"])


def test_summary_of_no_runs_is_empty() -> None:
    """A history that ended before its first batch has no figures."""
    found = summary([Played()])
    assert (found["models"], found["batches"], found["seconds"]) == ({}, 0, None)
    assert table(found).count("\n") == 1
