"""Every on-disk invariant of a table, checked against the files themselves.

Steps      snapshot ids and hint → sizes of lists, manifests, index files → counts and totals → data and changelog
           files: exist, exact size, rows → levels without overlap, vectors inside their files, one entry per bucket
           deep: every page decoded and checked, keys sorted, each visible once, kinds and sequence numbers as the
           metadata says
INVARIANT  it only reads. What it reports would make some reader return wrong rows, or fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from tablestore_engine.errors import NotFound, StoreAnswerUnknown, TablestoreError
from tablestore_engine.fileio.base import FileIO, FileStatus
from tablestore_engine.format.data_file import DataFileMeta
from tablestore_engine.format.index_manifest import DELETION_VECTORS
from tablestore_engine.format.manifest import FileKind, ManifestEntry
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.runtime.progress import NO_METER, Meter
from tablestore_engine.store.files.bucket_state import BucketState
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.parquet_input import ParquetInput, verify_parquet
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.merge.key_facts import count_repeats, read_key_facts
from tablestore_engine.store.merge.lookup import key_range
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.table_traits import TableTraits

_AHEAD = 16  # snapshots


def verify_table(context: TableContext, *, deep: bool = True) -> tuple[str, ...]:
    """Problems of every snapshot. `deep` decodes every page of all files, and checks their keys."""
    try:
        ids = context.snapshots.list_ids()
    except (
        TablestoreError
    ) as broken:  # without folders, when the first schema cannot say which snapshots are its own
        return tuple(_schema_problems(context)) or (_told(broken),)
    problems = [] if ids else list(_schema_problems(context))
    if _has_gaps(ids) and _has_gaps(
        ids := context.snapshots.list_ids()
    ):  # a listing during expiry can have some
        problems.append(f"snapshot ids have gaps: {ids}")
    seen: set[str] = set()
    sizes = FileSizes(context.fileio)
    with context.runtime.progress.begin(f"{context.layout.name}: verifying", "rows") as meter:
        if context.runtime.progress.is_shown:
            meter.expect(_rows_to_read(context, deep=deep))
        listed = context.snapshots.list_newest_first()[::-1]
        for at, status in enumerate(listed):
            if at % _AHEAD == 0:
                _read_ahead(context, listed[at : at + _AHEAD])
            try:
                snapshot = context.snapshots.find_listed(status)
            except TablestoreError as broken:
                problems.append(f"{status.name}: {_told(broken)}")
                continue
            if snapshot is not None:
                before = set(seen)
                found = verify_snapshot(context, snapshot, deep=deep, seen=seen, sizes=sizes, meter=meter)
                if found and _has_expired(context, snapshot):
                    seen = before  # what it had no file for says nothing about snapshots that are still there
                else:
                    problems += found
    return tuple(problems)


def _read_ahead(context: TableContext, listed: Sequence[FileStatus]) -> None:
    """Fetch what these snapshots name together, where each request is a round trip. The check that needs a file says
    what is wrong with it.
    """

    def fetch(status: FileStatus) -> None:
        with suppress(TablestoreError, OSError):
            found = context.snapshots.find_listed(status)
            if found is not None:
                lists = (found.base_manifest_list, found.delta_manifest_list, found.changelog_manifest_list)
                context.manifests.read_all_entries([name for name in lists if name is not None])
                spec = PartitionSpec.of(context.schemas.get(found.schema_id))
                new = (
                    *context.manifests.read_entries(found.delta_manifest_list),
                    *context.manifests.read_changelog_entries(found),
                )
                for one in new:
                    if one.kind is FileKind.ADD and one.file.external_path is None:
                        place = spec.path_of_bytes(one.partition)
                        path = context.layout.data_file(place, one.bucket, one.file.file_name)
                        with context.fileio.open_input(path) as source:
                            source.size()
                for entry in context.manifests.read_index(found.index_manifest):
                    context.fileio.read(context.layout.index_path(entry.file_name))

    if context.fileio.folders is None:
        context.fileio.run_together([partial(fetch, status) for status in listed])


def _has_gaps(ids: tuple[int, ...]) -> bool:
    return bool(ids) and ids != tuple(range(ids[0], ids[-1] + 1))


def _has_expired(context: TableContext, snapshot: Snapshot) -> bool:
    """Whether a snapshot whose files were not found has been expired, or rolled back, meanwhile."""
    try:
        return context.snapshots.find(snapshot.id) is None
    except TablestoreError:
        return False


def _rows_to_read(context: TableContext, *, deep: bool) -> int:
    """Of all snapshots: each file once, and with `deep` the keys of each snapshot. What is damaged counts nothing."""
    files: dict[str, int] = {}
    keys = 0
    for number in context.snapshots.list_ids():
        with suppress(TablestoreError):
            snapshot = context.snapshots.get(number)
            entries = list(context.scanner.live_entries(snapshot))
            rows = {entry.file.file_name: entry.file.row_count for entry in entries}
            changelog = context.manifests.read_changelog_entries(snapshot)
            files |= rows | {entry.file.file_name: entry.file.row_count for entry in changelog}
            keys += sum(rows.values()) if deep and context.schemas.get(snapshot.schema_id).is_keyed else 0
    return sum(files.values()) + keys


def _schema_problems(context: TableContext) -> Iterator[str]:
    """Of a table without snapshots, which would look empty."""
    for number in context.schemas.list_ids():
        try:
            context.schemas.get(number)
        except TablestoreError as broken:
            yield f"schema-{number}: {_told(broken)}"


def verify_snapshot(
    context: TableContext,
    snapshot: Snapshot,
    *,
    deep: bool = True,
    seen: set[str] | None = None,
    sizes: FileSizes | None = None,
    meter: Meter = NO_METER,
) -> tuple[str, ...]:
    """Problems of one snapshot; data files in `seen` were looked into before; `sizes` is shared by snapshots;
    `meter` counts rows that were read.
    """
    try:
        schema = context.schemas.get(snapshot.schema_id)
        known = FileSizes(context.fileio) if sizes is None else sizes
        check = _Check(context, snapshot, schema, known, set() if seen is None else seen, meter)
        return tuple(f"snapshot {snapshot.id}: {problem}" for problem in check.run(deep=deep))
    except TablestoreError as broken:
        return (f"snapshot {snapshot.id}: {_told(broken)}",)


def _told(broken: TablestoreError) -> str:
    """A problem of the table. Raises StoreAnswerUnknown: a store that does not answer says nothing about the table."""
    if isinstance(broken, StoreAnswerUnknown):
        raise broken
    return f"{broken.code} {broken.what}: {broken.why}"


@dataclass(frozen=True)
class FileSizes:
    """Sizes as the store says them: a listing of a folder at its first file, then one request for each later file."""

    fileio: FileIO
    _listed: dict[str, dict[str, int]] = field(default_factory=dict)

    def find(self, path: str) -> int | None:
        """Bytes; None for a missing file."""
        folder = path.rpartition("/")[0]
        if folder not in self._listed:
            found = self.fileio.list(folder)
            self._listed[folder] = {
                one.path: one.size_bytes for one in found if not one.is_dir and one.is_plain
            }
        size = self._listed[folder].get(path)
        if size is None:
            with suppress(NotFound):  # written since, or a link, or missing
                size = self.fileio.size(path)
        return size

    def get(self, path: str) -> int:
        """Raises NotFound TS1201."""
        size = self.find(path)
        return self.fileio.size(path) if size is None else size


@dataclass(frozen=True)
class _Check:
    context: TableContext
    snapshot: Snapshot
    schema: TableSchema
    sizes: FileSizes
    seen: set[str] = field(default_factory=set)
    meter: Meter = NO_METER

    def run(self, *, deep: bool) -> Iterator[str]:
        yield from self._lists()
        yield from self._index()
        yield from self._totals()
        entries = list(self.context.scanner.live_entries(self.snapshot))
        changelog = self.context.manifests.read_changelog_entries(self.snapshot)
        yield from self._bucket_counts(entries)
        for entry in [*entries, *changelog]:
            yield from self._file(entry, deep=deep)
        for state in self.context.scanner.bucket_states(self.snapshot, self.schema).values():
            yield from self._bucket(state, deep=deep)

    # ---- metadata ------------------------------------------------------------------------------------------

    def _lists(self) -> Iterator[str]:
        snapshot, sizes_of, layout = self.snapshot, self.sizes, self.context.layout
        sizes = {
            snapshot.base_manifest_list: snapshot.base_manifest_list_size,
            snapshot.delta_manifest_list: snapshot.delta_manifest_list_size,
            snapshot.changelog_manifest_list: snapshot.changelog_manifest_list_size,
        }
        for name, size in sizes.items():
            if name is None:
                continue
            if size is not None and sizes_of.get(layout.manifest_path(name)) != size:
                yield f"{name} is not {size} bytes long"
            for meta in self.context.manifests.read_list(name):
                if sizes_of.get(layout.manifest_path(meta.file_name)) != meta.file_size:
                    yield f"{meta.file_name} is not {meta.file_size} bytes long"
                entries = self.context.manifests.read_manifest(meta.file_name)
                added = sum(entry.kind is FileKind.ADD for entry in entries)
                if (added, len(entries) - added) != (meta.num_added_files, meta.num_deleted_files):
                    yield f"{meta.file_name} does not hold {meta.num_added_files} ADD, {meta.num_deleted_files} DELETE"

    def _index(self) -> Iterator[str]:
        buckets: set[tuple[bytes, int]] = set()
        for entry in self.context.manifests.read_index(self.snapshot.index_manifest):
            path = self.context.layout.index_path(entry.file_name)
            if self.sizes.get(path) != entry.file_size:
                yield f"{entry.file_name} is not {entry.file_size} bytes long"
            if entry.index_type != DELETION_VECTORS:
                continue
            key = (entry.partition, entry.bucket)
            if key in buckets and self.schema.is_keyed:
                yield f"bucket {entry.bucket} has two deletion vector files"
            buckets.add(key)
            if entry.row_count != len(entry.dv_ranges):
                yield f"{entry.file_name} says {entry.row_count} vectors, has {len(entry.dv_ranges)}"
            vectors = self.context.manifests.read_vectors(entry)
            for where in entry.dv_ranges:
                if where.cardinality is not None and where.cardinality != len(vectors[where.data_file]):
                    yield f"the vector of {where.data_file} does not have {where.cardinality} positions"

    def _totals(self) -> Iterator[str]:
        snapshot, manifests = self.snapshot, self.context.manifests
        live = sum(entry.file.row_count for entry in self.context.scanner.live_entries(snapshot))
        if snapshot.total_record_count != live:
            yield f"totalRecordCount is {snapshot.total_record_count}, the files have {live} rows"
        delta = sum(
            entry.file.row_count * (1 if entry.kind is FileKind.ADD else -1)
            for entry in manifests.read_entries(snapshot.delta_manifest_list)
        )
        if snapshot.delta_record_count != delta:
            yield f"deltaRecordCount is {snapshot.delta_record_count}, the delta has {delta} rows"
        changes = sum(entry.file.row_count for entry in manifests.read_changelog_entries(snapshot))
        if (snapshot.changelog_record_count or 0) != changes:
            yield f"changelogRecordCount is {snapshot.changelog_record_count}, the files have {changes} rows"

    def _bucket_counts(self, entries: Iterable[ManifestEntry]) -> Iterator[str]:
        counts: dict[bytes, set[int]] = {}
        for entry in entries:
            counts.setdefault(entry.partition, set()).add(entry.total_buckets)
        for found in counts.values():
            if len(found) > 1:
                yield f"a partition has files of {sorted(found)} buckets"

    # ---- files ---------------------------------------------------------------------------------------------

    def _file(self, entry: ManifestEntry, *, deep: bool) -> Iterator[str]:
        spec, meta = PartitionSpec.of(self.schema), entry.file
        path = self.context.layout.data_file(
            spec.path_of_bytes(entry.partition), entry.bucket, meta.file_name
        )
        if path in self.seen:
            return
        self.seen.add(path)
        yield from self._file_at(path, meta, deep=deep)
        self.meter.advance(meta.row_count)

    def _file_at(self, path: str, meta: DataFileMeta, *, deep: bool) -> Iterator[str]:
        size = self.sizes.find(path)
        if size is None:
            yield f"{path} is missing"
            return
        if size != meta.file_size:
            yield f"{path} is not {meta.file_size} bytes long"
            return
        try:
            rows = self._row_count(path, deep=deep)
        except TablestoreError as broken:
            yield _told(broken)
            return
        if rows != meta.row_count:
            yield f"{path} has {rows} rows, its metadata says {meta.row_count}"

    def _row_count(self, path: str, *, deep: bool) -> int:
        """Rows that the file really has (deep), or that its footer says."""
        if deep:
            return verify_parquet(self.context.fileio, path)
        with ParquetInput(self.context.fileio, path) as parquet:
            return int(parquet.metadata.num_rows)

    def _bucket(self, state: BucketState, *, deep: bool) -> Iterator[str]:
        place = f"{state.partition_path}bucket-{state.bucket}"
        for file in state.files:
            if file.deleted and file.deleted.max() >= file.meta.row_count:
                yield f"{place}: the vector of {file.meta.file_name} points behind its rows"
        if not self.schema.is_keyed:
            return
        yield from (f"{place}: {problem}" for problem in self._levels(state))
        if deep and all(self._is_whole(file) for file in state.files):
            yield from (f"{place}: {problem}" for problem in self._keys(state))

    def _is_whole(self, file: StoredFile) -> bool:
        return self.sizes.find(file.path) == file.meta.file_size

    def _levels(self, state: BucketState) -> Iterator[str]:
        by_level: dict[int, list[StoredFile]] = {}
        for file in state.files:
            by_level.setdefault(file.meta.level, []).append(file)
        for level, files in by_level.items():
            ranges = sorted(key_range(self.schema, file) for file in files)
            for before, after in pairwise(ranges):
                if level > 0 and after[0] <= before[1]:
                    yield f"files of level {level} overlap"

    def _keys(self, state: BucketState) -> Iterator[str]:
        """Each file sorted; each key visible once over all levels above 0. A step of rows at a time (row_budget)."""
        reader = FileReader(self.context.fileio, self.schema)
        is_sorted = True
        try:
            for file in state.files:
                found = read_key_facts(reader, file)
                self.meter.advance(file.meta.row_count)
                is_sorted &= found.is_sorted
                yield from found.problems(file)
            if is_sorted and TableTraits(self.schema).has_inbox:
                stored = [file for file in state.files if file.meta.level > 0]
                repeats = count_repeats(reader, stored)
                if repeats:
                    yield f"{repeats} keys are visible twice"
        except TablestoreError as broken:
            yield _told(broken)
