"""Timestamps that Parquet holds as INT96: a day and nanoseconds of the day, for years far beyond those of Arrow's.

CHANGE     how INT96 is read
PAIMON     Java writes TIMESTAMP(7) to TIMESTAMP(9) as INT96, before 1970 with negative nanoseconds of the day, and
           reads it for every precision.
WHY        Arrow reads INT96 in nanoseconds and wraps around before 1677 and after 2262 without an error. So a column is
           read twice, in nanoseconds and in microseconds: where both agree, no digit was lost.
WHY        Arrow takes nanoseconds of the day as unsigned: it reads -1 as a moment of 2554, as if it were one. Polars
           takes them as signed, and so its bounds of the column tell what the file has.
INVARIANT  a value is exact or refused (TS1164): out of range at more than 6 digits, nanoseconds at 6 or fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BytesIO

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from tablestore_engine.errors import Unsupported
from tablestore_engine.format.data_type import is_fine_timestamp
from tablestore_engine.format.schema import KEY_PREFIX, TableSchema


def fine_columns(schema: TableSchema) -> frozenset[str]:
    """Columns of a file, key columns too, that hold timestamps of more than 6 digits."""
    names = [one.name for one in schema.fields if any(map(is_fine_timestamp, one.type.walk()))]
    return frozenset([*names, *(KEY_PREFIX + name for name in names)])


FindBounds = Callable[[str], tuple[int, int]]  # column → its first and last moment, microseconds since 1970
_FIRST, _LAST = (
    -(2**63) // 1000 + 1,
    (2**63 - 1) // 1000 - 1,
)  # that have nanoseconds in 64 bits, whatever the rest is


def exact_columns(
    nanos: pa.Table, micros: pa.Table, fine: frozenset[str], find_bounds: FindBounds, path: str
) -> pa.Table:
    """`nanos`, its columns of INT96 checked, those that are not `fine` as in `micros`. Raises Unsupported TS1164."""
    for name in micros.column_names:
        at, is_fine = nanos.schema.get_field_index(name), name in fine
        misfit = _first_misfit(nanos.column(at), micros.column(name), is_fine=is_fine)
        if misfit is not None and is_fine and pat.is_timestamp(micros.field(name).type):
            first, last = find_bounds(name)
            misfit = first if first < _FIRST else last if last > _LAST else None
        if misfit is not None:
            raise _inexact(misfit, f"column {name} of {path}", is_fine=is_fine)
        if not is_fine:
            nanos = nanos.set_column(at, micros.field(name), micros.column(name))
    return nanos


def signed_bounds(file: pa.NativeFile, column: str) -> tuple[int, int]:
    """The first and last moment of a column of INT96, in microseconds since 1970."""
    import polars as pl  # only such files need it  # noqa: PLC0415

    file.seek(0)
    found = pl.scan_parquet(BytesIO(file.read()), schema={column: pl.Datetime("us")}, extra_columns="ignore")
    moments = pl.col(column).cast(pl.Int64)
    row = found.select(moments.min().alias("first"), moments.max().alias("last")).collect().row(0)
    return int(row[0]), int(row[1])


def _first_misfit(nanos: pa.ChunkedArray, micros: pa.ChunkedArray, *, is_fine: bool) -> int | None:
    """The first value, in microseconds, that is not the same in both."""
    for one, other in zip(_moments(nanos), _moments(micros), strict=True):
        fine, coarse = (np.asarray(part.cast(pa.int64()).fill_null(0)) for part in (one, other))
        wrong = fine // 1000 != coarse if is_fine else fine - coarse * 1000 != 0  # both wrap around alike
        if wrong.any():
            return int(coarse[np.flatnonzero(wrong)[0]])
    return None


def _moments(column: pa.ChunkedArray) -> Iterator[pa.Array]:
    """The arrays of timestamps of a column, at any depth."""
    for chunk in column.chunks:
        yield from _of_array(chunk)


def _of_array(array: pa.Array) -> Iterator[pa.Array]:
    if pat.is_timestamp(array.type):
        yield array
    elif pat.is_struct(array.type):
        for child in array.flatten():
            yield from _of_array(child)
    elif pat.is_map(array.type):
        yield from _of_array(array.keys)
        yield from _of_array(array.items)
    elif pat.is_list(array.type):
        yield from _of_array(array.values)


def _inexact(micros: int, place: str, *, is_fine: bool) -> Unsupported:
    moment = np.datetime64(micros, "us")
    return Unsupported(
        "TS1164",
        f"a timestamp of {place} cannot be read",
        why=f"nanoseconds are read from 1677-09-21 to 2262-04-11, got {moment}"
        if is_fine
        else f"the column keeps microseconds, and the file has nanoseconds at {moment}",
        fix="correct the value in the engine that wrote it, or store it with 6 digits of a second",
    )
