"""Level 0: rows that other writers left there become one batch for the merge.

Steps      read rows with kinds and numbers, one key range after the other → incoming_batch.batch_of_stored
INVARIANT  the order of files does not matter, only the order that the rows carry (format.md#merge-order).
INVARIANT  a winner keeps its sequence number; the row of a winning delete only takes its key away.
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
from tablestore_engine.store.rows.incoming_batch import Batch, batch_of_stored


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
