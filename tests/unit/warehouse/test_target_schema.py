"""Which schema a write needs: columns of a query against those of the table."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tablestore_engine.errors import FixRequest, TablestoreError
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.warehouse.write.incoming_rows import from_arrow
from tablestore_engine.warehouse.write.target_schema import TargetPlan, plan_target
from tablestore_engine.warehouse.write.write_spec import OnSchemaChange, TableSpec

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


def test_a_column_without_values_has_the_type_of_the_table() -> None:
    """It changes nothing where the table knows it, and is refused where nobody knows its type."""
    current = plan(None, NESTED).schema
    nulls = pa.schema([("id", pa.int64()), ("who", pa.null())])
    assert not plan(current, nulls, OnSchemaChange.SYNC_ALL_COLUMNS).is_changed
    unknown = pa.schema([("id", pa.int64()), ("what", pa.null())])
    for table in (None, current):
        with pytest.raises(FixRequest, match="TS1026"):
            plan(table, unknown, OnSchemaChange.APPEND_NEW_COLUMNS)


@pytest.mark.parametrize("fields", ["nope", "who"])
def test_sequence_fields_are_columns_that_can_be_compared(fields: str) -> None:
    """An ordering column that is not there, or a list, is refused before a table is made of it."""
    columns = from_arrow(NESTED.empty_table()).fields
    with pytest.raises(TablestoreError, match=r"TS1087|TS1113"):
        plan_target(
            None, columns, TableSpec(("id",), options={"sequence.field": fields}), OnSchemaChange.IGNORE,
            table="d.t", new_uuid="u",
        )  # fmt: skip


def test_not_null_names_columns() -> None:
    """A misspelt constraint is refused, not forgotten."""
    columns = from_arrow(NESTED.empty_table()).fields
    spec = TableSpec(("id",), not_null=("idd",))
    with pytest.raises(FixRequest, match="TS1027"):
        plan_target(None, columns, spec, OnSchemaChange.IGNORE, table="d.t", new_uuid="u")


LAYOUT = {
    "partition.legacy-name": "false",
    "bucket-function.type": "mod",
    "bucket-key": "id",
    "sequence.field": "id",
}


@pytest.mark.parametrize("key", LAYOUT)
def test_rows_that_lie_by_a_default_keep_it(key: str) -> None:
    """Other folders or buckets would lose stored rows or store them twice: an option never set is not free."""
    current = plan(None, NESTED).schema
    columns = from_arrow(NESTED.empty_table()).fields
    spec = TableSpec(options={key: LAYOUT[key]})
    with pytest.raises(FixRequest, match="TS1012"):
        plan_target(current, columns, spec, OnSchemaChange.IGNORE, table="d.t", new_uuid="u")


def test_a_default_may_be_written_out_and_a_log_may_come_later() -> None:
    """Neither moves a row."""
    current = plan(None, NESTED).schema
    columns = from_arrow(NESTED.empty_table()).fields
    default = TableSpec(options={"bucket-function.type": "default"})
    log = TableSpec(options={"log.system": "kafka", "kafka.topic": "t"})
    for spec, is_changed in ((default, False), (log, True)):
        made = plan_target(current, columns, spec, OnSchemaChange.IGNORE, table="d.t", new_uuid="u")
        assert made.is_changed == is_changed


def test_row_groups_have_rows() -> None:
    """A size of zero is refused before a table is made with it; the Parquet writer could not work with it."""
    columns = from_arrow(NESTED.empty_table()).fields
    spec = TableSpec(("id",), options={"parquet.row-group-rows": "0"})
    with pytest.raises(FixRequest, match="TS1008"):
        plan_target(None, columns, spec, OnSchemaChange.IGNORE, table="d.t", new_uuid="u")
