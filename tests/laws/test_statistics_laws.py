"""Laws of statistics: a bound never excludes a value, null counts are exact, cut bounds are short."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore_engine.format.data_type import DataType
from tablestore_engine.format.scalar import arrow_values, python_values
from tablestore_engine.format.type_arrow import type_to_arrow
from tests.doses import examples
from tests.laws.strategies_format import typed_rows
from tests.unit.format.file_statistics import collect_stats
from tests.unit.format.stats_samples import decode_bounds, mode

MODES = st.sampled_from(["full", "truncate(1)", "truncate(3)", "truncate(16)"])
FLOATS = ("FLOAT", "DOUBLE")


def _table(types: list[DataType], rows: list[tuple[object, ...]]) -> pa.Table:
    """The rows as columns; a CHAR or BINARY is not padded, so Arrow keeps the values."""
    arrays = [pa.array([row[i] for row in rows], type_to_arrow(type_)) for i, type_ in enumerate(types)]
    return pa.table(arrays, names=[f"c{i}" for i in range(len(types))])


def _order(value: object, type_: DataType) -> object:
    """What Java compares by: text as UTF-8 bytes, -0.0 below 0.0."""
    if isinstance(value, str):
        return value.encode()
    if type_.root in FLOATS and isinstance(value, float):
        return value, math.copysign(1, value)
    return value


@settings(max_examples=examples(30, 60))
@given(typed_rows(), MODES)
def test_a_bound_never_excludes_a_value(
    case: tuple[list[DataType], list[tuple[object, ...]]], text: str
) -> None:
    """Each value lies between the bounds in the format's order, however short they are cut; both are known or none."""
    types, rows = case
    table = _table(types, rows)
    for column, type_, (low, high) in zip(
        table.columns, types, decode_bounds(collect_stats(table, types, mode(text)), types), strict=True
    ):
        known = [value for value in python_values(column, type_) if value is not None]
        assert (low is None) == (high is None)
        assert known or low is None
        if low is not None:
            for value in known:
                assert _order(low, type_) <= _order(value, type_) <= _order(high, type_)  # type: ignore[operator]


@settings(max_examples=examples(30, 60))
@given(typed_rows())
def test_full_bounds_are_values_of_the_column(case: tuple[list[DataType], list[tuple[object, ...]]]) -> None:
    """Uncut bounds occur in the column (a zero with either sign), so they are as tight as can be."""
    types, rows = case
    table = _table(types, rows)
    bounds = decode_bounds(collect_stats(table, types, mode("full")), types)
    for column, type_, (low, high) in zip(table.columns, types, bounds, strict=True):
        known = [value for value in python_values(column, type_) if value is not None]
        assert not known or (low in known and high in known)


@settings(max_examples=examples(30, 60))
@given(typed_rows(), MODES)
def test_null_counts_are_exact_and_cuts_are_short(
    case: tuple[list[DataType], list[tuple[object, ...]]], text: str
) -> None:
    """Nulls are counted in every column; cut texts and binaries have at most the length asked for."""
    types, rows = case
    stats = collect_stats(_table(types, rows), types, mode(text))
    assert stats.null_counts == tuple(sum(row[i] is None for row in rows) for i in range(len(types)))
    length = mode(text).length
    for bounds in decode_bounds(stats, types):
        for bound in bounds:
            if length is not None and isinstance(bound, str | bytes):
                assert len(bound) <= length


@settings(max_examples=examples(30, 60))
@given(typed_rows())
def test_values_become_the_column_again(case: tuple[list[DataType], list[tuple[object, ...]]]) -> None:
    """Dates and times of all years, with a zone and without, go to Python and back to Arrow."""
    types, rows = case
    for column, type_ in zip(_table(types, rows).columns, types, strict=True):
        assert arrow_values(python_values(column, type_), type_).equals(column.combine_chunks())


@pytest.mark.parametrize("root", ["TIMESTAMP", "TIMESTAMP_LTZ"])
@pytest.mark.parametrize("precision", [3, 6])
def test_times_beyond_the_years_of_python_become_the_column_again(root: str, precision: int) -> None:
    """A key before year 1, which Python has as numpy's type, beside an ordinary one."""
    type_ = DataType(root, precision=precision)
    column = pa.array([-62_135_596_900_000, None, 5], pa.int64()).cast(
        type_to_arrow(DataType(root, precision=3))
    )
    assert arrow_values(python_values(column, type_), type_).equals(column.cast(type_to_arrow(type_)))
