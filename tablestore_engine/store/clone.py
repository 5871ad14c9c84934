"""The newest snapshot of a table as a table of its own, without reading or writing a row.

Steps      1 files that the snapshot reaches, by FileIO.copy: bytes are shared, names are not
           2 its schemas, as a new table's: own uuid, no log   3 the snapshot under its own id, without its changelog
INVARIANT  the folder is complete when this returns and nobody knows it yet: the caller moves it to its name.
INVARIANT  nothing that happens to one table changes the other: expiry and DROP remove names, not the other's files.
CRASH      a hidden folder stays that no table is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from tablestore_engine.errors import FileMissing, Unsupported
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.file_index import INDEX_SUFFIX
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.schema import TableSchema, encode_schema
from tablestore_engine.format.snapshot import Snapshot, encode_snapshot
from tablestore_engine.options import GIVEN_ONCE, is_of_log
from tablestore_engine.store.metadata.identity import UUID_OPTION, identity_of, table_gone, with_table
from tablestore_engine.store.metadata.schemas import SchemaStore
from tablestore_engine.store.metadata.snapshots import SnapshotStore
from tablestore_engine.store.table_context import TableContext


@dataclass(frozen=True)
class ClonePlan:
    """`files`: (path, path in the clone) of manifests, index, statistics and data files; `schemas`: oldest first."""

    files: tuple[tuple[str, str], ...]
    schemas: tuple[TableSchema, ...]
    snapshot: Snapshot | None


def plan_clone(source: TableContext, target: TableLayout) -> ClonePlan:
    """The newest snapshot as another table's. Raises Unsupported TS1380, NotFound TS13xx, RetryError TS1365."""
    snapshot, uuid = source.snapshots.find_latest(), source.runtime.new_uuid()
    newest = source.latest_schema().id if snapshot is None else snapshot.schema_id
    own = tuple(
        _as_own(source.schemas.get(number), uuid) for number in source.schemas.list_ids() if number <= newest
    )
    if not own:
        raise table_gone(source.layout.location, is_replaced=False)
    if snapshot is None:
        source.guard.check()  # a file of another table of the name may have been read otherwise
        return ClonePlan((), own, None)
    places = PartitionSpec.of(source.schemas.get(newest))
    cloned = replace(
        snapshot,
        uuid=source.runtime.new_uuid(),
        properties={**(snapshot.properties or {}), **with_table(identity_of(own[0]))},
        changelog_manifest_list=None,
        changelog_manifest_list_size=None,
        changelog_record_count=None,
        log_offsets=None,
    )
    files = tuple(_reachable(source, snapshot, places, target))
    source.guard.check()
    return ClonePlan(files, own, cloned)


def copy_files(fileio: FileIO, plan: ClonePlan) -> None:
    """Step 1; again is fine: a name that is there has the content. A file index that is missing is one in the clone."""
    for old, new in plan.files:
        try:
            with suppress(FileExistsError):
                fileio.copy(old, new)
        except FileMissing:
            if not old.endswith(INDEX_SUFFIX):
                raise


def put_metadata(fileio: FileIO, target: TableLayout, plan: ClonePlan) -> None:
    """Steps 2 and 3 but for the oldest schema, with which the table is there. REQUIRES that nobody else writes here."""
    for schema in plan.schemas[1:]:
        fileio.replace(target.schema_path(schema.id), encode_schema(schema))
    own = plan.snapshot
    if own is not None:
        fileio.replace(target.snapshot_path(own.id), encode_snapshot(own))
        fileio.replace(target.earliest_hint, str(own.id).encode())
        SnapshotStore(fileio, target).write_hints(own.id)


def clone_table(source: TableContext, target: TableLayout) -> Snapshot | None:
    """The clone's snapshot; None for a table without one. Raises Unsupported TS1380, NotFound TS13xx."""
    plan = plan_clone(source, target)
    copy_files(source.fileio, plan)
    SchemaStore(source.fileio, target).copy(plan.schemas[0])
    put_metadata(source.fileio, target, plan)
    return plan.snapshot


def _as_own(schema: TableSchema, uuid: str) -> TableSchema:
    """A log belongs to one table, and so does an identity."""
    kept = {key: value for key, value in schema.options.items() if not is_of_log(key)}
    kept = {key: value for key, value in kept.items() if key not in GIVEN_ONCE}
    return replace(schema, options={**kept, UUID_OPTION: uuid})


def _reachable(
    source: TableContext, snapshot: Snapshot, places: PartitionSpec, target: TableLayout
) -> Iterator[tuple[str, str]]:
    """(path, path in the clone) of manifests, index, statistics and data files, each once."""
    layout, manifests = source.layout, source.manifests
    lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list)
    names = {meta.file_name for name in lists for meta in manifests.read_list(name)}
    for name in sorted({*lists, *names, *filter(None, [snapshot.index_manifest])}):
        yield layout.manifest_path(name), target.manifest_path(name)
    indexes = manifests.read_index(snapshot.index_manifest)
    for index in sorted({_inside(source, one.file_name, one.external_path) for one in indexes}):
        yield layout.index_path(index), target.index_path(index)
    if snapshot.statistics is not None:
        yield layout.statistics_path(snapshot.statistics), target.statistics_path(snapshot.statistics)
    for entry in source.scanner.live_entries(snapshot):
        partition = places.path_of_bytes(entry.partition)
        for name in entry.file.file_names:
            found = _inside(source, name, entry.file.external_path)
            yield (
                layout.data_file(partition, entry.bucket, found),
                target.data_file(partition, entry.bucket, found),
            )


def _inside(source: TableContext, name: str, external_path: str | None) -> str:
    if external_path is not None:
        raise Unsupported(
            "TS1380",
            f"{source.layout.location} cannot be cloned",
            why=f"its file {name} lies outside the table, at {external_path}",
            fix="write the rows with CREATE TABLE AS SELECT",
        )
    return name
