"""Folders that are no table: left by a DROP, a clone or a swap that was killed.

    <db>.db/.tablestore-dropped-<ms>-<uuid>   a dropped table, moved aside at that time; of a database: in the warehouse
    <db>.db/.tablestore-clone-<uuid>          a clone before it has its name
    <db>.db/<table>/.tablestore-replaced      what a table took the place of
    <db>.db/<table>                           without renames: files of a drop or clone that died
    .tablestore/staged/<query>                rows that tasks of Spark wrote, of a query that never came back
    .tablestore/states/<db>.<table>           what a query remembered whose table is gone

CHANGE     folders that drops and clones leave
INVARIANT  only folders in places and under names that we give ourselves, plain ones, of a trusted owner.
INVARIANT  the age of a dropped table is in its name: moving a folder changes no time of it, and a DROP that looks once
           more (drop_unused) may still put it back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.table_swap import REPLACED_FOLDER
from tablestore_engine.errors import FixRequest
from tablestore_engine.fileio.base import FileStatus, list_hidden
from tablestore_engine.format.layout import (
    CLONE_PREFIX,
    DROPPED_PREFIX,
    STATES_OF_BRANCH,
    TableLayout,
    database_location,
    staged_rows_location,
    streaming_states_location,
    table_location,
)
from tablestore_engine.store.metadata.store_clock import store_now_ms
from tablestore_engine.store.orphan_files.table_files import IsStranger, newest_in

_REMAINS = "what is left of a dropped or unfinished table"
_DROPPED = re.compile(re.escape(DROPPED_PREFIX) + r"(\d{1,18})-.+")


@dataclass(frozen=True)
class OrphanFolder:
    """`path` in the warehouse; `what` as it stands in a sentence."""

    path: str
    what: str
    size_bytes: int


def list_orphan_folders(
    catalog: FilesystemCatalog, grace_ms: int, is_stranger: IsStranger
) -> tuple[OrphanFolder, ...]:
    """Those that nobody touched within the grace period, of the whole warehouse."""
    now = store_now_ms(catalog.fileio, catalog.runtime, f"{catalog.warehouse}/.tablestore")
    return tuple(
        OrphanFolder(status.path, what, newest_in(catalog.fileio, status)[1])
        for status, what, touched_ms in _candidates(catalog)
        if status.is_dir and not is_stranger(status) and now - touched_ms >= grace_ms
    )


def delete_orphan_folder(catalog: FilesystemCatalog, folder: OrphanFolder) -> None:
    """With its content; links in it are removed, not followed. Raises RetryError TS1367, TS1368.

    Where a table may be created in it meanwhile its name is held until it is empty.
    """
    if folder.what == _REMAINS:
        catalog.drop_remains(folder.path)
    else:
        catalog.fileio.delete_tree(folder.path)


def _candidates(catalog: FilesystemCatalog) -> Iterator[tuple[FileStatus, str, int]]:
    """With what it was, and when it was last touched."""
    fileio, warehouse = catalog.fileio, catalog.warehouse
    yield from _dropped(catalog, warehouse, "dropped database")
    for status in fileio.list(staged_rows_location(warehouse)):
        yield status, "rows of a query that were never committed", newest_in(fileio, status)[0]
    for status in fileio.list(streaming_states_location(warehouse)):
        if _is_gone(catalog, status.name):
            yield status, "state of a query without a table", newest_in(fileio, status)[0]
    for database in catalog.list_databases():
        place = database_location(warehouse, database)
        yield from _dropped(catalog, place, "dropped table")
        for status in list_hidden(fileio, place):
            if status.name.startswith(CLONE_PREFIX):
                yield status, "unfinished clone", newest_in(fileio, status)[0]
        tables = {f"{place}/{name}" for name in catalog.list_tables(database)}
        for table in fileio.list(place):
            if fileio.folders is None and table.is_dir and table.path not in tables:
                yield table, _REMAINS, newest_in(fileio, table)[0]
            if table.path in tables:
                for status in list_hidden(fileio, table_location(warehouse, database, table.name)):
                    if status.name == REPLACED_FOLDER:  # it came with the folder that it lies in
                        yield status, "replaced table", table.modified_ms


def _is_gone(catalog: FilesystemCatalog, name: str) -> bool:
    """`name`: of a folder, <db>.<table> or <db>.<table>$branch_<name>; another one is none of ours."""
    database, _, named = name.partition(".")
    table, _, branch = named.partition(STATES_OF_BRANCH)
    try:
        place = table_location(catalog.warehouse, database, table)
        if branch:
            place = TableLayout(place).branch_dir(branch)
    except FixRequest:
        return False
    return not catalog.fileio.exists(place)


def _dropped(catalog: FilesystemCatalog, place: str, what: str) -> Iterator[tuple[FileStatus, str, int]]:
    for status in list_hidden(catalog.fileio, place):
        found = _DROPPED.fullmatch(status.name)
        if found is not None:
            yield status, what, int(found[1])
