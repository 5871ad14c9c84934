"""Statistics of a file's columns: minimum, maximum, null count, as Paimon keeps them (format.md#statistics).

CHANGE     the length of column statistics (options metadata.stats-mode, fields.<column>.stats-mode)
Steps      per column and piece: count nulls -> min and max where the type has an order; at the end: those of all
           pieces -> truncate -> encode both rows
PAIMON     strings are cut by code points, binaries by bytes; a cut maximum is rounded up, and where that is
           impossible both bounds are unknown. Nested types have no bounds. Floats compare as in Java: -0.0 is
           below 0.0 (Arrow takes them as equal, so zeros are widened), and NaN makes both bounds unknown.
INVARIANT  a bound never excludes a value of the file.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.format.binary_row import encode_row
from tablestore_engine.format.data_file import EMPTY_STATS, SimpleStats
from tablestore_engine.format.data_type import BINARY_ROOTS, CHARACTER_ROOTS, DataType
from tablestore_engine.format.scalar import python_values
from tablestore_engine.options import StatsMode

_FLOATING = ("FLOAT", "DOUBLE")
_CODE_POINT_MAX = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


def empty_stats() -> SimpleStats:
    """No statistics: two empty rows."""
    return EMPTY_STATS


class StatsCollector:
    """Statistics of the rows that are added, whatever the pieces."""

    def __init__(self, types: Sequence[DataType], mode: StatsMode | Sequence[StatsMode]) -> None:
        modes = [mode] * len(types) if isinstance(mode, StatsMode) else mode
        self._types = types
        self._columns = [_ColumnStatistics(type_, chosen) for type_, chosen in zip(types, modes, strict=True)]

    def add(self, rows: pa.Table) -> None:
        """O(rows x columns) in Arrow kernels."""
        for column, values in zip(self._columns, rows.columns, strict=True):
            column.add(values)

    def finish(self) -> SimpleStats:
        bounds = [column.bounds() for column in self._columns]
        counts = tuple(column.nulls if column.mode.counts else None for column in self._columns)
        return _encoded(bounds, counts, [type_.with_nullable(True) for type_ in self._types])


def stats_of_groups(
    rows: pa.Table, starts: npt.NDArray[np.int64], types: Sequence[DataType], modes: Sequence[StatsMode]
) -> list[SimpleStats]:
    """What a StatsCollector says of each group of neighbouring rows, which begin at `starts`; no group is empty."""
    sizes = np.diff(np.append(starts, rows.num_rows))
    columns = [
        _group_statistics(values, sizes, type_, mode)
        for values, type_, mode in zip(rows.columns, types, modes, strict=True)
    ]
    # bounds of a NOT NULL column may be unknown, so every field of the two rows is nullable
    nullable = [type_.with_nullable(True) for type_ in types]
    return [
        _encoded([bounds for bounds, _ in group], tuple(count for _, count in group), nullable)
        for group in zip(*columns, strict=True)
    ]


def _group_statistics(
    values: pa.ChunkedArray, sizes: npt.NDArray[np.int64], type_: DataType, mode: StatsMode
) -> list[tuple[tuple[object, object], int | None]]:
    """Bounds and null count of each group."""
    numbers = np.repeat(np.arange(len(sizes)), sizes)
    nulls: list[int | None] = [None] * len(sizes)
    if mode.counts:
        is_null = np.asarray(values.is_null()) if values.null_count else np.zeros(len(values), np.bool_)
        nulls = np.bincount(numbers, is_null, len(sizes)).astype(np.int64).tolist()
    if not mode.bounds or not type_.is_atomic:
        return [((None, None), count) for count in nulls]
    found = pa.TableGroupBy(pa.table({"g": numbers, "v": values}), "g", use_threads=False)
    ends = found.aggregate([("v", "min_max")]).column("v_min_max").combine_chunks()
    lows, highs = (python_values(ends.field(end), type_) for end in ("min", "max"))
    has_nan = np.zeros(len(sizes), np.bool_)
    if type_.root in _FLOATING:
        has_nan[numbers[np.asarray(pc.fill_null(pc.is_nan(values), False))]] = True
    return [
        (_bounds(low, high, type_, mode, has_nan=nan), count)
        for low, high, nan, count in zip(lows, highs, has_nan.tolist(), nulls, strict=True)
    ]


def _encoded(
    bounds: Sequence[tuple[object, object]], counts: tuple[int | None, ...], nullable: Sequence[DataType]
) -> SimpleStats:
    low, high = ([pair[end] for pair in bounds] for end in (0, 1))
    return SimpleStats(encode_row(low, nullable), encode_row(high, nullable), counts)


class _ColumnStatistics:
    def __init__(self, type_: DataType, mode: StatsMode) -> None:
        self.mode, self.nulls = mode, 0
        self._type = type_
        self._ends: list[pa.Array] = []  # smallest and largest of each piece that has values
        self._has_nan = False

    def add(self, values: pa.ChunkedArray) -> None:
        nulls = values.null_count
        self.nulls += nulls
        if not self.mode.bounds or not self._type.is_atomic or nulls == len(values):
            return
        found = pc.min_max(values)
        self._ends.append(pa.array([found["min"], found["max"]], values.type))
        if self._type.root in _FLOATING:
            self._has_nan = self._has_nan or _has_nan(values)

    def bounds(self) -> tuple[object, object]:
        if not self._ends:
            return None, None
        low, high = python_values(_joined_ends(self._ends), self._type)
        return _bounds(low, high, self._type, self.mode, has_nan=self._has_nan)


def _bounds(
    low: object, high: object, type_: DataType, mode: StatsMode, *, has_nan: bool
) -> tuple[object, object]:
    """Smallest and largest value as they are kept."""
    if low is None or has_nan:
        return None, None
    if type_.root in _FLOATING:
        return low or -0.0, high or 0.0
    return _truncate(low, high, type_, mode.length)


def _joined_ends(ends: list[pa.Array]) -> pa.Array:
    """Smallest and largest of all pieces."""
    if len(ends) == 1:
        return ends[0]
    found = pc.min_max(pa.chunked_array(ends))
    return pa.array([found["min"], found["max"]], ends[0].type)


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
