"""Files of the Iceberg metadata: which a listed state has, and which go with states that are not listed any more.

INVARIANT  a file that a listed state names is never deleted. A manifest or vector file is in states that follow each
           other (table_metadata): when neither neighbour of a dropped state has it, no listed state has it.
INVARIANT  this runs behind the claim of a version without the dropped states: no later version can name them.
CRASH      files stay that nothing names; orphan cleaning takes them.
"""

from __future__ import annotations

import re
from contextlib import suppress

from tablestore_engine.errors import FixData, NotFound
from tablestore_engine.fileio.base import FileIO, FileStatus
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.iceberg.table_metadata import IcebergSnapshot, IcebergTable, metadata_name
from tablestore_engine.store.iceberg_metadata.iceberg_manifests import read_manifests
from tablestore_engine.store.iceberg_metadata.iceberg_place import (
    HADOOP_CATALOG,
    IcebergPlace,
    all_places,
    find_place,
    find_version,
    list_versions,
    read_table,
    read_version,
    table_uuid,
)
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.table_traits import TableTraits

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
METADATA_NAME = re.compile(
    rf"v\d+\.metadata\.json|version-hint\.text|snap-\d+-\d+-{_UUID}\.avro|{_UUID}-m[01]\.avro|dv-{_UUID}\.puffin"
    rf"|delete-{_UUID}\.parquet"
)
KEPT_VERSIONS = 20  # before the newest one: for readers that opened one of them


def delete_dropped(
    context: TableContext, place: IcebergPlace, before: IcebergTable, after: IcebergTable
) -> None:
    """Files that only `before` names. A damaged one keeps what its state names: orphan cleaning decides."""
    stay = {one.number: one for one in after.snapshots}
    line = sorted({one.sequence: one for one in (*before.snapshots, *after.snapshots)}.values(), key=_order)
    going: set[str] = set()
    kept: set[str] = set()
    for at, one in enumerate(line):
        if stay.get(one.number) == one:
            continue
        with suppress(FixData, NotFound):
            names = names_of_state(context, place, one)
            left = next((other for other in reversed(line[:at]) if stay.get(other.number) == other), None)
            right = next((other for other in line[at + 1 :] if stay.get(other.number) == other), None)
            for other in filter(None, (left, right)):
                kept |= names_of_state(context, place, other)
            going |= names
    old = after.version - KEPT_VERSIONS
    going |= {metadata_name(old - 1)} if old > 1 else set()
    context.fileio.delete_many([place.path(name) for name in sorted(going - kept)])


def names_of_state(context: TableContext, place: IcebergPlace, snapshot: IcebergSnapshot) -> set[str]:
    """Names of a state's list, manifests and vector files. Raises NotFound TS1201, FixData TS1160, TS1131."""
    manifests = read_manifests(context, place, snapshot)
    paths = {snapshot.manifest_list, *(one.facts.path for one in manifests)}
    paths |= {file.path for one in manifests for file in one.files if file.referenced is not None}
    return {path.rpartition("/")[2] for path in paths}


def live_names(context: TableContext, place: IcebergPlace, table: IcebergTable) -> set[str]:
    """Names of all files that the newest version needs, and of the versions that are kept for readers.

    Raises as names_of_state.
    """
    first = table.version - KEPT_VERSIONS
    versions = {metadata_name(one) for one in list_versions(context.fileio, place) if one >= first}
    found = {*versions, place.hint.rpartition("/")[2]}
    for one in table.snapshots:
        found |= names_of_state(context, place, one)
    return found


def delete_metadata(fileio: FileIO, place: IcebergPlace) -> None:
    """All that was written here; the hint first, so that readers find no half of it."""
    fileio.delete(place.hint)
    found = [one for one in fileio.list(place.folder) if METADATA_NAME.fullmatch(one.name)]
    fileio.delete_many([one.path for one in sorted(found, key=_versions_first)])


def delete_catalog_entry(fileio: FileIO, layout: TableLayout) -> None:
    """The folder of a table in `iceberg/` of the warehouse, when this engine wrote it."""
    place = find_place(layout, HADOOP_CATALOG)
    if place is None or not fileio.exists_file(place.hint):
        return
    version = find_version(fileio, place)
    if version is not None and read_version(fileio, place, version).is_ours:
        delete_metadata(fileio, place)
        fileio.delete_tree(place.location)


def drop_former(context: TableContext, schema: TableSchema) -> None:
    """Metadata where the schema before `schema` had it and this one has none: readers would see the past for ever."""
    used = find_place(context.layout, TableTraits(schema).iceberg_storage)
    with suppress(NotFound):
        before = TableTraits(context.schemas.get(schema.id - 1)).iceberg_storage if schema.id else None
        former = find_place(context.layout, before)
        if former is not None and former != used and context.fileio.exists_file(former.hint):
            delete_metadata(context.fileio, former)


def find_live_files(context: TableContext) -> dict[str, frozenset[str]]:
    """Folder of metadata that this table wrote → paths of its live files; none where it is written no more.

    Raises as names_of_state.
    """
    newest = context.snapshots.find_latest()
    schema = context.schema_at(newest)
    used = find_place(context.layout, TableTraits(schema).iceberg_storage)
    found: dict[str, frozenset[str]] = {}
    for place in all_places(context.layout):
        table = read_table(context, place)
        is_own = table is not None and table.uuid == table_uuid(schema, context.layout.location)
        if place == used and (table is None or is_own):
            names = set() if table is None else live_names(context, place, table)
        elif table is not None and table.is_ours and is_own:
            names = set()
        else:
            continue
        found[place.folder] = frozenset(place.path(name) for name in names)
    return found


def _versions_first(one: FileStatus) -> tuple[bool, str]:
    return not one.name.endswith(".metadata.json"), one.name


def _order(one: IcebergSnapshot) -> int:
    return one.sequence
