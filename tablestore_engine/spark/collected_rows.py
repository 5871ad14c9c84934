"""All rows of a frame as Arrow in this process.

WHY        pyspark casts what it collects to the frame's schema, and Arrow refuses a NULL struct around a field that is
           NOT NULL. So fields inside others lose NOT NULL first; no value changes by it.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from tablestore_engine.spark.fetch_rows import collect_arrow


def to_arrow(frame: DataFrame) -> pa.Table:
    """The rows, in the frame's columns."""
    fields = frame.schema.fields
    types = [nullable_inside(one.dataType) for one in fields]
    if all(made == one.dataType for made, one in zip(types, fields, strict=True)):
        return collect_arrow(frame)
    places = [f"_{number}" for number in range(len(fields))]  # names may be there twice
    columns = [
        sf.col(place).cast(kind).alias(one.name)
        for place, kind, one in zip(places, types, fields, strict=True)
    ]
    return collect_arrow(frame.toDF(*places).select(*columns))


def nullable_inside(kind: DataType) -> DataType:
    """The type with every field, element and value of it nullable."""
    if isinstance(kind, StructType):
        return StructType(
            [StructField(f.name, nullable_inside(f.dataType), True, f.metadata) for f in kind.fields]
        )
    if isinstance(kind, ArrayType):
        return ArrayType(nullable_inside(kind.elementType), True)
    if isinstance(kind, MapType):
        return MapType(nullable_inside(kind.keyType), nullable_inside(kind.valueType), True)
    return kind
