"""Statements about tables, views and schemas: CREATE, DROP, ALTER, COMMENT.

CHANGE     CREATE TABLE and other statements on tables
INVARIANT  a statement is checked, and its query analysed, before the first action.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.resolved_names import ResolvedView
from tablestore_engine.errors import FixRequest
from tablestore_engine.format.data_type import DataField
from tablestore_engine.spark.spark_types import fields_from_spark
from tablestore_engine.spark.type_ddl import shown_type
from tablestore_engine.sql import statement as sql
from tablestore_engine.sql.parser import not_offered
from tablestore_engine.warehouse.statements.running_statement import RunningStatement, StatementResult
from tablestore_engine.warehouse.statements.table_actions import TableWish


def create_table(run: RunningStatement, s: sql.CreateTable) -> StatementResult:
    """CREATE TABLE, empty or AS query. Raises FixRequest TS1523 without columns."""
    if (s.provider or "tablestore").lower() != "tablestore":
        raise not_offered(f"CREATE TABLE … USING {s.provider}")
    property_key = _names_of(s.properties, "primary-key")
    if s.primary_key and property_key and s.primary_key != property_key:
        raise FixRequest(
            "TS2124",
            f"CREATE TABLE {s.name} has two primary keys",
            why=f"PRIMARY KEY ({', '.join(s.primary_key)}) and the property primary-key={','.join(property_key)}",
            fix="name the key once",
        )
    wish = TableWish(
        columns=run.fields(s.columns),
        primary_key=s.primary_key or property_key,
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
    _check_columns(s, wish.columns, frame)
    report = run.actions.create_table_as(
        *place, wish, frame, if_not_exists=s.if_not_exists, replace=s.replace
    )
    return StatementResult(report=report)


def _check_columns(s: sql.CreateTable, columns: tuple[DataField, ...], frame: DataFrame) -> None:
    """A list of columns besides AS says what the query gives, and NOT NULL. Raises FixRequest TS2125."""
    listed = [(one.name.lower(), shown_type(one.type)) for one in columns]
    given = [(one.name.lower(), shown_type(one.type)) for one in fields_from_spark(frame.schema)]
    extras = [one.name for one in s.columns if one.default is not None or one.comment is not None]
    if columns and (listed != given or extras):
        raise FixRequest(
            "TS2125",
            f"the columns of CREATE TABLE {s.name} AS are not those of its query",
            why=f"the query gives {', '.join(f'{name} {type_}' for name, type_ in given)}"
            + (f"; {', '.join(extras)} has a DEFAULT or COMMENT, which AS does not take" if extras else ""),
            fix="name and cast the columns in the query, or CREATE TABLE first and then INSERT",
        )


def _names_of(properties: sql.Pairs, key: str) -> tuple[str, ...]:
    """Paimon's property form of a key: 'primary-key'='a,b'."""
    text = dict(properties).get(key, "")
    return tuple(part.strip() for part in text.split(",") if part.strip())


def create_view(run: RunningStatement, s: sql.CreateView) -> StatementResult:
    """CREATE VIEW: Spark creates it in the session first, then its text is kept. Raises FixRequest TS1524, TS2141."""
    text = s.query
    names = [name for name, _ in s.columns]
    if names:
        frame = run.frame(text)
        if len(names) != len(frame.columns):
            raise FixRequest(
                "TS1524",
                f"view {s.name} names {len(names)} columns",
                why=f"its query gives {len(frame.columns)}",
                fix="name each column once",
            )
        listed = ", ".join(f"`{name}`" for name in names)
        text = f"select * from ({text}) as v({listed})"
    run.resolver.check_new(run.place(s.name), ResolvedView(text, s.comment, is_own=True), run.overrides)
    run.actions.create_view(
        *run.place(s.name),
        text,
        replace=s.replace,
        if_not_exists=s.if_not_exists,
        comment=s.comment,
        column_comments={name: comment for name, comment in s.columns if comment},
    )
    return StatementResult()


def drop(run: RunningStatement, s: sql.Drop) -> StatementResult:
    run.actions.drop(s.kind, *run.place(s.name), if_exists=s.if_exists)
    run.spark.forget(Identifier(*run.place(s.name)))
    return StatementResult()


def alter(run: RunningStatement, s: sql.Alter) -> StatementResult:
    """ALTER TABLE, or ALTER VIEW … RENAME TO."""
    place = run.place(s.name)
    if isinstance(s.action, sql.RenameTo):
        run.actions.rename(s.kind, *place, s.action.new_name.database or place[0], s.action.new_name.table)
        run.resolver.forget(*place)
        return StatementResult()
    if s.kind == "view":
        raise not_offered("ALTER VIEW other than RENAME TO")
    if isinstance(s.action, sql.DropPartitions):
        version = run.overrides.version(*place)
        if version is not None and version.branch is not None:
            raise not_offered("DROP PARTITION of a table whose new rows wait for their tests")
        run.actions.drop_partitions(*place, s.action.where, if_exists=s.action.if_exists)
        return StatementResult()
    columns: tuple[DataField, ...] = ()
    if isinstance(s.action, sql.AddColumns):
        columns = run.fields(s.action.columns)
    elif isinstance(s.action, sql.AlterColumn) and s.action.type_text is not None:
        columns = run.fields((sql.ColumnDefinition(s.action.column, s.action.type_text),))
    run.actions.alter(*place, s.action, columns)
    return StatementResult()


def comment_on(run: RunningStatement, s: sql.CommentOn) -> StatementResult:
    if s.kind != "table":
        raise not_offered("COMMENT ON SCHEMA")
    run.actions.comment(*run.place(s.name), s.comment)
    return StatementResult()


def create_schema(run: RunningStatement, s: sql.CreateSchema) -> StatementResult:
    run.actions.create_schema(s.name, if_not_exists=s.if_not_exists)
    return StatementResult()


def drop_schema(run: RunningStatement, s: sql.DropSchema) -> StatementResult:
    run.actions.drop_schema(s.name, if_exists=s.if_exists, cascade=s.cascade)
    return StatementResult()
