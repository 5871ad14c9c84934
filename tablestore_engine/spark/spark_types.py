"""Types of the format as Spark types, both ways.

INVARIANT  lengths of CHAR, VARCHAR, BINARY are the writer's business: Spark reads plain STRING and BINARY,
           since its own CHAR would pad. TIMESTAMP is Spark's TIMESTAMP_NTZ, TIMESTAMP_LTZ its TIMESTAMP.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import types as st

from tablestore_engine.errors import FixRequest, Unsupported
from tablestore_engine.format.data_type import (
    BYTES,
    CHARACTER_ROOTS,
    STRING,
    DataField,
    DataType,
    is_fine_timestamp,
)
from tablestore_engine.format.type_arrow import VARIANT_ARROW
from tablestore_engine.spark import spark_errors
from tablestore_engine.spark.type_ddl import no_spark_type
from tablestore_engine.sql.as_of_clause import plain_words

_BINARY_COLLATION = st.StringType().collation
_SIMPLE: dict[str, st.DataType] = {
    "BOOLEAN": st.BooleanType(),
    "TINYINT": st.ByteType(),
    "SMALLINT": st.ShortType(),
    "INT": st.IntegerType(),
    "BIGINT": st.LongType(),
    "FLOAT": st.FloatType(),
    "DOUBLE": st.DoubleType(),
    "DATE": st.DateType(),
    "CHAR": st.StringType(),
    "VARCHAR": st.StringType(),
    "BINARY": st.BinaryType(),
    "VARBINARY": st.BinaryType(),
    "TIMESTAMP": st.TimestampNTZType(),
    "TIMESTAMP_LTZ": st.TimestampType(),
    "VARIANT": st.VariantType(),
}
_ARROW: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "string": pa.string(),
    "binary": pa.binary(),
    "timestamp_ntz": pa.timestamp("us"),
    "timestamp": pa.timestamp("us", "UTC"),
    "variant": VARIANT_ARROW,
}
_FROM_SIMPLE: dict[str, DataType] = {
    "boolean": DataType("BOOLEAN"),
    "byte": DataType("TINYINT"),
    "short": DataType("SMALLINT"),
    "integer": DataType("INT"),
    "long": DataType("BIGINT"),
    "float": DataType("FLOAT"),
    "double": DataType("DOUBLE"),
    "date": DataType("DATE"),
    "binary": BYTES,
    "timestamp_ntz": DataType("TIMESTAMP", precision=6),
    "timestamp": DataType("TIMESTAMP_LTZ", precision=6),
    "variant": DataType("VARIANT"),
}


def spark_type(type_: DataType) -> st.DataType:
    """The Spark type that holds all values. Raises Unsupported TS1508 for types Spark does not have."""
    simple = _SIMPLE.get(type_.root)
    if simple is not None and not is_fine_timestamp(type_):
        return simple
    if type_.root == "DECIMAL":
        return st.DecimalType(type_.precision or 10, type_.scale or 0)
    if type_.root == "ARRAY" and type_.element is not None:
        return st.ArrayType(spark_type(type_.element), type_.element.nullable)
    if type_.root == "MULTISET" and type_.element is not None:
        return st.MapType(spark_type(type_.element), st.IntegerType(), valueContainsNull=False)
    if type_.root == "MAP" and type_.key is not None and type_.value is not None:
        return st.MapType(spark_type(type_.key), spark_type(type_.value), type_.value.nullable)
    if type_.root == "ROW":
        return spark_struct(type_.fields)
    raise no_spark_type(type_)


def arrow_type(type_: st.DataType) -> pa.DataType:
    """As pyspark's to_arrow_type, whose arguments changed from release to release. REQUIRES a type of spark_type."""
    if isinstance(type_, st.DecimalType):
        return pa.decimal128(type_.precision, type_.scale)
    if isinstance(type_, st.ArrayType):
        return pa.list_(pa.field("element", arrow_type(type_.elementType), type_.containsNull))
    if isinstance(type_, st.MapType):
        value = pa.field("value", arrow_type(type_.valueType), type_.valueContainsNull)
        return pa.map_(pa.field("key", arrow_type(type_.keyType), nullable=False), value)
    if isinstance(type_, st.StructType):
        return pa.struct([pa.field(f.name, arrow_type(f.dataType), f.nullable) for f in type_.fields])
    return _ARROW[type_.simpleString()]


def as_spark_has_it(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    """Stored values in the Arrow type of Spark's type."""
    return column if column.type == target else column.cast(target)


def spark_struct(fields: Iterable[DataField]) -> st.StructType:
    """The columns as a struct, with nullability."""
    return st.StructType([st.StructField(f.name, spark_type(f.type), f.type.nullable) for f in fields])


def from_spark_type(type_: st.DataType, nullable: bool = True, *, column: str = "") -> DataType:
    """The format's type for a Spark type; `column` is for the message. Raises FixRequest TS1509: no counterpart."""
    simple = _FROM_SIMPLE.get(_type_name(type_))
    if simple is not None:
        return simple.with_nullable(nullable)
    if isinstance(type_, st.StringType) and type_.collation != _BINARY_COLLATION:
        return replace(STRING, nullable=nullable, collation=type_.collation)
    if isinstance(type_, st.VarcharType):
        return DataType("VARCHAR", nullable, length=type_.length)
    if isinstance(type_, st.CharType):
        return DataType("CHAR", nullable, length=type_.length)
    if isinstance(type_, st.StringType):
        return STRING.with_nullable(nullable)
    if isinstance(type_, st.DecimalType):
        return DataType("DECIMAL", nullable, precision=type_.precision, scale=type_.scale)
    if isinstance(type_, st.ArrayType):
        element = from_spark_type(type_.elementType, type_.containsNull, column=f"{column}[]")
        return DataType("ARRAY", nullable, element=element)
    if isinstance(type_, st.MapType):
        key = from_spark_type(type_.keyType, False, column=f"{column} (key)")
        value = from_spark_type(type_.valueType, type_.valueContainsNull, column=f"{column} (value)")
        return DataType("MAP", nullable, key=key, value=value)
    if isinstance(type_, st.StructType):
        return DataType("ROW", nullable, fields=fields_from_spark(type_, inside=column))
    raise FixRequest(
        "TS1509",
        f"column {column!r} cannot have the Spark type {type_.simpleString()}",
        why="the table format has no type that keeps all its values",
        fix="cast it in the query, for example to string, bigint or timestamp",
    )


def parse_ddl(text: str, nullable: bool = True, *, column: str = "") -> DataType:
    """The format's type for a type as Spark SQL writes it. Raises FixRequest TS1505 or TS1506, TS1509, TS2140."""
    from pyspark.errors import PySparkException

    try:
        parsed = st.DataType.fromDDL(text)
    except PySparkException as error:
        raise spark_errors.translate(error) from None
    made = from_spark_type(parsed, nullable, column=column)
    has_length = any(part.root in CHARACTER_ROOTS and part.length != STRING.length for part in made.walk())
    if has_length and "collate" in map(str.lower, plain_words(text)):
        raise Unsupported(
            "TS2140",
            f"column {column!r} cannot have a length and a collation",
            why=f"pyspark's CHAR and VARCHAR have no collation: {text}",
            fix="leave COLLATE out: stored text is compared by its bytes",
        )
    return made


def fields_from_spark(struct: st.StructType, *, inside: str = "") -> tuple[DataField, ...]:
    """Columns of a DataFrame, or fields of a column, as fields with id 0; a comment in the metadata is kept."""
    return tuple(
        DataField(
            0,
            f.name,
            from_spark_type(f.dataType, f.nullable, column=f"{inside}.{f.name}" if inside else f.name),
            (f.metadata or {}).get("comment"),
        )
        for f in struct.fields
    )


def _type_name(type_: st.DataType) -> str:
    return type_.typeName() if type(type_).__name__ not in ("VarcharType", "CharType", "StringType") else ""
