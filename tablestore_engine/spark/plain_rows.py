"""Rows that were computed outside of Spark, as Spark would give them."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    AtomicType,
    BinaryType,
    BooleanType,
    ByteType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from tablestore_engine.format.row_kind import ROW_KIND_COLUMN
from tablestore_engine.spark.arrow_frame import frame_of_rows

# An Arrow type each, whatever the session's time zone is.
_PLAIN: tuple[type[AtomicType], ...] = (
    BooleanType, ByteType, ShortType, IntegerType, LongType, DecimalType, FloatType, DoubleType, StringType, DateType,
    BinaryType,
)  # fmt: skip


def make_view(session: SparkSession, rows: pa.Table, schema: StructType, name: str) -> None:
    """A temporary view of rows with row kinds at the end; `schema`: of the others."""
    whole = StructType([*schema.fields, StructField(ROW_KIND_COLUMN, ByteType())])
    frame = frame_of_rows(session, rows.rename_columns(whole.names), whole)
    frame.createOrReplaceTempView(name)


def as_collected(rows: pa.Table, schema: StructType) -> pa.Table | None:
    """Rows with row kinds at the end, in the names and types that a collected frame of `schema` has.

    None for types of which only Spark knows how. Raises ArrowInvalid for a value that its type does not have.
    """
    if not all(isinstance(one.dataType, _PLAIN) for one in schema.fields):
        return None
    wanted = to_arrow_schema(schema).append(pa.field(ROW_KIND_COLUMN, pa.int8()))
    return rows.rename_columns(wanted.names).cast(wanted)
