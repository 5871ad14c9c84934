"""What the Spark layer asks about names: tables at a state, views, changelogs and system tables.

Names      EngineSource   implements spark.source.TableSource over the catalog
Steps      database name -> (database, version) -> table handle on main or on a staged branch -> one pinned state
INVARIANT  a staged branch that was never published is seen only by its own name or override.
"""

from __future__ import annotations

from collections.abc import Callable

from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.errors import NotFound
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.spark.source import ResolvedTable, ResolvedView
from tablestore_engine.sql.version import TableVersion, split_database
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.warehouse.row_versions import rows_version

FindStore = Callable[[Identifier], TableStore | None]


class EngineSource:
    """Names of one warehouse; `find_store` gives the table's store, None when there is no such table."""

    def __init__(
        self, catalog: FilesystemCatalog, find_store: FindStore, is_own_view: Callable[[str], bool]
    ) -> None:
        self._catalog = catalog
        self._find_store = find_store
        self._is_own_view = is_own_view

    def lookup(
        self, database: str, name: str, version: TableVersion | None
    ) -> ResolvedTable | ResolvedView | None:
        """The current state, or the selected one; None for names that are not ours."""
        base, named = split_database(database)
        version = version or named
        if not _is_name(base) or not _is_name(name):
            return None
        identifier = Identifier(base, name)
        store = self._store_of(identifier, version)
        if store is not None:
            _require_published(store, identifier, version)
            return resolve_table(store, version)
        view = self._catalog.views.find(identifier)
        if view is None:
            return None
        return ResolvedView(view.sql, view.comment, view.column_comments, self._is_own_view(view.sql))

    def _store_of(self, identifier: Identifier, version: TableVersion | None) -> TableStore | None:
        """The table of the name; of a staged branch that it lacks, the table that waits beside it with that branch."""
        store = self._find_store(identifier)
        if version is None or version.branch is None:
            return store
        if store is None or store.staging.find(version.branch) is None:
            beside = self._find_store(identifier.successor)
            if beside is not None and beside.staging.find(version.branch) is not None:
                return beside
        return store


def _is_name(text: str) -> bool:
    return text.replace("_", "a").isalnum() and text.isascii()


def _require_published(store: TableStore, identifier: Identifier, version: TableVersion | None) -> None:
    """A table that only has staged rows is not an empty table: who reads it would build on nothing."""
    if version is None and store.snapshots.find_latest_id() is None and (staged := store.staging.list_all()):
        raise NotFound(
            "TS1417",
            f"table {identifier} has no published snapshot yet",
            why=f"its first rows wait in the staged snapshot {staged[-1].name} for their tests",
            fix="run its tests (dbt test), or publish them: tablestore publish",
        )


def resolve_table(store: TableStore, version: TableVersion | None) -> ResolvedTable:
    """One pinned state of a table. Raises NotFound TS13xx for a state that does not exist."""
    if version is not None and version.branch is not None:
        store, version = store.on_staged(version.branch), None
    snapshot = find_snapshot(store, version)
    schema = store.schema_at(snapshot)
    if snapshot is not None and version is not None:  # a past state in the columns of its time
        schema = store.schemas.get(snapshot.schema_id)
    label = "empty" if snapshot is None else f"s{snapshot.id}"
    unique = "empty" if snapshot is None else snapshot.unique
    return ResolvedTable(
        version=f"{store.location}@{store.branch}@{label}@{unique}@{schema.id}",
        label=label if store.branch == "main" else f"{store.branch}_{label}",
        schema=schema,
        load_plan=lambda: store.plan_native_scan(snapshot, schema=schema),
        commit=rows_version(store, snapshot),
    )


def snapshot_of_version(version: str) -> tuple[int, str]:
    """Snapshot id and Snapshot.unique in the version text that resolve_table made; id 0 for a table without any."""
    _, label, unique, _ = version.rsplit("@", maxsplit=3)
    return (0 if label == "empty" else int(label.removeprefix("s"))), unique


def find_snapshot(store: TableStore, version: TableVersion | None) -> Snapshot | None:
    """The selected snapshot; None only for a table without snapshots and no version."""
    if version is None:
        return store.snapshots.find_latest()
    if version.snapshot is not None:
        return store.snapshots.get(version.snapshot)
    if version.tag is not None:
        return store.tags.get(version.tag).snapshot
    if version.timestamp_ms is None:
        raise NotFound(
            "TS1409",
            f"branch {version.branch} cannot be selected here",
            why="a branch is a table of its own",
            fix="open the staged table by its name",
        )
    return store.snapshots.get_by_timestamp(version.timestamp_ms)
