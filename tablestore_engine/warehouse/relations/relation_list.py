"""The tables and views of a database, the damaged ones among them.

INVARIANT  one damaged table is no reason not to see the others, and is never left out in silence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.open_tables import OpenTables
from tablestore_engine.errors import FixData, NotFound, StorageError, TablestoreError, Unsupported
from tablestore_engine.store.stage.staging import list_staged
from tablestore_engine.store.table_context import TableContext

DAMAGED = (FixData, NotFound, StorageError, Unsupported)


@dataclass(frozen=True)
class RelationInfo:
    """One name in a database: `kind` is table or view; `problem` says why its metadata cannot be read."""

    identifier: Identifier
    kind: str
    comment: str | None = None
    problem: str | None = None


def describe_damage(damage: TablestoreError) -> str:
    """`TS1111 a schema file cannot be read: …`."""
    return f"{damage.code} {damage.what}: {damage.why}"


def list_relations(
    catalog: FilesystemCatalog, stores: OpenTables, database: str, *, with_unpublished: bool
) -> tuple[RelationInfo, ...]:
    """Tables, then views; tables that only have a staged snapshot when `with_unpublished`."""
    listings: list[Callable[[], Any]] = [
        partial(catalog.list_table_folders, database),
        partial(catalog.views.list_names, database),
    ]
    (folders, _), names = catalog.fileio.run_together(listings)
    tables, views = ([Identifier(database, name) for name in each] for each in (folders, names))
    looks = [
        *(partial(find_table, catalog, stores, one, with_unpublished=with_unpublished) for one in tables),
        *(partial(find_view, catalog, one) for one in views),
    ]
    return tuple(one for one in catalog.fileio.run_together(looks) if one is not None)


def find_table(
    catalog: FilesystemCatalog, stores: OpenTables, identifier: Identifier, *, with_unpublished: bool = True
) -> RelationInfo | None:
    """The table of that name, damaged or not; None when there is none."""
    try:
        seen = stores.find_seen(identifier)
        if seen is None or (not with_unpublished and is_unpublished(seen)):
            return None
        return RelationInfo(identifier, "table", seen.latest_schema().comment)
    except DAMAGED as damage:
        if not catalog.is_table(identifier):  # it was dropped meanwhile
            return None
        return RelationInfo(identifier, "table", problem=describe_damage(damage))


def find_view(catalog: FilesystemCatalog, identifier: Identifier) -> RelationInfo | None:
    """The view of that name, damaged or not; None when there is none."""
    try:
        view = catalog.views.find(identifier)
    except DAMAGED as damage:
        return RelationInfo(identifier, "view", problem=describe_damage(damage))
    return None if view is None else RelationInfo(identifier, "view", view.comment)


def is_unpublished(seen: TableContext) -> bool:
    return seen.newest_snapshot() is None and bool(list_staged(seen))
