"""The columns that Spark wants of a table, and rows in exactly the Arrow types that it takes.

Types      as spark/spark_types.py: NTZ timestamps in microseconds, texts and bytes without lengths. A column of
           nanoseconds is refused, since Spark would cut them off.
INVARIANT  a type is never changed in silence: another type than the table's is refused (TS1445).
INVARIANT  each batch has the same schema; Spark looks at the first one only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.row_kind import short_strings
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.spark.spark_types import arrow_type, as_spark_has_it, spark_type
from tablestore_engine.stream.change_source import ROW_KIND, SNAPSHOT_ID

BATCH_ROWS = (
    65_536  # of one message to the JVM: a step of half a million wide rows would not fit beside others
)
_EXTRA: dict[str, DataType] = {ROW_KIND: StringType(), SNAPSHOT_ID: LongType()}


@dataclass(frozen=True)
class AskedColumns:
    """`wanted`: what Spark asked for, extra columns too; `fields`: the table's among them, each once."""

    wanted: StructType
    fields: tuple[DataField, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """As Spark spells them."""
        return tuple(self.wanted.names)

    @property
    def shows_kinds(self) -> bool:
        return ROW_KIND in self.names and self.find_field(ROW_KIND) is None

    def find_field(self, name: str) -> DataField | None:
        """The table's column of that name; None for one of a changelog. A table's own goes first."""
        return next((one for one in self.fields if one.name.lower() == name.lower()), None)

    @property
    def stored_names(self) -> tuple[str, ...]:
        """The table's own names, each once."""
        return tuple(field.name for field in self.fields)

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        return pa.schema([pa.field(one.name, arrow_type(one.dataType)) for one in self.wanted.fields])


@dataclass(frozen=True)
class SnapshotRows:
    """`rows`: columns of the table; `kinds`: numbers of RowKind, one for each; all of one snapshot."""

    rows: pa.Table
    kinds: pa.Array
    snapshot_id: int

    def filtered(self, keep: pa.Array | None) -> SnapshotRows:
        """Only the rows that are marked; None: all."""
        if keep is None:
            return self
        return SnapshotRows(self.rows.filter(keep), self.kinds.filter(keep), self.snapshot_id)

    def to_spark(self, asked: AskedColumns) -> Iterator[pa.RecordBatch]:
        """In steps that the JVM can hold."""
        target, count = asked.arrow_schema, len(self.kinds)
        arrays = []
        for name, wanted in zip(asked.names, target, strict=True):
            field = asked.find_field(name)
            if field is not None:
                arrays.append(as_spark_has_it(self.rows.column(field.name), wanted.type))
            elif name == ROW_KIND:
                arrays.append(pa.chunked_array([short_strings().take(self.kinds)]))
            else:
                arrays.append(pa.chunked_array([pa.array(np.full(count, self.snapshot_id), pa.int64())]))
        if not arrays or not count:
            return
        yield from pa.Table.from_arrays(arrays, schema=target).to_batches(max_chunksize=BATCH_ROWS)


def all_columns(schema: TableSchema, *, with_changes: bool) -> StructType:
    """The table's columns, and those of a changelog. All may be NULL: a delete has the key alone at times.

    Raises FixRequest TS1446, Unsupported TS1508.
    """
    taken = [field.name for field in schema.fields if field.name.lower() in _EXTRA]
    if taken and with_changes:
        raise FixRequest(
            "TS1446",
            f"the table has a column {taken[0]!r} of its own, where a changelog says something else",
            why=f"changes come with the columns {' and '.join(_EXTRA)}",
            fix="rename the table's column, or read without read.changelog",
        )
    fields = [StructField(field.name, spark_type(field.type), True) for field in schema.fields]
    extra = [StructField(name, type_, True) for name, type_ in _EXTRA.items()] if with_changes else []
    return StructType([*fields, *extra])


def find_columns(wanted: StructType, schema: TableSchema) -> AskedColumns:
    """Names have no case. Raises FixRequest TS1445."""
    own = {field.name.lower(): field for field in schema.fields}
    found: dict[str, DataField] = {}
    for one in wanted.fields:
        field = own.get(one.name.lower())
        if field is None and one.name not in _EXTRA:
            known = ", ".join((*schema.field_names, *_EXTRA))
            raise _refused(one.name, f"the table has no such column; it has {known}")
        expected = _EXTRA[one.name] if field is None else spark_type(field.type)
        if one.dataType.simpleString() != expected.simpleString():
            raise _refused(
                one.name,
                f"it is {expected.simpleString()} in the table, asked for is {one.dataType.simpleString()}",
            )
        if not one.nullable:
            raise _refused(
                one.name, "it is asked for as NOT NULL, and a changelog may have NULL in any column"
            )
        if field is not None:
            found[field.name] = field
    return AskedColumns(StructType(wanted.fields), tuple(found.values()))


def _refused(name: str, why: str) -> FixRequest:
    return FixRequest(
        "TS1445",
        f"column {name!r} cannot be read as it is asked for",
        why=why,
        fix="ask for columns and types of the table, or leave .schema(…) out; load a changed table again",
    )
