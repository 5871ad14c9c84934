"""Names as SQL writes them -> what they mean: tables at a state, views, and functions.

CHANGE     which table a name in SQL means
Steps      database name -> (database, version) -> table handle on main or on a staged branch -> one pinned state
System     a view of information_schema is made by whom the warehouse names
INVARIANT  a staged branch that was never published is seen only by its own name or override.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import SYSTEM_DATABASE, Identifier
from tablestore_engine.catalog.open_tables import OpenTables
from tablestore_engine.catalog.seen_states import SeenStates
from tablestore_engine.catalog.waiting_rows import warn_of_waiting_rows
from tablestore_engine.errors import FixRequest, NotFound
from tablestore_engine.format.layout import MAIN_BRANCH
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.sql.scanner import quote_name
from tablestore_engine.sql.system_names import SystemName, find_system_name, plain_name
from tablestore_engine.sql.table_version import TableVersion, split_database, versioned_database
from tablestore_engine.store.metadata.commit_history import rows_version
from tablestore_engine.store.read.scan import ScanPlan
from tablestore_engine.store.stage.staging import find_stage_name, find_staged, stage_context
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.table_traits import TableTraits

if TYPE_CHECKING:
    from tablestore_engine.catalog.resolved_names import (
        ResolvedFunction,
        ResolvedName,
        ResolvedSystemView,
        ResolvedTable,
    )
    from tablestore_engine.catalog.system_tables.system_table import SystemState
    from tablestore_engine.store.stage.stage_rebase import StagedSnapshot


_WATERMARK = "watermark-"


class NameLookup:
    def __init__(
        self,
        catalog: FilesystemCatalog,
        tables: OpenTables,
        find_system_view: Callable[[str], ResolvedSystemView | None] = lambda _: None,
    ) -> None:
        self._catalog = catalog
        self._tables = tables
        self._find_system_view = find_system_view
        self._own_texts: set[str] = set()

    def note_own_text(self, sql: str) -> None:
        """The text is of this process, so it may do what the user may."""
        self._own_texts.add(sql)

    def lookup(
        self, database: str, name: str, version: TableVersion | None, seen: SeenStates | None = None
    ) -> ResolvedName | ResolvedSystemView | None:
        """The current state, or the selected one; None for names that are not ours. A lost version raises NotFound.

        `seen`: states that count as the current ones; a table that is not among them is added.
        """
        from tablestore_engine.catalog.resolved_names import NO_SNAPSHOT, ResolvedView

        if database.lower() == SYSTEM_DATABASE:
            return self._find_system_view(name.lower())
        base, named = split_database(database)
        version = version or named
        system = find_system_name(name)
        if system is not None:
            return self._lookup_system(base, system, version, seen)
        if not _is_name(base) or not _is_name(name):
            return None
        identifier = Identifier(base, name)
        store = self._store_of(identifier, version, seen)
        if store is not None:
            resolved = resolve_table(store, version)
            if version is None and resolved.snapshot is NO_SNAPSHOT:
                require_published(store, identifier)
            return resolved
        view = self._catalog.views.find(identifier)
        if view is None:
            return None
        return ResolvedView(view.sql, view.comment, view.column_comments, view.sql in self._own_texts)

    def _lookup_system(
        self, base: str, name: SystemName, version: TableVersion | None, seen: SeenStates | None
    ) -> ResolvedName | ResolvedSystemView | None:
        """A system table; None when there is no such table. Raises NotFound TS1490."""
        if not _is_name(base) or not _is_name(name.table):
            return None
        identifier = Identifier(base, name.table)
        store = self._store_of(identifier, version, seen)
        return None if store is None else resolve_system_table(store, identifier, name, version)

    def knows(self, database: str) -> bool:
        """Whether a table of this database is open: then a name in it is no alias of a column."""
        return self._tables.knows(database)

    def list_databases(self) -> frozenset[str]:
        return frozenset((*self._catalog.list_databases(), SYSTEM_DATABASE))

    def near_hint(self, database: str, name: str) -> str:
        """`; did you mean demo.orders?` for a name that means nothing, or nothing; at another state, of the table."""
        from tablestore_engine.catalog.near_names import near_hint

        base, _ = split_database(database)
        if not _is_name(base) or not _is_name(name) or base.lower() == SYSTEM_DATABASE:
            return ""
        return near_hint(self._catalog, Identifier(base, name))

    def find_function(self, database: str, name: str) -> ResolvedFunction | None:
        """A function of the warehouse; a name of a past state has none."""
        from tablestore_engine.catalog.resolved_names import ResolvedFunction

        if not _is_name(database) or not _is_name(name) or split_database(database)[1] is not None:
            return None
        identifier = Identifier(database, name.lower())
        found = self._catalog.functions.find(identifier)
        if found is None:
            return None if database == database.lower() else self.find_function(database.lower(), name)
        is_volatile = found.parsed(identifier).is_deterministic is False
        return ResolvedFunction(found.sql, is_volatile, found.sql in self._own_texts)

    def _store_of(
        self, identifier: Identifier, version: TableVersion | None, seen: SeenStates | None
    ) -> TableStore | None:
        """The table of the name; of a staged branch that it lacks, the table that waits beside it with that branch."""
        if version is None or (seen is not None and version.staged is None):
            return self._tables.find_as_seen(identifier, seen)
        context = self._tables.find_context(identifier)
        store = None if context is None else self._tables.open(identifier)
        if version.staged is None:
            return None if store is None else replace(store, pinned=context)
        for place in (identifier, identifier.replacement):
            there = context if place == identifier else self._tables.find_context(place)
            staged = None if there is None else find_staged(there, version.staged)
            if there is not None and staged is not None:
                found = self._tables.open(place)
                return found if version.branch is None else _on_stage(found, there, staged)
        return store


def _on_stage(store: TableStore, context: TableContext, staged: StagedSnapshot) -> TableStore:
    """A handle that reads a staged snapshot, pinned to what was found there."""
    branch = stage_context(context, staged.name)
    return replace(store, branch=branch.layout.branch, pinned=branch.seeing(staged.snapshot))


def _is_name(text: str) -> bool:
    return text.replace("_", "a").isalnum() and text.isascii()


def require_published(store: TableStore, identifier: Identifier) -> None:
    """REQUIRES a table without snapshots. One with staged rows is not an empty table: a reader would build on nothing.

    Raises NotFound TS1417.
    """
    if staged := store.staging.list_all():
        name = staged[-1].name
        several = len(staged) > 1
        raise NotFound(
            "TS1417",
            f"table {identifier} has no published snapshot yet",
            why=f"its first rows wait in the staged snapshot {name} for their tests",
            fix="run its tests (dbt test), or publish them: "
            f"tablestore staged publish {identifier}{f' {name}' if several else ''}; "
            f"to see them: tablestore head {identifier} --snapshot @staged{f':{name}' if several else ''}",
        )


def find_state(
    store: TableStore, version: TableVersion | None
) -> tuple[TableStore, SystemState, TableVersion | None]:
    """The store of the branch, one state of it, and the version if a past one is meant. Raises NotFound TS13xx."""
    from tablestore_engine.catalog.system_tables.system_table import SystemState

    if version is not None and version.branch is not None:  # on the branch already, when it was found there
        store, version = store.on_staged(version.branch) if store.branch == MAIN_BRANCH else store, None
    if version is None:
        context = store.find_seen() or store.context
        snapshot = context.newest_snapshot()
    else:
        context, snapshot = store.context, find_snapshot(store, version)
    if snapshot is not None and version is not None:  # a past state in the columns of its time
        schema = context.schemas.get(snapshot.schema_id)
    else:
        schema = context.schema_at(snapshot)
    return store, SystemState(context, snapshot, schema), version


def resolve_table(
    store: TableStore, version: TableVersion | None, *, is_read_optimized: bool = False
) -> ResolvedTable:
    """One pinned state of a table, all of it or what its last full compactions left (`$ro`).

    Raises NotFound TS13xx for a state that does not exist.
    """
    from tablestore_engine.catalog.resolved_names import NO_SNAPSHOT, ResolvedTable, SnapshotRef

    if version is not None and version.changes is not None:
        from tablestore_engine.catalog.changes_table import resolve_changes

        return resolve_changes(store, version.changes)
    store, state, version = find_state(store, version)
    context, snapshot, schema = state.context, state.snapshot, state.schema
    level_min = TableTraits(schema).level_count - 1 if is_read_optimized and schema.is_keyed else 0
    label = ("empty" if snapshot is None else f"s{snapshot.id}") + ("_ro" if level_min else "")
    pinned = NO_SNAPSHOT if snapshot is None else SnapshotRef(snapshot.id, snapshot.unique)

    def load_plan(*, is_native: bool = False, rows_max: int | None = None) -> ScanPlan:
        if is_native:
            plan = store.plan_native_scan(snapshot, schema=schema, level_min=level_min)
        else:
            plan = store.plan_scan(snapshot, schema=schema, level_min=level_min, rows_max=rows_max)
        if version is None:
            warn_of_waiting_rows(store.location, plan)
        return plan

    return ResolvedTable(
        version=f"{store.location}@{store.branch}@{label}@{pinned.unique}@{schema.id}",
        label=label if store.branch == MAIN_BRANCH else f"{plain_name(store.branch)}_{label}",
        schema=schema,
        load_plan=load_plan,
        snapshot=pinned,
        stage=find_stage_name(store.branch),
        commit=rows_version(context.snapshots, snapshot),
        cache=context.key_cache,
    )


def resolve_system_table(
    store: TableStore, identifier: Identifier, name: SystemName, version: TableVersion | None
) -> ResolvedName | ResolvedSystemView:
    """What a name with `$` means at one state. Raises NotFound TS1490, TS13xx; FixRequest TS1345."""
    from tablestore_engine.catalog.resolved_names import ResolvedSystemView, ResolvedView
    from tablestore_engine.catalog.system_tables.known_tables import AUDIT_LOG, BINLOG, find_metadata_table
    from tablestore_engine.catalog.system_tables.row_tables import row_table_sql

    if name.branch is not None:
        store = store.on_branch(name.branch)
    if name.system is None:
        return resolve_table(store, version)
    table = find_metadata_table(str(identifier), name.system)
    if name.system in (AUDIT_LOG, BINLOG):
        found = resolve_table(store, version)
        is_changes = version is not None and version.changes is not None
        schema = replace(found.schema, fields=found.schema.fields[:-2]) if is_changes else found.schema
        database = (
            identifier.database if version is None else versioned_database(identifier.database, version)
        )
        source = f"{quote_name(database)}.{quote_name(name.rows_name)}"
        return ResolvedView(row_table_sql(name.system, schema, source, is_changes=is_changes), is_own=True)
    if version is not None and version.changes is not None:
        raise FixRequest(
            "TS1345",
            f"${name.system} of {identifier} cannot be read for a range of changes",
            why=f"it shows one state; the tables of changes are ${AUDIT_LOG} and ${BINLOG}",
            fix="name a snapshot, tag or time instead",
        )
    if table is None:
        return resolve_table(store, version, is_read_optimized=True)
    _, state, _ = find_state(store, version)
    return ResolvedSystemView(table.spark_columns, lambda _: tuple(table.rows(state)))


def _tagged(store: TableStore, name: str) -> Snapshot:
    """A tag; else `watermark-<ms>` means a watermark, as in Paimon's VERSION AS OF. Raises NotFound TS1321, TS1224."""
    watermark = name.removeprefix(_WATERMARK)
    if watermark == name or not watermark.isdecimal() or name in store.tags.list_all():
        return store.tags.get(name).snapshot
    return store.snapshots.get_by_watermark(int(watermark))


def find_snapshot(store: TableStore, version: TableVersion | None) -> Snapshot | None:
    """The selected snapshot; None only for a table without snapshots and no version."""
    if version is None:
        return store.latest()
    if version.snapshot is not None:
        return store.snapshots.get(version.snapshot)
    if version.watermark is not None:
        return store.snapshots.get_by_watermark(version.watermark)
    if version.tag is not None:
        return _tagged(store, version.tag)
    if version.timestamp_ms is None:
        raise NotFound(
            "TS1409",
            f"branch {version.branch} cannot be selected here",
            why="a branch is a table of its own",
            fix="open the staged table by its name",
        )
    return store.snapshots.get_by_timestamp(version.timestamp_ms)
