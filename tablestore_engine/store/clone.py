"""The newest snapshot of a table as a table of its own, without reading or writing a row.

Steps      1 files that the snapshot reaches, by FileIO.copy: bytes are shared, names are not
           2 its schemas, as a new table's: own uuid, no log   3 the snapshot under its own id, without its changelog
INVARIANT  the folder is complete when this returns and nobody knows it yet: the caller moves it to its name.
INVARIANT  nothing that happens to one table changes the other: expiry and DROP remove names, not the other's files.
CRASH      a hidden folder stays that no table is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tablestore_engine.errors import Unsupported
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.options import GIVEN_ONCE, is_of_log
from tablestore_engine.store.metadata.identity import UUID_OPTION
from tablestore_engine.store.metadata.schemas import SchemaStore
from tablestore_engine.store.metadata.snapshots import SnapshotStore
from tablestore_engine.store.table_context import TableContext


def clone_table(source: TableContext, target: TableLayout) -> Snapshot | None:
    """The clone's snapshot; None for a table without one. Raises Unsupported TS1380, NotFound TS13xx."""
    snapshot, fileio = source.snapshots.find_latest(), source.fileio
    newest = source.latest_schema().id if snapshot is None else snapshot.schema_id
    if snapshot is not None:
        places = PartitionSpec.of(source.schemas.get(newest))
        for old, new in _reachable(source, snapshot, places, target):
            fileio.copy(old, new)
    schemas, uuid = SchemaStore(fileio, target), source.runtime.new_uuid()
    for number in source.schemas.list_ids():
        if number <= newest:
            schemas.claim(_as_own(source.schemas.get(number), uuid))
    if snapshot is None:
        return None
    own = replace(
        snapshot,
        uuid=source.runtime.new_uuid(),
        changelog_manifest_list=None,
        changelog_manifest_list_size=None,
        changelog_record_count=None,
        log_offsets=None,
    )
    snapshots = SnapshotStore(fileio, target)
    snapshots.claim(own)
    fileio.replace(target.earliest_hint, str(own.id).encode())
    snapshots.write_hints(own.id)
    return own


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
        for name in (entry.file.file_name, *entry.file.extra_files):
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
