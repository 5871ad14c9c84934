"""Level 0, the inbox: rows that other writers left there become one batch for the merge.

Names      read_level_zero   files of level 0 → Batch, one version per key
Steps      read all rows with kinds and numbers → incoming_batch.batch_of_stored
INVARIANT  the order of files does not matter, only the order that the rows carry (format.md#merge-order).
INVARIANT  a winner keeps its sequence number; the row of a winning delete only takes its key away.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tablestore_engine.format.data_file import SEQUENCE_NUMBER, VALUE_KIND
from tablestore_engine.store.data_files import DataFiles
from tablestore_engine.store.incoming_batch import Batch, batch_of_stored
from tablestore_engine.store.stored_file import StoredFile


def read_level_zero(files: DataFiles, taken: Sequence[StoredFile]) -> Batch:
    """The merged rows of level 0 files in key order; `taken` has at least one file."""
    rows = pa.concat_tables(
        [files.reader.read_visible(file, keep=(SEQUENCE_NUMBER, VALUE_KIND)) for file in taken]
    )
    kinds = np.asarray(rows.column(VALUE_KIND)).astype(np.int8)
    numbers = np.asarray(rows.column(SEQUENCE_NUMBER))
    return batch_of_stored(rows.drop_columns([SEQUENCE_NUMBER, VALUE_KIND]), kinds, numbers, files.traits)
