"""Arrow rows of this process as a frame of Spark, and rows that Spark knows as Arrow.

INVARIANT  every row arrives. Spark 4.1 stops reading at the first empty batch that has rows before it
           (ArrowConverters.fromBatchIterator), and pyspark makes a batch of each chunk, so empty chunks are left out.
WHY        pyspark writes a file, and reads its settings one by one: 35 calls to the JVM. Few rows in Spark's own types
           are one message of Arrow.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType, VariantType

from tablestore_engine.spark.spark_internals import SparkInner
from tablestore_engine.spark.spark_types import arrow_type

MESSAGE_BYTES = 1 << 20  # more rows are written to a file
_LARGE_TYPES = "spark.sql.execution.arrow.useLargeVarTypes"


def frame_of_rows(
    session: SparkSession, rows: pa.Table, schema: StructType, message_bytes: int = MESSAGE_BYTES
) -> DataFrame:
    """`schema` has a field for each column, by position. `message_bytes`: more are no values of a plan. Raises what
    pyspark raises.
    """
    is_small = rows.num_rows > 0 and rows.nbytes <= message_bytes
    if is_small and _is_exact(rows, schema) and session.conf.get(_LARGE_TYPES) != "true":
        (batch,) = rows.combine_chunks().to_batches()
        return SparkInner.of(session).frame_of_message(batch.serialize().to_pybytes(), schema.json())
    batches = [one for one in rows.to_batches() if one.num_rows]
    if batches and rows.num_columns:
        rows = pa.Table.from_batches(batches, rows.schema)
    return session.createDataFrame(rows, schema=schema)


def known_rows(frame: DataFrame) -> pa.Table | None:
    """The rows of a query that optimizing gives; None: it has to be run. REQUIRES types without a time zone. Raises
    what optimizing raises.
    """
    fields = frame.schema.fields
    message = SparkInner.of(frame.sparkSession).known_message(frame)
    if message is None:
        return None
    try:
        schema = pa.schema([pa.field(one.name, arrow_type(one.dataType)) for one in fields])
    except KeyError:  # a collated text, an interval
        return None
    if not message:
        return schema.empty_table()
    return pa.Table.from_batches([pa.ipc.read_record_batch(pa.py_buffer(message), schema)])


def _is_exact(rows: pa.Table, schema: StructType) -> bool:
    """Whether every column has the Arrow type of its Spark type, so that nothing has to be cast."""
    if not schema.fields:
        return False
    try:
        return all(
            not isinstance(field.dataType, VariantType)
            and column.type == arrow_type(field.dataType)
            and (field.nullable or not column.null_count)
            for field, column in zip(schema.fields, rows.columns, strict=True)
        )
    except KeyError:
        return False
