"""Replacing rows of an append-only bucket: only what differs is deleted and written.

CHANGE     how stored rows are replaced without a key
Steps      1 picked positions, file by file  2 picked rows that equal a new row stay where they are  3 for each file
           what is left: nothing → the file goes; most of it → a deletion vector; else → its rows move to a new file
           4 the new rows that found no equal are appended
Example    [a, a, b] replaced by [a, c]: one a stays, one a and b are deleted, c is written: +1 -2, one unchanged.
INVARIANT  equal rows in and out are no change: not in the counts, not in the changelog, no new file.
INVARIANT  when the disk refuses a file (StorageError), those written before it are deleted: nobody will name them.
INVARIANT  vectors are written only where the table says that its readers look for them (deletion-vectors.enabled).
PAIMON     readers of an append-only table with that option apply vectors; a file more than half dead is rewritten.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from tablestore_engine.errors import StorageError
from tablestore_engine.format.data_file import DataFileMeta
from tablestore_engine.lsm.arrow_take import take_rows
from tablestore_engine.lsm.key_order import Mask
from tablestore_engine.store.files.bucket_state import BucketChange, BucketState
from tablestore_engine.store.files.data_files import DataFiles
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.row_budget import step_rows
from tablestore_engine.store.files.stored_file import StoredFile, visible_mask
from tablestore_engine.store.rows.row_equality import RowPool
from tablestore_engine.store.rows.row_filter import RowFilter, picked_rows

DEAD_SHARE_MAX = 0.5
COMPARED_ROWS = 1_000_000  # stored rows that are always worth reading to find equal ones
COMPARED_FACTOR = 4  # beyond: stored rows for each new row, of which at best one stays
_CHUNK_ROWS = 500_000


@dataclass(frozen=True)
class _Picked:
    file: StoredFile
    mask: Mask


def replace_rows(
    files: DataFiles, state: BucketState, rows: pa.Table, wanted: RowFilter, *, first_sequence: int
) -> BucketChange:
    """The change that replaces the picked rows by `rows`; those that are new are numbered from `first_sequence`."""
    reader = files.reader
    picked = [
        _Picked(file, mask) for file in state.files if (mask := picked_rows(reader, file, wanted)) is not None
    ]
    pool, kept = RowPool(rows), 0
    if rows.num_rows and _is_worth_comparing(rows.num_rows, _count(picked)):
        lost = [one for chunk in _chunks(picked) for one in _without_equal(reader, chunk, pool)]
        kept = _count(picked) - _count(lost)
        picked = lost
    came = rows if not kept else take_rows(rows, pool.left)
    settled = _settle(files, state, picked)
    try:
        added = files.write_append(state, came, first_sequence)
    except StorageError:
        files.discard(state, settled.rewritten)
        raise
    return BucketChange(
        state.partition_bytes,
        state.bucket,
        added=(*settled.rewritten, *added),
        removed=settled.removed,
        deletion_vectors=settled.vectors,
        inserted=came.num_rows,
        deleted=_count(picked),
        unchanged=kept,
    )


def _count(picked: list[_Picked]) -> int:
    return sum(int(one.mask.sum()) for one in picked)


def _is_worth_comparing(new_rows: int, stored_rows: int) -> bool:
    return stored_rows <= COMPARED_ROWS + COMPARED_FACTOR * new_rows


def _chunks(picked: list[_Picked]) -> Iterator[list[_Picked]]:
    """Files together until there are rows enough to be worth one comparison."""
    chunk: list[_Picked] = []
    size = 0
    for one in picked:
        chunk.append(one)
        size += int(one.mask.sum())
        if size >= _CHUNK_ROWS:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _without_equal(reader: FileReader, chunk: list[_Picked], pool: RowPool) -> list[_Picked]:
    """The same files with the positions that have no equal new row; files without any are left out."""
    positions = [np.flatnonzero(one.mask) for one in chunk]
    stored = pa.concat_tables(
        [reader.read_positions(one.file, at) for one, at in zip(chunk, positions, strict=True)]
    )
    stays, start, lost = pool.take(stored), 0, []
    for one, at in zip(chunk, positions, strict=True):
        mask = one.mask.copy()
        mask[at[stays[start : start + len(at)]]] = False
        start += len(at)
        if bool(mask.any()):
            lost.append(_Picked(one.file, mask))
    return lost


@dataclass(frozen=True)
class _ReplacedRows:
    removed: tuple[DataFileMeta, ...]
    rewritten: tuple[DataFileMeta, ...]
    vectors: dict[str, BitMap] | None


def _settle(files: DataFiles, state: BucketState, lost: list[_Picked]) -> _ReplacedRows:
    """Step 3 for every file that loses rows; `vectors` is complete, or None when none changed."""
    vectors = state.deletion_vectors
    removed: list[DataFileMeta] = []
    rewritten: list[DataFileMeta] = []
    marks = files.traits.has_vectors
    for one in lost:
        name, left = one.file.meta.file_name, visible_mask(one.file) & ~one.mask
        dead = one.file.meta.row_count - int(left.sum())
        if marks and dead <= DEAD_SHARE_MAX * one.file.meta.row_count:
            vectors[name] = BitMap(np.flatnonzero(~left).astype(np.uint32))
            continue
        removed.append(one.file.meta)
        vectors.pop(name, None)
        if bool(left.any()):
            hidden = replace(one.file, deleted=BitMap(np.flatnonzero(~left).astype(np.uint32)))
            try:
                with files.open_append(state, one.file.meta.min_sequence_number) as output:
                    for rows in files.reader.read_visible_blocks(hidden, rows_max=step_rows([hidden])):
                        output.add(rows)
                rewritten += output.metas
            except StorageError:
                files.discard(state, rewritten)
                raise
    is_same = vectors == state.deletion_vectors
    return _ReplacedRows(tuple(removed), tuple(rewritten), None if is_same else vectors)
