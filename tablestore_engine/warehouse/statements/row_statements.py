"""Statements about the rows of one table: INSERT, DELETE, UPDATE, MERGE, TRUNCATE, RESTORE.

Steps      the table's columns → a query whose rows are the change (spark/dml_queries.py) → one commit
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tablestore_engine.errors import Unsupported
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.spark.dml_queries import (
    delete_query,
    insert_names,
    insert_query,
    keep_query,
    merge_query,
    merge_values,
    update_query,
    update_values,
)
from tablestore_engine.spark.fetch_rows import fetch
from tablestore_engine.spark.struct_values import ValueTypes
from tablestore_engine.sql import statement as sql
from tablestore_engine.sql.as_of_clause import epoch_millis
from tablestore_engine.sql.table_version import TableVersion
from tablestore_engine.store.write.write_request import WriteMode
from tablestore_engine.warehouse.statements.running_statement import RunningStatement, StatementResult
from tablestore_engine.warehouse.statements.table_actions import RowsRequest


def insert(run: RunningStatement, s: sql.Insert) -> StatementResult:
    """INSERT INTO and INSERT OVERWRITE."""
    schema = run.schema(s.name)
    constants = {name: text for name, text in s.partition if text is not None}
    frame = run.frame(s.query)
    columns = frame.columns
    static = {name.lower() for name in constants}
    given = s.columns or tuple(n for n in schema.field_names if n.lower() not in static)
    if s.by_name:
        given = tuple(columns)
    run.check_defaults(schema, (*given, *constants))
    types = dict(zip(insert_names(columns), (one.dataType for one in frame.schema), strict=True))
    query = insert_query(
        s.query, columns, schema, given=given, constants=constants, types=ValueTypes(s.by_name, types)
    )
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


def _static_values(
    run: RunningStatement, constants: Mapping[str, str], schema: TableSchema
) -> dict[str, object]:
    """The literals of PARTITION (dt='x'), evaluated."""
    if not constants:
        return {}
    names = {name.lower(): name for name in schema.field_names}
    row = fetch(run.frame("select " + ", ".join(constants.values()))).rows[0]
    return {names.get(name.lower(), name): value for name, value in zip(constants, row, strict=True)}


def delete(run: RunningStatement, s: sql.Delete) -> StatementResult:
    """DELETE: by key the rows that go; without a key the rows that stay, as an overwrite."""
    schema = run.schema(s.name)
    if s.condition is None:
        return StatementResult(report=run.actions.truncate(*run.place(s.name)))
    if schema.is_keyed:
        return run.rewrite(s.name, delete_query(s, schema), WriteMode.UPSERT)
    return run.rewrite(s.name, keep_query(s, schema), WriteMode.OVERWRITE_TABLE)


def update(run: RunningStatement, s: sql.Update) -> StatementResult:
    """UPDATE: by key the changed rows; without a key all rows, as an overwrite."""
    schema = run.schema(s.name)
    mode = WriteMode.UPSERT if schema.is_keyed else WriteMode.OVERWRITE_TABLE
    types = _value_types(run, *update_values(s, schema))
    return run.rewrite(s.name, update_query(s, schema, types, keep_others=not schema.is_keyed), mode)


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
    run.check_defaults(schema, ())
    source_columns = run.frame(f"select * from {s.source}").columns
    types = _value_types(run, *merge_values(s, schema))
    return run.rewrite(s.name, merge_query(s, schema, source_columns, types), WriteMode.UPSERT)


def _value_types(run: RunningStatement, texts: Sequence[str], relation: str) -> ValueTypes:
    """What Spark finds as the types of expressions; without any it is not asked."""
    if not texts:
        return ValueTypes(by_name=True)
    frame = run.frame(f"select {', '.join(f'({text})' for text in texts)} from {relation}")
    return ValueTypes(
        by_name=True, types=dict(zip(texts, (one.dataType for one in frame.schema), strict=True))
    )


def truncate(run: RunningStatement, s: sql.Truncate) -> StatementResult:
    """TRUNCATE: all rows deleted, in one snapshot."""
    run.schema(s.name)
    return StatementResult(report=run.actions.truncate(*run.place(s.name)))


def restore(run: RunningStatement, s: sql.Restore) -> StatementResult:
    """RESTORE: the rows of a past state, as the next snapshot."""
    run.schema(s.name)
    moment = None if s.timestamp is None else epoch_millis(s.timestamp, run.resolver.session_zone())
    version = TableVersion(snapshot=s.snapshot, tag=s.tag, timestamp_ms=moment)
    return StatementResult(report=run.actions.restore(*run.place(s.name), version))
