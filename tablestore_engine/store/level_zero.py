"""Level 0, the inbox: rows that other writers left there become one batch for the merge (K6).

Names      read_level_zero   files of level 0 → Batch, one row per key
Steps      read all rows with kinds → merge order (sequence field, sequence number, adds last) → last of each key
INVARIANT  the order of files does not matter, only the order that the rows carry (format section 8).
INVARIANT  a winner keeps its sequence number; the row of a winning delete only takes its key away.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from tablestore_engine.format.data_file import SEQUENCE_NUMBER, VALUE_KIND
from tablestore_engine.lsm.batch import SequenceOrder, resolve_batch, retracts
from tablestore_engine.lsm.key_order import order_columns
from tablestore_engine.lsm.take import take_rows
from tablestore_engine.store.data_files import DataFiles
from tablestore_engine.store.merge_batch import Batch, sequence_of
from tablestore_engine.store.stored_file import StoredFile


def read_level_zero(files: DataFiles, taken: Sequence[StoredFile]) -> Batch:
    """The merged rows of level 0 files in key order; `taken` has at least one file."""
    rows = pa.concat_tables(
        [files.reader.read_visible(file, keep=(SEQUENCE_NUMBER, VALUE_KIND)) for file in taken]
    )
    kinds = np.asarray(rows.column(VALUE_KIND)).astype(np.int8)
    numbers = np.asarray(rows.column(SEQUENCE_NUMBER))
    deletes = retracts(kinds)
    table = rows.drop_columns([SEQUENCE_NUMBER, VALUE_KIND])
    keys = order_columns(table, files.schema.trimmed_primary_keys)
    arrival = pl.DataFrame({"number": numbers, "adds": ~deletes})
    field = sequence_of(table, files.traits)
    versions = SequenceOrder(arrival, (False, False))
    if field is not None:
        versions = SequenceOrder(
            pl.concat([field.frame, arrival], how="horizontal"), (*field.descending, False, False)
        )
    order = resolve_batch(keys, versions, last_wins=True).winners
    made = take_rows(table, order)
    return Batch(made, keys[order], deletes[order], sequence_of(made, files.traits), numbers[order])
