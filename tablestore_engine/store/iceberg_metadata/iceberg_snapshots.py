"""One state of the table as an Iceberg snapshot: the files that it needs beside those of the state before it.

Steps      files that a reader of the state sees · those that the state before lacks are added · vectors of buckets
           with other index files are compared · manifests (iceberg.manifest_plan) · the list
INVARIANT  a state lists exactly the files and deleted rows of its scan plan (store.read.scan): level 0 of a keyed table
           is in neither.
INVARIANT  a vector is taken over only when the index file of its bucket is the same, or both vectors are equal.
Metrics    what file pruning of our own scans knows of a column (store.read.file_pruning), in the type that the column
           has in the described state; what that does not know is left out.
WHY        metrics are remembered by file: a file is listed again whenever its manifest is written again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyroaring import BitMap

from tablestore_engine.errors import Unsupported
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.manifest import ManifestEntry
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.iceberg.column_bounds import (
    NO_METRICS,
    ColumnBounds,
    encode_bound,
    encode_column_maps,
    summarize_partitions,
)
from tablestore_engine.iceberg.manifest_files import (
    DATA,
    DELETES,
    IcebergFile,
    ListedFile,
    ManifestFacts,
    encode_iceberg_list,
    encode_iceberg_manifest,
    facts_of,
    with_row_ids,
)
from tablestore_engine.iceberg.manifest_plan import Manifest, plan_manifests
from tablestore_engine.iceberg.partition_fields import avro_values
from tablestore_engine.iceberg.puffin import encode_position_deletes, encode_puffin
from tablestore_engine.iceberg.table_metadata import IcebergSnapshot
from tablestore_engine.store.files.bucket_state import BucketId
from tablestore_engine.store.files.column_facts import FindFacts
from tablestore_engine.store.files.stored_file import refuse_external
from tablestore_engine.store.files.stored_formats import is_parquet
from tablestore_engine.store.iceberg_metadata.iceberg_place import IcebergPlace
from tablestore_engine.store.read.file_pruning import FactFinder, fact_finder
from tablestore_engine.store.table_context import TableContext


@dataclass
class ColumnMetrics:
    """Of the files of one state; `schema`: of the state."""

    context: TableContext
    schema: TableSchema
    spec: PartitionSpec
    _finder: FactFinder = field(init=False)
    _fields: tuple[DataField, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._finder = fact_finder(self.schema)
        self._fields = tuple(one for one in self.schema.fields if one.type.is_atomic)

    def of(self, entry: ManifestEntry) -> bytes:
        """The maps of a file in its manifest entry. Raises Unsupported TS1378."""
        if not is_parquet(entry.file.file_name):
            raise Unsupported(
                "TS1378",
                f"Iceberg metadata cannot list the data file {entry.file.file_name}",
                why="readers of Iceberg find columns by ids, which only Parquet files of these tables have",
                fix="compact the table with file.format=parquet; the next commit writes the metadata",
            )
        key = f"{entry.file.file_name}#{self.schema.id}"
        [found] = self.context.manifests.memory.get_or_read(key, lambda: (self._encode(entry),))
        assert isinstance(found, bytes)
        return found

    def _encode(self, entry: ManifestEntry) -> bytes:
        [file] = self.context.scanner.stored_files([entry], self.spec)
        find = self._finder(file)
        return encode_column_maps([_bounds(one, entry.file.row_count, find) for one in self._fields])


def _bounds(column: DataField, rows: int, find: FindFacts) -> ColumnBounds:
    facts = find(column.name)
    if facts is None:
        return ColumnBounds(column.id, rows)
    low, high = (None if one is None else encode_bound(one, column.type) for one in (facts.low, facts.high))
    return ColumnBounds(column.id, rows, facts.nulls, low, high)


_V3 = 3


@dataclass(frozen=True)
class Described:
    """A state with its manifests; `state`: as the table has it, None when it is not known any more."""

    snapshot: IcebergSnapshot
    manifests: tuple[Manifest, ...]
    state: Snapshot | None


@dataclass(frozen=True)
class Numbers:
    sequence: int
    row_id: int


@dataclass
class SnapshotFilesPlan:
    """The files of one Iceberg snapshot, planned one by one; `files`: path → bytes, in the order of writing."""

    context: TableContext
    place: IcebergPlace
    format_version: int
    files: dict[str, bytes] = field(default_factory=dict)

    def describe(
        self, state: Snapshot, before: Described | None, start: Numbers
    ) -> tuple[Described, Numbers]:
        """The state as the snapshot after `before`, and what the next one begins with."""
        schema = self.context.schemas.get(state.schema_id)
        view = _View.of(self.context, state, schema)
        old = () if before is None else before.manifests
        data = self._data_manifests(view, [one for one in old if one.facts.content == DATA], start)
        deletes = self._delete_manifests(view, before, start)
        row_id = start.row_id
        listed: list[Manifest] = []
        for one in data:
            if one.facts.first_row_id is None and self.format_version >= _V3:
                one = replace(one, facts=with_row_ids(one.facts, row_id))
                row_id += one.facts.rows
            listed.append(one)
        listed += deletes
        parent = None if before is None else before.snapshot.number
        path = self.place.path(f"snap-{state.id}-{start.sequence}-{self.context.runtime.new_uuid()}.avro")
        header = {"snapshot-id": str(state.id), "sequence-number": str(start.sequence)}
        self.files[path] = encode_iceberg_list(
            [one.facts for one in listed], version=self.format_version, snapshot=header
        )
        made = IcebergSnapshot(
            number=state.id,
            unique=state.unique,
            sequence=start.sequence,
            time_millis=state.time_millis,
            manifest_list=path,
            schema_id=state.schema_id,
            operation=_operation(old, listed),
            totals=_totals(listed),
            parent=parent,
            first_row_id=start.row_id if self.format_version >= _V3 else None,
            added_rows=row_id - start.row_id if self.format_version >= _V3 else None,
        )
        return Described(made, tuple(listed), state), Numbers(start.sequence + 1, row_id)

    # ---- data files --------------------------------------------------------------------------------------------

    def _data_manifests(self, view: _View, old: Sequence[Manifest], start: Numbers) -> list[Manifest]:
        known = {file.path for one in old for file in one.files}
        added = [
            IcebergFile(path, entry.file.row_count, entry.file.file_size, view.state.id, start.sequence)
            for path, entry in view.entries.items()
            if path not in known
        ]
        plan = plan_manifests(old, lambda file: file.path in view.entries, added)
        made = list(plan.kept)
        row_id = start.row_id
        for files in plan.new:
            if self.format_version >= _V3:
                files = _numbered(files, row_id)
                row_id += sum(file.rows for file in files)
            made.append(self._write(view, files, DATA, start))
        return made

    # ---- deleted rows ------------------------------------------------------------------------------------------

    def _delete_manifests(self, view: _View, before: Described | None, start: Numbers) -> list[Manifest]:
        manifests = () if before is None else before.manifests
        old = [one for one in manifests if one.facts.content == DELETES]
        same, changed = _compared_vectors(self.context, view, None if before is None else before.state)
        known = {file.data_path for one in old for file in one.files}
        same &= known
        new = {path: positions for path, positions in changed.items() if path not in same}
        added = self._vector_files(view, new, start) if new else []
        plan = plan_manifests(old, lambda file: file.data_path in same, added)
        return [*plan.kept, *(self._write(view, files, DELETES, start) for files in plan.new)]

    def _vector_files(self, view: _View, vectors: Mapping[str, BitMap], start: Numbers) -> list[IcebergFile]:
        """One Puffin file with all of them; in version 2 a Parquet file for each."""
        if self.format_version < _V3:
            return [self._position_deletes(view, path, vectors[path], start) for path in vectors]
        data, blobs = encode_puffin(vectors)
        path = self.place.path(f"dv-{self.context.runtime.new_uuid()}.puffin")
        self.files[path] = data
        return [
            IcebergFile(
                path,
                blob.cardinality,
                len(data),
                view.state.id,
                start.sequence,
                referenced=data_path,
                offset=blob.offset,
                length=blob.length,
            )
            for data_path, blob in blobs.items()
        ]

    def _position_deletes(
        self, view: _View, data_path: str, positions: BitMap, start: Numbers
    ) -> IcebergFile:
        data = encode_position_deletes(data_path, positions)
        path = self.place.path(f"delete-{self.context.runtime.new_uuid()}.parquet")
        self.files[path] = data
        return IcebergFile(
            path, len(positions), len(data), view.state.id, start.sequence, referenced=data_path
        )

    def _write(self, view: _View, files: Sequence[IcebergFile], content: int, start: Numbers) -> Manifest:
        listed = [
            ListedFile(
                file,
                view.partition(file.data_path),
                view.metrics(file.path) if content == DATA else NO_METRICS,
            )
            for file in files
        ]
        data = encode_iceberg_manifest(
            listed, view.schema, content=content, version=self.format_version, snapshot_id=view.state.id
        )
        path = self.place.path(f"{self.context.runtime.new_uuid()}-m{content}.avro")
        self.files[path] = data
        partitions = summarize_partitions([one.partition for one in listed], view.spec.types)
        facts = facts_of(
            path,
            len(data),
            content,
            files,
            snapshot_id=view.state.id,
            sequence=start.sequence,
            partitions=partitions,
        )
        return Manifest(facts, tuple(files))


@dataclass(frozen=True)
class _View:
    """What a reader of a state sees: `entries` by path."""

    state: Snapshot
    schema: TableSchema
    entries: Mapping[str, ManifestEntry]
    spec: PartitionSpec
    columns: ColumnMetrics
    _partitions: dict[bytes, dict[str, object]] = field(default_factory=dict)

    @classmethod
    def of(cls, context: TableContext, state: Snapshot, schema: TableSchema) -> _View:
        spec, places, entries = PartitionSpec.of(schema), {}, {}
        for entry in context.scanner.visible_entries(state, schema=schema):
            refuse_external(context.layout.location, [entry], "given Iceberg metadata")
            bucket = (entry.partition, entry.bucket)
            if bucket not in places:
                places[bucket] = context.layout.bucket_dir(spec.path_of_bytes(entry.partition), entry.bucket)
            entries[f"{places[bucket]}/{entry.file.file_name}"] = entry
        return cls(state, schema, entries, spec, ColumnMetrics(context, schema, spec))

    def partition(self, path: str) -> Mapping[str, object]:
        """Of a data file, as manifests have it."""
        key = self.entries[path].partition
        if key not in self._partitions:
            self._partitions[key] = avro_values(self.spec.decode(key), self.spec.types)
        return self._partitions[key]

    def metrics(self, path: str) -> bytes:
        """Bounds and counts of the columns of a data file, as manifests have them."""
        return self.columns.of(self.entries[path])

    def bucket_of(self, path: str) -> BucketId:
        return self.entries[path].partition, self.entries[path].bucket


def _compared_vectors(
    context: TableContext, view: _View, before: Snapshot | None
) -> tuple[set[str], dict[str, BitMap]]:
    """Data files whose vector (or lack of one) is that of the state before, and the vectors of the others."""
    after_index = _index_names(context, view.state)
    before_index = {} if before is None else _index_names(context, before)
    touched = {
        bucket
        for bucket in after_index.keys() | before_index.keys()
        if before is None or after_index.get(bucket) != before_index.get(bucket)
    }
    new = context.scanner.read_vectors(view.state, touched.__contains__)
    old = {} if before is None else context.scanner.read_vectors(before, touched.__contains__)
    same: set[str] = set()
    changed: dict[str, BitMap] = {}
    for path, entry in view.entries.items():
        bucket = view.bucket_of(path)
        if bucket not in touched:
            if before is not None:
                same.add(path)
            continue
        now = new.get(bucket, {}).get(entry.file.file_name)
        was = old.get(bucket, {}).get(entry.file.file_name)
        if now is not None and now == was:
            same.add(path)
        if now is not None:
            changed[path] = now
    return same, changed


def _index_names(context: TableContext, state: Snapshot) -> dict[BucketId, tuple[str, ...]]:
    found: dict[BucketId, tuple[str, ...]] = {}
    for one in context.manifests.read_index(state.index_manifest):
        bucket = (one.partition, one.bucket)
        found[bucket] = (*found.get(bucket, ()), one.file_name)
    return found


def _numbered(files: Sequence[IcebergFile], first: int) -> tuple[IcebergFile, ...]:
    """Added files, which come first, get row ids; the others keep theirs."""
    out = []
    for file in files:
        if file.first_row_id is None:
            file = replace(file, first_row_id=first)
            first += file.rows
        out.append(file)
    return tuple(out)


def _operation(old: Sequence[Manifest], listed: Sequence[Manifest]) -> str:
    """append: nothing was taken away and no row deleted."""
    paths = {file.path for one in listed for file in one.files}
    gone = any(file.path not in paths for one in old for file in one.files)
    known = {one.facts.path for one in old}
    deletes = any(one.facts.content == DELETES and one.facts.path not in known for one in listed)
    return "overwrite" if gone or deletes else "append"


def _totals(listed: Sequence[Manifest]) -> dict[str, str]:
    def total(content: int) -> tuple[int, int]:
        facts: list[ManifestFacts] = [one.facts for one in listed if one.facts.content == content]
        return sum(one.files for one in facts), sum(one.rows for one in facts)

    (files, rows), (vectors, deleted) = total(DATA), total(DELETES)
    return {
        "total-data-files": str(files),
        "total-records": str(rows),
        "total-delete-files": str(vectors),
        "total-position-deletes": str(deleted),
        "total-equality-deletes": "0",
    }
