"""Take rows of an Arrow table by number, however long their texts are.

Steps      columns that fit 32-bit offsets → plain take; else the numbers in blocks, of each block the rows chunk by
           chunk, then in order; a block that is still too large is halved
INVARIANT  the outcome is `rows.take(at)`, only its chunks differ; take_rows never joins a column into one array.
WHY        take_all joins them: to find the chunk of each row costs a third of the take.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

ARRAY_BYTES = 1 << 30  # half of what 32-bit offsets reach: text of one array, its offsets and some air
_THREADED_ROWS, _THREADS_MAX = 65_536, 4


def take_rows(rows: pa.Table, at: npt.NDArray[np.int64], *, array_bytes: int = ARRAY_BYTES) -> pa.Table:
    """Row `at[i]` becomes row i. No column that is taken apart has a chunk above `array_bytes`, rows allowing."""
    if keeps_all(at, rows.num_rows):
        return rows
    largest = _largest(rows)
    if largest <= array_bytes or not len(at):
        return rows.take(pa.array(at))
    batches = rows.to_batches()
    starts = np.cumsum([0, *(batch.num_rows for batch in batches)])
    block = max(1, rows.num_rows * array_bytes // (2 * largest))
    parts = [_gather(batches, starts, at[first : first + block]) for first in range(0, len(at), block)]
    return pa.concat_tables(parts)


def take_all(rows: pa.Table, at: npt.NDArray[np.int64]) -> pa.Table:
    """The same of about as many rows as there are, columns in threads. Memory: besides the result one of the columns
    for each thread.
    """
    if rows.num_rows < _THREADED_ROWS or _largest(rows) > ARRAY_BYTES or keeps_all(at, rows.num_rows):
        return take_rows(rows, at)
    with ThreadPoolExecutor(min(_THREADS_MAX, os.cpu_count() or 1)) as pool:
        columns = list(pool.map(partial(_take_column, at=pa.array(at)), rows.columns))
    return pa.Table.from_arrays(columns, schema=rows.schema)


def _take_column(column: pa.ChunkedArray, at: pa.Array) -> pa.Array | pa.ChunkedArray:
    return column.combine_chunks().take(at)


def _largest(rows: pa.Table) -> int:
    """Bytes of the largest column whose arrays have offsets."""
    return max((column.nbytes for column in rows.columns if _has_offsets(column.type)), default=0)


def decoded_texts(rows: pa.Table) -> pa.Table:
    """Texts in place of dictionaries."""
    for at, field in enumerate(rows.schema):
        if pat.is_dictionary(field.type):
            plain = field.with_type(field.type.value_type)
            rows = rows.set_column(at, plain, rows.column(at).cast(plain.type))
    return rows


def keeps_all(at: npt.NDArray[np.int64], row_count: int) -> bool:
    """Whether `at` names every row in its place."""
    return len(at) == row_count and bool((at == np.arange(row_count)).all())


def _gather(
    batches: list[pa.RecordBatch], starts: npt.NDArray[np.int64], at: npt.NDArray[np.int64]
) -> pa.Table:
    """The rows of one block: from each batch those that it has, then put in order."""
    batch_of = np.searchsorted(starts, at, side="right") - 1
    order = np.argsort(batch_of, kind="stable")
    hit, firsts = np.unique(batch_of[order], return_index=True)
    pieces = np.split(at[order], firsts[1:])
    found = [
        batches[number].take(pa.array(piece - starts[number]))
        for number, piece in zip(hit, pieces, strict=True)
    ]
    back = np.empty(len(at), np.int64)
    back[order] = np.arange(len(at))
    try:
        return pa.Table.from_batches(found).take(pa.array(back))
    except pa.ArrowInvalid:  # offset overflow: rows of this block are far above the average
        if len(at) == 1:
            raise
        half = len(at) // 2
        return pa.concat_tables([_gather(batches, starts, part) for part in (at[:half], at[half:])])


def _has_offsets(type_: pa.DataType) -> bool:
    """Whether arrays of the type hold offsets somewhere."""
    if pat.is_nested(type_):
        return True
    return bool(pat.is_string(type_) or pat.is_binary(type_))
