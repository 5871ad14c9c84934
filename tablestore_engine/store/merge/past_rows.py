"""Rows that a bucket had in another snapshot, as one batch for the merge.

CHANGE     RESTORE of one bucket
Steps      visible rows, one key range after the other → incoming_batch.batch_of
INVARIANT  the files hide what their snapshot hid, so a key comes once; values are those of today's schema.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tablestore_engine.store.files.data_files import DataFiles
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.merge.merge_steps import Batches
from tablestore_engine.store.merge.range_read import FilePiece, read_ranges
from tablestore_engine.store.rows.incoming_batch import Batch, batch_of


def read_visible(files: DataFiles, stored: Sequence[StoredFile]) -> Batches:
    """The rows in key order, one key range after the other; none for no files."""
    there = [file for file in stored if file.visible_rows]
    ranges = read_ranges(files.reader, there, visible=True) if there else iter(())
    return Batches((_batch(files, pieces) for pieces in ranges), sum(file.visible_rows for file in there))


def _batch(files: DataFiles, pieces: Sequence[FilePiece]) -> Batch:
    return batch_of(pa.concat_tables([piece.rows for piece in pieces]), None, files.traits)
