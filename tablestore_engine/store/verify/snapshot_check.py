"""What the metadata of one snapshot says, held against its files: lists, manifests, index files, counts.

INVARIANT  each manifest, list and index file is read and checked once in a run, however many snapshots name it; one
           that cannot be read is an error of each snapshot that names it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyroaring import BitMap

from tablestore_engine.format.index_manifest import DELETION_VECTORS, IndexEntry
from tablestore_engine.format.manifest import FileKind
from tablestore_engine.format.manifest_list import ManifestFileMeta
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.files.bucket_state import BucketId
from tablestore_engine.store.read.scan import removed_without_add
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.verify.file_sizes import FileSizes
from tablestore_engine.store.verify.live_files import LiveFiles

VectorFiles = Mapping[BucketId, tuple[IndexEntry, ...]]


class SnapshotChecks:
    """Of one run; `live` moves from snapshot to snapshot."""

    def __init__(self, context: TableContext, sizes: FileSizes) -> None:
        self._layout, self._manifests, self._sizes = context.layout, context.manifests, sizes
        self.live = LiveFiles()
        self._of_manifest: dict[tuple[str, int, int, int], tuple[str, ...]] = {}
        self._of_index: dict[str, tuple[IndexEntry, tuple[str, ...]]] = {}
        self._vector_files: tuple[str | None, VectorFiles] = (None, {})

    def run(self, snapshot: Snapshot, schema: TableSchema) -> Iterator[str]:
        """Problems; after the last one `live` has the files of the snapshot. Raises TablestoreError for metadata that
        cannot be read: then nothing else is known of the snapshot.
        """
        yield from self._lists(snapshot)
        yield from self._index(snapshot, schema)
        yield from self._totals(snapshot)

    def vector_files(self, snapshot: Snapshot) -> VectorFiles:
        """The index files with deletion vectors of each bucket, in order."""
        name, known = self._vector_files
        if name != snapshot.index_manifest:
            found: dict[BucketId, tuple[IndexEntry, ...]] = {}
            for entry in self._manifests.read_index(snapshot.index_manifest):
                if entry.index_type == DELETION_VECTORS:
                    key = (entry.partition, entry.bucket)
                    found[key] = (*found.get(key, ()), entry)
            known = found
            self._vector_files = (snapshot.index_manifest, known)
        return known

    def read_vectors(self, entries: tuple[IndexEntry, ...]) -> dict[str, BitMap]:
        """File name → vector of one bucket, without empty ones, as Scanner.read_vectors has them."""
        found: dict[str, BitMap] = {}
        for entry in entries:
            found.update({name: bits for name, bits in self._manifests.read_vectors(entry).items() if bits})
        return found

    # --------------------------------------------------------------------------------------------------------

    def _lists(self, snapshot: Snapshot) -> Iterator[str]:
        sizes = {
            snapshot.base_manifest_list: snapshot.base_manifest_list_size,
            snapshot.delta_manifest_list: snapshot.delta_manifest_list_size,
            snapshot.changelog_manifest_list: snapshot.changelog_manifest_list_size,
        }
        for name, size in sizes.items():
            if name is None:
                continue
            if size is not None and self._sizes.get(self._layout.manifest_path(name)) != size:
                yield f"{name} is not {size} bytes long"
            for meta in self._manifests.read_list(name):
                yield from self._manifest(meta)

    def _manifest(self, meta: ManifestFileMeta) -> tuple[str, ...]:
        key = (meta.file_name, meta.file_size, meta.num_added_files, meta.num_deleted_files)
        if key not in self._of_manifest:
            found = []
            if self._sizes.get(self._layout.manifest_path(meta.file_name)) != meta.file_size:
                found.append(f"{meta.file_name} is not {meta.file_size} bytes long")
            entries = self._manifests.read_manifest(meta.file_name)
            added = sum(entry.kind is FileKind.ADD for entry in entries)
            if (added, len(entries) - added) != (meta.num_added_files, meta.num_deleted_files):
                counts = f"{meta.num_added_files} ADD, {meta.num_deleted_files} DELETE"
                found.append(f"{meta.file_name} does not hold {counts}")
            self._of_manifest[key] = tuple(found)
        return self._of_manifest[key]

    def _index(self, snapshot: Snapshot, schema: TableSchema) -> Iterator[str]:
        buckets: set[BucketId] = set()
        for entry in self._manifests.read_index(snapshot.index_manifest):
            known = self._of_index.get(entry.file_name)
            if known is None or known[0] != entry:
                known = (entry, tuple(self._index_file(entry)))
                self._of_index[entry.file_name] = known
            problems = known[1]
            if entry.index_type == DELETION_VECTORS:
                key = (entry.partition, entry.bucket)
                if key in buckets and schema.is_keyed:
                    problems = (*problems, f"bucket {entry.bucket} has two deletion vector files")
                buckets.add(key)
            yield from problems

    def _index_file(self, entry: IndexEntry) -> Iterator[str]:
        if self._sizes.get(self._layout.index_path(entry.file_name)) != entry.file_size:
            yield f"{entry.file_name} is not {entry.file_size} bytes long"
        if entry.index_type != DELETION_VECTORS:
            return
        if entry.row_count != len(entry.dv_ranges):
            yield f"{entry.file_name} says {entry.row_count} vectors, has {len(entry.dv_ranges)}"
        vectors = self._manifests.read_vectors(entry)
        for where in entry.dv_ranges:
            if where.cardinality is not None and where.cardinality != len(vectors[where.data_file]):
                yield f"the vector of {where.data_file} does not have {where.cardinality} positions"

    def _totals(self, snapshot: Snapshot) -> Iterator[str]:
        manifests = self._manifests
        lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list)
        names = [meta.file_name for name in lists for meta in manifests.read_list(name)]
        self.live.move_to(names, manifests.read_manifest)
        for entry in self.live.pending.values():
            raise removed_without_add(entry, snapshot)
        if snapshot.total_record_count != self.live.rows:
            yield f"totalRecordCount is {snapshot.total_record_count}, the files have {self.live.rows} rows"
        delta = sum(
            entry.file.row_count * (1 if entry.kind is FileKind.ADD else -1)
            for entry in manifests.read_entries(snapshot.delta_manifest_list)
        )
        if snapshot.delta_record_count != delta:
            yield f"deltaRecordCount is {snapshot.delta_record_count}, the delta has {delta} rows"
        changes = sum(entry.file.row_count for entry in manifests.read_changelog_entries(snapshot))
        if (snapshot.changelog_record_count or 0) != changes:
            yield f"changelogRecordCount is {snapshot.changelog_record_count}, the files have {changes} rows"
