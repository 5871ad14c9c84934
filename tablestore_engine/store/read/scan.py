"""Planning a read: a snapshot becomes the list of its live files, each with the row positions to skip.

Steps      base list, then delta list → manifests → entries merged → partition and bucket filters → vectors attached
           keyed table without vectors (written by others): positions computed from the key columns (hidden_positions),
           or copies of merged rows, where the merge engine makes rows of several versions (merged_copies)
INVARIANT  level 0 of a table with deletion vectors is no part of the table yet: readers skip it, writers see it.
INVARIANT  files come ordered by partition bytes, bucket, level, smallest sequence number, name (append-only: order
           of their manifests): any two plans of one snapshot are equal.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyroaring import BitMap

from tablestore_engine.errors import FixData, FixRequest, NotFound, Unsupported
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.binary_row import EMPTY_ROW
from tablestore_engine.format.capability import check_readable
from tablestore_engine.format.index_manifest import DELETION_VECTORS
from tablestore_engine.format.layout import POSTPONE_BUCKET, TableLayout
from tablestore_engine.format.manifest import FileKind, ManifestEntry, merge_entries
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.stored_file import StoredFile, place_files, refuse_external
from tablestore_engine.store.metadata.manifests import ManifestStore
from tablestore_engine.store.metadata.schemas import SchemaStore
from tablestore_engine.store.table_traits import TableTraits

if TYPE_CHECKING:
    from tablestore_engine.fileio.external_folders import ExternalFolders
    from tablestore_engine.store.files.bucket_state import BucketId, BucketState
    from tablestore_engine.store.read.merged_copies import MergedCopies

PartitionFilter = Callable[[tuple[object, ...]], bool]
EntryFilter = Callable[[ManifestEntry], bool]
_REMEMBERED = 4


@dataclass(frozen=True)
class ScanPlan:
    """All files of one snapshot that a reader needs; `schema` gives the columns of the result.

    `rows_behind`: visible rows of the files that a plan of the first rows leaves out.
    `waiting_rows`: rows in level 0, which other engines wrote and no reader shows before a compaction.
    `unmerged`: the files of the table, where `files` has copies of merged rows.
    """

    snapshot: Snapshot | None
    schema: TableSchema
    files: tuple[StoredFile, ...]
    rows_behind: int = 0
    waiting_rows: int = 0
    unmerged: tuple[StoredFile, ...] = ()

    @property
    def stored_files(self) -> tuple[StoredFile, ...]:
        """The files of the table that rows come from: `files`, but for copies of merged rows."""
        return self.unmerged or self.files

    @property
    def visible_rows(self) -> int:
        """Rows of the result before any filter."""
        return sum(file.visible_rows for file in self.files)


@dataclass(frozen=True)
class Scanner:
    """Plans reads of one table; `schemas` are those of the branch that is read, `external` what lies outside."""

    fileio: FileIO
    layout: TableLayout
    manifests: ManifestStore
    schemas: SchemaStore
    external: ExternalFolders | None = None
    _live: dict[tuple[str, str], tuple[ManifestEntry, ...]] = field(
        default_factory=dict, compare=False, repr=False
    )

    @cached_property
    def _copies(self) -> MergedCopies:
        from tablestore_engine.store.read.merged_copies import MergedCopies

        return MergedCopies(self.manifests.runtime)

    def plan_scan(
        self,
        snapshot: Snapshot | None,
        *,
        schema: TableSchema,
        partitions: PartitionFilter | None = None,
        buckets: Collection[int] | None = None,
        level_min: int = 0,
        takes: EntryFilter | None = None,
        rows_max: int | None = None,
    ) -> ScanPlan:
        """Files of a snapshot for a reader who wants the columns of `schema`, as if it had no level below `level_min`.

        `takes`: only these files; where plans are merged (is_merged) whole buckets. `rows_max`: the first files that
        have so many visible rows, where metadata can tell. Raises Unsupported TS1126, TS1128.
        """
        check_readable(schema)
        if snapshot is None:
            return ScanPlan(None, schema, ())
        spec = PartitionSpec.of(schema)
        wanted = {}
        takes_all = partitions is None and buckets is None and takes is None
        along = None if not takes_all else _every_bucket if rows_max is None else _no_bucket
        for entry in self._shown_entries(snapshot, along):
            if (buckets is None or entry.bucket in buckets) and entry.partition not in wanted:
                values = spec.decode(entry.partition)
                wanted[entry.partition] = values if partitions is None or partitions(values) else None
        entries = [
            entry
            for entry in self._shown_entries(snapshot)
            if wanted.get(entry.partition) is not None and (buckets is None or entry.bucket in buckets)
        ]
        hides_inbox = TableTraits(schema).has_inbox
        waiting_rows = 0
        if hides_inbox:
            waiting_rows = sum(entry.file.row_count for entry in entries if not entry.file.level)
        level_min = max(level_min, int(hides_inbox))
        if level_min:
            entries = [entry for entry in entries if entry.file.level >= level_min]
        if takes is not None:
            entries = [entry for entry in entries if takes(entry)]
        rows_behind = 0
        if rows_max is not None and not is_merged(schema):
            entries, rows_behind = self._first(snapshot, entries, rows_max)
        files = stored = self._files(snapshot, entries, spec)
        if is_merged(schema):
            files = self._merged(files, schema)
        unmerged = tuple(stored) if is_combined(schema) else ()
        return ScanPlan(snapshot, schema, tuple(files), rows_behind, waiting_rows, unmerged)

    def _first(
        self, snapshot: Snapshot, entries: list[ManifestEntry], rows_max: int
    ) -> tuple[list[ManifestEntry], int]:
        """The first entries that have so many visible rows, and those of the others, by the counts of the vectors.

        All entries where another writer left out a count. Who reads a vector compares it with its count.
        """
        dead: dict[tuple[bytes, int, str], int] = {}
        for index in self.manifests.read_index(snapshot.index_manifest):
            for one in index.dv_ranges:
                if one.cardinality is None:
                    return entries, 0
                if one.cardinality:  # as read_vectors: of several the last that is not empty counts
                    dead[index.partition, index.bucket, one.data_file] = one.cardinality
        visible = [
            entry.file.row_count - dead.get((entry.partition, entry.bucket, entry.file.file_name), 0)
            for entry in entries
        ]
        taken = rows = 0
        while taken < len(entries) and rows < rows_max:
            rows += visible[taken]
            taken += 1
        return entries[:taken], sum(visible[taken:])

    def count_rows(self, snapshot: Snapshot) -> int | None:
        """Rows of a snapshot, by metadata; None if the files must be merged to count them, or have expired."""
        schema = self.schemas.get(snapshot.schema_id)
        if is_merged(schema):
            return None
        try:
            return self.plan_scan(snapshot, schema=schema).visible_rows
        except (NotFound, Unsupported):
            return None

    def plan_told(
        self, snapshot: Snapshot, *, schema: TableSchema, takes: EntryFilter | None = None
    ) -> ScanPlan:
        """The table as its changelogs have told it up to this snapshot: what a stream begins with.

        Rows whose changes come with a later compaction are not in it, else they would come twice.
        """
        return self.plan_scan(snapshot, schema=schema, level_min=self._told_level(snapshot), takes=takes)

    def told_entries(self, snapshot: Snapshot, *, schema: TableSchema) -> tuple[ManifestEntry, ...]:
        """The files of plan_told, from metadata alone."""
        level_min = max(self._told_level(snapshot), int(TableTraits(schema).has_inbox))
        return tuple(entry for entry in self._shown_entries(snapshot) if entry.file.level >= level_min)

    def visible_entries(self, snapshot: Snapshot, *, schema: TableSchema) -> tuple[ManifestEntry, ...]:
        """The files that plan_scan gives, from metadata alone. REQUIRES a table whose plans are not merged."""
        level_min = int(TableTraits(schema).has_inbox)
        return tuple(entry for entry in self._shown_entries(snapshot) if entry.file.level >= level_min)

    def _told_level(self, snapshot: Snapshot) -> int:
        return TableTraits(self.schemas.get(snapshot.schema_id)).told_level

    def bucket_states(
        self,
        snapshot: Snapshot | None,
        schema: TableSchema,
        wanted: Callable[[BucketId], bool] | None = None,
        *,
        only_reads: bool = False,
    ) -> dict[BucketId, BucketState]:
        """All live files, level 0 included, by (partition bytes, bucket): what a writer starts from.

        Raises Unsupported TS1229 for a file outside of the table, unless the caller `only_reads`.
        """
        if snapshot is None:
            return {}
        entries = [
            entry
            for entry in self.live_entries(snapshot, wanted)
            if wanted is None or wanted((entry.partition, entry.bucket))
        ]
        if not only_reads:
            refuse_external(self.layout.location, entries, "changed")
        found = bucket_files(self._files(snapshot, entries, PartitionSpec.of(schema)))
        return {key: _state(files) for key, files in found.items()}

    def live_entries(
        self, snapshot: Snapshot, vectors_of: Callable[[BucketId], bool] | None = None
    ) -> tuple[ManifestEntry, ...]:
        """The merged entries of a snapshot in plan order. Raises FixData TS1304 for a DELETE without its ADD.

        `vectors_of`: buckets whose vectors the caller needs next: they are read along; None: of none.
        """
        reads: list[Callable[[], Any]] = [partial(self._live_entries, snapshot)]
        if vectors_of is not None:
            reads.append(partial(self.read_vectors, snapshot, vectors_of))
        return self.fileio.run_together(reads)[0]  # type: ignore[no-any-return]

    def _shown_entries(
        self, snapshot: Snapshot, vectors_of: Callable[[BucketId], bool] | None = None
    ) -> tuple[ManifestEntry, ...]:
        """The same without rows that wait for a bucket (`bucket` = -2): no engine shows them before its compaction."""
        return tuple(one for one in self.live_entries(snapshot, vectors_of) if one.bucket != POSTPONE_BUCKET)

    def _live_entries(self, snapshot: Snapshot) -> tuple[ManifestEntry, ...]:
        key = (snapshot.base_manifest_list, snapshot.delta_manifest_list)
        found = self._live.get(key)
        if found is None:
            entries = self.manifests.read_all_entries(key)
            found = tuple(sorted(_checked(merge_entries(entries).values(), snapshot), key=plan_order))
            while len(self._live) >= _REMEMBERED:
                self._live.pop(next(iter(self._live)), None)
            self._live[key] = found
        return found

    # --------------------------------------------------------------------------------------------------------

    def _files(
        self, snapshot: Snapshot, entries: Collection[ManifestEntry], spec: PartitionSpec
    ) -> list[StoredFile]:
        buckets = {(entry.partition, entry.bucket) for entry in entries}
        vectors = self.read_vectors(snapshot, buckets.__contains__)
        return self.stored_files(entries, spec, vectors)

    def stored_files(
        self,
        entries: Iterable[ManifestEntry],
        spec: PartitionSpec,
        vectors: Mapping[BucketId, Mapping[str, BitMap]] = MappingProxyType({}),
    ) -> list[StoredFile]:
        """The files of manifest entries as values, with these vectors. Raises Unsupported TS1128 (another format),
        TS1191 (in a folder outside that may not be read).
        """
        return place_files(entries, spec, vectors, self.layout, self.schemas.get, self.external)

    def read_vectors(
        self, snapshot: Snapshot, wanted: Callable[[BucketId], bool]
    ) -> dict[BucketId, dict[str, BitMap]]:
        """Vectors of the wanted buckets; an unaware bucket of another writer may spread them over several files."""
        found: dict[BucketId, dict[str, BitMap]] = {}
        index = [
            entry
            for entry in self.manifests.read_index(snapshot.index_manifest)
            if entry.index_type == DELETION_VECTORS and wanted((entry.partition, entry.bucket))
        ]
        reads = [partial(self.manifests.read_vectors, entry) for entry in index]
        for entry, vectors in zip(index, self.fileio.run_together(reads), strict=True):
            some = {name: positions for name, positions in vectors.items() if positions}
            found.setdefault((entry.partition, entry.bucket), {}).update(some)
        return found

    def _merged(self, files: list[StoredFile], schema: TableSchema) -> list[StoredFile]:
        """The same files with the positions that merging would drop, or copies of merged rows, bucket by bucket."""
        from tablestore_engine.store.merge.hidden_positions import merged_positions

        reader, groups = FileReader(self.fileio, schema), bucket_files(files).values()
        if is_combined(schema):
            return [file for group in groups for file in self._copies.of_bucket(reader, group)]
        marked = TableTraits(schema).has_vectors  # vectors count, too, where nothing had to be merged
        hidden = {one.path: one.deleted for one in files} if marked else {}
        for group in groups:
            found = merged_positions(reader, group)
            hidden |= {one.path: found[one.meta.file_name] for one in group if one.meta.file_name in found}
        return [replace(file, deleted=hidden.get(file.path)) for file in files]


def check_told(scanner: Scanner, snapshot: Snapshot) -> None:
    """A stream in mode latest-full (a snapshot, then changes) gets every row. Raises FixRequest TS1670.

    Level 0 is no part of the table yet, and its changes were sent when it was written, where the producer is none or
    input: such a reader would never see them.
    """
    traits = TableTraits(scanner.schemas.get(snapshot.schema_id))
    if not traits.has_inbox or traits.told_level:
        return
    waiting = [one for one in scanner.live_entries(snapshot) if not one.file.level]
    if waiting:
        raise waiting_rows(scanner.layout.location, waiting, "a reader of changes cannot begin with all rows")


def waiting_rows(location: str, waiting: Sequence[ManifestEntry], what: str) -> FixRequest:
    """FixRequest TS1670."""
    rows = sum(one.file.row_count for one in waiting)
    return FixRequest(
        "TS1670",
        f"{what} while rows wait in level 0 of {location}",
        why=f"other engines wrote {rows} rows, which no reader shows before a compaction",
        fix="run `tablestore compact` for the table, then run this again",
    )


def _every_bucket(_: BucketId) -> bool:
    return True


def _no_bucket(_: BucketId) -> bool:
    return False


def is_merged(schema: TableSchema) -> bool:
    """Whether a plan has to look at all files of a bucket to tell which rows of one are visible."""
    return schema.is_keyed and not TableTraits(schema).has_inbox


def is_combined(schema: TableSchema) -> bool:
    """Of such a table, whether its rows may be in none of its files."""
    return is_merged(schema) and TableTraits(schema).merge_engine.combines


def bucket_files(files: Iterable[StoredFile]) -> Mapping[BucketId, tuple[StoredFile, ...]]:
    """Files grouped by (partition bytes, bucket), in plan order."""
    groups: dict[BucketId, list[StoredFile]] = {}
    for file in files:
        groups.setdefault((file.partition_bytes, file.bucket), []).append(file)
    return {key: tuple(group) for key, group in groups.items()}


def _state(files: Sequence[StoredFile]) -> BucketState:
    from tablestore_engine.store.files.bucket_state import BucketState

    first = files[0]
    return BucketState(
        partition=first.partition,
        partition_bytes=first.partition_bytes,
        partition_path=first.partition_path,
        bucket=first.bucket,
        files=tuple(files),
    )


def plan_order(entry: ManifestEntry) -> tuple[Any, ...]:
    """Append-only files (empty key): in fixed buckets by their numbers, else as their manifests list them."""
    file = entry.file
    if file.min_key == EMPTY_ROW:
        return (entry.partition, entry.bucket, 0, file.min_sequence_number * (entry.total_buckets > 0), "")
    return (entry.partition, entry.bucket, file.level, file.min_sequence_number, file.file_name)


def _checked(entries: Iterable[ManifestEntry], snapshot: Snapshot) -> Iterable[ManifestEntry]:
    for entry in entries:
        if entry.kind is not FileKind.ADD:
            raise removed_without_add(entry, snapshot)
        yield entry


def removed_without_add(entry: ManifestEntry, snapshot: Snapshot) -> FixData:
    """The error of a snapshot with a DELETE whose ADD it does not have."""
    return FixData(
        "TS1304",
        f"snapshot {snapshot.id} removes {entry.file.file_name}, which it does not have",
        why="a manifest is missing from its lists, or two writers overwrote each other",
        fix="run tablestore verify; roll back to an earlier snapshot",
    )
