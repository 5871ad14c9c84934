"""What the keys of stored files really are, for verify: read step by step, held against the metadata.

INVARIANT  keys and system columns are read, nothing else, and a step of them is held (row_budget).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from tablestore_engine.format.data_file import SEQUENCE_NUMBER, VALUE_KIND
from tablestore_engine.lsm.key_order import key_at, order_columns, order_permutation, starts_of_groups
from tablestore_engine.lsm.key_versions import retracts
from tablestore_engine.lsm.range_merge import Key
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.row_budget import step_rows
from tablestore_engine.store.files.stored_file import StoredFile, visible_mask
from tablestore_engine.store.merge.range_read import read_ranges


@dataclass(frozen=True)
class KeyFacts:
    """`numbers`: smallest and largest sequence number, none for a file without rows."""

    is_sorted: bool
    numbers: tuple[int, int] | None
    retracts: int

    def problems(self, file: StoredFile) -> Iterator[str]:
        """What differs from the metadata of `file`."""
        meta = file.meta
        if not self.is_sorted:
            yield f"{meta.file_name} is not sorted by key, or repeats one"
        if self.numbers not in (None, (meta.min_sequence_number, meta.max_sequence_number)):
            yield f"{meta.file_name} has other sequence numbers than its metadata"
        if meta.delete_row_count not in (None, self.retracts):
            yield f"{meta.file_name} has {self.retracts} delete rows, not {meta.delete_row_count}"


def read_key_facts(reader: FileReader, file: StoredFile) -> KeyFacts:
    """Raises as FileReader, FixData TS1390 when the file's vector does not fit it."""
    names, is_sorted, deletes = reader.schema.trimmed_primary_keys, True, 0
    last: Key | None = None
    low: int | None = None
    high, rows = 0, 0
    for block in reader.read_blocks(
        file, names, keep=(SEQUENCE_NUMBER, VALUE_KIND), rows_max=step_rows([file])
    ):
        keys = order_columns(block.rows, names)
        order = order_permutation(keys)
        is_sorted &= not bool((order[1:] < order[:-1]).any()) and bool(starts_of_groups(keys).all())
        is_sorted &= last is None or last < key_at(keys, 0)
        last = key_at(keys, -1)
        numbers = np.asarray(block.rows.column(SEQUENCE_NUMBER))
        low = int(numbers.min()) if low is None else min(low, int(numbers.min()))
        high = max(high, int(numbers.max()))
        deletes += int(retracts(np.asarray(block.rows.column(VALUE_KIND))).sum())
        rows += block.rows.num_rows
    visible_mask(file, rows)
    return KeyFacts(is_sorted, None if low is None else (low, high), deletes)


def count_repeats(reader: FileReader, files: Sequence[StoredFile]) -> int:
    """Visible rows whose key another visible row has; files are sorted. Raises as range_read.read_ranges."""
    repeats = 0
    for pieces in read_ranges(reader, files, reader.schema.trimmed_primary_keys, visible=True):
        keys = pl.concat([piece.keys for piece in pieces])
        repeats += keys.height - int(starts_of_groups(keys[order_permutation(keys)]).sum())
    return repeats
