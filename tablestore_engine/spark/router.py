"""SQL text -> what happens: queries go to Spark with names resolved, changes of tables to `TableActions`.

Names      Router          run(): one statement of text, executed now
           needs_session   whether a statement must wait for Spark: what only drops names works without
           StatementResult   columns and rows, or the report of a change
Steps      parse → match the statement → analyse its query through the resolver → one call of the actions
INVARIANT  nothing but queries and session statements reaches Spark, so Spark's catalog never holds user data.
INVARIANT  UPDATE, DELETE and MERGE hand over the state they were computed from; a table that moved on refuses them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import types as st

from tablestore_engine.errors import FixRequest, NotFound, Unsupported
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.spark import spark_errors
from tablestore_engine.spark import statement as sql
from tablestore_engine.spark.catalog_answers import describe, show
from tablestore_engine.spark.fetch import Fetched, fetch
from tablestore_engine.spark.parser import not_offered, parse
from tablestore_engine.spark.resolver import DEFAULT_DATABASE, Resolver
from tablestore_engine.spark.row_changes import (
    KIND_COLUMN,
    delete_query,
    insert_query,
    keep_query,
    merge_query,
    update_query,
)
from tablestore_engine.spark.source import BRANCH, NO_OVERRIDES, Overrides
from tablestore_engine.spark.table_actions import RowsRequest, TableActions, TableWish
from tablestore_engine.spark.types import from_spark_type
from tablestore_engine.store.write import WriteMode

_PROVIDERS = (None, "tablestore")


_NOTHING = Fetched()
_ROW_CHANGES = (sql.Insert, sql.Delete, sql.Update, sql.Merge, sql.Truncate)
_WITHOUT_SESSION = (sql.Drop, sql.DropSchema)


@dataclass(frozen=True)
class StatementResult:
    """`fetched` has columns for queries; `report` is what the actions returned."""

    fetched: Fetched = _NOTHING
    report: object = None


def needs_session(text: str) -> bool:
    """False for what frees room: it must work where Spark cannot start, on a full disk. Raises FixRequest TS1501."""
    return not isinstance(parse(text), _WITHOUT_SESSION)


class Router:
    """Executes statements of one warehouse; unqualified names belong to Spark's current database, `default`.

    `resolver` may be None while there is no session, for statements that need none.
    """

    def __init__(self, resolver: Resolver | None, actions: TableActions) -> None:
        self._resolver = resolver
        self._actions = actions

    def run(
        self, text: str, overrides: Overrides = NO_OVERRIDES, *, limit: int | None = None
    ) -> StatementResult:
        """Execute one statement; raises TablestoreError."""
        statement = parse(text)
        if isinstance(statement, _ROW_CHANGES):
            _refuse_staged(statement.name, overrides)
        runner = _RUNNERS[type(statement)]
        return runner(_Run(self._resolver, self._actions, overrides, limit), statement)


@dataclass(frozen=True)
class _Run:
    """One execution."""

    session: Resolver | None
    actions: TableActions
    overrides: Overrides
    limit: int | None

    @property
    def resolver(self) -> Resolver:
        assert self.session is not None, "the statement needs Spark: see needs_session"
        return self.session

    def frame(self, text: str) -> DataFrame:
        return self.resolver.query(text, self.overrides)

    def place(self, name: sql.TableName) -> tuple[str, str]:
        return name.database or DEFAULT_DATABASE, name.table

    def schema(self, name: sql.TableName) -> TableSchema:
        database, table = self.place(name)
        schema = self.actions.find_schema(database, table)
        if schema is None:
            raise NotFound(
                "TS1522",
                f"{database}.{table} is no table",
                why="rows and columns of tables can be changed; this name is missing or a view",
                fix="check the spelling and the schema",
            )
        return schema

    def check_defaults(self, schema: TableSchema, given: Iterable[str]) -> None:
        """The stored defaults that this statement will use."""
        named = {name.lower() for name in given}
        for one in schema.fields:
            if one.default_value and one.name.lower() not in named:
                self.resolver.stored_sql.check_default(one.name, one.default_value)

    def fields(self, columns: tuple[sql.ColumnDefinition, ...]) -> tuple[DataField, ...]:
        return tuple(
            DataField(0, c.name, self._type(c), description=c.comment, default_value=c.default)
            for c in columns
        )

    def _type(self, column: sql.ColumnDefinition) -> Any:  # noqa: ANN401 - DataType; parsed by Spark
        try:
            parsed = st.DataType.fromDDL(column.type_text)
        except PySparkException as error:
            raise spark_errors.translate(error) from None
        return from_spark_type(parsed, column.nullable, column=column.name)

    def write(self, name: sql.TableName, query: str, request: RowsRequest) -> StatementResult:
        frame, versions = self.resolver.pinned_query(query, self.overrides)
        if request.base_version is not None:
            database, table = self.place(name)
            request = replace(request, base_version=versions.get((database.lower(), table.lower())))
        return StatementResult(report=self.actions.write_rows(*self.place(name), frame, request))


def _refuse_staged(name: sql.TableName, overrides: Overrides) -> None:
    """A statement that reads a table's staged rows must not write the published ones."""
    selector = overrides.selector(name.database or DEFAULT_DATABASE, name.table)
    if selector is not None and selector.kind == BRANCH:
        raise FixRequest(
            "TS1528",
            f"the rows of {name} cannot be changed while they wait for their tests",
            why=f"they are staged in {selector.value}; the statement would change what others read",
            fix="do it in the model's query, or set publish='always' on the model",
        )


_FROM_TABLE = "its state at analysis"  # replaced by the version in _Run.write


def _create_table(run: _Run, s: sql.CreateTable) -> StatementResult:
    if (s.provider or "tablestore").lower() != "tablestore":
        raise not_offered(f"CREATE TABLE … USING {s.provider}")
    wish = TableWish(
        columns=run.fields(s.columns),
        primary_key=s.primary_key or _names_of(s.properties, "primary-key"),
        partition_by=s.partition_by,
        properties={key: value for key, value in s.properties if key != "primary-key"},
        comment=s.comment,
        checks=dict(s.checks),
    )
    place = run.place(s.name)
    if s.query is None:
        if not s.columns:
            raise FixRequest(
                "TS1523",
                f"table {s.name} has no columns",
                why="CREATE TABLE needs columns or AS query",
                fix="write CREATE TABLE t (a INT, …) or CREATE TABLE t AS SELECT …",
            )
        report = run.actions.create_table(*place, wish, if_not_exists=s.if_not_exists, replace=s.replace)
        return StatementResult(report=report)
    if s.if_not_exists and run.actions.find_schema(*place) is not None:
        return StatementResult()
    frame = run.frame(s.query)
    report = run.actions.create_table_as(
        *place, wish, frame, if_not_exists=s.if_not_exists, replace=s.replace
    )
    return StatementResult(report=report)


def _names_of(properties: sql.Pairs, key: str) -> tuple[str, ...]:
    """Paimon's property form of a key: 'primary-key'='a,b'."""
    text = dict(properties).get(key, "")
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _create_view(run: _Run, s: sql.CreateView) -> StatementResult:
    text = s.query
    names = [name for name, _ in s.columns]
    frame = run.frame(text)  # refuses a view that cannot be read
    if names:
        if len(names) != len(frame.columns):
            raise FixRequest(
                "TS1524",
                f"view {s.name} names {len(names)} columns",
                why=f"its query gives {len(frame.columns)}",
                fix="name each column once",
            )
        listed = ", ".join(f"`{name}`" for name in names)
        text = f"select * from ({text}) as v({listed})"
    run.actions.create_view(
        *run.place(s.name),
        text,
        replace=s.replace,
        if_not_exists=s.if_not_exists,
        comment=s.comment,
        column_comments={name: comment for name, comment in s.columns if comment},
    )
    return StatementResult()


def _drop(run: _Run, s: sql.Drop) -> StatementResult:
    run.actions.drop(s.kind, *run.place(s.name), if_exists=s.if_exists)
    if run.session is not None:
        run.session.forget(*run.place(s.name))
    return StatementResult()


def _insert(run: _Run, s: sql.Insert) -> StatementResult:
    schema = run.schema(s.name)
    constants = {name: text for name, text in s.partition if text is not None}
    columns = run.frame(s.query).columns
    static = {name.lower() for name in constants}
    given = s.columns or tuple(n for n in schema.field_names if n.lower() not in static)
    if s.by_name:
        given = tuple(columns)
    run.check_defaults(schema, (*given, *constants))
    query = insert_query(s.query, columns, schema, given=given, constants=constants)
    request = RowsRequest(insert_mode(s, schema), static_partition=_static_values(run, constants, schema))
    return run.write(s.name, query, request)


def insert_mode(s: sql.Insert, schema: TableSchema) -> WriteMode:
    """OVERWRITE means the partitions of the rows, unless the table says whole table (Paimon's option and default)."""
    if not s.overwrite:
        return WriteMode.UPSERT if schema.is_keyed else WriteMode.APPEND
    if any(text is not None for _, text in s.partition):
        return WriteMode.OVERWRITE_STATIC
    dynamic = schema.options.get("dynamic-partition-overwrite", "true").lower() != "false"
    return WriteMode.OVERWRITE_PARTITIONS if schema.partition_keys and dynamic else WriteMode.OVERWRITE_TABLE


def _static_values(run: _Run, constants: Mapping[str, str], schema: TableSchema) -> dict[str, object]:
    """The literals of PARTITION (dt='x'), evaluated."""
    if not constants:
        return {}
    names = {name.lower(): name for name in schema.field_names}
    row = fetch(run.frame("select " + ", ".join(constants.values()))).rows[0]
    return {names.get(name.lower(), name): value for name, value in zip(constants, row, strict=True)}


def _delete(run: _Run, s: sql.Delete) -> StatementResult:
    schema = run.schema(s.name)
    if s.condition is None:
        return StatementResult(report=run.actions.truncate(*run.place(s.name)))
    if schema.is_keyed:
        request = RowsRequest(WriteMode.UPSERT, KIND_COLUMN, base_version=_FROM_TABLE)
        return run.write(s.name, delete_query(s, schema), request)
    request = RowsRequest(WriteMode.OVERWRITE_TABLE, base_version=_FROM_TABLE)
    return run.write(s.name, keep_query(s, schema), request)


def _update(run: _Run, s: sql.Update) -> StatementResult:
    schema = run.schema(s.name)
    if schema.is_keyed:
        request = RowsRequest(WriteMode.UPSERT, KIND_COLUMN, base_version=_FROM_TABLE)
    else:
        request = RowsRequest(WriteMode.OVERWRITE_TABLE, base_version=_FROM_TABLE)
    return run.write(s.name, update_query(s, schema, keep_others=not schema.is_keyed), request)


def _merge(run: _Run, s: sql.Merge) -> StatementResult:
    schema = run.schema(s.name)
    if not schema.is_keyed:
        raise Unsupported(
            "TS1520",
            f"MERGE INTO {s.name} is not offered",
            why="the table has no primary key, so a merged row could not replace the old one",
            fix="give the table a primary key, or use INSERT OVERWRITE",
        )
    run.check_defaults(schema, ())
    source_columns = run.frame(f"select * from {s.source}").columns
    request = RowsRequest(WriteMode.UPSERT, KIND_COLUMN, base_version=_FROM_TABLE)
    return run.write(s.name, merge_query(s, schema, source_columns), request)


def _truncate(run: _Run, s: sql.Truncate) -> StatementResult:
    run.schema(s.name)
    return StatementResult(report=run.actions.truncate(*run.place(s.name)))


def _alter(run: _Run, s: sql.Alter) -> StatementResult:
    place = run.place(s.name)
    if isinstance(s.action, sql.RenameTo):
        run.actions.rename(s.kind, *place, s.action.new_name.database or place[0], s.action.new_name.table)
        run.resolver.forget(*place)
        return StatementResult()
    if s.kind == "view":
        raise not_offered("ALTER VIEW other than RENAME TO")
    columns: tuple[DataField, ...] = ()
    if isinstance(s.action, sql.AddColumns):
        columns = run.fields(s.action.columns)
    elif isinstance(s.action, sql.AlterColumn) and s.action.type_text is not None:
        columns = run.fields((sql.ColumnDefinition(s.action.column, s.action.type_text),))
    run.actions.alter(*place, s.action, columns)
    return StatementResult()


def _comment_on(run: _Run, s: sql.CommentOn) -> StatementResult:
    if s.kind != "table":
        raise not_offered("COMMENT ON SCHEMA")
    run.actions.comment(*run.place(s.name), s.comment)
    return StatementResult()


def _create_schema(run: _Run, s: sql.CreateSchema) -> StatementResult:
    run.actions.create_schema(s.name, if_not_exists=s.if_not_exists)
    return StatementResult()


def _drop_schema(run: _Run, s: sql.DropSchema) -> StatementResult:
    run.actions.drop_schema(s.name, if_exists=s.if_exists, cascade=s.cascade)
    return StatementResult()


def _show(run: _Run, s: sql.Show) -> StatementResult:
    return StatementResult(show(run.actions, s, DEFAULT_DATABASE))


def _describe(run: _Run, s: sql.Describe) -> StatementResult:
    schema = run.actions.find_schema(*run.place(s.name))
    if schema is not None:
        return StatementResult(describe(schema, run.place(s.name), extended=s.extended))
    return StatementResult(
        fetch(run.frame(f"describe table {'.'.join(f'`{p}`' for p in run.place(s.name))}"))
    )


def _query(run: _Run, s: sql.Query | sql.SessionSql) -> StatementResult:
    return StatementResult(fetch(run.frame(s.text), run.limit))


def _session(run: _Run, s: sql.SessionSql) -> StatementResult:
    return StatementResult(fetch(run.frame(s.text)))


_RUNNERS: dict[type, Callable[[_Run, Any], StatementResult]] = {
    sql.CreateTable: _create_table,
    sql.CreateView: _create_view,
    sql.Drop: _drop,
    sql.Insert: _insert,
    sql.Delete: _delete,
    sql.Update: _update,
    sql.Merge: _merge,
    sql.Truncate: _truncate,
    sql.Alter: _alter,
    sql.CommentOn: _comment_on,
    sql.CreateSchema: _create_schema,
    sql.DropSchema: _drop_schema,
    sql.Show: _show,
    sql.Describe: _describe,
    sql.Query: _query,
    sql.SessionSql: _session,
}
