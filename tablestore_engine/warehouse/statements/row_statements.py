"""Statements about the rows of one table: INSERT, DELETE, UPDATE, MERGE, TRUNCATE, RESTORE.

CHANGE     INSERT, UPDATE, DELETE and MERGE (option dynamic-partition-overwrite)
Steps      the table's columns → a frame whose rows are the change (spark/dml_queries.py) → one commit
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from tablestore_engine.errors import Unsupported
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.spark.dml_queries import (
    deleted_rows,
    inserted_rows,
    kept_rows,
    merged_rows,
    updated_rows,
)
from tablestore_engine.spark.fetch_rows import fetch
from tablestore_engine.spark.named_columns import InsertNames
from tablestore_engine.sql import statement as sql
from tablestore_engine.sql.as_of_clause import moment_millis
from tablestore_engine.sql.table_version import TableVersion
from tablestore_engine.store.write.write_request import WriteMode
from tablestore_engine.warehouse.statements.running_statement import RunningStatement, StatementResult
from tablestore_engine.warehouse.statements.table_actions import RowsRequest


def insert(run: RunningStatement, s: sql.Insert) -> StatementResult:
    schema = run.schema(s.name)
    names = InsertNames(run.resolver.session, s, schema)

    def rows_of(session: SparkSession, text: str) -> DataFrame:
        frame = session.sql(text)
        given = names.given(frame.columns)
        return inserted_rows(frame, schema, given=given, constants=names.constants, by_name=s.by_name)

    rows = run.frame(s.query, rows_of)
    request = RowsRequest(insert_mode(s, schema), static_partition=_static_values(run, names.constants))
    return StatementResult(report=run.actions.write_rows(*run.place(s.name), rows, request))


def insert_mode(s: sql.Insert, schema: TableSchema) -> WriteMode:
    """OVERWRITE means the partitions of the rows, unless the table says whole table (Paimon's option and default)."""
    if not s.overwrite:
        return WriteMode.UPSERT if schema.is_keyed else WriteMode.APPEND
    if any(text is not None for _, text in s.partition):
        return WriteMode.OVERWRITE_STATIC
    dynamic = schema.options.get("dynamic-partition-overwrite", "true").lower() != "false"
    return WriteMode.OVERWRITE_PARTITIONS if schema.partition_keys and dynamic else WriteMode.OVERWRITE_TABLE


def _static_values(run: RunningStatement, constants: Mapping[str, str]) -> dict[str, object]:
    """The literals of PARTITION (dt='x'), evaluated."""
    if not constants:
        return {}
    row = fetch(run.frame("select " + ", ".join(constants.values()))).rows[0]
    return dict(zip(constants, row, strict=True))


def delete(run: RunningStatement, s: sql.Delete) -> StatementResult:
    """DELETE: by key the rows that go; without a key the rows that stay, as an overwrite."""
    schema = run.schema(s.name)
    if s.all_rows:
        return StatementResult(report=run.actions.truncate(*run.place(s.name)))
    if schema.is_keyed:
        return run.rewrite(s, lambda change: deleted_rows(change, schema), schema)
    return run.rewrite(s, lambda change: kept_rows(change, schema), schema)


def update(run: RunningStatement, s: sql.Update) -> StatementResult:
    """UPDATE: by key the changed rows; without a key all rows, as an overwrite."""
    schema = run.schema(s.name)
    return run.rewrite(
        s, lambda change: updated_rows(change, schema, keep_others=not schema.is_keyed), schema
    )


def merge(run: RunningStatement, s: sql.Merge) -> StatementResult:
    """MERGE into a keyed table. Raises Unsupported TS1520 for others."""
    schema = run.schema(s.name)
    if not schema.is_keyed:
        raise Unsupported(
            "TS1520",
            f"MERGE INTO {s.name} is not offered",
            why="the table has no primary key, so a merged row could not replace the old one",
            fix="give the table a primary key, or use INSERT OVERWRITE",
        )
    return run.rewrite(s, lambda change: merged_rows(change, schema), schema)


def truncate(run: RunningStatement, s: sql.Truncate) -> StatementResult:
    """TRUNCATE: all rows deleted, in one snapshot."""
    run.schema(s.name)
    return StatementResult(report=run.actions.truncate(*run.place(s.name)))


def restore(run: RunningStatement, s: sql.Restore) -> StatementResult:
    """RESTORE: the rows of a past state, as the next snapshot."""
    run.schema(s.name)
    moment = None if s.timestamp is None else moment_millis(s.timestamp, run.resolver.session_zone())
    version = TableVersion(snapshot=s.snapshot, tag=s.tag, timestamp_ms=moment)
    return StatementResult(report=run.actions.restore(*run.place(s.name), version))
