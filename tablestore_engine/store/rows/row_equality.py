"""When two rows are the same row: one by one of aligned tables, or as multisets of rows without a key.

Rule       the k-th occurrence of a row on one side equals the k-th on the other. NULL equals NULL, NaN equals NaN,
           -0.0 differs from 0.0; nested values are compared by their text.
INVARIANT  what is taken from a pool is gone: two stored rows never stand for one new row.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.types as pat

from tablestore_engine.format.row_values import row_values
from tablestore_engine.lsm.key_order import Index, Mask, order_frame

ROW, NTH = "#row", "#nth"


def rows_identical(one: pa.Table, other: pa.Table) -> Mask:
    """Whether row i is the same in both: NULL equals NULL, NaN equals NaN, −0.0 differs from 0.0."""
    same = np.ones(one.num_rows, dtype=np.bool_)
    for name in one.column_names:
        mine, theirs = one.column(name), other.column(name)
        if pat.is_nested(mine.type):
            same &= _nested_identical(mine, theirs)
            continue
        left, right = order_frame([mine]), order_frame([theirs])
        for column in left.columns:
            same &= left.get_column(column).eq_missing(right.get_column(column)).to_numpy()
    return same


def _nested_identical(one: pa.ChunkedArray, other: pa.ChunkedArray) -> Mask:
    """Python values compare by content; nested columns are rare and batches small."""
    pairs = zip(row_values(one), row_values(other), strict=True)
    return np.fromiter((repr(a) == repr(b) for a, b in pairs), dtype=np.bool_, count=len(one))


class RowPool:
    """The rows of one table; `left` are the numbers of those that nobody has taken, ascending."""

    def __init__(self, rows: pa.Table) -> None:
        self._frame = comparable_rows(rows).with_row_index(ROW)

    @property
    def left(self) -> Index:
        """Row numbers still there."""
        return self._frame.get_column(ROW).cast(pl.Int64).to_numpy()

    def take(self, rows: pa.Table) -> Mask:
        """For each of `rows` whether the pool had an equal one. REQUIRES the columns of the pool."""
        taken = np.zeros(rows.num_rows, dtype=np.bool_)
        if not rows.num_rows or not self._frame.height:
            return taken
        mine = _with_occurrence(comparable_rows(rows).with_row_index("#mine"), "#mine")
        names = [name for name in self._frame.columns if name != ROW]
        pool = _with_occurrence(self._frame, ROW)
        pairs = mine.join(pool, on=[*names, NTH], how="inner", nulls_equal=True)
        taken[pairs.get_column("#mine").to_numpy()] = True
        self._frame = self._frame.filter(~pl.col(ROW).is_in(pairs.get_column(ROW).implode()))
        return taken


def numbered_rows(rows: pa.Table) -> pl.DataFrame:
    """Comparable columns between the row number and the number of the occurrence."""
    return _with_occurrence(comparable_rows(rows).with_row_index(ROW), ROW)


def comparable_rows(rows: pa.Table) -> pl.DataFrame:
    """Columns in which equal rows are the same rows."""
    arrays = []
    for column in rows.columns:
        if pa.types.is_nested(column.type):
            column = pa.chunked_array([pa.array([repr(value) for value in row_values(column)], pa.string())])
        arrays.append(column)
    return order_frame(arrays)


def _with_occurrence(frame: pl.DataFrame, number: str) -> pl.DataFrame:
    names = [name for name in frame.columns if name != number]
    return frame.with_columns(pl.int_range(pl.len()).over(names).alias(NTH))
