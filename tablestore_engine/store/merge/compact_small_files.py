"""Compaction of small files of an append-only bucket into one without deleted rows; readers see no difference.

INVARIANT  rows keep their order, and the smallest sequence number of the compacted files is that of the new one.
Memory     a step of rows, however large the files (row_budget).
INVARIANT  vectors of compacted files go, all others stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection

from tablestore_engine.format.data_file import SOURCE_COMPACT
from tablestore_engine.store.files.bucket_state import BucketChange, BucketState
from tablestore_engine.store.files.data_files import DataFiles
from tablestore_engine.store.files.row_budget import step_rows


def compact_small_files(files: DataFiles, state: BucketState, names: Collection[str]) -> BucketChange:
    """Visible rows of the named files in their order, as one file (or several of the target size)."""
    taken = [file for file in state.files if file.meta.file_name in names]
    first = min(file.meta.min_sequence_number for file in taken)
    with files.open_append(state, first, source=SOURCE_COMPACT) as output:
        for file in taken:
            for rows in files.reader.read_visible_blocks(file, rows_max=step_rows([file])):
                output.add(rows)
    kept = {name: bits for name, bits in state.deletion_vectors.items() if name not in names}
    return BucketChange(
        state.partition_bytes,
        state.bucket,
        added=output.metas,
        removed=tuple(file.meta for file in taken),
        deletion_vectors=None if kept == state.deletion_vectors else kept,
    )
