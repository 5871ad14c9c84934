"""Stored rows as batches for the merge: those that other writers left on level 0, and those of another snapshot.

Level 0    rows with kinds and numbers, one key range after the other → incoming_batch.batch_of_stored
INVARIANT  the order of files does not matter, only the order that the rows carry (format.md#merge-order).
INVARIANT  a winner keeps its sequence number; the row of a winning delete only takes its key away.
CHANGE     RESTORE of one bucket
Restored   visible rows, one key range after the other → incoming_batch.batch_of
INVARIANT  files of another snapshot hide what it hid, so a key comes once; values are those of today's schema.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tablestore_engine.format.data_file import SEQUENCE_NUMBER, VALUE_KIND
from tablestore_engine.store.files.data_files import DataFiles
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.merge.merge_steps import Batches
from tablestore_engine.store.merge.range_read import FilePiece, read_ranges
from tablestore_engine.store.rows.incoming_batch import Batch, batch_of, batch_of_stored


def read_visible(files: DataFiles, stored: Sequence[StoredFile]) -> Batches:
    """The rows in key order, one key range after the other; none for no files."""
    there = [file for file in stored if file.visible_rows]
    ranges = read_ranges(files.reader, there, visible=True) if there else iter(())
    rows = (pa.concat_tables([piece.rows for piece in pieces]) for pieces in ranges)
    return Batches(
        (batch_of(one, None, files.traits) for one in rows), sum(file.visible_rows for file in there)
    )


def read_level_zero(files: DataFiles, taken: Sequence[StoredFile]) -> Batches:
    """The merged rows of level 0 files in key order, one key range after the other; `taken` has at least one file."""
    keep = (SEQUENCE_NUMBER, VALUE_KIND)
    ranges = read_ranges(files.reader, taken, keep=keep, visible=True)
    return Batches((_batch(files, pieces) for pieces in ranges), sum(file.visible_rows for file in taken))


def _batch(files: DataFiles, pieces: Sequence[FilePiece]) -> Batch:
    rows = pa.concat_tables([piece.rows for piece in pieces])
    kinds = np.asarray(rows.column(VALUE_KIND)).astype(np.int8)
    numbers = np.asarray(rows.column(SEQUENCE_NUMBER))
    return batch_of_stored(rows.drop_columns([SEQUENCE_NUMBER, VALUE_KIND]), kinds, numbers, files.traits)
