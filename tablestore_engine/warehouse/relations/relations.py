"""The tables and views of a warehouse as wholes: listed, dropped, renamed, cloned, described.

CHANGE     DROP, RENAME, clones and comments
INVARIANT  what a name means afterwards is seen by the next statement: stores and Spark forget it, behind the change.
INVARIANT  what a query remembers for a table (positions name it) goes with the table's rows: cloned, renamed.
INVARIANT  a log is dropped before its table: where it cannot be reached nothing goes.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.name_lookup import NameLookup
from tablestore_engine.catalog.open_tables import OpenTables
from tablestore_engine.catalog.target_branch import drop_empty_branch, refuse_on
from tablestore_engine.catalog.views import ViewDefinition
from tablestore_engine.errors import FixData, FixRequest, NotFound, StorageError, TablestoreError, Unsupported
from tablestore_engine.format.layout import CLONE_PREFIX, TableLayout, database_location
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.spark.lazy_resolver import LazyResolver
from tablestore_engine.warehouse.log.logs import Logs
from tablestore_engine.warehouse.relations.relation_list import (
    RelationInfo,
    find_table,
    find_view,
    list_relations,
)

if TYPE_CHECKING:
    from tablestore_engine.catalog.functions import FunctionDefinition
    from tablestore_engine.warehouse.iceberg_follower import IcebergMetadata


@dataclass(frozen=True)
class Relations:
    catalog: FilesystemCatalog
    stores: OpenTables
    names: NameLookup
    spark: LazyResolver
    logs: Logs
    iceberg: IcebergMetadata

    def list_all(self, database: str, *, with_unpublished: bool = False) -> tuple[RelationInfo, ...]:
        """Tables and views; tables that only have a staged snapshot are nobody's business yet."""
        return list_relations(self.catalog, self.stores, database, with_unpublished=with_unpublished)

    def find(self, identifier: Identifier) -> RelationInfo | None:
        """A table or view by its name, damaged or not."""
        return find_table(self.catalog, self.stores, identifier) or find_view(self.catalog, identifier)

    def get(self, identifier: Identifier) -> RelationInfo:
        """A table or view by its name. Raises NotFound TS1414."""
        from tablestore_engine.catalog.near_names import RELATIONS, no_such_name

        found = self.find(identifier)
        if found is None:
            raise no_such_name(self.catalog, identifier, RELATIONS)
        return found

    def forget(self, identifier: Identifier) -> None:
        """After a drop or rename: what the name meant must not meet what it means now."""
        self.stores.forget(identifier)
        self.spark.forget(identifier)

    # tables --------------------------------------------------------------------------------------

    def drop_table(self, identifier: Identifier) -> None:
        """With its history, and with its log when the engine made it: this first, since where it cannot be reached
        nothing should be dropped, and nothing of it stay behind that blocks the next table of the name.
        """
        refuse_on(self.catalog.branch, f"DROP of {identifier}")
        try:
            schema = self.catalog.find_schema(identifier)
        except (
            FixData,
            NotFound,
            Unsupported,
        ):  # a damaged table can be dropped; its log is that of an older schema
            schema = self.catalog.schemas(identifier).find_readable()
        self.logs.drop(identifier, schema)
        self.iceberg.drop(identifier, schema)
        self.catalog.drop_table(identifier)
        self.forget(identifier)

    def drop_unused(self, identifier: Identifier, identity: str) -> None:
        """The table of this identity, when no snapshot, no stage and no writer has used it."""
        branch = self.catalog.branch
        if branch is not None:
            drop_empty_branch(self.catalog.main_store(identifier), branch)
        schema = self.catalog.drop_unused(identifier, identity)
        if schema is not None:
            self.forget(identifier)
            with suppress(
                TablestoreError
            ):  # a refusal is what the caller must hear; a left claim is taken over
                self.logs.drop(identifier, schema)

    def drop_database(self, name: str, *, cascade: bool = False) -> None:
        """With its tables when `cascade`."""
        refuse_on(self.catalog.branch, f"DROP of schema {name}")
        if cascade and self.catalog.has_database(name):
            for one in self.list_all(name, with_unpublished=True):
                if one.kind == "table":
                    self.drop_table(one.identifier)
        self.catalog.drop_database(name, cascade=cascade)

    def rename(self, source: Identifier, target: Identifier) -> None:
        """A table or view under a new name. Raises NotFound TS1414."""
        from tablestore_engine.catalog.near_names import RELATIONS, no_such_name
        from tablestore_engine.warehouse.streaming_state_files import StreamingStateFiles

        refuse_on(self.catalog.branch, f"RENAME of {source}")
        schema = self.catalog.find_schema(source)
        if schema is not None:
            states = StreamingStateFiles(self.catalog, source)
            states.copy_to(target)
            self.catalog.rename_table(source, target)
            states.drop()
            self.iceberg.drop(source, schema)
            self.iceberg.follow(target)
        elif self.catalog.views.find(source) is None:
            raise no_such_name(self.catalog, source, RELATIONS)
        else:
            self.catalog.rename_view(source, target)
        self.forget(source)

    def clone_table(self, source: Identifier, target: Identifier) -> None:
        """The newest snapshot of a table as another one, complete beside it before what has the name goes."""
        from tablestore_engine.store.clone import clone_table
        from tablestore_engine.warehouse.streaming_state_files import StreamingStateFiles

        refuse_on(self.catalog.branch, f"CLONE into {target}")
        if not self.catalog.has_database(target.database):
            self.catalog.create_database(target.database)
        if source == target:
            raise FixRequest(
                "TS1080",
                f"{source} cannot be cloned onto itself",
                why="what has the target's name is replaced",
                fix="give another name",
            )
        if self.catalog.fileio.folders is None:
            self._clone_flat(source, target)
            return
        hidden = f"{CLONE_PREFIX}{self.catalog.runtime.new_uuid()}"
        folder = f"{database_location(self.catalog.warehouse, target.database)}/{hidden}"
        try:
            store = self.stores.get(source)
            snapshot = clone_table(store.context, TableLayout(folder))
            StreamingStateFiles(self.catalog, source).copy_named(target, store, snapshot)
        except StorageError:  # a full disk must not stay full of what has no name
            self.catalog.fileio.delete_tree(folder)
            raise
        if self.stores.find(target) is not None:
            self.drop_table(target)
        self.drop_view(target)
        self.catalog.place_table(folder, target)
        self.forget(target)
        self.iceberg.follow(target)

    def _clone_flat(self, source: Identifier, target: Identifier) -> None:
        """Where no folder is moved: copied into its place, in which it appears at once."""
        from tablestore_engine.warehouse.streaming_state_files import StreamingStateFiles

        old, store = self.stores.find(target), self.stores.get(source)
        if old is not None:
            self.logs.drop(target, old.schema)
        states = StreamingStateFiles(self.catalog, source)
        self.catalog.clone_flat(
            store.context, target, lambda snapshot: states.copy_named(target, store, snapshot)
        )
        self.drop_view(target)
        self.forget(target)
        self.iceberg.drop_former(target)
        self.iceberg.follow(target)

    # views, functions and comments ---------------------------------------------------------------

    def put_view(self, identifier: Identifier, view: ViewDefinition) -> None:
        """Create or replace; its text is this process's own, which may do what the user may."""
        self.names.note_own_text(view.sql)
        self.catalog.put_view(identifier, view)

    def drop_view(self, identifier: Identifier) -> None:
        """A missing one is fine."""
        if self.catalog.branch is not None and self.catalog.views.find(identifier) is None:
            return
        refuse_on(self.catalog.branch, f"DROP of view {identifier}")
        self.catalog.views.drop(identifier)
        if self.catalog.is_table(identifier.replacement):
            self.catalog.drop_table(identifier.replacement)
        self.forget(identifier)

    def put_function(self, identifier: Identifier, function: FunctionDefinition) -> None:
        """Create or replace; its text is this process's own, which may do what the user may."""
        refuse_on(self.catalog.branch, f"CREATE FUNCTION {identifier}")
        self.names.note_own_text(function.sql)
        self.catalog.check_database(identifier.database)
        stamped = replace(function, time_millis=self.catalog.runtime.now_ms())
        self.catalog.functions.put(identifier, stamped)

    def drop_function(self, identifier: Identifier) -> None:
        """A missing one is fine."""
        refuse_on(self.catalog.branch, f"DROP FUNCTION {identifier}")
        self.catalog.functions.drop(identifier)
        self.spark.forget_function(identifier)

    def set_comments(self, identifier: Identifier, comment: str | None, columns: Mapping[str, str]) -> None:
        """Comments of a table (one new schema version) or view."""
        view = self.catalog.views.find(identifier)
        if view is not None:
            merged = {**view.column_comments, **columns}
            self.catalog.put_view(identifier, ViewDefinition(view.sql, comment or view.comment, merged))
            return
        self.catalog.alter_table(identifier, lambda schema: _with_comments(schema, comment, columns))


def _with_comments(schema: TableSchema, comment: str | None, columns: Mapping[str, str]) -> TableSchema:
    """The schema with the table's comment (None: as it is) and those of the named columns."""
    from tablestore_engine.format.schema_change import describe_column, set_comment

    if comment is not None:
        schema = set_comment(schema, comment)
    known = {name.lower(): name for name in schema.field_names}
    for name, text in columns.items():
        if name.lower() in known:
            schema = describe_column(schema, known[name.lower()], text or None)
    return schema
