"""What the keys of one stored file really are, for verify: read step by step, held against the metadata.

INVARIANT  a step of rows is held (row_budget), and of a file that is kept its keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

from tablestore_engine.format.data_file import SEQUENCE_NUMBER, VALUE_KIND
from tablestore_engine.lsm.key_order import key_at, order_columns, order_permutation, starts_of_groups
from tablestore_engine.lsm.key_versions import retracts
from tablestore_engine.lsm.range_merge import Key
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.row_budget import step_rows
from tablestore_engine.store.files.stored_file import StoredFile

SYSTEM_COLUMNS = (SEQUENCE_NUMBER, VALUE_KIND)


@dataclass(frozen=True)
class KeyFacts:
    """`numbers`: smallest and largest sequence number, none for a file without rows. `keys`: comparable, in file order;
    None: not kept.
    """

    rows: int
    is_sorted: bool
    numbers: tuple[int, int] | None
    retracts: int
    keys: pl.DataFrame | None = None

    def problems(self, file: StoredFile) -> Iterator[str]:
        """What differs from the metadata of `file`."""
        meta = file.meta
        if not self.is_sorted:
            yield f"{meta.file_name} is not sorted by key, or repeats one"
        if self.numbers not in (None, (meta.min_sequence_number, meta.max_sequence_number)):
            yield f"{meta.file_name} has other sequence numbers than its metadata"
        if meta.delete_row_count not in (None, self.retracts):
            yield f"{meta.file_name} has {self.retracts} delete rows, not {meta.delete_row_count}"


class KeyFactsOfBlocks:
    """Of a file whose rows come block by block, in order."""

    def __init__(self, names: tuple[str, ...], *, keeps: bool) -> None:
        self._names, self._keeps = names, keeps
        self._kept: list[pl.DataFrame] = []
        self._is_sorted, self._retracts, self._rows = True, 0, 0
        self._last: Key | None = None
        self._low: int | None = None
        self._high = 0

    def add(self, rows: pa.Table) -> None:
        """Rows with the key columns and SYSTEM_COLUMNS, at least one."""
        keys = order_columns(rows, self._names)
        order = order_permutation(keys)
        self._is_sorted &= not bool((order[1:] < order[:-1]).any()) and bool(starts_of_groups(keys).all())
        self._is_sorted &= self._last is None or self._last < key_at(keys, 0)
        self._last = key_at(keys, -1)
        numbers = np.asarray(rows.column(SEQUENCE_NUMBER))
        low = int(numbers.min())
        self._low = low if self._low is None else min(self._low, low)
        self._high = max(self._high, int(numbers.max()))
        self._retracts += int(retracts(np.asarray(rows.column(VALUE_KIND))).sum())
        self._rows += rows.num_rows
        if self._keeps:
            self._kept.append(keys)

    def result(self) -> KeyFacts:
        numbers = None if self._low is None else (self._low, self._high)
        kept = pl.concat(self._kept) if self._kept else None
        return KeyFacts(self._rows, self._is_sorted, numbers, self._retracts, kept)


def read_key_facts(reader: FileReader, file: StoredFile, *, keeps: bool = False) -> KeyFacts:
    """`keeps`: with the keys. Raises as FileReader."""
    names = reader.schema.trimmed_primary_keys
    found = KeyFactsOfBlocks(names, keeps=keeps)
    for block in reader.read_blocks(file, names, keep=SYSTEM_COLUMNS, rows_max=step_rows([file])):
        found.add(block.rows)
    return found.result()
