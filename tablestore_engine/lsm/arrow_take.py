"""Take rows of an Arrow table by number, however long their texts are.

Steps      columns that fit 32-bit offsets → plain take; else the numbers in blocks, of each block the rows chunk by
           chunk, then in order; a block that is still too large is halved
INVARIANT  the outcome is `rows.take(at)`, only its chunks differ; input columns are never joined into one array.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as pat

ARRAY_BYTES = 1 << 30  # half of what 32-bit offsets reach: text of one array, its offsets and some air


def take_rows(rows: pa.Table, at: npt.NDArray[np.int64], *, array_bytes: int = ARRAY_BYTES) -> pa.Table:
    """Row `at[i]` becomes row i. No column that is taken apart has a chunk above `array_bytes`, rows allowing."""
    if keeps_all(at, rows.num_rows):
        return rows
    largest = max((column.nbytes for column in rows.columns if _has_offsets(column.type)), default=0)
    if largest <= array_bytes or not len(at):
        return rows.take(pa.array(at))
    batches = rows.to_batches()
    starts = np.cumsum([0, *(batch.num_rows for batch in batches)])
    block = max(1, rows.num_rows * array_bytes // (2 * largest))
    parts = [_gather(batches, starts, at[first : first + block]) for first in range(0, len(at), block)]
    return pa.concat_tables(parts)


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
