"""Arrow rows of this process as a frame of Spark.

INVARIANT  every row arrives. Spark 4.1 stops reading at the first empty batch that has rows before it
           (ArrowConverters.fromBatchIterator), and pyspark makes a batch of each chunk, so empty chunks are left out.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType


def frame_of_rows(session: SparkSession, rows: pa.Table, schema: StructType) -> DataFrame:
    """`schema` has a field for each column, by position. Raises what pyspark raises."""
    batches = [one for one in rows.to_batches() if one.num_rows]
    if batches and rows.num_columns:
        rows = pa.Table.from_batches(batches, rows.schema)
    return session.createDataFrame(rows, schema=schema)
