"""The order of keys inside data files, computed on whole columns (format.md#key-order).

How        bool → 0, 1 · FLOAT, DOUBLE → integers in Java's order (−0.0 < 0.0, NaN largest) · DECIMAL → unscaled
           integer, beyond 18 digits as (high, low) words · dates and times → their integers · texts stay: bytewise.
INVARIANT  equal in the frame ⇔ equal as keys; no cast here rounds or overflows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

Index = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_RADIX_ROWS, _RADIX_BITS = 4_096, 48  # fewer rows, and differences of more bits, are sorted by comparisons
_COMPACT_DIGITS = 18  # the low word alone holds the unscaled value


def order_frame(columns: Sequence[pa.ChunkedArray | pa.Array]) -> pl.DataFrame:
    """Comparable columns `0`, `1`, …; a DECIMAL of more than 18 digits gives two."""
    series: list[pl.Series] = []
    for column in columns:
        series.extend(_comparable(column))
    return pl.DataFrame([one.alias(str(i)) for i, one in enumerate(series)])


def order_columns(table: pa.Table, names: Sequence[str]) -> pl.DataFrame:
    return order_frame([table.column(name) for name in names])


def order_permutation(frame: pl.DataFrame, *, descending: Sequence[bool] | None = None) -> Index:
    """Row numbers in ascending order, equal rows in their given order; nulls first whatever the direction."""
    words = fixed_words(frame)
    if words is not None and not (descending and descending[0]):
        return order_of_words(words)
    order = pl.arg_sort_by(
        frame.columns,
        descending=list(descending) if descending else False,
        nulls_last=False,
        maintain_order=True,
    )
    return frame.select(order).to_series().cast(pl.Int64).to_numpy()


def order_of_words(words: npt.NDArray[Any]) -> Index:
    """Row numbers by ascending integers, equal ones in their given order: numpy sorts 16 bits without comparisons."""
    if len(words) < 2 or bool((words[1:] >= words[:-1]).all()):
        return np.arange(len(words), dtype=np.int64)
    low = int(words.min())
    bits = (int(words.max()) - low).bit_length()
    if len(words) < _RADIX_ROWS or bits > _RADIX_BITS:
        return np.argsort(words, kind="stable")
    with np.errstate(over="ignore"):  # a difference of 64 bits is right without its sign
        left = words.astype(np.int64, copy=False).view(np.uint64) - np.uint64(low % (1 << 64))
    order = np.argsort(left.astype(np.uint16), kind="stable")
    for shift in range(16, bits, 16):
        order = order[np.argsort((left >> np.uint64(shift)).astype(np.uint16)[order], kind="stable")]
    return order


def take_keys(frame: pl.DataFrame, at: Index) -> pl.DataFrame:
    """Rows `at` of a frame. Frames of tiny buckets take longer to wake polars' threads than to be copied."""
    if len(at) == frame.height and bool((at == np.arange(len(at))).all()):
        return frame
    words = fixed_words(frame)
    return frame[at] if words is None else pl.DataFrame({frame.columns[0]: words[at]})


def starts_of_groups(frame: pl.DataFrame) -> Mask:
    """For sorted rows: whether a row's key differs from the row before (the first row always does)."""
    starts = np.zeros(frame.height, dtype=np.bool_)
    if frame.height:
        starts[0] = True
        for column in frame.get_columns():
            differs = column.slice(1).ne_missing(column.slice(0, frame.height - 1))
            starts[1:] |= differs.to_numpy()
    return starts


def match_sorted(needles: pl.DataFrame, rows: pl.DataFrame) -> tuple[Index, Index]:
    """(needle, row) numbers of equal keys, ascending by needle. REQUIRES both sorted, `needles` without repeats."""
    wanted, stored = fixed_words(needles), fixed_words(rows)
    if wanted is not None and stored is not None:
        return _match_words(wanted, stored)
    left = needles.with_row_index("needle")
    right = rows.with_row_index("row")
    pairs = left.join(right, on=needles.columns, how="inner", nulls_equal=True).sort("needle")
    return (
        pairs.get_column("needle").cast(pl.Int64).to_numpy(),
        pairs.get_column("row").cast(pl.Int64).to_numpy(),
    )


def fixed_words(frame: pl.DataFrame) -> npt.NDArray[Any] | None:
    """The single column as numpy integers when it is one fixed-width column without nulls, else None."""
    if frame.width != 1:
        return None
    column = frame.to_series(0)
    return column.to_numpy() if column.dtype.is_integer() and column.null_count() == 0 else None


def key_at(frame: pl.DataFrame, row: int) -> tuple[Any, ...]:
    """One row of a frame as a python value that compares in the same order: NULL smallest, texts by code point."""
    return tuple((value is not None, value) for value in frame.row(row))


def _match_words(wanted: npt.NDArray[Any], stored: npt.NDArray[Any]) -> tuple[Index, Index]:
    """Binary search of the fewer in the more."""
    none = np.empty(0, dtype=np.int64)
    if not len(wanted) or not len(stored):
        return none, none
    if len(wanted) <= len(stored):
        at = np.searchsorted(stored, wanted)
        found = stored[np.minimum(at, len(stored) - 1)] == wanted
        needle = np.flatnonzero(found)
        return needle, at[needle]
    at = np.searchsorted(wanted, stored)
    found = wanted[np.minimum(at, len(wanted) - 1)] == stored
    row = np.flatnonzero(found)
    return at[row], row


def _comparable(column: pa.ChunkedArray | pa.Array) -> list[pl.Series]:
    kind = column.type
    if pat.is_string(kind) or pat.is_binary(kind):
        return [_series(column)]  # never as one array: the texts of a bucket may be beyond 32-bit offsets
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pat.is_dictionary(kind):
        return _comparable(array.cast(kind.value_type))
    if pat.is_boolean(kind):
        return [_series(array.cast(pa.uint8()))]
    if pat.is_date32(kind) or pat.is_time32(kind):
        return [_series(array.view(pa.int32()))]
    if pat.is_timestamp(kind) or pat.is_date64(kind) or pat.is_time64(kind):
        return [_series(array.view(pa.int64()))]
    if pat.is_floating(kind):
        return [_with_nulls(_float_order(_values(array, kind.to_pandas_dtype())), array)]
    if pat.is_decimal(kind):
        return _decimal_words(array)
    return [_series(array)]


def _series(array: pa.Array | pa.ChunkedArray) -> pl.Series:
    made = pl.from_arrow(array)
    assert isinstance(made, pl.Series)
    return made


def _values(array: pa.Array, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The value buffer as numpy, whatever stands at nulls."""
    data = array.buffers()[1]
    width = array.type.bit_width // 8
    if data is None or not len(array):
        return np.empty(0, dtype=dtype)
    return np.frombuffer(
        data, dtype=dtype, count=len(array) * width // np.dtype(dtype).itemsize, offset=array.offset * width
    )


def _with_nulls(values: npt.NDArray[Any], array: pa.Array) -> pl.Series:
    made = pl.Series(values)
    if array.null_count:
        made = pl.select(pl.when(_series(pc.is_valid(array))).then(made)).to_series()
    return made


def _float_order(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """IEEE bits turned so that integers compare as Java compares floats; every NaN is the canonical one."""
    word = np.int32 if values.dtype.itemsize == 4 else np.int64
    bits: npt.NDArray[Any] = np.where(np.isnan(values), np.array(np.nan, values.dtype), values).view(word)
    return np.where(np.signbit(values) & ~np.isnan(values), np.bitwise_xor(bits, np.iinfo(word).max), bits)


def _decimal_words(array: pa.Array) -> list[pl.Series]:
    if not pat.is_decimal128(array.type):
        array = array.cast(pa.decimal128(min(array.type.precision, 38), array.type.scale))
    words = _values(array, np.uint64)
    low, high = words[0::2], words[1::2].view(np.int64)
    if array.type.precision <= _COMPACT_DIGITS:
        return [_with_nulls(low.view(np.int64).copy(), array)]
    return [_with_nulls(high.copy(), array), _with_nulls(low.copy(), array)]
