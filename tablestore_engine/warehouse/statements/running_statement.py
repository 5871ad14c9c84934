"""One statement that runs: what it reads and changes the warehouse with.

INVARIANT  UPDATE, DELETE and MERGE hand over the state they were computed from; a table that moved on refuses them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from tablestore_engine.catalog.near_names import TABLES
from tablestore_engine.catalog.resolved_names import Overrides, ResolvedTable
from tablestore_engine.errors import NotFound
from tablestore_engine.format.column_default import literal_default
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.spark.fetch_rows import Fetched
from tablestore_engine.spark.lazy_resolver import LazyResolver
from tablestore_engine.spark.missing_names import DEFAULT_DATABASE
from tablestore_engine.spark.parsed_changes import ParsedChange, parse_change
from tablestore_engine.spark.resolver import Resolver
from tablestore_engine.spark.spark_internals import analyzed_sql
from tablestore_engine.spark.spark_types import parse_ddl
from tablestore_engine.spark.system_relations import spark_name
from tablestore_engine.sql import statement as sql
from tablestore_engine.sql.system_names import find_system_name
from tablestore_engine.store.rows.row_filter import SameKeys
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.store.write.write_request import WriteMode
from tablestore_engine.warehouse.statements.table_actions import RowsRequest, TableActions
from tablestore_engine.warehouse.write_report import WriteReport

NO_ROWS = Fetched()


@dataclass(frozen=True)
class StatementResult:
    """`fetched` has columns for queries; `report` says what a change did; `notice` what of it has no effect here."""

    fetched: Fetched = NO_ROWS
    report: WriteReport | None = None
    notice: str | None = None


@dataclass(frozen=True)
class RunningStatement:
    """One execution; `overrides` say what plain names mean in it, `limit` is for the rows of a query."""

    spark: LazyResolver
    actions: TableActions
    overrides: Overrides
    limit: int | None

    @property
    def resolver(self) -> Resolver:
        """Names for SQL; starts the session at first use."""
        return self.spark.get()

    def frame(self, text: str, make: Callable[[SparkSession, str], DataFrame] = analyzed_sql) -> DataFrame:
        """A query, or what `make` makes of its text, analysed."""
        return self.resolver.pinned_query(text, self.overrides, make=make, by_key=True)[0]

    def place(self, name: sql.TableName) -> tuple[str, str]:
        """Database and table of a name; one without a database belongs to `default`."""
        return name.database or DEFAULT_DATABASE, name.table

    def schema(self, name: sql.TableName) -> TableSchema:
        """Of a table whose rows or columns are changed. Raises NotFound TS1522."""
        database, table = self.place(name)
        schema = self.actions.find_schema(database, table)
        if schema is None:
            raise NotFound(
                "TS1522",
                f"{database}.{table} is no table",
                why="rows and columns of tables can be changed; this name is missing or a view",
                fix=f"check the spelling and the schema{self.actions.near_hint(database, table, (TABLES,))}",
            )
        return schema

    def fields(self, columns: tuple[sql.ColumnDefinition, ...]) -> tuple[DataField, ...]:
        """Columns as they are defined in the statement. Raises FixRequest TS1505, TS1509 for their types, TS1153."""
        return tuple(
            DataField(
                0,
                c.name,
                parse_ddl(c.type_text, c.nullable, column=c.name),
                description=c.comment,
                default_value=None if c.default is None else literal_default(c.default, c.name),
            )
            for c in columns
        )

    def rewrite(
        self,
        s: sql.Update | sql.Delete | sql.Merge,
        rows_of: Callable[[ParsedChange], DataFrame],
        schema: TableSchema,
    ) -> StatementResult:
        """Rows that are computed from the table's own: they are right on the state that the statement has read.

        With a key they take the place of their rows; a merge engine that would merge them into these is not asked.
        """
        database, table = self.place(s.name)
        target = s.name
        if find_system_name(table) is not None:  # a branch, which has another name in Spark
            target = sql.TableName(*spark_name((database, table), None))
        frame, meanings = self.resolver.pinned_query(
            s.text,
            self.overrides,
            make=lambda session, text: rows_of(parse_change(session, text, target)),
        )
        base = meanings.get(((target.database or database).lower(), target.table.lower()))
        start = base.snapshot if isinstance(base, ResolvedTable) else None
        mode = WriteMode.UPSERT if schema.is_keyed else WriteMode.OVERWRITE_TABLE
        request = RowsRequest(mode, computed_from=start)
        if schema.is_keyed and not TableTraits(schema).merge_engine.newest_wins:
            request = RowsRequest(WriteMode.REPLACE, SameKeys(schema.primary_keys), computed_from=start)
        return StatementResult(report=self.actions.write_rows(database, table, frame, request))
