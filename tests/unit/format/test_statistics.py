"""Statistics: bounds per type and mode, truncation and floats."""

# ruff: noqa: DTZ001 — values of TIMESTAMP have no zone
from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tablestore_engine.format.binary_row import encode_row
from tablestore_engine.format.data_file import EMPTY_STATS
from tablestore_engine.format.data_type import BIGINT, BYTES, INT, STRING, DataField, DataType
from tablestore_engine.format.statistics import (
    empty_stats,
)
from tablestore_engine.format.type_arrow import type_to_arrow
from tests.unit.format.file_statistics import collect_stats
from tests.unit.format.stats_samples import decode_bounds, mode

NAN, DOUBLE = math.nan, DataType("DOUBLE")


def _bounds(values: list[Any], type_: DataType, text: str = "truncate(16)") -> tuple[object, object]:
    rows = pa.table({"c": pa.array(values, type_to_arrow(type_))})
    return decode_bounds(collect_stats(rows, [type_], mode(text)), [type_])[0]


def test_golden_bytes() -> None:
    """Bounds of an INT column are the rows of reference 5.1, arity first, and the nulls are counted."""
    stats = collect_stats(pa.table({"c": pa.array([1, None, 1], pa.int32())}), [INT], mode("full"))
    one = bytes.fromhex("0000000100000000000000000100000000000000")
    assert (stats.min_values, stats.max_values, stats.null_counts) == (one, one, (1,))


@pytest.mark.parametrize(
    ("type_", "values", "low", "high"),
    [
        (DataType("BOOLEAN"), [True, None, False], False, True),
        (DataType("TINYINT"), [3, -128], -128, 3),
        (BIGINT, [2**63 - 1, -(2**63)], -(2**63), 2**63 - 1),
        (DataType("DECIMAL", precision=10, scale=2), [Decimal("-1.10"), Decimal(7)], Decimal("-1.10"), Decimal(7)),
        (DataType("DECIMAL", precision=38, scale=0), [10**37, -1], Decimal(-1), Decimal(10**37)),
        (DataType("DATE"), [dt.date(1969, 12, 31), dt.date(2024, 1, 1)], dt.date(1969, 12, 31), dt.date(2024, 1, 1)),
        (DataType("TIME", precision=3), [dt.time(1), dt.time(0, 0, 1)], dt.time(0, 0, 1), dt.time(1)),
        (DataType("TIMESTAMP", precision=6), [dt.datetime(2024, 1, 1, microsecond=i) for i in (5, 4)],
         dt.datetime(2024, 1, 1, microsecond=4), dt.datetime(2024, 1, 1, microsecond=5)),
        (STRING, ["é", "z", "日"], "z", "日"),
        (BYTES, [b"\x80", b"\x7f\xff"], b"\x7f\xff", b"\x80"),
        (STRING, [None, None], None, None),
        (STRING, [], None, None),
    ],
)  # fmt: skip
def test_bounds_of_every_kind_of_type(type_: DataType, values: list[Any], low: object, high: object) -> None:
    """Minimum and maximum in the format's order; text and binaries compare by unsigned bytes; no value, no bound."""
    assert _bounds(values, type_) == (low, high)


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (DataType("ARRAY", element=INT), [1]),
        (DataType("MAP", key=STRING.with_nullable(False), value=INT), [("k", 1)]),
        (DataType("ROW", fields=(DataField(0, "a", INT),)), {"a": 1}),
    ],
)
def test_nested_types_have_null_counts_only(type_: DataType, value: object) -> None:
    """No bounds for nested columns, but their nulls are counted."""
    stats = collect_stats(
        pa.table({"c": pa.array([value, None], type_to_arrow(type_))}), [type_], mode("full")
    )
    assert decode_bounds(stats, [type_]) == [(None, None)]
    assert stats.null_counts == (1,)


@pytest.mark.parametrize("type_", [DataType("FLOAT"), DOUBLE])
def test_nan_makes_bounds_unknown(type_: DataType) -> None:
    """In Java's order NaN is largest; Arrow leaves it out, so a maximum would exclude it."""
    assert _bounds([1.0, NAN], type_) == (None, None)
    assert _bounds([NAN, NAN], type_) == (None, None)
    assert _bounds([1.5, -math.inf], type_) == (-math.inf, 1.5)


@pytest.mark.parametrize("values", [[0.0, -0.0], [-0.0, 0.0], [0.0], [-0.0]])
@pytest.mark.parametrize("type_", [DataType("FLOAT"), DOUBLE])
def test_zero_bounds_cover_both_zeros(type_: DataType, values: list[float]) -> None:
    """Java puts -0.0 below 0.0, Arrow does not: a zero minimum is negative, a zero maximum positive."""
    low, high = _bounds(values, type_)
    assert (low, high) == (0.0, 0.0)
    assert (math.copysign(1, low), math.copysign(1, high)) == (-1.0, 1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        ("a" * 16, "a" * 16, "a" * 16),
        ("a" * 17, "a" * 16, "a" * 15 + "b"),
        ("é" * 17, "é" * 16, "é" * 15 + "ê"),
        ("😀" * 17, "😀" * 16, "😀" * 15 + "😁"),
        ("a" + "\U0010ffff" * 20, "a" + "\U0010ffff" * 15, "b"),
        ("\ud7ff" * 17, "\ud7ff" * 16, "\ud7ff" * 15 + "\ue000"),
        ("\U0010ffff" * 17, None, None),
    ],
)
def test_texts_are_cut_by_code_points(value: str, low: object, high: object) -> None:
    """The maximum is rounded up at the last code point that can be; where none can, both bounds are unknown."""
    assert _bounds([value], STRING) == (low, high)


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        (b"\x01" * 17, b"\x01" * 16, b"\x01" * 15 + b"\x02"),
        (b"\x01" + b"\xff" * 20, b"\x01" + b"\xff" * 15, b"\x02"),
        (b"\xff" * 17, None, None),
        (b"\xff" * 16, b"\xff" * 16, b"\xff" * 16),
    ],
)
def test_binaries_are_cut_by_bytes(value: bytes, low: object, high: object) -> None:
    """As texts, with bytes for code points."""
    assert _bounds([value], BYTES) == (low, high)


def test_modes() -> None:
    """full cuts nothing, counts keeps null counts only, none keeps neither and stays one field per column."""
    rows = pa.table({"c": pa.array(["x" * 40, None])})
    unknown = encode_row([None], [STRING])
    assert _bounds(["x" * 40], STRING, "full") == ("x" * 40, "x" * 40)
    assert _bounds(["xyz"], STRING, "truncate(2)") == ("xy", "xz")
    counts, none = (collect_stats(rows, [STRING], mode(text)) for text in ("counts", "none"))
    assert (counts.min_values, counts.max_values, counts.null_counts) == (unknown, unknown, (1,))
    assert (none.min_values, none.max_values, none.null_counts) == (unknown, unknown, (None,))
    assert empty_stats() == EMPTY_STATS


def test_one_mode_per_column() -> None:
    """Each column is kept as its own mode says."""
    rows = pa.table({"a": ["x" * 20], "b": ["y" * 20]})
    stats = collect_stats(rows, [STRING, STRING], [mode("counts"), mode("full")])
    assert decode_bounds(stats, [STRING, STRING]) == [(None, None), ("y" * 20, "y" * 20)]
