"""What a system table is: a name, columns, and rows that are computed from the metadata of one state of a table.

CHANGE     the protocol of a system table
INVARIANT  rows come from metadata alone: no data file is opened. They are made one after the other, so that a limit
           stops the work.
INVARIANT  a moment is the clock of UTC: the time zone of the machine has no effect (runtime/moments.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from itertools import islice

import pyarrow as pa

from tablestore_engine.format.data_type import STRING, DataField, DataType
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.store.table_context import TableContext

BATCH_ROWS = 1024
Row = tuple[object, ...]
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - columns are TIMESTAMP(3) without a zone
_SPARK_TYPES = {
    "STRING": "string",
    "BIGINT": "bigint",
    "INT": "int",
    "BOOLEAN": "boolean",
    "TIMESTAMP(3)": "timestamp_ntz",
    "ARRAY": "array<string>",
}


@dataclass(frozen=True)
class SystemState:
    """One state of one table or branch; `snapshot` None: nothing was committed yet."""

    context: TableContext
    snapshot: Snapshot | None
    schema: TableSchema


@dataclass(frozen=True)
class SystemTable:
    """`columns`: name and type as Paimon writes it, followed by `?` for a column that may be NULL."""

    name: str
    columns: tuple[tuple[str, str], ...]
    rows: Callable[[SystemState], Iterator[Row]]

    @cached_property
    def schema(self) -> TableSchema:
        fields = tuple(
            DataField(number, name, _data_type(kind)) for number, (name, kind) in enumerate(self.columns)
        )
        return TableSchema(id=0, fields=fields, highest_field_id=len(fields) - 1)

    @property
    def spark_columns(self) -> tuple[tuple[str, str], ...]:
        """(name, Spark type)."""
        return tuple((name, _SPARK_TYPES[kind.rstrip("?")]) for name, kind in self.columns)

    def batches(self, state: SystemState) -> Iterator[pa.Table]:
        """The rows in order, some at a time; one table without rows when there are none."""
        schema = self.schema.arrow_schema()
        rows = self.rows(state)
        part = list(islice(rows, BATCH_ROWS))
        while True:
            columns = list(zip(*part, strict=True)) or [()] * len(schema)
            arrays = [pa.array(values, one.type) for values, one in zip(columns, schema, strict=True)]
            yield pa.Table.from_arrays(arrays, schema=schema)
            part = list(islice(rows, BATCH_ROWS))
            if not part:
                return


def moment(millis: int | None) -> datetime | None:
    """Epoch milliseconds as a value of a TIMESTAMP(3) column."""
    return None if millis is None else _EPOCH + timedelta(milliseconds=millis)


def _data_type(kind: str) -> DataType:
    name, is_nullable = kind.rstrip("?"), kind.endswith("?")
    if name == "ARRAY":
        return DataType("ARRAY", is_nullable, element=STRING)
    return parse_type(name).with_nullable(is_nullable)
