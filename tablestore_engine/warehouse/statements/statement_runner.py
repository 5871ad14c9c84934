"""A parsed statement -> what happens: queries go to Spark with names resolved, changes of tables become actions.

CHANGE     which module runs a SQL statement
Steps      match the statement → analyse its query through the resolver → one call of the actions
INVARIANT  nothing but queries and session statements reaches Spark, so Spark's catalog never holds user data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tablestore_engine.catalog.resolved_names import NO_OVERRIDES, Overrides
from tablestore_engine.errors import FixRequest
from tablestore_engine.spark.fetch_rows import fetch
from tablestore_engine.spark.lazy_resolver import LazyResolver
from tablestore_engine.spark.missing_names import DEFAULT_DATABASE
from tablestore_engine.sql import statement as sql
from tablestore_engine.warehouse.statements import (
    function_statements,
    maintenance_statements,
    row_statements,
    table_statements,
)
from tablestore_engine.warehouse.statements.running_statement import RunningStatement, StatementResult
from tablestore_engine.warehouse.statements.show_and_describe import describe, describe_history, show
from tablestore_engine.warehouse.statements.table_actions import TableActions

_ROW_CHANGES = (sql.Insert, sql.Delete, sql.Update, sql.Merge, sql.Truncate, sql.Restore)
_WITHOUT_SESSION = (sql.CreateSchema, sql.Drop, sql.DropFunction, sql.DropSchema, sql.NoEffect)


def needs_session(statement: sql.Statement) -> bool:
    """False for what frees room: it must work where Spark cannot start, on a full disk. Nor for what dbt does before a
    run: while Spark starts, dbt does not hear Ctrl-C there.
    """
    return not isinstance(statement, _WITHOUT_SESSION)


class StatementRunner:
    """Executes statements of one warehouse; unqualified names belong to Spark's current database, `default`."""

    def __init__(self, spark: LazyResolver, actions: TableActions) -> None:
        self._spark = spark
        self._actions = actions

    def run(
        self, statement: sql.Statement, overrides: Overrides = NO_OVERRIDES, *, limit: int | None = None
    ) -> StatementResult:
        """Execute one statement; raises TablestoreError."""
        if isinstance(statement, _ROW_CHANGES):
            _refuse_staged(statement.name, overrides)
        runner = _RUNNERS[type(statement)]
        return runner(RunningStatement(self._spark, self._actions, overrides, limit), statement)


def _refuse_staged(name: sql.TableName, overrides: Overrides) -> None:
    """A statement that reads a table's staged rows must not write the published ones."""
    version = overrides.version(name.database or DEFAULT_DATABASE, name.table)
    if version is not None and version.branch is not None:
        raise FixRequest(
            "TS1528",
            f"the rows of {name} cannot be changed while they wait for their tests",
            why=f"they are staged in {version.branch}; the statement would change what others read",
            fix="do it in the model's query, or set publish='always' on the model",
        )


def _show(run: RunningStatement, s: sql.Show) -> StatementResult:
    return StatementResult(show(run.actions, s, DEFAULT_DATABASE))


def _describe(run: RunningStatement, s: sql.Describe) -> StatementResult:
    schema = run.actions.find_schema(*run.place(s.name))
    if schema is not None:
        return StatementResult(describe(schema, run.place(s.name), extended=s.extended))
    return StatementResult(
        fetch(run.frame(f"describe table {'.'.join(f'`{p}`' for p in run.place(s.name))}"))
    )


def _describe_history(run: RunningStatement, s: sql.DescribeHistory) -> StatementResult:
    return StatementResult(describe_history(run.actions.history(*run.place(s.name), s.limit)))


def _query(run: RunningStatement, s: sql.Query) -> StatementResult:
    return StatementResult(fetch(run.frame(s.text), run.limit))


def _session(run: RunningStatement, s: sql.SessionSql) -> StatementResult:
    return StatementResult(fetch(run.frame(s.text)))


_RUNNERS: dict[type, Callable[[RunningStatement, Any], StatementResult]] = {
    sql.CreateTable: table_statements.create_table,
    sql.CreateView: table_statements.create_view,
    sql.CreateFunction: function_statements.create_function,
    sql.DropFunction: function_statements.drop_function,
    sql.DescribeFunction: function_statements.describe_function,
    sql.Drop: table_statements.drop,
    sql.Insert: row_statements.insert,
    sql.Delete: row_statements.delete,
    sql.Update: row_statements.update,
    sql.Merge: row_statements.merge,
    sql.Truncate: row_statements.truncate,
    sql.Restore: row_statements.restore,
    sql.Alter: table_statements.alter,
    sql.CommentOn: table_statements.comment_on,
    sql.CreateSchema: table_statements.create_schema,
    sql.DropSchema: table_statements.drop_schema,
    sql.Show: _show,
    sql.Describe: _describe,
    sql.DescribeHistory: _describe_history,
    sql.Optimize: maintenance_statements.optimize,
    sql.Vacuum: maintenance_statements.vacuum,
    sql.Analyze: maintenance_statements.analyze,
    sql.NoEffect: maintenance_statements.no_effect,
    sql.Query: _query,
    sql.SessionSql: _session,
}
