"""What statements about rows ask for: which rows are replaced, and on which state of the table they are right."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa
import pytest
from pyspark.sql import types as st

from tablestore_engine.catalog.resolved_names import NO_OVERRIDES, ResolvedTable, SnapshotRef
from tablestore_engine.errors import NotFound
from tablestore_engine.format.schema import TableSchema, new_schema
from tablestore_engine.sql import statement as sql
from tablestore_engine.store.write.write_request import WriteMode
from tablestore_engine.warehouse.statements import row_statements
from tablestore_engine.warehouse.statements.row_statements import insert_mode
from tablestore_engine.warehouse.statements.running_statement import RunningStatement
from tablestore_engine.warehouse.statements.table_actions import RowsRequest


@pytest.mark.parametrize(
    ("dynamic", "mode"),
    [
        (None, WriteMode.OVERWRITE_PARTITIONS),
        ("true", WriteMode.OVERWRITE_PARTITIONS),
        ("false", WriteMode.OVERWRITE_TABLE),
    ],
)
def test_overwrite_without_partition_clause(dynamic: str | None, mode: WriteMode) -> None:
    """dynamic-partition-overwrite: the partitions of the rows by default, the whole table when it is false."""
    options = {} if dynamic is None else {"dynamic-partition-overwrite": dynamic}
    schema = new_schema(
        pa.schema([("day", pa.string()), ("n", pa.int64())]), partition_keys=["day"], options=options
    )
    statement = sql.Insert(sql.TableName("d", "t"), "select 1", overwrite=True)
    assert insert_mode(statement, schema) is mode


NAME = sql.TableName("D", "T")  # as it is written; what it means is kept in lower case
STATE = SnapshotRef(7, "uuid")


class OneTable:
    """The table d.t as session, resolver and actions: each query has read snapshot 7, each request is kept."""

    stored_sql = SimpleNamespace(check_default=lambda *_: None)
    session = MagicMock()  # its parser finds no fault

    def __init__(self, schema: TableSchema) -> None:
        self.schema = schema
        self.requests: list[RowsRequest] = []

    def get(self) -> OneTable:
        """The resolver."""
        return self

    def query(self, *_: object) -> Any:
        """A frame of which only the columns are looked at."""
        types = [SimpleNamespace(dataType=st.LongType()) for _ in "in"]
        return SimpleNamespace(columns=["id", "n"], schema=types)

    def pinned_query(self, *_: object, make: object = None, by_key: bool = False) -> Any:
        """What Spark analysed, and what its names meant."""
        read = ResolvedTable("v", "s7", self.schema, lambda: None, STATE)  # type: ignore[arg-type, return-value]
        return self.query(), {("d", "t"): read, ("d", "other"): None}

    def find_schema(self, *_: object) -> TableSchema:
        """Of the one table."""
        return self.schema

    def write_rows(self, _database: str, _table: str, _frame: object, request: RowsRequest) -> None:
        """Kept."""
        self.requests.append(request)


def requested(schema: TableSchema, run: Any, statement: object) -> RowsRequest:
    """What the statement asks for."""
    table = OneTable(schema)
    run(RunningStatement(table, table, NO_OVERRIDES, None), statement)  # type: ignore[arg-type]
    (request,) = table.requests
    return request


@pytest.mark.parametrize(("keys", "mode"), [(["id"], WriteMode.UPSERT), ([], WriteMode.OVERWRITE_TABLE)])
def test_rows_computed_from_the_table_are_right_on_the_state_they_were_read_from(
    keys: list[str], mode: WriteMode
) -> None:
    """UPDATE and DELETE hand over that very snapshot, whatever the case of the name; by key or as an overwrite."""
    schema = new_schema(pa.schema([("id", pa.int64()), ("n", pa.int64())]), primary_keys=keys)
    delete, update = sql.Delete(NAME, "delete …"), sql.Update(NAME, "update …")
    for run, statement in ((row_statements.delete, delete), (row_statements.update, update)):
        assert requested(schema, run, statement) == RowsRequest(mode, computed_from=STATE)


def test_inserted_rows_are_right_on_any_state() -> None:
    """They do not depend on what the table holds."""
    schema = new_schema(pa.schema([("id", pa.int64()), ("n", pa.int64())]))
    asked = requested(schema, row_statements.insert, sql.Insert(NAME, "select 1, 2"))
    assert asked == RowsRequest(WriteMode.APPEND)


def test_statement_on_a_missing_table_names_the_nearest() -> None:
    """TS1522 asks for tables only: rows of a view cannot be changed."""
    asked: list[object] = []

    def near_hint(*names: object) -> str:
        asked.append(names)
        return "; did you mean d.t?"

    actions: Any = SimpleNamespace(find_schema=lambda *_: None, near_hint=near_hint)
    run = RunningStatement(actions, actions, NO_OVERRIDES, None)
    with pytest.raises(NotFound, match="TS1522") as caught:
        run.schema(sql.TableName("d", "tt"))
    assert caught.value.fix.endswith("; did you mean d.t?")
    assert asked == [("d", "tt", ("table",))]
