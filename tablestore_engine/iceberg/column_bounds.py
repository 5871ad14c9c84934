"""Bounds and NULL counts of columns, and of the partitions of a manifest, as Iceberg's readers skip files by them.

INVARIANT  a bound encloses every value that is neither NULL nor NaN, or it is left out: a shortened text is a lower
           bound as it is, an upper one only when it was rounded up (format.statistics does so).
INVARIANT  a bound has the bytes of the column's type when it was written. Readers know by the length that an int is in
           a column that is a long now, as Iceberg demands.
WHY        the four maps of a file are bytes, which manifests take over as they are: a file is listed in many manifests.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tablestore_engine.format.avro_file import encode_avro_long as _long
from tablestore_engine.format.data_type import DataType
from tablestore_engine.format.scalar import unscaled_from_decimal
from tablestore_engine.iceberg.schema_mapping import iceberg_type

_PACKED: Mapping[str, Callable[[Any], bytes]] = {
    "boolean": struct.Struct("<?").pack,
    "int": struct.Struct("<i").pack,
    "long": struct.Struct("<q").pack,
    "float": struct.Struct("<f").pack,
    "double": struct.Struct("<d").pack,
    "date": struct.Struct("<i").pack,
    "timestamp": struct.Struct("<q").pack,
    "timestamptz": struct.Struct("<q").pack,
    "string": str.encode,
    "binary": bytes,
}
_NO_MAP, _MAP, _END = b"\x00", b"\x02", b"\x00"  # branches of ["null", map]; the end of an array


@dataclass(frozen=True)
class ColumnBounds:
    """Of one column of one file; None: unknown. `rows`: of the file; `low`, `high`: encode_bound."""

    field_id: int
    rows: int
    nulls: int | None = None
    low: bytes | None = None
    high: bytes | None = None


@dataclass(frozen=True)
class PartitionSummary:
    """Of one partition column over the files of a manifest; bounds None: all values are NULL or NaN."""

    has_null: bool
    has_nan: bool
    low: bytes | None
    high: bytes | None


def encode_bound(value: Any, type_: DataType) -> bytes:  # noqa: ANN401 - a value of any column type
    """Iceberg's bytes of a value: a number, a text, bytes, a Decimal; days of a date, microseconds of a timestamp."""
    if type_.root == "DECIMAL":
        number = unscaled_from_decimal(value, type_)
        return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)
    return _PACKED[iceberg_type(type_)](value)


def encode_column_maps(columns: Sequence[ColumnBounds]) -> bytes:
    """The fields METRIC_FIELDS of a manifest entry in Avro. Value counts are those of columns that have NULL."""
    counts = [(one.field_id, one.rows) for one in columns if one.nulls]
    nulls = [(one.field_id, one.nulls) for one in columns if one.nulls is not None]
    low = [(one.field_id, one.low) for one in columns if one.low is not None]
    high = [(one.field_id, one.high) for one in columns if one.high is not None]
    numbers = ([_long(key) + _long(value) for key, value in pairs] for pairs in (counts, nulls))
    bounds = ([_long(key) + _long(len(value)) + value for key, value in pairs] for pairs in (low, high))
    return b"".join(map(_map, (*numbers, *bounds)))


def _map_field(name: str, number: int, key: int, value: int, avro_type: str) -> dict[str, object]:
    item = {
        "type": "record",
        "name": f"k{key}_v{value}",
        "fields": [
            {"name": "key", "type": "int", "field-id": key},
            {"name": "value", "type": avro_type, "field-id": value},
        ],
    }
    map_type = {"type": "array", "logicalType": "map", "items": item}
    return {"name": name, "type": ["null", map_type], "default": None, "field-id": number}


METRIC_FIELDS = (
    _map_field("value_counts", 109, 119, 120, "long"),
    _map_field("null_value_counts", 110, 121, 122, "long"),
    _map_field("lower_bounds", 125, 126, 127, "bytes"),
    _map_field("upper_bounds", 128, 129, 130, "bytes"),
)
NO_METRICS = _NO_MAP * len(METRIC_FIELDS)


def _map(items: Sequence[bytes]) -> bytes:
    return b"".join((_MAP, _long(len(items)), *items, _END)) if items else _NO_MAP


def summarize_partitions(
    partitions: Iterable[Mapping[str, Any]], types: Sequence[DataType]
) -> tuple[PartitionSummary, ...]:
    """One for each partition column; `partitions`: of the files, as partition_fields.avro_values."""
    different = list({id(one): one for one in partitions}.values())
    columns = zip(*(one.values() for one in different), strict=True)
    return tuple(_summary(values, type_) for values, type_ in zip(columns, types, strict=True))


def _summary(values: Sequence[Any], type_: DataType) -> PartitionSummary:
    known = [one for one in values if one is not None]
    plain = [one for one in known if not _is_nan(one)]
    ends = (min(plain, key=_ordered), max(plain, key=_ordered)) if plain else ()
    low, high = (encode_bound(one, type_) for one in ends) if ends else (None, None)
    return PartitionSummary(len(known) < len(values), len(plain) < len(known), low, high)


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _ordered(value: Any) -> Any:  # noqa: ANN401 - see encode_bound
    return (value, math.copysign(1, value)) if isinstance(value, float) else value
