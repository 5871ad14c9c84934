"""What one Spark task reads of a table: some files of a snapshot, or what some neighbouring snapshots changed.

INVARIANT  a slice says which table and which snapshot it is of, by what tells them from all others: a task that finds
           another one fails (TS1335, TS1338), it never reads on.
INVARIANT  slices are values of plain parts: Spark pickles them, and reads one again where a task fails.
WHY        neighbouring snapshots share a task: starting one costs as much as reading ten thousand rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.datasource.asked_columns import SnapshotRows
from tablestore_engine.errors import NotFound
from tablestore_engine.format.manifest import ManifestEntry
from tablestore_engine.format.row_kind import RowKind, short_strings
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.read.scan import check_told, is_merged
from tablestore_engine.store.read.scan_rows import read_batches
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.stream.change_source import ROW_KIND, SNAPSHOT_ID, ChangelogFiles
from tablestore_engine.stream.position import Position, Seen
from tablestore_engine.stream.snapshot_enumerator import SnapshotEnumerator

SLICE_BYTES, SLICE_ROWS = 8 << 20, 500_000  # about half a second of a task; files are compressed
FilePlace = tuple[bytes, int, str]  # partition, bucket, file name; '' for all files of the bucket


@dataclass(frozen=True)
class FileSlice:
    """`at` stands in the rows of the snapshot; where some were read before, `skip` of all of them are left out.

    `is_told`: only what changelogs have told, which a stream begins with; a query sees all.
    """

    at: Position
    schema_id: int
    places: tuple[FilePlace, ...]
    skip: int = 0
    is_told: bool = True


@dataclass(frozen=True)
class SnapshotSlice:
    """`at` each of the snapshots: the first one's may stand within it."""

    at: tuple[Position, ...]
    schema_id: int


Slice = FileSlice | SnapshotSlice


def plan_files(
    context: TableContext, snapshot: Snapshot, schema: TableSchema, at: Position
) -> list[FileSlice]:
    """Files of a snapshot as changelogs told it, by size; one slice for a reader that is within its rows."""
    check_told(context.scanner, snapshot)
    entries = context.scanner.told_entries(snapshot, schema=schema)
    slices = group_files(entries, by_bucket=is_merged(schema))
    if at.rows:
        places = tuple(place for group in slices for place in group)
        return [FileSlice(at, schema.id, places, at.rows)] if places else []
    return [FileSlice(at, schema.id, group) for group in slices]


def group_files(entries: Iterable[ManifestEntry], *, by_bucket: bool) -> list[tuple[FilePlace, ...]]:
    """Neighbouring files, or whole buckets. Pure."""
    return group_places(
        ((one.partition, one.bucket, "" if by_bucket else one.file.file_name), one.file.file_size)
        for one in entries
    )


def group_places(sized: Iterable[tuple[FilePlace, int]]) -> list[tuple[FilePlace, ...]]:
    """Neighbours, about SLICE_BYTES together; a place that is named several times in a row is one. Pure."""
    groups: list[list[FilePlace]] = []
    size, last = SLICE_BYTES, None
    for place, more in sized:
        if place != last and size >= SLICE_BYTES:
            groups.append([])
            size = 0
        if place != last:
            groups[-1].append(place)
        size, last = size + more, place
    return [tuple(group) for group in groups]


def plan_snapshots(found: Iterable[tuple[Position, Snapshot]], schema_id: int) -> list[SnapshotSlice]:
    """Snapshots in order, about SLICE_ROWS together; those that surely changed nothing are left out. Pure."""
    groups: list[list[Position]] = []
    rows = SLICE_ROWS
    for at, snapshot in found:
        if rows >= SLICE_ROWS:
            groups.append([])
            rows = 0
        groups[-1].append(replace(at, seen=Seen.of(snapshot)))
        rows += snapshot.changelog_record_count or abs(snapshot.delta_record_count)
    return [SnapshotSlice(tuple(group), schema_id) for group in groups]


def read_slice(context: TableContext, one: Slice, columns: Sequence[str]) -> Iterator[SnapshotRows]:
    """The rows of a slice. Raises FixRequest TS1335, TS1338, NotFound TS1336, TS1337."""
    if isinstance(one, FileSlice):
        return _read_files(context, one, columns)
    return _read_snapshots(context, one, columns)


def _read_snapshots(
    context: TableContext, one: SnapshotSlice, columns: Sequence[str]
) -> Iterator[SnapshotRows]:
    source = ChangelogFiles(context, _some(columns, context, one), pinned=context.schemas.get(one.schema_id))
    for at in one.at:
        chunks = source.read_next(at)
        if chunks is None:
            raise SnapshotEnumerator(context).rolled_back(at, f"snapshot {at.snapshot} is not there any more")
        for chunk in chunks:
            kinds = pc.index_in(chunk.rows.column(ROW_KIND), short_strings()).combine_chunks()
            yield SnapshotRows(chunk.rows.drop_columns([ROW_KIND, SNAPSHOT_ID]), kinds, at.snapshot)


def _read_files(context: TableContext, one: FileSlice, columns: Sequence[str]) -> Iterator[SnapshotRows]:
    line, schema = SnapshotEnumerator(context), context.schemas.get(one.schema_id)
    snapshot = line.next_snapshot(one.at)
    if snapshot is None:
        raise line.rolled_back(one.at, f"snapshot {one.at.snapshot} is not there any more")
    places = frozenset(one.places)

    def takes(entry: ManifestEntry) -> bool:
        bucket = (entry.partition, entry.bucket)
        return (*bucket, entry.file.file_name) in places or (*bucket, "") in places

    try:
        plan_of = context.scanner.plan_told if one.is_told else context.scanner.plan_scan
        plan = plan_of(snapshot, schema=schema, takes=takes)
        for batch in read_batches(context.fileio, plan, _some(columns, context, one), skip=one.skip):
            kinds = pa.array(np.full(batch.num_rows, RowKind.INSERT, np.int8))
            yield SnapshotRows(pa.Table.from_batches([batch]), kinds, snapshot.id)
    except NotFound as error:
        known = line.explain(one.at, error)
        if known is error:
            raise
        raise known from error


def _some(columns: Sequence[str], context: TableContext, one: Slice) -> Sequence[str]:
    """At least one column: rows without any cannot be counted."""
    return columns or context.schemas.get(one.schema_id).field_names[:1]
