"""Versions of the Iceberg metadata of a table, as they are read back."""

from __future__ import annotations

import uuid

from tablestore_engine.errors import FixData
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.iceberg.table_metadata import IcebergTable, decode_iceberg_table
from tablestore_engine.store.iceberg_metadata.iceberg_place import IcebergPlace, find_version
from tablestore_engine.store.metadata.identity import UUID_OPTION
from tablestore_engine.store.table_context import TableContext


def read_table(context: TableContext, place: IcebergPlace) -> IcebergTable | None:
    """The newest version; one of another writer has no snapshots. None: there is none."""
    version = find_version(context.fileio, place)
    return None if version is None else read_version(context.fileio, place, version)


def read_version(fileio: FileIO, place: IcebergPlace, version: int) -> IcebergTable:
    """One version; a damaged one counts as another writer's, and the next one describes all states again."""
    path = place.metadata(version)
    try:
        return decode_iceberg_table(fileio.read(path), version, path)
    except FixData:
        return IcebergTable(version, 0, "", "", is_ours=False)


def table_uuid(schema: TableSchema, location: str) -> str:
    """The table's own, where it is one."""
    try:
        return str(uuid.UUID(schema.options.get(UUID_OPTION, "")))
    except ValueError:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, location))
