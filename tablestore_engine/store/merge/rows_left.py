"""Rows that leave a keyed table without deletion vectors: their files are written again without them.

CHANGE     how rows leave a table whose merge engine needs no deletion vectors
Steps      a file without a visible row goes; of another one the rows that stay move to a new file on its level
INVARIANT  rows that stay keep their sequence numbers; no changelog comes of it.
INVARIANT  when the disk refuses a file (StorageError), those written before it are deleted.
Memory     a step of rows (row_budget).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from pyroaring import BitMap

from tablestore_engine.errors import StorageError
from tablestore_engine.format.data_file import SEQUENCE_NUMBER, DataFileMeta
from tablestore_engine.store.files.bucket_state import BucketState
from tablestore_engine.store.files.data_files import DataFiles, RunRows
from tablestore_engine.store.files.row_budget import step_rows
from tablestore_engine.store.files.stored_file import StoredFile


@dataclass(frozen=True)
class RowsLeft:
    """Files that go, and the new ones with their remaining rows."""

    removed: tuple[DataFileMeta, ...]
    rewritten: tuple[DataFileMeta, ...]


def without_rows(files: DataFiles, state: BucketState, dead: Mapping[str, BitMap]) -> RowsLeft:
    """`dead`: file name → positions of rows that go."""
    removed: list[DataFileMeta] = []
    rewritten: list[DataFileMeta] = []
    try:
        for file in state.files:
            gone = dead.get(file.meta.file_name)
            if gone:
                removed.append(file.meta)
                rewritten.extend(_rest(files, state, replace(file, deleted=gone)))
    except StorageError:
        files.discard(state, rewritten)
        raise
    return RowsLeft(tuple(removed), tuple(rewritten))


def _rest(files: DataFiles, state: BucketState, file: StoredFile) -> tuple[DataFileMeta, ...]:
    with files.open_run(state, level=file.meta.level) as output:
        for rows in files.reader.read_visible_blocks(
            file, keep=(SEQUENCE_NUMBER,), rows_max=step_rows([file])
        ):
            output.add(
                RunRows(rows.drop_columns([SEQUENCE_NUMBER]), np.asarray(rows.column(SEQUENCE_NUMBER)))
            )
    return output.metas
