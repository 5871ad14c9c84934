"""What a statement does to the tables, views and schemas of a warehouse, once it is understood and checked.

INVARIANT  CREATE OR REPLACE keeps the history of a table: it is one snapshot with the difference.
INVARIANT  a statement computed from a state of the table (UPDATE, MERGE, DELETE) commits on that state only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame

from tablestore_engine.catalog.functions import FunctionDefinition
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.near_names import RELATIONS, near_hint
from tablestore_engine.catalog.resolved_names import SnapshotRef
from tablestore_engine.catalog.views import ViewDefinition
from tablestore_engine.errors import FixRequest, NotFound
from tablestore_engine.format.cluster_order import make_order
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.schema_check import check_schema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.iceberg.schema_mapping import check_iceberg
from tablestore_engine.runtime.moments import DAY_MS
from tablestore_engine.sql.statement import AlterAction
from tablestore_engine.sql.system_names import find_system_name
from tablestore_engine.sql.table_version import TableVersion
from tablestore_engine.store.read.text_condition import TextCondition
from tablestore_engine.store.rows.row_filter import SameKeys
from tablestore_engine.store.write.requested_compaction import CompactionRequest
from tablestore_engine.store.write.write_request import WriteMode
from tablestore_engine.warehouse.statements.alter_statement import alter_schema
from tablestore_engine.warehouse.warehouse import Warehouse
from tablestore_engine.warehouse.write.arrow_rows import ArrowRows
from tablestore_engine.warehouse.write.incoming_rows import from_frame
from tablestore_engine.warehouse.write.write_spec import OnSchemaChange, TableSpec, WriteSpec
from tablestore_engine.warehouse.write_report import WriteReport


@dataclass(frozen=True)
class TableWish:
    """Keys, partitions, properties and comments of a new table; `columns` empty means: those of the query."""

    columns: tuple[DataField, ...] = ()
    primary_key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str | None = None
    checks: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RowsRequest:
    """Rows for an existing table, with its columns by name, and `_ROW_KIND` (0 +I, 2 +U, 3 -D) when there are kinds.

    computed_from     the state that the rows were computed from: when the table has moved on, the statement must run
                      again (None: the rows do not depend on the table)
    static_partition  INSERT OVERWRITE … PARTITION (dt='x'): exactly this partition is replaced, also by no rows
    replaces          REPLACE: which stored rows are removed
    """

    mode: WriteMode
    replaces: SameKeys | None = None
    computed_from: SnapshotRef | None = None
    static_partition: Mapping[str, object] = field(default_factory=dict)


class TableActions:
    """Each raises a TablestoreError. The values are checked: never SQL text, but for views and checks."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse
        self._catalog = warehouse.catalog

    # tables --------------------------------------------------------------------------------------

    def find_schema(self, database: str, table: str) -> TableSchema | None:
        """Columns of a table, or of a branch of it; None when there is none. Raises NotFound TS1346."""
        warehouse, identifier = self._place(database, table)
        return warehouse.catalog.find_schema(identifier)

    def _place(self, database: str, table: str) -> tuple[Warehouse, Identifier]:
        """Where rows and columns of a name are: `orders$branch_dev` is `orders` on that branch, if it has one."""
        named = find_system_name(table)
        if named is None or named.branch is None or named.system is not None:
            return self._warehouse, Identifier(database, table)
        identifier = Identifier(database, named.table)
        store = self._warehouse.stores.find(identifier)
        if store is not None:
            store.on_branch(named.branch)
        return self._warehouse.on_branch(named.branch), identifier

    def near_hint(self, database: str, name: str, kinds: Sequence[str] = RELATIONS) -> str:
        """`; did you mean demo.orders?`, or nothing."""
        named = find_system_name(name)
        return near_hint(self._catalog, Identifier(database, name if named is None else named.table), kinds)

    def create_table(
        self, database: str, table: str, wish: TableWish, *, if_not_exists: bool, replace: bool
    ) -> WriteReport | None:
        """An empty table; replacing an existing one deletes its rows in one snapshot."""
        identifier = Identifier(database, table)
        exists = self.find_schema(database, table) is not None
        if exists and if_not_exists and not replace:
            return None
        if exists and not replace:
            raise _exists(identifier)
        columns = tuple(wish.columns)
        if not columns:
            raise FixRequest(
                "TS1018",
                f"table {identifier} has no columns",
                why="neither columns nor AS query",
                fix="name its columns",
            )
        rows = pa.table({field.name: pa.nulls(0) for field in columns})
        incoming = ArrowRows(columns, rows)
        if not exists:
            self._warehouse.writer.create_empty(identifier, incoming, _spec_of(wish))
            return None
        return self._warehouse.write_incoming(identifier, incoming, _replacing(wish))

    def create_table_as(
        self,
        database: str,
        table: str,
        wish: TableWish,
        frame: DataFrame,
        *,
        if_not_exists: bool,
        replace: bool,
    ) -> WriteReport | None:
        """Table with the rows of a query, one snapshot; replace keeps history."""
        identifier = Identifier(database, table)
        exists = self.find_schema(database, table) is not None
        if exists and if_not_exists and not replace:
            return None
        if exists and not replace:
            raise _exists(identifier)
        incoming = from_frame(frame, None, dict(wish.checks))
        return self._warehouse.write_incoming(identifier, incoming, _replacing(wish))

    def write_rows(self, database: str, table: str, frame: DataFrame, request: RowsRequest) -> WriteReport:
        """INSERT, UPDATE, DELETE, MERGE as one commit. Raises RetryError TS1324 when the table moved on."""
        warehouse, identifier = self._place(database, table)
        return warehouse.write_incoming(
            identifier,
            from_frame(frame, None, {}),
            WriteSpec(
                mode=request.mode,
                replaces=request.replaces,
                on_schema_change=OnSchemaChange.IGNORE,  # the query names its columns
            ),
            partition=dict(request.static_partition),
            computed_from=request.computed_from,
        )

    def truncate(self, database: str, table: str) -> WriteReport:
        """All rows deleted, in one snapshot."""
        warehouse, identifier = self._place(database, table)
        schema = warehouse.stores.get(identifier).schema
        rows = schema.arrow_schema().empty_table()
        incoming = ArrowRows(schema.fields, rows)
        return warehouse.write_incoming(identifier, incoming, WriteSpec(mode=WriteMode.OVERWRITE_TABLE))

    def restore(self, database: str, table: str, version: TableVersion) -> WriteReport:
        """The rows of a past state again, in one snapshot."""
        warehouse, identifier = self._place(database, table)
        return warehouse.restore(identifier, version)

    def can_cluster(self, database: str, table: str) -> bool:
        """Whether rows of the table have no order of their own: neither a primary key nor fixed buckets."""
        warehouse, identifier = self._place(database, table)
        schema = warehouse.stores.get(identifier).schema
        return not schema.is_keyed and schema.bucket_count <= 0

    def compact(self, database: str, table: str, *, z_order: Sequence[str] = ()) -> str:
        """One run per bucket without dead rows, or all rows in an order; what was done. Raises FixRequest TS1214."""
        order = make_order("zorder", z_order) if z_order else None
        request = CompactionRequest({}, full=True, order=order)
        warehouse, identifier = self._place(database, table)
        return warehouse.compact(identifier, request).summary()

    def analyze(self, database: str, table: str, columns: Sequence[str] | None) -> str:
        """Count rows, and values of columns (None: of all); what was counted."""
        warehouse, identifier = self._place(database, table)
        found = warehouse.analyze(identifier, columns)
        if found is None:
            return "there is no snapshot to count"
        return (
            f"{found.row_count} rows and {len(found.columns)} columns of snapshot {found.snapshot_id} counted"
        )

    def vacuum(
        self, database: str, table: str, *, retain_hours: float | None, dry_run: bool
    ) -> tuple[str, str]:
        """Snapshots beyond the table's retention, or beyond so many hours, and files that nothing names for a day at
        least; what went, or would go.
        """
        identifier = Identifier(database, table)
        retained = None if retain_hours is None else int(retain_hours * 3_600_000)
        keep = None if retained is None else 1
        expired = self._warehouse.expiry.run(identifier, keep=keep, older_than_ms=retained, dry_run=dry_run)
        grace = max(DAY_MS, retained or 0)
        orphans = self._warehouse.orphans.of_table(identifier, grace_ms=grace, delete=not dry_run)
        ending = "would go" if dry_run else "went"
        return (
            f"{expired.snapshots} snapshots with {expired.files} files {ending}",
            f"{len(orphans.found)} files that nothing names {ending} ({orphans.size_bytes} bytes)",
        )

    def history(
        self, database: str, table: str, limit: int | None
    ) -> tuple[tuple[Snapshot, int | None], ...]:
        """The newest `limit` snapshots, newest first, each with its rows as count_rows. Raises NotFound TS1414."""
        warehouse, identifier = self._place(database, table)
        store = warehouse.stores.get(identifier)
        found = reversed(store.snapshots.list_all(limit))
        return tuple((one, store.context.scanner.count_rows(one)) for one in found)

    def find_view_text(self, database: str, name: str) -> str | None:
        """Its query; None: there is no such view."""
        view = self._catalog.views.find(Identifier(database, name))
        return None if view is None else view.sql

    def drop(self, kind: str, database: str, name: str, *, if_exists: bool) -> None:
        """DROP TABLE or VIEW; the wrong kind is refused."""
        found = self._warehouse.relations.find(Identifier(database, name))
        if found is None:
            if if_exists:
                return
            raise NotFound(
                "TS1410",
                f"{kind} {database}.{name} does not exist",
                why="no such name",
                fix=f"correct the name{self.near_hint(database, name, (kind.lower(),))}",
            )
        if found.kind != kind.lower():
            raise FixRequest(
                "TS1411",
                f"{database}.{name} is no {kind.lower()}",
                why=f"it is a {found.kind}",
                fix=f"use DROP {found.kind.upper()}",
            )
        if found.kind == "table":
            self._warehouse.relations.drop_table(found.identifier)
        else:
            self._warehouse.relations.drop_view(found.identifier)

    def rename(self, kind: str, database: str, name: str, new_database: str, new_name: str) -> None:  # noqa: ARG002
        """ALTER … RENAME TO."""
        self._warehouse.relations.rename(Identifier(database, name), Identifier(new_database, new_name))

    def alter(self, database: str, table: str, action: AlterAction, columns: tuple[DataField, ...]) -> None:
        """Columns and properties, as one new version of the schema."""
        warehouse, identifier = self._place(database, table)

        def altered(schema: TableSchema) -> TableSchema:
            wanted = alter_schema(schema, action, columns)
            check_schema(wanted, lambda: (schema,))
            check_iceberg(wanted, lambda: (schema,))
            warehouse.logs.check_change(identifier, schema, wanted)
            if wanted.fields != schema.fields:
                warehouse.logs.check_schema(identifier, wanted)
            return wanted

        warehouse.catalog.alter_table(identifier, altered)

    def drop_partitions(self, database: str, table: str, filters: Sequence[str], *, if_exists: bool) -> None:
        """Rows of partitions deleted in one commit. Raises NotFound TS1216 for a filter without a partition, before."""
        identifier = Identifier(database, table)
        for one in filters:
            found = self._warehouse.expire_partitions(identifier, TextCondition(one), dry_run=True)
            if not found.partitions and not if_exists:
                raise NotFound(
                    "TS1216",
                    f"{identifier} has no partition where {one}",
                    why="the newest snapshot has no file in one",
                    fix=f"correct the values (SELECT * FROM {identifier}$partitions), or use DROP IF EXISTS PARTITION",
                )
        every = " or ".join(f"({one})" for one in filters)
        self._warehouse.expire_partitions(identifier, TextCondition(every))

    def comment(self, database: str, table: str, text: str | None) -> None:
        warehouse, identifier = self._place(database, table)
        warehouse.relations.set_comments(identifier, text, {})

    # views ---------------------------------------------------------------------------------------

    def create_view(
        self,
        database: str,
        name: str,
        sql: str,
        *,
        replace: bool,
        if_not_exists: bool,
        comment: str | None,
        column_comments: Mapping[str, str],
    ) -> None:
        """Store a view's text."""
        identifier = Identifier(database, name)
        if self._catalog.views.find(identifier) is not None and not replace:
            if if_not_exists:
                return
            raise _exists(identifier)
        self._warehouse.relations.put_view(identifier, ViewDefinition(sql, comment, dict(column_comments)))

    # functions -----------------------------------------------------------------------------------

    def check_schema(self, name: str) -> None:
        """Raises NotFound TS1405."""
        self._catalog.check_database(name)

    def has_function(self, identifier: Identifier) -> bool:
        """Whether the function is there, damaged or not."""
        return identifier.name.lower() in self._catalog.functions.list_names(identifier.database)

    def find_function(self, identifier: Identifier) -> FunctionDefinition | None:
        """Its text, None when there is none. Raises FixData TS1458."""
        return self._catalog.functions.find(identifier)

    def list_functions(self, database: str) -> tuple[str, ...]:
        """Names, sorted. Raises NotFound TS1405."""
        self._catalog.check_database(database)
        return self._catalog.functions.list_names(database)

    def put_function(self, identifier: Identifier, function: FunctionDefinition) -> None:
        self._warehouse.relations.put_function(identifier, function)

    def drop_function(self, identifier: Identifier) -> None:
        """A missing one is fine."""
        self._warehouse.relations.drop_function(identifier)

    # schemas -------------------------------------------------------------------------------------

    def create_schema(self, name: str, *, if_not_exists: bool) -> None:
        if self._catalog.has_database(name) and not if_not_exists:
            raise FixRequest("TS1412", f"schema {name} exists already", why="there is a folder of that name",
                             fix="CREATE SCHEMA IF NOT EXISTS")  # fmt: skip
        self._catalog.create_database(name)

    def drop_schema(self, name: str, *, if_exists: bool, cascade: bool) -> None:
        if if_exists and not self._catalog.has_database(name):
            return
        self._warehouse.relations.drop_database(name, cascade=cascade)

    def list_schemas(self) -> tuple[str, ...]:
        return self._catalog.list_databases()

    def list_relations(self, database: str) -> tuple[tuple[str, str, str | None], ...]:
        """(name, table | view, comment)."""
        return tuple(
            (one.identifier.name, one.kind, one.comment)
            for one in self._warehouse.relations.list_all(database)
        )


def _spec_of(wish: TableWish) -> TableSpec:
    return TableSpec(
        primary_key=wish.primary_key,
        partition_by=wish.partition_by,
        options=dict(wish.properties),
        comment=wish.comment,
        not_null=tuple(field.name for field in wish.columns if not field.type.nullable),
    )


def _replacing(wish: TableWish) -> WriteSpec:
    return WriteSpec(
        table=_spec_of(wish), mode=WriteMode.OVERWRITE_TABLE, on_schema_change=OnSchemaChange.REPLACE
    )


def _exists(identifier: Identifier) -> FixRequest:
    return FixRequest(
        "TS1413",
        f"{identifier} exists already",
        why="CREATE without OR REPLACE or IF NOT EXISTS",
        fix="add one of them, or drop it first",
    )
