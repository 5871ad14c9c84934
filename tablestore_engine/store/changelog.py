"""What each snapshot changed, as rows with kinds, in an order that never varies.

Steps      changelog files, when the snapshot has them → their rows
           an overwrite without them → the difference: rows that went (removed files, new deletion vectors), rows that
           came; likewise a COMPACT → of a table without key: rows that new vectors hide (some writers delete that way);
           of one with a key: when it takes in rows that no changelog has told (Java's overwrite leaves them so)
           append-only: APPEND → added rows as +I
           keyed with producer none: level-0 rows of APPEND snapshots as stored, where the newest is the row (TS1669)
           COMPACT and ANALYZE without changelog: nothing
INVARIANT  two reads of one snapshot give the same rows in the same order, whatever the columns that are asked for:
           manifest order, then rows in the file; or that of store.difference.
PAIMON     its streams pass an overwrite without changelog files over: their readers keep rows that are gone.
Memory     a step of rows (row_budget), two for a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from tablestore_engine.errors import NotFound, Unsupported
from tablestore_engine.format.data_file import VALUE_KIND
from tablestore_engine.format.evolution import evolve
from tablestore_engine.format.layout import POSTPONE_BUCKET, UNAWARE_BUCKET
from tablestore_engine.format.manifest import FileKind, ManifestEntry
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import CommitKind, Snapshot
from tablestore_engine.store.difference import Difference, with_kind
from tablestore_engine.store.files.bucket_state import BucketId
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.row_budget import step_rows
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.scan import is_combined
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.table_traits import TableTraits


@dataclass(frozen=True)
class ChangelogBatch:
    """Rows with all table columns and `_ROW_KIND` (int8, last); `bucket` -1 for tables without buckets."""

    snapshot_id: int
    partition: tuple[object, ...]
    bucket: int
    rows: pa.Table


TakesBucket = Callable[[int], bool]


def every_bucket(_: int) -> bool:
    """Nothing is left out."""
    return True


@dataclass(frozen=True)
class ChangelogReader:
    """Reads changes of one branch of one table; files of buckets that `takes` refuses are not opened.

    A table without buckets has one, -1.
    """

    context: TableContext
    takes: TakesBucket = every_bucket

    def has_changes(self, snapshot: Snapshot) -> bool:
        """Whether the snapshot can have changed rows; decided without reading data files."""
        if snapshot.changelog_manifest_list is not None:
            return bool(self.context.manifests.read_changelog_entries(snapshot))
        schema = self.context.schemas.get(snapshot.schema_id)
        if self._is_difference(snapshot, schema):
            return bool(self._compared(snapshot, schema)) or bool(self._hidden(snapshot, schema))
        return any(True for _ in self._delta(snapshot, schema))

    def count(self, snapshot: Snapshot) -> int | None:
        """How many rows `read` gives, by metadata; None where that is known only behind the last one."""
        schema = self.context.schemas.get(snapshot.schema_id)
        if self._is_difference(snapshot, schema):
            return None
        return sum(entry.file.row_count for entry in self._entries(snapshot, schema))

    def count_most(self, snapshot: Snapshot) -> int:
        """A number that `read` does not exceed: of an overwrite without a changelog, the rows before and after."""
        schema = self.context.schemas.get(snapshot.schema_id)
        is_compared = self._is_difference(snapshot, schema)
        entries = self._compared(snapshot, schema) if is_compared else self._entries(snapshot, schema)
        return sum(entry.file.row_count for entry in entries)

    def bytes(self, snapshot: Snapshot) -> int:
        """About how many bytes of files `read` looks at, by metadata."""
        schema = self.context.schemas.get(snapshot.schema_id)
        if self._is_difference(snapshot, schema):
            return sum(entry.file.file_size for entry in self._compared(snapshot, schema))
        return sum(entry.file.file_size for entry in self._entries(snapshot, schema))

    def read(
        self,
        snapshot: Snapshot,
        schema: TableSchema | None = None,
        columns: Sequence[str] | None = None,
        *,
        skip: int = 0,
    ) -> Iterator[ChangelogBatch]:
        """The changes of one snapshot, without the first `skip` rows, with the columns of `schema` (default: the
        snapshot's), or some of them.
        """
        own = self.context.schemas.get(snapshot.schema_id)
        if own.crosses_partitions and not TableTraits(own).changelog_producer.writes_input:
            found = self._deletes_first(snapshot, own, schema or own, columns)
        elif self._is_difference(snapshot, own):
            found = self._difference_batches(snapshot, own, schema or own, columns)
        else:
            found = self._stored_batches(snapshot, own, schema or own, columns, skip)
            skip = 0
        for batch in found:
            rows = batch.rows.slice(min(skip, batch.rows.num_rows))
            skip -= batch.rows.num_rows - rows.num_rows
            if rows.num_rows:
                yield replace(batch, rows=rows)

    def _deletes_first(
        self, snapshot: Snapshot, own: TableSchema, schema: TableSchema, columns: Sequence[str] | None
    ) -> Iterator[ChangelogBatch]:
        """A key that moves is deleted in one partition and inserted in another: who replays it needs that order."""
        for takes_deletes in (True, False):
            if self._is_difference(snapshot, own):
                found = self._difference_batches(snapshot, own, schema, columns)
            else:
                found = self._stored_batches(snapshot, own, schema, columns, 0)
            for batch in found:
                is_delete = np.asarray(batch.rows.column(ROW_KIND_COLUMN)) == RowKind.DELETE
                yield replace(batch, rows=batch.rows.filter(pa.array(is_delete == takes_deletes)))

    def files(self, snapshot: Snapshot) -> tuple[StoredFile, ...] | None:
        """Files whose rows are the changes, with kinds where there is a key; None: only `read` gives them."""
        schema = self.context.schemas.get(snapshot.schema_id)
        if self._is_difference(snapshot, schema):
            return None
        entries = list(self._entries(snapshot, schema))
        return tuple(self.context.scanner.stored_files(entries, PartitionSpec.of(schema)))

    def needs_previous(self, snapshot: Snapshot) -> bool:
        """Whether its changes may be the difference from the snapshot before, which then has to be there."""
        return snapshot.id > 1 and self._is_difference(snapshot, self.context.schemas.get(snapshot.schema_id))

    def read_state(self, snapshot: Snapshot) -> Iterator[ChangelogBatch]:
        """All rows of a snapshot as if it had inserted them: what a log begins with that starts there."""
        schema = self.context.schemas.get(snapshot.schema_id)
        reader = FileReader(self.context.fileio, schema)
        for file in self._taken(self.context.scanner.plan_scan(snapshot, schema=schema).files, schema):
            for rows in reader.read_visible_blocks(file, rows_max=step_rows([file])):
                bucket = _bucket(schema, file.bucket)
                yield ChangelogBatch(snapshot.id, file.partition, bucket, with_kind(rows, RowKind.INSERT))

    # --------------------------------------------------------------------------------------------------------

    def _entries(self, snapshot: Snapshot, schema: TableSchema) -> Iterator[ManifestEntry]:
        """Files whose rows are the changes."""
        if snapshot.changelog_manifest_list is not None:
            found: Iterable[ManifestEntry] = self.context.manifests.read_changelog_entries(snapshot)
        else:
            found = self._delta(snapshot, schema)
        return (
            entry
            for entry in found
            if entry.bucket != POSTPONE_BUCKET and self.takes(_bucket(schema, entry.bucket))
        )

    def _taken(self, files: Iterable[StoredFile], schema: TableSchema) -> list[StoredFile]:
        return [file for file in files if self.takes(_bucket(schema, file.bucket))]

    def _delta(self, snapshot: Snapshot, schema: TableSchema) -> Iterator[ManifestEntry]:
        """Added files that carry changes of a snapshot without changelog files."""
        if snapshot.commit_kind in (CommitKind.COMPACT, CommitKind.ANALYZE):
            return
        traits = TableTraits(schema)
        if schema.is_keyed and not traits.changelog_producer.reads_delta:
            return  # the changes of these rows come with the compaction that takes them in: never twice
        if is_combined(schema):
            raise _no_changes(snapshot, traits.merge_engine_name)
        is_row = not schema.is_keyed or _is_row(traits)
        for entry in self.context.manifests.read_entries(snapshot.delta_manifest_list):
            if entry.kind is FileKind.ADD:
                if entry.file.level == 0 and not is_row:
                    raise _no_changes(snapshot, traits.merge_engine_name)
                yield entry

    def _stored_batches(
        self,
        snapshot: Snapshot,
        own: TableSchema,
        schema: TableSchema,
        columns: Sequence[str] | None,
        skip: int,
    ) -> Iterator[ChangelogBatch]:
        """Rows of changelog or added files; those of which all rows are skipped are not opened."""
        for entry in self._entries(snapshot, own):
            if entry.file.row_count <= skip:
                skip -= entry.file.row_count
                continue
            yield from self._batches(snapshot, entry, schema, columns, skip)
            skip = 0

    def _batches(
        self,
        snapshot: Snapshot,
        entry: ManifestEntry,
        schema: TableSchema,
        columns: Sequence[str] | None,
        skip: int,
    ) -> Iterator[ChangelogBatch]:
        (file,) = self.context.scanner.stored_files([entry], PartitionSpec.of(schema))
        keep = (VALUE_KIND,) if schema.is_keyed else ()
        reader = FileReader(self.context.fileio, schema)
        for block in reader.read_blocks(file, columns, keep=keep, rows_max=step_rows([file])):
            rows = block.rows.slice(max(0, skip - block.first))
            if schema.is_keyed:
                kinds = rows.column(VALUE_KIND).cast(pa.int8())
                rows = rows.drop_columns([VALUE_KIND]).append_column(ROW_KIND_COLUMN, kinds)
            else:
                rows = with_kind(rows, RowKind.INSERT)
            yield ChangelogBatch(snapshot.id, file.partition, _bucket(schema, entry.bucket), rows)

    def _difference_batches(
        self, snapshot: Snapshot, own: TableSchema, schema: TableSchema, columns: Sequence[str] | None
    ) -> Iterator[ChangelogBatch]:
        """Rows that went (-D) and rows that came (+I); equal rows cancel out."""
        for place, changed in self._difference(snapshot, own).read():
            rows = evolve(changed, own, schema, columns)
            rows = rows.append_column(ROW_KIND_COLUMN, changed.column(ROW_KIND_COLUMN))
            yield ChangelogBatch(snapshot.id, place.partition, _bucket(schema, place.bucket), rows)

    def _difference(self, snapshot: Snapshot, own: TableSchema) -> Difference:
        """Raises NotFound TS1315."""
        entries = self._compared(snapshot, own)
        if is_combined(own):
            return self._bucket_difference(snapshot, own, {(one.partition, one.bucket) for one in entries})
        added = {entry.file.file_name for entry in entries if entry.kind is FileKind.ADD}
        removed = {entry.file.file_name for entry in entries if entry.kind is FileKind.DELETE}
        return Difference(
            FileReader(self.context.fileio, own),
            self._taken(self._gone(snapshot, removed - added, own), own),
            self._taken(self._came(snapshot, added - removed, own), own),
            own.primary_keys,
        )

    def _bucket_difference(
        self, snapshot: Snapshot, own: TableSchema, touched: Collection[BucketId]
    ) -> Difference:
        """Of whole buckets: a row may be made of versions in files that came and in files that stayed."""
        gone, came = (
            [
                file
                for file in self._taken(self._told_files(state, own), own)
                if (file.partition_bytes, file.bucket) in touched
            ]
            for state in (self._previous(snapshot), snapshot)
        )
        return Difference(FileReader(self.context.fileio, own), gone, came, own.primary_keys)

    def _is_difference(self, snapshot: Snapshot, schema: TableSchema) -> bool:
        """No changelog files, and something that may have taken rows away or brought untold ones."""
        if snapshot.changelog_manifest_list is not None:
            return False
        if snapshot.commit_kind is CommitKind.OVERWRITE:
            return True
        if snapshot.commit_kind is not CommitKind.COMPACT:
            return False
        if not schema.is_keyed:
            return snapshot.index_manifest is not None
        told = TableTraits(schema).told_level
        return told > 0 and any(
            entry.kind is FileKind.DELETE and entry.file.level < told
            for entry in self.context.manifests.read_entries(snapshot.delta_manifest_list)
        )

    def _compared(self, snapshot: Snapshot, schema: TableSchema) -> list[ManifestEntry]:
        """Added and removed files of what has been told; a COMPACT without a key only takes away by vectors."""
        if snapshot.commit_kind is not CommitKind.OVERWRITE and not schema.is_keyed:
            return []
        told = TableTraits(schema).told_level
        entries = self.context.manifests.read_entries(snapshot.delta_manifest_list)
        return [entry for entry in entries if entry.file.level >= told and entry.bucket != POSTPONE_BUCKET]

    def _came(self, snapshot: Snapshot, added: Collection[str], own: TableSchema) -> list[StoredFile]:
        """Visible rows of the files that the snapshot added: a stage of several writes hides some of its own."""
        if not added:
            return []
        told = [file for file in self._told_files(snapshot, own) if file.meta.file_name in added]
        return told + self._hidden_overwrite(snapshot, own)

    def _hidden_overwrite(self, snapshot: Snapshot, own: TableSchema) -> list[StoredFile]:
        """Level 0 of an overwrite, which readers see after a compaction: no later snapshot has these changes where
        the producer has a changelog of level 0 at once. Raises Unsupported TS1669 where older rows of level 0 go, or
        are merged.
        """
        traits = TableTraits(own)
        if snapshot.commit_kind is not CommitKind.OVERWRITE or not traits.has_inbox or traits.told_level:
            return []
        entries = self.context.manifests.read_entries(snapshot.delta_manifest_list)
        raw = [entry for entry in entries if entry.file.level == 0 and entry.bucket != POSTPONE_BUCKET]
        if any(one.kind is FileKind.DELETE or one.file.delete_row_count for one in raw):
            raise _no_changes(snapshot, traits.merge_engine_name)
        if raw and not _is_row(traits):
            raise _no_changes(snapshot, traits.merge_engine_name)
        return list(self.context.scanner.stored_files(raw, PartitionSpec.of(own)))

    def _gone(self, snapshot: Snapshot, removed: Collection[str], own: TableSchema) -> list[StoredFile]:
        """Rows that were visible before this snapshot: of files that it removed, or that its vectors hide.

        Raises NotFound TS1315.
        """
        hidden = self._hidden(snapshot, own)
        if not removed and not hidden:
            return []
        found = []
        for file in self._told_files(self._previous(snapshot), own):
            newly = hidden.get(file.path)
            if file.meta.file_name in removed:
                found.append(file)
            elif newly is not None:
                others = BitMap()
                others.add_range(0, file.meta.row_count)
                found.append(replace(file, deleted=others - newly))
        return found

    def _told_files(self, snapshot: Snapshot, schema: TableSchema) -> tuple[StoredFile, ...]:
        return self.context.scanner.plan_told(snapshot, schema=schema).files

    def _hidden(self, snapshot: Snapshot, schema: TableSchema) -> dict[str, BitMap]:
        """Path → positions that this snapshot's vectors hide and no earlier one did, of files that are still live.

        Raises NotFound TS1315 when the snapshot before is gone and vectors may have changed.
        """
        manifests = self.context.manifests
        if snapshot.index_manifest is None or snapshot.id == 1:
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
        states = self.context.scanner.bucket_states(
            snapshot, schema, lambda key: key in buckets, only_reads=True
        )
        return [file for state in states.values() for file in state.files]

    def _previous(self, snapshot: Snapshot) -> Snapshot:
        previous = self.context.snapshots.find(snapshot.id - 1)
        if previous is None:
            raise NotFound(
                "TS1315",
                f"the changes of snapshot {snapshot.id} can no longer be computed",
                why=f"it overwrote rows of snapshot {snapshot.id - 1}, which is expired",
                fix="read the table instead; keep more snapshots of it",
            )
        return previous


def _is_row(traits: TableTraits) -> bool:
    """Whether a row of level 0 is the row of its key, whatever is stored."""
    return traits.merge_engine.newest_wins and not traits.sequence_fields


def _no_changes(snapshot: Snapshot, engine: str) -> Unsupported:
    return Unsupported(
        "TS1669",
        f"snapshot {snapshot.id} has no changelog, and none follows from its rows",
        why=f"'changelog-producer' is none: its rows are values for the merge engine {engine} "
        "or the sequence.field of the table, not rows of the table",
        fix="convert the table: `tablestore convert DATABASE.TABLE`, or set 'changelog-producer' = 'lookup' in the "
        "engine that writes it; read the whole table until then",
    )


def _bucket(schema: TableSchema, bucket: int) -> int:
    return bucket if schema.bucket_count > 0 else UNAWARE_BUCKET
