"""Statistics of a file's columns: minimum, maximum, null count, as Paimon keeps them (format.md#statistics).

Names      collect_stats   Arrow columns -> SimpleStats
           empty_stats     no statistics at all
Steps      per column: count nulls -> min and max where the type has an order -> truncate -> encode both rows
PAIMON     strings are cut by code points, binaries by bytes; a cut maximum is rounded up, and where that is
           impossible both bounds are unknown. Nested types have no bounds. Floats compare as in Java: -0.0 is
           below 0.0 (Arrow takes them as equal, so zeros are widened), and NaN makes both bounds unknown.
INVARIANT  a bound never excludes a value of the file.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.format.binary_row import encode_row
from tablestore_engine.format.data_file import EMPTY_STATS, SimpleStats
from tablestore_engine.format.data_type import BINARY_ROOTS, CHARACTER_ROOTS, DataType
from tablestore_engine.format.scalar import python_values
from tablestore_engine.options import StatsMode

DEFAULT_MODE = StatsMode(counts=True, bounds=True, length=16)
_FLOATING = ("FLOAT", "DOUBLE")
_CODE_POINT_MAX = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


def empty_stats() -> SimpleStats:
    """No statistics: two empty rows."""
    return EMPTY_STATS


def collect_stats(
    rows: pa.Table, types: Sequence[DataType], mode: StatsMode | Sequence[StatsMode] = DEFAULT_MODE
) -> SimpleStats:
    """Statistics of all columns of `rows`, whose types are `types`. O(rows x columns) in Arrow kernels.

    `mode` holds for all columns, or is one mode per column.
    """
    modes = [mode] * len(types) if isinstance(mode, StatsMode) else mode
    low: list[object] = []
    high: list[object] = []
    nulls: list[int | None] = []
    for column, type_, chosen in zip(rows.columns, types, modes, strict=True):
        nulls.append(column.null_count if chosen.counts else None)
        first, last = _bounds(column, type_, chosen) if chosen.bounds else (None, None)
        low.append(first)
        high.append(last)
    # bounds of a NOT NULL column may be unknown, so every field of the two rows is nullable
    nullable = [type_.with_nullable(True) for type_ in types]
    return SimpleStats(encode_row(low, nullable), encode_row(high, nullable), tuple(nulls))


def _bounds(column: pa.ChunkedArray, type_: DataType, mode: StatsMode) -> tuple[object, object]:
    if not type_.is_atomic or column.null_count == len(column):
        return None, None
    found = pc.min_max(column)
    low, high = _scalar(found["min"], type_), _scalar(found["max"], type_)
    if type_.root in _FLOATING:
        return (None, None) if _has_nan(column) else (low or -0.0, high or 0.0)
    return _truncate(low, high, type_, mode.length)


def _scalar(value: pa.Scalar, type_: DataType) -> object:
    """A scalar as binary_row takes it, exact for nanoseconds and decimals."""
    return python_values(pa.array([value]), type_)[0]


def _has_nan(column: pa.ChunkedArray) -> bool:
    return bool(pc.any(pc.is_nan(column)).as_py())


def _truncate(low: object, high: object, type_: DataType, length: int | None) -> tuple[object, object]:
    if length is None:
        return low, high
    if type_.root in CHARACTER_ROOTS and isinstance(low, str) and isinstance(high, str):
        top: object = high if len(high) <= length else _round_up_text(high[:length])
        return (None, None) if top is None else (low[:length], top)
    if type_.root in BINARY_ROOTS and isinstance(low, bytes) and isinstance(high, bytes):
        top = high if len(high) <= length else _round_up_bytes(high[:length])
        return (None, None) if top is None else (low[:length], top)
    return low, high


def _round_up_text(text: str) -> str | None:
    """The smallest text of at most this length above every text that starts with `text`."""
    for place in range(len(text) - 1, -1, -1):
        following = ord(text[place]) + 1
        if following in _SURROGATES:
            following = _SURROGATES.stop
        if following <= _CODE_POINT_MAX:
            return text[:place] + chr(following)
    return None


def _round_up_bytes(data: bytes) -> bytes | None:
    for place in range(len(data) - 1, -1, -1):
        if data[place] < 0xFF:
            return data[:place] + bytes([data[place] + 1])
    return None
