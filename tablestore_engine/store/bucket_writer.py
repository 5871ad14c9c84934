"""Merge-on-write inside one bucket: incoming rows and stored rows become files, vectors and the exact changelog.

Names      BucketWriter   upsert, append, replace, fold, take_in_level_zero → BucketChange; read_visible, levels, apply
Steps      upsert: conform → one row per key → find the visible stored rows → decide → new run, vectors, changelog
INVARIANT  a change is complete: with it, readers see every key once, and the changelog turns the old rows into the new.
INVARIANT  nothing is committed here: a change that is thrown away leaves only files that nothing names.
CRASH      the same; orphan cleaning finds them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from tablestore_engine.errors import EngineBug, FixData
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.data_file import SOURCE_COMPACT
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.sql_literal import count_of, sql_row
from tablestore_engine.lsm.batch import SequenceOrder, resolve_batch, without_update_before
from tablestore_engine.lsm.compaction import CompactionUnit
from tablestore_engine.lsm.key_order import Mask, order_columns
from tablestore_engine.lsm.levels import FileSummary, Levels
from tablestore_engine.lsm.rows import SAMPLES, conform, frame_samples
from tablestore_engine.lsm.take import take_rows
from tablestore_engine.runtime.system import Runtime
from tablestore_engine.store.bucket_state import BucketChange, BucketState
from tablestore_engine.store.data_files import DataFiles
from tablestore_engine.store.fold import fold_unit
from tablestore_engine.store.level_zero import read_level_zero
from tablestore_engine.store.lookup import KeyCache, key_range
from tablestore_engine.store.merge_batch import Batch, Target, merge_batch, sequence_of
from tablestore_engine.store.replace_rows import replace_rows
from tablestore_engine.store.row_filter import RowFilter
from tablestore_engine.store.stored_file import StoredFile
from tablestore_engine.store.table_traits import TableTraits


@dataclass(frozen=True)
class BucketWriter:
    """All operations on one bucket; the schema of `traits` is the one written."""

    fileio: FileIO
    layout: TableLayout
    traits: TableTraits
    runtime: Runtime
    key_cache: KeyCache | None = None

    @property
    def schema(self) -> TableSchema:
        """The schema that is written."""
        return self.traits.schema

    # ---- operations ----------------------------------------------------------------------------------------

    def upsert(
        self,
        state: BucketState,
        rows: pa.Table,
        kinds: pa.Array | None = None,
        *,
        picks: RowFilter | None = None,
    ) -> BucketChange:
        """Put, replace and delete rows by key; `kinds` are row kinds (None: all put).

        `picks` makes a difference commit: picked stored rows whose keys `rows` lacks are deleted, identical rows stay
        untouched, and the sequence field does not protect picked rows.
        Raises FixData TS1601 (repeated keys), TS1602 (null key), TS1603 and TS1604 (values, columns),
        EngineBug TS1650 (no free level: fold first), TS1653 (level 0: take it in first).
        """
        if any(file.meta.level == 0 for file in state.files):
            raise EngineBug(
                "TS1653",
                f"bucket {state.bucket} still has level 0 files",
                why="rows of other writers must be taken in before an upsert can look up keys",
                fix="commit take_in_level_zero first; please report this",
            )
        kind_values = None if kinds is None else np.asarray(kinds).astype(np.int8)
        deletes = None if kind_values is None else _retracts(kind_values)
        batch = self._resolve(conform(rows, self.schema, deletes), kind_values)
        target = Target(
            level=self.levels(state).get_next_level(),
            picks=picks,
            skip_identical=picks is not None or self.traits.skips_identical,
        )
        return merge_batch(self.files, state, batch, target, self.key_cache)

    def append(
        self, partition: tuple[object, ...], bucket: int, rows: pa.Table, first_sequence: int
    ) -> BucketChange:
        """Rows of an append-only table, in the order given. Raises FixData TS1603, TS1604."""
        made = conform(rows, self.schema)
        spec = PartitionSpec.of(self.schema)
        place = BucketState(partition, spec.encode(partition), spec.path(partition), bucket)
        return BucketChange(
            place.partition_bytes,
            bucket,
            added=self.files.write_append(place, made, first_sequence),
            inserted=made.num_rows,
        )

    def replace(self, state: BucketState, rows: pa.Table | None, picks: RowFilter) -> BucketChange:
        """Picked rows of an append-only bucket give way to `rows`; equal ones stay. Raises FixData TS1603, TS1604."""
        made = self.schema.arrow_schema().empty_table() if rows is None else conform(rows, self.schema)
        return replace_rows(self.files, state, made, picks)

    def fold(self, state: BucketState, unit: CompactionUnit) -> BucketChange:
        """Rewrite the unit's files as one sorted run without their dead rows (a COMPACT snapshot of its own)."""
        return fold_unit(self.files, state, unit)

    def take_in_level_zero(self, state: BucketState) -> BucketChange:
        """Level 0 files of other writers → one sorted run, vectors and changelog (a COMPACT snapshot).

        REQUIRES a free level (compaction.needs_fold is false). They win over stored rows unless the
        sequence field says otherwise: they were committed later.
        """
        taken = [file for file in state.files if file.meta.level == 0]
        below = dataclasses.replace(state, files=tuple(file for file in state.files if file.meta.level > 0))
        batch = read_level_zero(self.files, taken)
        target = Target(level=self.levels(below).get_next_level(), source=SOURCE_COMPACT)
        change = merge_batch(self.files, below, batch, target, self.key_cache)
        return dataclasses.replace(change, removed=tuple(file.meta for file in taken))

    def read_visible(self, file: StoredFile, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of one file that readers see, as the write schema has them."""
        return self.files.reader.read_visible(file, columns)

    def apply(self, state: BucketState, change: BucketChange) -> BucketState:
        """The state after `change`, so that an upsert can follow its fold without planning again."""
        removed = {(meta.file_name, meta.level) for meta in change.removed}
        kept = [file for file in state.files if (file.meta.file_name, file.meta.level) not in removed]
        added = [
            StoredFile(
                state.partition,
                state.partition_bytes,
                state.partition_path,
                state.bucket,
                self.schema.bucket_count,
                meta,
                self.layout.data_file(state.partition_path, state.bucket, meta.file_name),
                self.schema,
            )
            for meta in change.added
        ]
        vectors = state.deletion_vectors if change.deletion_vectors is None else change.deletion_vectors
        files = (
            dataclasses.replace(file, deleted=vectors.get(file.meta.file_name)) for file in [*kept, *added]
        )
        return dataclasses.replace(state, files=tuple(files))

    def levels(self, state: BucketState) -> Levels:
        """The bucket's shape, for compaction.pick and needs_fold."""
        return Levels.of((self._summary(file) for file in state.files), self.traits.level_count)

    @property
    def files(self) -> DataFiles:
        """Reading and writing of this bucket's files."""
        return DataFiles(self.fileio, self.layout, self.traits, self.runtime)

    # ---- from rows to a batch ------------------------------------------------------------------------------

    def _resolve(self, rows: pa.Table, kinds: npt.NDArray[np.int8] | None) -> Batch:
        keys = order_columns(rows, self.schema.trimmed_primary_keys)
        if kinds is not None and bool((kinds == RowKind.UPDATE_BEFORE).any()):
            keep = without_update_before(keys, kinds)
            rows, kinds, keys = rows.filter(pa.array(keep)), kinds[keep], keys.filter(pl.Series(keep))
        sequence = sequence_of(rows, self.traits)
        resolved = resolve_batch(keys, sequence, last_wins=self.traits.last_wins)
        if len(resolved.tied):
            self._refuse_ties(rows, resolved.tied)
        order = resolved.winners
        if len(order) != rows.num_rows or not bool((order[1:] > order[:-1]).all()):
            rows, keys = take_rows(rows, order), keys[order]
            sequence = None if sequence is None else SequenceOrder(sequence.frame[order], sequence.descending)
            kinds = None if kinds is None else kinds[order]
        deletes = np.zeros(rows.num_rows, dtype=np.bool_) if kinds is None else _retracts(kinds)
        return Batch(rows, keys, deletes, sequence)

    def _refuse_ties(self, rows: pa.Table, tied: npt.NDArray[np.int64]) -> None:
        samples = frame_samples(rows, self.schema.primary_keys, tied)
        keys_occur = count_of(len(tied), "key occurs", "keys occur")
        raise FixData(
            "TS1601",
            f"{keys_occur} more than once with nothing to order their rows",
            why=f"keys with equal order, {min(len(tied), SAMPLES)} of {len(tied)}: "
            + "; ".join(map(sql_row, samples)),
            fix="make the keys unique, set sequence_field to a column that orders the rows, "
            "or accept the last row with duplicates='last'",
            keys=samples,
        )

    def _summary(self, file: StoredFile) -> FileSummary:
        low, high = key_range(self.schema, file)
        return FileSummary(
            name=file.meta.file_name,
            level=file.meta.level,
            rows=file.meta.row_count,
            dead=file.dead_count,
            size_bytes=file.meta.file_size,
            min_key=low,
            max_key=high,
        )


def _retracts(kinds: npt.NDArray[np.int8]) -> Mask:
    return np.asarray((kinds == RowKind.UPDATE_BEFORE) | (kinds == RowKind.DELETE))
