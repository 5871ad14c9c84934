"""From a planned commit to the files of one snapshot: vectors, manifests, lists, and the snapshot value itself.

CHANGE     the manifests and index files of a commit (option manifest.compression)
Steps      delta part (once per plan): index files → delta manifest and list → changelog manifest and list
           base part (once per base): base list, its manifests merged when it is time → index manifest
INVARIANT  everything is durable before the snapshot that names it is claimed.
INVARIANT  record counts are physical: deletion vectors do not lower them (format.md#snapshots).
CRASH      all these files have new names that nothing refers to yet: orphan cleaning finds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.data_file import DataFileMeta
from tablestore_engine.format.index_manifest import (
    HASH,
    IndexEntry,
    replace_entries,
    without_hash_index,
)
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.manifest import FileKind, ManifestEntry
from tablestore_engine.format.manifest_list import ManifestFileMeta
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import CommitKind, Snapshot
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.store.commit.base_manifest_list import merge_manifests
from tablestore_engine.store.commit.conflict_rule import ConflictScope
from tablestore_engine.store.files.bucket_state import BucketChange, BucketId
from tablestore_engine.store.files.stored_file import refuse_external
from tablestore_engine.store.metadata.manifests import ManifestStore
from tablestore_engine.store.table_traits import TableTraits

WRITER_VERSION = "dbt-tablestore"


@dataclass(frozen=True)
class Planned:
    """What one snapshot changes. `then_again`: a preparing step, after which planning goes on (fold, level 0).

    `is_forced` commits even without any change (a schema change). `is_borrowed`: the data files are not this commit's.
    `statistics`: the file of ANALYZE that the snapshot names.
    """

    kind: CommitKind
    schema: TableSchema
    changes: tuple[BucketChange, ...]
    scope: ConflictScope
    then_again: bool = False
    is_forced: bool = False
    claims_schema: bool = False
    operation: str | None = None
    is_borrowed: bool = False
    statistics: str | None = None

    @property
    def is_nothing(self) -> bool:
        return not self.is_forced and all(change.is_empty for change in self.changes)

    def file_paths(self, layout: TableLayout) -> tuple[str, ...]:
        """Files that this plan created: what may be deleted when it is surely not used."""
        if self.is_borrowed:
            return ()
        spec = PartitionSpec.of(self.schema)
        paths = []
        for change in self.changes:
            place = spec.path_of_bytes(change.partition_bytes)
            names = [name for meta in change.created for name in meta.file_names]
            paths += [layout.data_file(place, change.bucket, name) for name in names]
        return tuple(paths)


@dataclass(frozen=True)
class DeltaFiles:
    """The part of a commit that does not depend on its base; `paths` are all files written for it."""

    delta_list: tuple[str, int]
    changelog_list: tuple[str, int] | None
    vectors: Mapping[BucketId, IndexEntry | None] = field(hash=False)
    hashes: Mapping[BucketId, IndexEntry] = field(hash=False)
    paths: tuple[str, ...]


@dataclass(frozen=True)
class SnapshotFiles:
    fileio: FileIO
    layout: TableLayout
    manifests: ManifestStore
    runtime: Runtime

    @contextmanager
    def written_together(self) -> Iterator[SnapshotFiles]:
        """The same writer, whose files are written when the block ends well, together; on a full disk none stays."""
        with self.manifests.written_together() as manifests:
            yield replace(self, manifests=manifests)

    def write_delta(self, planned: Planned) -> DeltaFiles:
        """Index files, delta and changelog manifests with their lists; none of them stays on a full disk."""
        with self.written_together() as writer:
            return writer._write_delta(planned)

    def _write_delta(self, planned: Planned) -> DeltaFiles:
        vectors, hashes = self._write_vectors(planned), self._write_hashes(planned.changes)
        self.runtime.crash_point("write.data_files")
        total = planned.schema.bucket_count
        removed = _entries(planned.changes, FileKind.DELETE, total, "removed")
        refuse_external(self.layout.location, removed, "changed")
        added = _entries(planned.changes, FileKind.ADD, total, "added")
        changelog = _entries(planned.changes, FileKind.ADD, total, "changelog")
        delta, paths = self._write_list([*removed, *added], planned.schema)
        changes = None
        if changelog:
            changes, more = self._write_list(changelog, planned.schema)
            paths += more
        made = (*vectors.values(), *hashes.values())
        indexes = [self.layout.index_path(one.file_name) for one in made if one is not None]
        return DeltaFiles(delta, changes, vectors, hashes, (*indexes, *paths))

    def write_base(
        self, base: Snapshot | None, planned: Planned, delta: DeltaFiles
    ) -> tuple[Snapshot, tuple[str, ...]]:
        """The snapshot after `base` (without identity), and the paths written for it; on a full disk none stays."""
        with self.written_together() as writer:
            return writer._write_base(base, planned, delta)

    def _write_base(
        self, base: Snapshot | None, planned: Planned, delta: DeltaFiles
    ) -> tuple[Snapshot, tuple[str, ...]]:
        metas, paths = self._base_manifests(base, planned.schema)
        name, size = self.manifests.write_list(metas, TableTraits(planned.schema).manifest_compression)
        paths.append(self.layout.manifest_path(name))
        index, written = self._write_index(base, delta, planned.schema)
        if written and index is not None:
            paths.append(self.layout.manifest_path(index))
        delta_count = sum(_rows(change.added) - _rows(change.removed) for change in planned.changes)
        snapshot = Snapshot(
            id=1 if base is None else base.id + 1,
            uuid=self.runtime.new_uuid(),
            schema_id=planned.schema.id,
            base_manifest_list=name,
            base_manifest_list_size=size,
            delta_manifest_list=delta.delta_list[0],
            delta_manifest_list_size=delta.delta_list[1],
            changelog_manifest_list=delta.changelog_list and delta.changelog_list[0],
            changelog_manifest_list_size=delta.changelog_list and delta.changelog_list[1],
            index_manifest=index,
            commit_user="",
            writer_version=WRITER_VERSION,
            commit_identifier=0,
            commit_kind=planned.kind,
            time_millis=max(self.runtime.now_ms(), 0 if base is None else base.time_millis),
            total_record_count=delta_count + (0 if base is None else base.total_record_count),
            delta_record_count=delta_count,
            changelog_record_count=_changelog_rows(planned) if delta.changelog_list else None,
            watermark=None if base is None else base.watermark,
            statistics=_carried_statistics(base, planned),
            next_row_id=None if base is None else base.next_row_id,
            operation=planned.operation,
        )
        return snapshot, tuple(paths)

    # --------------------------------------------------------------------------------------------------------

    def _write_vectors(self, planned: Planned) -> dict[BucketId, IndexEntry | None]:
        """One new index file per bucket whose vectors changed. An overwrite that leaves none drops the entry, so does
        any commit of an append-only table; else an index file without vectors stays (Java does the same).
        """
        drops = planned.kind is CommitKind.OVERWRITE or not planned.schema.is_keyed
        is_64_bit = TableTraits(planned.schema).has_64_bit_vectors
        made: dict[BucketId, IndexEntry | None] = {}
        for change in planned.changes:
            vectors = change.deletion_vectors
            if vectors is None:
                continue
            key = (change.partition_bytes, change.bucket)
            if not vectors and drops:
                made[key] = None
            else:
                kept = {name: bits for name, bits in vectors.items() if bits}
                made[key] = self.manifests.write_vectors(*key, kept, is_64_bit=is_64_bit)
        return made

    def _write_hashes(self, changes: Iterable[BucketChange]) -> dict[BucketId, IndexEntry]:
        """One new hash index per bucket with new keys: a bucket has one file, which is written as a whole, also when
        it has no hash: files of deleted rows may lie in the bucket.
        """
        made: dict[BucketId, IndexEntry] = {}
        for change in changes:
            if change.hashes is None:
                continue
            entry, added = change.hashes.entry, change.hashes.added
            found = added if entry is None else np.concatenate([self.manifests.read_hashes(entry), added])
            key = (change.partition_bytes, change.bucket)
            made[key] = self.manifests.write_hashes(*key, found)
        return made

    def _write_list(
        self, entries: Sequence[ManifestEntry], schema: TableSchema
    ) -> tuple[tuple[str, int], list[str]]:
        metas = self._write_manifests(entries, schema)
        listed = self.manifests.write_list(metas, TableTraits(schema).manifest_compression)
        names = [*(meta.file_name for meta in metas), listed[0]]
        return listed, [self.layout.manifest_path(name) for name in names]

    def _write_manifests(
        self, entries: Iterable[ManifestEntry], schema: TableSchema
    ) -> list[ManifestFileMeta]:
        traits = TableTraits(schema)
        return self.manifests.write_manifests(
            entries,
            PartitionSpec.of(schema).types,
            compression=traits.manifest_compression,
            target_bytes=traits.manifest_bytes,
        )

    def _base_manifests(
        self, base: Snapshot | None, schema: TableSchema
    ) -> tuple[list[ManifestFileMeta], list[str]]:
        """Base and delta of the previous snapshot, tidied up when it is time; with the paths written for that."""
        if base is None:
            return [], []
        before = [
            meta
            for name in (base.base_manifest_list, base.delta_manifest_list)
            for meta in self.manifests.read_list(name)
        ]
        metas = merge_manifests(
            before,
            TableTraits(schema).manifest_limits,
            self.manifests.read_manifest,
            lambda entries: self._write_manifests(entries, schema),
        )
        known = {meta.file_name for meta in before}
        made = [meta.file_name for meta in metas if meta.file_name not in known]
        return metas, [self.layout.manifest_path(name) for name in made]

    def _write_index(
        self, base: Snapshot | None, delta: DeltaFiles, schema: TableSchema
    ) -> tuple[str | None, bool]:
        """(index manifest, whether it is new): carried over unless vectors or hashes changed, or buckets got fixed."""
        before = None if base is None else base.index_manifest
        entries = self.manifests.read_index(before)
        after = entries if schema.bucket_count < 1 else without_hash_index(entries)
        after = replace_entries(after, delta.vectors)
        after = replace_entries(after, delta.hashes, HASH)
        if after == entries:
            return before, False
        return self.manifests.write_index(after, TableTraits(schema).manifest_compression), True


def _entries(
    changes: Sequence[BucketChange], kind: FileKind, total_buckets: int, part: str
) -> list[ManifestEntry]:
    return [
        ManifestEntry(
            kind, change.partition_bytes, change.bucket, change.total_buckets or total_buckets, meta
        )
        for change in changes
        for meta in getattr(change, part)
    ]


def _rows(files: Sequence[DataFileMeta]) -> int:
    return sum(meta.row_count for meta in files)


def _changelog_rows(planned: Planned) -> int:
    return sum(_rows(change.changelog) for change in planned.changes)


def _carried_statistics(base: Snapshot | None, planned: Planned) -> str | None:
    """ANALYZE results stay until the schema changes (format.md#snapshots)."""
    if planned.statistics is not None:
        return planned.statistics
    return base.statistics if base is not None and base.schema_id == planned.schema.id else None
