"""A warehouse folder as a catalog, laid out as Paimon's filesystem catalog expects.

Steps      create: check -> claim schema-0, with a uuid in it, exclusively · drop: move aside in one step, then delete;
           where no folder can be moved: under a hold of the name (flat_tables) · alter: the store's, its own commit
INVARIANT  a name appears and disappears in one step: the exclusive create of schema-0, one rename; without renames the
           replacement of schema-0 by a hold. Who still works on the old table works in the folder that was moved away,
           or fails, since its identity is that of the oldest schema (store.metadata.identity).
INVARIANT  a name is a table or a view, never both. A table may wait beside it to take its place (table_swap).
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from tablestore_engine.catalog.flat_tables import FlatTables, Prepare
from tablestore_engine.catalog.functions import FunctionStore
from tablestore_engine.catalog.identifier import Identifier, check_name, check_not_system, is_name
from tablestore_engine.catalog.near_names import missing_database, missing_table
from tablestore_engine.catalog.store_check import check_store
from tablestore_engine.catalog.table_swap import TableSwap, holds_replaced
from tablestore_engine.catalog.target_branch import on_branch, refuse_on
from tablestore_engine.catalog.views import ViewDefinition, ViewStore
from tablestore_engine.errors import (
    FixRequest,
    StoreAnswerUnknown,
    TablestoreError,
)
from tablestore_engine.fileio.base import FileIO, FolderStore, folders_of
from tablestore_engine.format.capability import check_writable
from tablestore_engine.format.layout import (
    DATABASE_FILE,
    DROPPED_PREFIX,
    TableLayout,
    database_location,
    replacements_location,
    table_location,
)
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.store.metadata.identity import UUID_OPTION, identity_of
from tablestore_engine.store.metadata.schemas import SchemaStore, holds_table, looks_like_table
from tablestore_engine.store.metadata.snapshots import SnapshotStore
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.table_store import TableStore

if TYPE_CHECKING:
    from tablestore_engine.fileio.external_folders import ExternalFolders


@dataclass(frozen=True)
class FilesystemCatalog:
    """Names of one warehouse folder (absolute path). `branch`: on which its tables are (catalog.target_branch),
    `makes_branches`: a table gets it when it is written first, `external`: where else data files may lie.
    """

    fileio: FileIO
    warehouse: str
    runtime: Runtime
    branch: str | None = None
    makes_branches: bool = False
    external: ExternalFolders | None = None

    @property
    def views(self) -> ViewStore:
        return ViewStore(self.fileio, self.warehouse)

    @property
    def functions(self) -> FunctionStore:
        return FunctionStore(self.fileio, self.warehouse)

    def check_writable(self) -> None:
        """Raises FixRequest TS1416, Unsupported TS1203."""
        check_store(self.fileio, self.warehouse, self.runtime)

    def list_databases(self) -> tuple[str, ...]:
        """Names, sorted."""
        found = self.fileio.list(self.warehouse)
        return tuple(s.name.removesuffix(".db") for s in found if s.is_dir and s.name.endswith(".db"))

    def has_database(self, database: str) -> bool:
        """Whether the folder exists, or a file in it."""
        return self.fileio.exists(database_location(self.warehouse, check_name("database", database)))

    def create_database(self, database: str) -> None:
        """Make the folder, or a file for it; an existing one is fine. Raises TS1416, TS1539, TS1203."""
        check_not_system(database)
        folder = database_location(self.warehouse, check_name("database", database))
        if self.fileio.folders is not None:
            self.fileio.mkdirs(folder)
        elif not self.fileio.exists(folder):
            self.check_writable()
            self.fileio.create_exclusive(f"{folder}/{DATABASE_FILE}", b"")

    def drop_database(self, database: str, *, cascade: bool) -> None:
        """Remove it; with content only when `cascade`. Raises FixRequest TS1404, NotFound TS1405."""
        self.check_database(database)
        stores = (self.views, self.functions)
        names = (*self.list_tables(database), *(name for one in stores for name in one.list_names(database)))
        if names and not cascade:
            raise FixRequest(
                "TS1404",
                f"database {database} is not empty",
                why=f"it holds {', '.join(names[:5])}",
                fix="drop them first, or use CASCADE",
            )
        if self.fileio.folders is None:
            folder = database_location(self.warehouse, database)
            self._flat.drop_all(folder, replacements_location(self.warehouse, database))
            self.fileio.delete(f"{folder}/{DATABASE_FILE}")
        else:
            self._remove_tree(database_location(self.warehouse, database), self.warehouse)

    def list_tables(self, database: str) -> tuple[str, ...]:
        """Names of tables, sorted; empty when the database is missing."""
        folder, (names, _) = database_location(self.warehouse, database), self.list_table_folders(database)
        looks = [partial(looks_like_table, self.fileio, f"{folder}/{name}") for name in names]
        are_tables = self.fileio.run_together(looks)
        return tuple(name for name, is_one in zip(names, are_tables, strict=True) if is_one)

    def list_table_folders(self, database: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of folders that are tables or may be, and of which a replacement waits, each sorted: two listings. What
        no table of ours can be called is looked at.
        """
        folder, waiting = database_location(self.warehouse, database), self.list_replacements(database)
        for name in waiting:
            with suppress(TablestoreError):  # a damaged one is told to whoever asks for its name
                self.table_swap(Identifier(database, name)).settle()
        found = [one.name for one in self.fileio.list(folder) if one.is_dir]
        return tuple(
            n for n in found if is_name(n) or looks_like_table(self.fileio, f"{folder}/{n}")
        ), waiting

    def list_replacements(self, database: str) -> tuple[str, ...]:
        """Names of which a replacement waits, sorted."""
        folder = replacements_location(self.warehouse, check_name("database", database))
        return tuple(status.name for status in self.fileio.list(folder) if status.is_dir)

    def table_swap(self, identifier: Identifier) -> TableSwap:
        """What has the name, and who waits for it."""
        return TableSwap(
            self.fileio,
            self.runtime,
            place=self.location(replace(identifier, is_replacement=False)),
            view=self.views.path(identifier),
            beside=self.location(identifier.replacement),
        )

    def has_table(self, identifier: Identifier) -> bool:
        """Whether the name is a table's; a change of places that a process died in is finished first."""
        if self.is_table(identifier):
            return True
        if identifier.is_replacement:
            return False
        return self.table_swap(identifier).settle() or self.is_table(identifier)

    def is_table(self, identifier: Identifier) -> bool:
        """Whether the name's folder holds a table now."""
        return holds_table(self.fileio, self.location(identifier))

    def location(self, identifier: Identifier) -> str:
        """Folder of a table, whether it exists or not."""
        if identifier.is_replacement:
            return f"{replacements_location(self.warehouse, identifier.database)}/{identifier.name}"
        return table_location(self.warehouse, identifier.database, identifier.name)

    def schemas(self, identifier: Identifier) -> SchemaStore:
        return SchemaStore(self.fileio, TableLayout(self.location(identifier)))

    def store(self, identifier: Identifier) -> TableStore:
        """A fresh handle on a table, whether it exists or not."""
        return self.on_target(self.main_store(identifier))

    def main_store(self, identifier: Identifier) -> TableStore:
        """The same on main, whatever the branch."""
        return TableStore(self.fileio, self.location(identifier), self.runtime, external=self.external)

    def on_target(self, main: TableStore) -> TableStore:
        """The handle on the branch of this warehouse."""
        return main if self.branch is None else on_branch(main, self.branch)

    def find_schema(self, identifier: Identifier) -> TableSchema | None:
        """The table's schema (see store.metadata.schemas), or None when there is no such table."""
        store = self.store(identifier)
        return None if store.identity is None and not self.has_table(identifier) else store.schema

    def create_table(self, identifier: Identifier, schema: TableSchema) -> TableSchema:
        """A new table. Raises TS1405 (database), TS1406 (name taken), TS11xx (features)."""
        self.check_database(identifier.database)
        if identifier.is_replacement:
            refuse_on(self.branch, f"replacing {identifier} by a table with another key or other partitions")
        check_writable(schema)
        if not identifier.is_replacement and self.views.find(identifier) is not None:
            raise self._taken(identifier, "a view")
        options = {UUID_OPTION: self.runtime.new_uuid(), **schema.options}
        first = replace(schema, id=0, time_millis=self.runtime.now_ms(), options=options, claim=None)
        schemas, layout = self.schemas(identifier), TableLayout(self.location(identifier))
        remaining = (
            ()
            if self.is_table(identifier)
            else SnapshotStore(self.fileio, layout, identity_of(first)).list_ids()
        )
        if remaining:
            raise FixRequest(
                "TS1465",
                f"{identifier} cannot be created",
                why=f"{layout.snapshot_dir} holds snapshot {remaining[0]} of a table that is gone: there is no schema",
                fix=f"move the folder {layout.location} away",
            )
        self.fileio.mkdirs(layout.snapshot_dir)
        if not schemas.claim(first) and not self._claimed_after_hold(identifier, first):
            raise self._taken(identifier, "a table")
        return first

    def _claimed_after_hold(self, identifier: Identifier, first: TableSchema) -> bool:
        """Whether what kept the name from being claimed was a process that died, and it is claimed now."""
        if self.fileio.folders is not None or not self._flat.is_held(self.location(identifier)):
            return False
        self.end_hold(identifier)
        return self.schemas(identifier).claim(first)

    def end_hold(self, identifier: Identifier) -> None:
        """End what a process has begun with the name and died. Raises RetryError TS1367, TS1368."""
        self._flat.make_free(self.location(identifier), self.table_swap(identifier).complete)

    def drop_table(self, identifier: Identifier) -> TableSchema | None:
        """Remove a table with its history; its schema, None when it is damaged. Raises NotFound TS1407, as FlatTables.

        A replacement that is about to take its place holds what it replaces: it goes on, and nothing is dropped.
        """
        place, folders = self.location(identifier), self.fileio.folders
        if folders is None:
            named = replace(identifier, is_replacement=False)
            if any(self._flat.is_held(self.location(one)) for one in {identifier, named}):
                self.end_hold(identifier)
                if identifier.is_replacement:
                    self.end_hold(named)
                if not self.is_table(identifier):
                    return None
        self._check_table(identifier)
        if folders is not None:
            place = self._move_aside(folders, place, database_location(self.warehouse, identifier.database))
        if folders is not None and identifier.is_replacement and holds_replaced(self.fileio, place):
            folders.rename(place, self.location(identifier))
            if not self.table_swap(identifier).settle():
                self.drop_table(identifier)
            return None
        schema = None
        try:
            schema = TableStore(self.fileio, place, self.runtime).schema
        except StoreAnswerUnknown:
            raise  # without its schema its log would stay
        except TablestoreError:
            pass  # a damaged table can be dropped too
        self._delete_table(place)
        if not identifier.is_replacement and self.is_table(identifier.replacement):
            self.drop_table(identifier.replacement)
        return schema

    def check_deletable(self, identifier: Identifier) -> None:
        """Raises StorageError TS1291 where an object store refuses to delete; on a disk the DROP itself is one step."""
        if self.fileio.folders is None:
            self._flat.check_deletable(self.location(identifier))

    def drop_remains(self, place: str) -> None:
        """Files in a place without a table, on a store without folders. Raises RetryError TS1367, TS1368."""
        self._flat.drop_remains(place)

    def drop_unused(self, identifier: Identifier, identity: str) -> TableSchema | None:
        """Remove the table of this identity while nobody has used it; its schema, None when it stays.

        Raises RetryError TS1466. Where no folder can be moved away it is looked at under a hold of its name, and comes
        back when it is used.
        """
        from tablestore_engine.catalog.unused_table import UnusedTable

        folders, place = self.fileio.folders, self.location(identifier)
        if folders is None:
            return self._flat.drop_unused(place, identity)
        parent = database_location(self.warehouse, identifier.database)
        aside = partial(self._move_aside, folders, place, parent)
        return UnusedTable(str(identifier), place, identity).drop(self.fileio, self.runtime, folders, aside)

    def rename_table(self, old: Identifier, new: Identifier) -> None:
        """Move a table. Raises NotFound TS1407, TS1405, FixRequest TS1406, Unsupported TS1204."""
        way_out = f"CREATE TABLE {new} CLONE {old} copies its files in the store; then DROP TABLE {old}"
        folders = folders_of(self.fileio, self.location(old), "RENAME of a table", way_out)
        self._check_table(old)
        self.check_database(new.database)
        if self.views.find(new) is not None or self.schemas(new).list_ids():
            raise self._taken(new, "a table or view")
        target = self.location(new)
        if self.fileio.exists(target):  # no table: what a writer left behind that outlived a DROP
            self._remove_tree(target, database_location(self.warehouse, new.database))
        if not folders.rename(self.location(old), target):
            raise self._taken(new, "a table or view")

    def clone_flat(
        self, source: TableContext, identifier: Identifier, prepare: Prepare = lambda _: None
    ) -> None:
        """The newest snapshot of a table in the place of the name, instead of what has it; see FlatTables.clone.

        Raises NotFound TS1405, RetryError TS1367, TS1368, as plan_clone.
        """
        self.check_database(identifier.database)
        place = self.location(identifier)
        if self._flat.is_held(place):
            self.end_hold(identifier)
        self._flat.clone(source, place, prepare)

    def place_table(self, folder: str, identifier: Identifier) -> None:
        """Give a complete folder of a table its name. Raises TS1405, TS1406."""
        self.check_database(identifier.database)
        folders = folders_of(
            self.fileio, folder, "CLONE of a table", "write the rows with CREATE TABLE AS SELECT"
        )
        if self.views.find(identifier) is not None or not folders.rename(folder, self.location(identifier)):
            raise self._taken(identifier, "a table or view")

    def alter_table(
        self, identifier: Identifier, change: Callable[[TableSchema], TableSchema]
    ) -> TableSchema:
        """Apply a pure schema change; an unchanged schema writes nothing. Raises NotFound TS1407, TS1305, TS1366."""
        self._check_table(identifier)
        store = self.store(identifier)
        store.context.guard.check()  # before anything is written
        return store.alter(change)

    # views ---------------------------------------------------------------------------------------

    def put_view(self, identifier: Identifier, view: ViewDefinition) -> None:
        """Create or replace a view. Raises TS1405, TS1406 when a table has the name."""
        self.check_database(identifier.database)
        if self.is_table(identifier):
            raise self._taken(identifier, "a table")
        there = None if self.branch is None else self.views.find(identifier)
        if there is not None and replace(there, time_millis=0) == replace(view, time_millis=0):
            return
        refuse_on(self.branch, f"a change of view {identifier}")
        if self.fileio.folders is None and self._flat.is_held(self.location(identifier)):
            self.end_hold(identifier)
        self.views.put(identifier, replace(view, time_millis=self.runtime.now_ms()))

    def rename_view(self, old: Identifier, new: Identifier) -> None:
        """Put under the new name, then drop the old one. Raises TS1406, TS1407."""
        view = self.views.find(old)
        if view is None:
            raise missing_table(self, old)
        if self.views.find(new) is not None:
            raise self._taken(new, "a view")
        self.put_view(new, view)
        self.views.drop(old)

    def _delete_table(self, place: str) -> None:
        """What was moved aside, or the table itself under a hold of its name."""
        if self.fileio.folders is None:
            self._flat.drop(place)
        else:
            self.fileio.delete_tree(place)

    def _remove_tree(self, path: str, parent: str) -> None:
        """Out of sight in one rename, then deleted at leisure: a crash leaves a hidden folder, no half table."""
        folders = self.fileio.folders
        self.fileio.delete_tree(path if folders is None else self._move_aside(folders, path, parent))

    def _move_aside(self, folders: FolderStore, path: str, parent: str) -> str:
        aside = f"{parent}/{DROPPED_PREFIX}{self.runtime.now_ms()}-{self.runtime.new_uuid()}"
        folders.rename(path, aside)
        return aside

    @property
    def _flat(self) -> FlatTables:
        return FlatTables(self.fileio, self.runtime)

    def check_database(self, database: str) -> None:
        """Raises NotFound TS1405."""
        if not self.has_database(database):
            raise missing_database(self.warehouse, database)

    def _check_table(self, identifier: Identifier) -> None:
        if not self.has_table(identifier):
            raise missing_table(self, identifier)

    def _taken(self, identifier: Identifier, kind: str) -> FixRequest:
        return FixRequest(
            "TS1406",
            f"{identifier} exists already",
            why=f"{kind} of that name is in {self.warehouse}",
            fix="choose another name, or drop it first",
        )
