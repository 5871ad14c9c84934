"""Statistics of a file's columns: minimum, maximum, null count, as Paimon keeps them (section 4.3).

Names      collect_stats   Arrow columns -> SimpleStats
           empty_stats     no statistics at all
           decode_bounds   SimpleStats -> (minimum, maximum) per column, None = unknown
           stats_bounds    the same by column name, with null counts, whichever columns the statistics cover
           evolve_bounds   bounds of an old file for the columns of today's schema
           parse_mode      'truncate(16)' -> StatsMode
           column_modes    table options -> the mode of each column
Steps      per column: count nulls -> min and max where the type has an order -> truncate -> encode both rows
PAIMON     strings are cut by code points, binaries by bytes; a cut maximum is rounded up, and where that is
           impossible both bounds are unknown. Nested types have no bounds. Floats compare as in Java: -0.0 is
           below 0.0 (Arrow takes them as equal, so zeros are widened), and NaN makes both bounds unknown.
INVARIANT  a bound never excludes a value of the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.binary_row import decode_row, encode_row
from tablestore_engine.format.data_file import EMPTY_STATS, SimpleStats
from tablestore_engine.format.data_type import BINARY_ROOTS, CHARACTER_ROOTS, DataField, DataType
from tablestore_engine.format.scalar import python_values

DEFAULT_MODE = "truncate(16)"
_FLOATING = ("FLOAT", "DOUBLE")
_TRUNCATE = re.compile(r"truncate\((\d+)\)")
_CODE_POINT_MAX = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)


@dataclass(frozen=True)
class StatsMode:
    """What is kept: null counts, bounds, and at what length texts are cut (None = never)."""

    counts: bool
    bounds: bool
    length: int | None = None


def parse_mode(text: str) -> StatsMode:
    """none, counts, full or truncate(n). Raises FixRequest TS1130."""
    named = {"none": StatsMode(False, False), "counts": StatsMode(True, False), "full": StatsMode(True, True)}
    if text in named:
        return named[text]
    match = _TRUNCATE.fullmatch(text.replace(" ", ""))
    if match is None or int(match[1]) < 1:
        raise FixRequest(
            "TS1130",
            f"metadata.stats-mode {text!r} is not known",
            why="expected none, counts, full or truncate(n)",
            fix="set metadata.stats-mode to one of these",
        )
    return StatsMode(True, True, int(match[1]))


def column_modes(names: Sequence[str], options: Mapping[str, str]) -> tuple[str, ...]:
    """The mode of each column: option `fields.<column>.stats-mode`, else `metadata.stats-mode`, else truncate(16)."""
    default = options.get("metadata.stats-mode", DEFAULT_MODE)
    return tuple(options.get(f"fields.{name}.stats-mode", default) for name in names)


def empty_stats() -> SimpleStats:
    """No statistics: two empty rows."""
    return EMPTY_STATS


def collect_stats(
    rows: pa.Table, types: Sequence[DataType], mode: str | Sequence[str] = DEFAULT_MODE
) -> SimpleStats:
    """Statistics of all columns of `rows`, whose types are `types`. O(rows x columns) in Arrow kernels.

    `mode` holds for all columns, or is one mode per column. Raises FixRequest TS1130.
    """
    modes = [parse_mode(mode)] * len(types) if isinstance(mode, str) else [parse_mode(one) for one in mode]
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


@dataclass(frozen=True)
class ColumnBounds:
    """What a file's statistics say of one column; None = unknown."""

    low: object
    high: object
    null_count: int | None


def stats_bounds(
    stats: SimpleStats, cols: Sequence[str] | None, fields: Sequence[DataField]
) -> dict[str, ColumnBounds]:
    """Bounds by column name. `cols` is the file's `value_stats_cols`, `fields` the columns of the file's schema.

    A column without statistics is missing in the result; so are all when the statistics are empty, which some
    writers leave together with `cols` None (trap 3). Raises FixData TS1116 when they do not fit the columns.
    """
    if stats.min_values == EMPTY_STATS.min_values:
        return {}
    by_name = {field.name: field.type for field in fields}
    names = [field.name for field in fields] if cols is None else list(cols)
    if any(name not in by_name for name in names):
        return {}  # columns of another engine, _ROW_ID for one: the types of the row are not known
    bounds = decode_bounds(stats, [by_name[name] for name in names])
    nulls = stats.null_counts or (None,) * len(names)
    return {
        name: ColumnBounds(low, high, count)
        for name, (low, high), count in zip(names, bounds, nulls, strict=False)
    }


def evolve_bounds(
    bounds: Mapping[str, ColumnBounds],
    file_fields: Sequence[DataField],
    table_fields: Sequence[DataField],
    row_count: int,
) -> dict[str, ColumnBounds]:
    """Bounds for the columns of today's schema, matched by field id as `evolution` matches values.

    A column that the file does not have is all null. A column whose type changed has no bounds: an order need
    not survive a cast (9 < 10, but '9' > '10'), and neither need a null count.
    """
    old = {field.id: field for field in file_fields}
    found = {}
    for field in table_fields:
        source = old.get(field.id)
        if source is None:
            found[field.name] = ColumnBounds(None, None, row_count)
        elif source.name in bounds and source.type.with_nullable(True) == field.type.with_nullable(True):
            found[field.name] = bounds[source.name]
    return found


def decode_bounds(stats: SimpleStats, types: Sequence[DataType]) -> list[tuple[object, object]]:
    """(minimum, maximum) per column; None where unknown."""
    nullable = [type_.with_nullable(True) for type_ in types]
    low, high = decode_row(stats.min_values, nullable), decode_row(stats.max_values, nullable)
    return list(zip(low, high, strict=True))


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
