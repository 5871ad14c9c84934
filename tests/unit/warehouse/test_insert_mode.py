"""What INSERT OVERWRITE means for a table."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tablestore_engine.format.schema import new_schema
from tablestore_engine.sql import statement as sql
from tablestore_engine.store.write import WriteMode
from tablestore_engine.warehouse.row_statements import insert_mode


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
