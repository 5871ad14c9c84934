"""Compaction of small files of an append-only bucket into one without deleted rows; readers see no difference.

INVARIANT  rows of a group keep their order, and its new files begin with its smallest sequence number: in a table of
           fixed buckets they stand where the group stood, since its numbers are those of no other file.
INVARIANT  vectors of compacted files go, all others stay as they are.
INVARIANT  when the disk refuses a file (StorageError), those of the groups before it are deleted: nobody names them.
Memory     a step of rows, however large the files (row_budget).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tablestore_engine.errors import StorageError
from tablestore_engine.format.data_file import SOURCE_COMPACT, DataFileMeta
from tablestore_engine.store.files.bucket_state import BucketChange, BucketState
from tablestore_engine.store.files.data_files import DataFiles
from tablestore_engine.store.files.row_budget import step_rows
from tablestore_engine.store.files.stored_file import StoredFile


def compact_small_files(
    files: DataFiles, state: BucketState, groups: Sequence[Collection[str]]
) -> BucketChange:
    """Visible rows of the files of each group in their order, as one file (or several of the target size)."""
    added: list[DataFileMeta] = []
    removed: list[DataFileMeta] = []
    for names in groups:
        taken = [file for file in state.files if file.meta.file_name in names]
        try:
            added += _joined(files, state, taken)
        except StorageError:
            files.discard(state, added)
            raise
        removed += [file.meta for file in taken]
    return state.rewritten(removed, added)


def _joined(files: DataFiles, state: BucketState, taken: Sequence[StoredFile]) -> tuple[DataFileMeta, ...]:
    first = min(file.meta.min_sequence_number for file in taken)
    with files.open_append(state, first, source=SOURCE_COMPACT) as output:
        for file in taken:
            for rows in files.reader.read_visible_blocks(file, rows_max=step_rows([file])):
                output.add(rows)
    return output.metas
