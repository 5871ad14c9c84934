"""Names of a warehouse for completion: tables, snapshots, tags, staged snapshots, consumers, by listing folders.

INVARIANT  no engine, no JVM, no network: one listing of a local folder per kind. On an object store there are no names.
INVARIANT  a folder that cannot be listed has no names; a name that a terminal acts on is left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from tablestore_engine.cli.warehouse_folder import WAREHOUSE_ENV, find_folder, our_users, owner_of
from tablestore_engine.errors import TablestoreError
from tablestore_engine.fileio.store_address import is_object_store
from tablestore_engine.format.layout import TableLayout

SNAPSHOTS_MAX = 100
STAGED_FOLDER = "branch-ts_staged_"  # store/stage/staging.py
_DATABASE = ".db"
List = Callable[[Path, str], list[str]]


def find_local_warehouse(given: str | None, environ: Mapping[str, str], here: Path) -> Path | None:
    """The folder that a command would open; None on an object store, or where it is not clear."""
    named = given or environ.get(WAREHOUSE_ENV)
    if named is not None:
        return None if is_object_store(named) else here / Path(named.removeprefix("file://")).expanduser()
    try:
        return find_folder(here, our_users(environ), owner_of)
    except (TablestoreError, OSError):
        return None


def list_databases_of(warehouse: Path, _: str = "") -> list[str]:
    """In alphabetical order."""
    return [name.removesuffix(_DATABASE) for name in _folders(warehouse) if name.endswith(_DATABASE)]


def list_tables_of(warehouse: Path, _: str = "") -> list[str]:
    """`db.table` of all databases."""
    return [
        f"{database}.{name}"
        for database in list_databases_of(warehouse)
        for name in _folders(warehouse / f"{database}{_DATABASE}")
        if (warehouse / f"{database}{_DATABASE}" / name / "schema").is_dir()
    ]


def list_snapshots_of(warehouse: Path, table: str) -> list[str]:
    """Ids, the newest first, at most SNAPSHOTS_MAX."""
    ids = _without("snapshot-", _listed(Path(_layout(warehouse, table).snapshot_dir)))
    return [str(number) for number in sorted(map(int, filter(str.isdecimal, ids)), reverse=True)][
        :SNAPSHOTS_MAX
    ]


def list_tags_of(warehouse: Path, table: str) -> list[str]:
    return _without("tag-", _listed(Path(_layout(warehouse, table).tag_dir)))


def list_consumers_of(warehouse: Path, table: str) -> list[str]:
    return _without("consumer-", _listed(Path(_layout(warehouse, table).consumer_dir)))


def list_staged_of(warehouse: Path, table: str) -> list[str]:
    return _without(STAGED_FOLDER, _folders(Path(_layout(warehouse, table).branches_dir)))


def list_staged_words_of(warehouse: Path, table: str) -> list[str]:
    """`@staged`, and with several `@staged:NAME` too."""
    names = list_staged_of(warehouse, table)
    return [*(["@staged"] if names else []), *(f"@staged:{name}" for name in names if len(names) > 1)]


LISTS: Mapping[str, List] = {
    "databases": list_databases_of,
    "tables": list_tables_of,
    "snapshots": list_snapshots_of,
    "tags": list_tags_of,
    "consumers": list_consumers_of,
    "staged": list_staged_of,
    "@staged": list_staged_words_of,
}


def _layout(warehouse: Path, table: str) -> TableLayout:
    database, _, name = table.partition(".")
    return TableLayout(str(warehouse / f"{os.path.basename(database)}{_DATABASE}" / os.path.basename(name)))


def _without(prefix: str, names: Iterable[str]) -> list[str]:
    return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]


def _folders(folder: Path) -> list[str]:
    return [name for name in _listed(folder) if name[0] != "." and (folder / name).is_dir()]


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name.isprintable())
    except OSError:
        return []
