"""What the router asks of the tables; `api` does it.

Names      TableWish      what CREATE TABLE says
           RowsRequest    what INSERT, UPDATE, DELETE, MERGE say about the rows of a DataFrame
           TableActions   the port
INVARIANT  the port gets checked values only: names, columns and modes, never SQL text (but for views and checks).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pyspark.sql import DataFrame

from tablestore_engine.catalog.resolved_names import SnapshotRef
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.sql.statement import AlterAction
from tablestore_engine.store.write import WriteMode


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
    """

    mode: WriteMode
    computed_from: SnapshotRef | None = None
    static_partition: Mapping[str, object] = field(default_factory=dict)


class TableActions(Protocol):
    """Each raises a TablestoreError; each returns a report (or None) that the caller of the router gets."""

    def find_schema(self, database: str, table: str) -> TableSchema | None:
        """The columns of a table, or None when there is no such table (a view is none)."""

    def create_table(
        self, database: str, table: str, wish: TableWish, *, if_not_exists: bool, replace: bool
    ) -> object:
        """An empty table."""

    def create_table_as(
        self,
        database: str,
        table: str,
        wish: TableWish,
        frame: DataFrame,
        *,
        if_not_exists: bool,
        replace: bool,
    ) -> object:
        """A table with the rows of a query; replace keeps history (one snapshot)."""

    def write_rows(self, database: str, table: str, frame: DataFrame, request: RowsRequest) -> object:
        """One commit."""

    def truncate(self, database: str, table: str) -> object:
        """One commit without rows."""

    def drop(self, kind: str, database: str, name: str, *, if_exists: bool) -> None:
        """DROP TABLE or VIEW; the wrong kind is refused."""

    def rename(self, kind: str, database: str, name: str, new_database: str, new_name: str) -> None:
        """ALTER … RENAME TO."""

    def alter(self, database: str, table: str, action: AlterAction, columns: tuple[DataField, ...]) -> None:
        """Columns and properties; `columns` are the parsed columns of ADD and the new type of ALTER COLUMN."""

    def comment(self, database: str, table: str, text: str | None) -> None:
        """COMMENT ON TABLE."""

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
        """Store a view's text; its names were resolved once, so it works now."""

    def create_schema(self, name: str, *, if_not_exists: bool) -> None:
        """CREATE SCHEMA."""

    def drop_schema(self, name: str, *, if_exists: bool, cascade: bool) -> None:
        """DROP SCHEMA."""

    def list_schemas(self) -> tuple[str, ...]:
        """All databases."""

    def list_relations(self, database: str) -> tuple[tuple[str, str, str | None], ...]:
        """(name, table | view, comment) of a database."""
