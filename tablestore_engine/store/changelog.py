"""What each snapshot changed, as rows with kinds, in an order that never varies.

Names      ChangelogBatch   rows of a file, a step at a time (or of one bucket), with `_ROW_KIND`
           ChangelogReader  changes of a snapshot; whether there are any; changes of a range of snapshots; all its rows
                            as inserts
           with_kind        rows and one kind for all; multiset_difference: what went and what came
Steps      changelog files, when the snapshot has them → their rows
           append-only: APPEND → added rows as +I; OVERWRITE → multiset difference of rows that went (removed files,
           new deletion vectors) and added rows; COMPACT → rows that new vectors hide (some writers delete that way)
           keyed with producer none: level-0 rows of APPEND snapshots as stored
           COMPACT and ANALYZE without changelog: nothing
INVARIANT  two reads of one snapshot give the same rows in the same order: manifest order, then rows in the file.
Memory     a step of rows (row_budget); a difference holds one bucket's rows that went and came.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from tablestore_engine.errors import NotFound
from tablestore_engine.format.data_file import VALUE_KIND
from tablestore_engine.format.layout import UNAWARE_BUCKET
from tablestore_engine.format.manifest import FileKind, ManifestEntry
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import CommitKind, Snapshot
from tablestore_engine.lsm.take_rows import take_rows
from tablestore_engine.store.branch_stores import Parts
from tablestore_engine.store.files.bucket_state import BucketId
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.row_budget import step_rows
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.rows.row_equality import numbered_rows
from tablestore_engine.store.table_traits import TableTraits


@dataclass(frozen=True)
class ChangelogBatch:
    """Rows with all table columns and `_ROW_KIND` (int8, last); `bucket` -1 for tables without buckets."""

    snapshot_id: int
    partition: tuple[object, ...]
    bucket: int
    rows: pa.Table


@dataclass(frozen=True)
class ChangelogReader:
    """Reads changes of one branch of one table."""

    parts: Parts

    def has_changes(self, snapshot: Snapshot) -> bool:
        """Whether the snapshot can have changed rows; decided without reading data files."""
        if snapshot.changelog_manifest_list is not None:
            return bool(self.parts.manifests.read_changelog_entries(snapshot))
        schema = self.parts.schemas.get(snapshot.schema_id)
        if not schema.is_keyed and _may_hide(snapshot) and self._hidden(snapshot, schema):
            return True
        return any(True for _ in self._delta(snapshot, self.parts.schemas.get(snapshot.schema_id)))

    def read(
        self, snapshot: Snapshot, schema: TableSchema | None = None, columns: Sequence[str] | None = None
    ) -> Iterator[ChangelogBatch]:
        """The changes of one snapshot with the columns of `schema` (default: the snapshot's), or some of them."""
        schema = schema or self.parts.schemas.get(snapshot.schema_id)
        if snapshot.changelog_manifest_list is not None:
            for entry in self.parts.manifests.read_changelog_entries(snapshot):
                yield from self._batches(snapshot, entry, schema, columns)
        elif not schema.is_keyed and _may_hide(snapshot):
            for batch in self._difference(snapshot, schema):
                yield (
                    batch
                    if columns is None
                    else replace(batch, rows=batch.rows.select([*columns, ROW_KIND_COLUMN]))
                )
        else:
            for entry in self._delta(snapshot, schema):
                yield from self._batches(snapshot, entry, schema, columns)

    def read_state(self, snapshot: Snapshot) -> Iterator[ChangelogBatch]:
        """All rows of a snapshot as if it had inserted them: what a log begins with that starts there."""
        schema = self.parts.schemas.get(snapshot.schema_id)
        reader = FileReader(self.parts.fileio, schema)
        for file in self.parts.scanner.plan_scan(snapshot, schema=schema).files:
            for rows in reader.read_visible_blocks(file, rows_max=step_rows([file])):
                bucket = _bucket(schema, file.bucket)
                yield ChangelogBatch(snapshot.id, file.partition, bucket, with_kind(rows, RowKind.INSERT))

    def read_between(self, after: int, until: int) -> Iterator[ChangelogBatch]:
        """Changes of the snapshots in (after, until], with the columns of the last one. Raises NotFound TS1302."""
        schema = self.parts.schemas.get(self.parts.snapshots.get(until).schema_id)
        for number in range(after + 1, until + 1):
            yield from self.read(self.parts.snapshots.get(number), schema)

    # --------------------------------------------------------------------------------------------------------

    def _delta(self, snapshot: Snapshot, schema: TableSchema) -> Iterator[ManifestEntry]:
        """Added files that carry changes of a snapshot without changelog files."""
        if snapshot.commit_kind in (CommitKind.COMPACT, CommitKind.ANALYZE):
            return
        if schema.is_keyed and snapshot.commit_kind is CommitKind.OVERWRITE:
            return  # streams skip these too: what was there before is not in the files
        if schema.is_keyed and not TableTraits(schema).changelog_producer.reads_delta:
            return  # the changes of these rows come with the compaction that takes them in: never twice
        for entry in self.parts.manifests.read_entries(snapshot.delta_manifest_list):
            if entry.kind is FileKind.ADD or not schema.is_keyed:
                yield entry

    def _batches(
        self, snapshot: Snapshot, entry: ManifestEntry, schema: TableSchema, columns: Sequence[str] | None
    ) -> Iterator[ChangelogBatch]:
        (file,) = self.parts.scanner.stored_files([entry], PartitionSpec.of(schema))
        keep = (VALUE_KIND,) if schema.is_keyed else ()
        reader = FileReader(self.parts.fileio, schema)
        for block in reader.read_blocks(file, columns, keep=keep, rows_max=step_rows([file])):
            rows = block.rows
            if schema.is_keyed:
                kinds = rows.column(VALUE_KIND).cast(pa.int8())
                rows = rows.drop_columns([VALUE_KIND]).append_column(ROW_KIND_COLUMN, kinds)
            else:
                rows = with_kind(rows, RowKind.INSERT)
            yield ChangelogBatch(snapshot.id, file.partition, _bucket(schema, entry.bucket), rows)

    def _difference(self, snapshot: Snapshot, schema: TableSchema) -> Iterator[ChangelogBatch]:
        """Rows that went (-D) and rows that came (+I); equal rows cancel out. A COMPACT only takes away."""
        entries: list[ManifestEntry] = []
        if snapshot.commit_kind is CommitKind.OVERWRITE:
            entries = self.parts.manifests.read_entries(snapshot.delta_manifest_list)
        gone = self._read_gone(snapshot, entries, schema)
        places = sorted({(entry.partition, entry.bucket) for entry in entries} | set(gone))
        empty = schema.arrow_schema().empty_table()
        came = self._read_added(snapshot, entries, schema)
        for partition, bucket in places:
            old, new = (side.get((partition, bucket), empty) for side in (gone, came))
            rows = multiset_difference(old, new)
            if rows.num_rows:
                values = PartitionSpec.of(schema).decode(partition)
                yield ChangelogBatch(snapshot.id, values, _bucket(schema, bucket), rows)

    def _read_added(
        self, snapshot: Snapshot, entries: Sequence[ManifestEntry], schema: TableSchema
    ) -> dict[BucketId, pa.Table]:
        """Visible rows of the files that the snapshot added: a stage of several writes hides some of its own."""
        added = {entry.file.file_name for entry in entries if entry.kind is FileKind.ADD}
        groups: dict[BucketId, list[pa.Table]] = {}
        reader = FileReader(self.parts.fileio, schema)
        if added:
            for file in self.parts.scanner.plan_scan(snapshot, schema=schema).files:
                if file.meta.file_name in added:
                    rows = reader.read_visible(file)
                    groups.setdefault((file.partition_bytes, file.bucket), []).append(rows)
        return {key: pa.concat_tables(tables) for key, tables in groups.items()}

    def _read_gone(
        self, snapshot: Snapshot, entries: Sequence[ManifestEntry], schema: TableSchema
    ) -> dict[BucketId, pa.Table]:
        """Rows that were visible before this snapshot: of files that it removed, or that its vectors hide.

        Raises NotFound TS1315.
        """
        removed = {entry.file.file_name for entry in entries if entry.kind is FileKind.DELETE}
        hidden = self._hidden(snapshot, schema)
        if not removed and not hidden:
            return {}
        groups: dict[BucketId, list[pa.Table]] = {}
        reader = FileReader(self.parts.fileio, schema)
        for file in self.parts.scanner.plan_scan(self._previous(snapshot), schema=schema).files:
            newly = hidden.get(file.path)
            if file.meta.file_name in removed:
                rows = reader.read_visible(file)
            elif newly is not None:
                others = BitMap(range(file.meta.row_count)) - newly
                rows = reader.read_visible(replace(file, deleted=others))
            else:
                continue
            groups.setdefault((file.partition_bytes, file.bucket), []).append(rows)
        return {key: pa.concat_tables(tables) for key, tables in groups.items()}

    def _hidden(self, snapshot: Snapshot, schema: TableSchema) -> dict[str, BitMap]:
        """Path → positions that this snapshot's vectors hide and no earlier one did, of files that are still live.

        Raises NotFound TS1315 when the snapshot before is gone and vectors may have changed.
        """
        manifests = self.parts.manifests
        if snapshot.index_manifest is None:
            return {}
        previous = self._previous(snapshot)
        if previous.index_manifest == snapshot.index_manifest:
            return {}
        before = {entry.file_name for entry in manifests.read_index(previous.index_manifest)}
        changed = {
            (entry.partition, entry.bucket)
            for entry in manifests.read_index(snapshot.index_manifest)
            if entry.file_name not in before
        }
        old = {file.path: file.deleted for file in self._files(previous, schema, changed)}
        found = {}
        for file in self._files(snapshot, schema, changed):
            newly = (file.deleted or BitMap()) - (old.get(file.path) or BitMap())
            if newly and file.path in old:
                found[file.path] = newly
        return found

    def _files(
        self, snapshot: Snapshot, schema: TableSchema, buckets: Collection[BucketId]
    ) -> list[StoredFile]:
        states = self.parts.scanner.bucket_states(snapshot, schema, lambda key: key in buckets)
        return [file for state in states.values() for file in state.files]

    def _previous(self, snapshot: Snapshot) -> Snapshot:
        previous = self.parts.snapshots.find(snapshot.id - 1)
        if previous is None:
            raise NotFound(
                "TS1315",
                f"the changes of snapshot {snapshot.id} can no longer be computed",
                why=f"it overwrote rows of snapshot {snapshot.id - 1}, which is expired",
                fix="read the table instead; whoever expires its snapshots should keep more of them",
            )
        return previous


def _may_hide(snapshot: Snapshot) -> bool:
    """Whether rows of an append-only table can have gone: an overwrite, or vectors that came with a COMPACT."""
    return snapshot.commit_kind is CommitKind.OVERWRITE or (
        snapshot.commit_kind is CommitKind.COMPACT and snapshot.index_manifest is not None
    )


def with_kind(rows: pa.Table, kind: RowKind) -> pa.Table:
    """The rows with `_ROW_KIND` as last column."""
    return rows.append_column(ROW_KIND_COLUMN, pa.array(np.full(rows.num_rows, kind, np.int8)))


def multiset_difference(before: pa.Table, after: pa.Table) -> pa.Table:
    """-D for each row of `before` that `after` has fewer times, +I for the others; deletes first, order kept.

    The k-th occurrence of a row in one table cancels the k-th in the other. NULL equals NULL, NaN equals NaN,
    -0.0 differs from 0.0.
    """
    old, new = numbered_rows(before), numbered_rows(after)
    gone = old.join(new, on=list(old.columns[1:]), how="anti", nulls_equal=True).get_column("#row")
    came = new.join(old, on=list(new.columns[1:]), how="anti", nulls_equal=True).get_column("#row")
    return pa.concat_tables(
        [
            with_kind(take_rows(before, gone.sort().to_numpy().astype(np.int64)), RowKind.DELETE),
            with_kind(take_rows(after, came.sort().to_numpy().astype(np.int64)), RowKind.INSERT),
        ]
    )


def _bucket(schema: TableSchema, bucket: int) -> int:
    return bucket if schema.bucket_count > 0 else UNAWARE_BUCKET
