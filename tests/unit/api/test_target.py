"""Which schema a write needs: columns of a query against those of the table."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tablestore_engine.api.rows import from_arrow
from tablestore_engine.api.spec import OnSchemaChange, TableSpec
from tablestore_engine.api.target import TargetPlan, plan_target
from tablestore_engine.format.schema import TableSchema

NESTED = pa.schema(
    [("id", pa.int64()), ("who", pa.list_(pa.struct([("name", pa.string()), ("n", pa.int32())])))]
)


def plan(
    current: TableSchema | None, columns: pa.Schema, on_change: OnSchemaChange = OnSchemaChange.IGNORE
) -> TargetPlan:
    """The target of a keyed write."""
    fields = from_arrow(columns.empty_table()).fields
    return plan_target(current, fields, TableSpec(("id",)), on_change, table="d.t", new_uuid="u")


@pytest.mark.parametrize(
    "on_change", [OnSchemaChange.FAIL, OnSchemaChange.SYNC_ALL_COLUMNS, OnSchemaChange.REPLACE]
)
def test_the_same_nested_columns_are_no_change(on_change: OnSchemaChange) -> None:
    """Ids inside of ROWs belong to the table: a query with the same type neither fails nor makes a new column."""
    current = plan(None, NESTED).schema
    assert not plan(current, NESTED, on_change).is_changed
