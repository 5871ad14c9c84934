"""The partition spec of a table in Iceberg: identity of each partition column, and values as its manifests have them.

INVARIANT  partition columns of a table never change, so each table has the one spec 0.
INVARIANT  field ids begin at 1000, in the order of the partition columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from tablestore_engine.format.data_type import TIMESTAMP_ROOTS, DataType
from tablestore_engine.format.scalar import days_from_date, nanos_from_timestamp
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.iceberg.schema_mapping import iceberg_type

SPEC_ID = 0
FIRST_FIELD_ID = 1000
_AVRO = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "bytes",
    "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    "timestamptz": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": True},
}


def spec_fields(schema: TableSchema) -> list[dict[str, object]]:
    """The JSON of the spec's fields."""
    return [
        {"source-id": one.id, "field-id": FIRST_FIELD_ID + at, "name": one.name, "transform": "identity"}
        for at, one in enumerate(schema.fields_of(schema.partition_keys))
    ]


def avro_fields(schema: TableSchema) -> list[dict[str, object]]:
    """The fields of the record `partition` in a manifest. Names are ours: readers go by id."""
    return [
        {
            "name": _avro_name(at),
            "type": ["null", _avro_type(one.type, at)],
            "default": None,
            "field-id": FIRST_FIELD_ID + at,
        }
        for at, one in enumerate(schema.fields_of(schema.partition_keys))
    ]


def avro_values(values: Sequence[object], types: Sequence[DataType]) -> dict[str, object]:
    """Values of format.partition as that record."""
    return {
        _avro_name(at): _value(value, type_)
        for at, (value, type_) in enumerate(zip(values, types, strict=True))
    }


def _avro_name(at: int) -> str:
    return f"p{at}"


def _avro_type(type_: DataType, at: int) -> object:
    if type_.root != "DECIMAL":
        return _AVRO[iceberg_type(type_)]
    return {
        "type": "fixed",
        "name": f"decimal_{at}",
        "size": _decimal_bytes(type_.precision or 1),
        "logicalType": "decimal",
        "precision": type_.precision,
        "scale": type_.scale or 0,
    }


def _decimal_bytes(precision: int) -> int:
    """The fewest bytes that hold every number of so many digits, with a sign."""
    return (int(10**precision - 1).bit_length() + 8) // 8


def _value(value: object, type_: DataType) -> object:
    if value is None or isinstance(value, Decimal):
        return value
    if type_.root == "DATE":
        return days_from_date(value)
    if type_.root in TIMESTAMP_ROOTS:
        return nanos_from_timestamp(value, type_) // 1000
    return value
