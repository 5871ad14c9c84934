"""Types of the format as Arrow types, both ways, and their Parquet field ids (format.md#types, #data-files).

INVARIANT  type_from_arrow(type_to_arrow(t)) widens only CHAR/VARCHAR(n) to STRING, BINARY/VARBINARY(n) to BYTES,
           MULTISET to MAP, and time precisions to the next unit (0, 3, 6, 9).
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.types as pat

from tablestore_engine.errors import FixRequest, Unsupported
from tablestore_engine.format.data_type import (
    BINARY_ROOTS,
    BYTES,
    CHARACTER_ROOTS,
    STRING,
    TIMESTAMP_ROOTS,
    VOID,
    DataField,
    DataType,
)
from tablestore_engine.format.nested_fields import find_void
from tablestore_engine.format.type_text import MAX_DECIMAL_PRECISION, type_to_text

FIELD_ID_KEY = b"PARQUET:field_id"
NESTED_ID_BASE = 536870911  # Integer.MAX_VALUE / 4
NESTED_ID_STEP = 1024  # ids of one column's elements and keys, one per depth

_VARIANT_MARK = b"variant"  # Spark's, on the field `metadata`
VARIANT_ARROW = pa.struct(  # as Paimon, Spark and Parquet encode a variant
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={_VARIANT_MARK: b"true"}),
    ]
)
_PLAIN_TO_ARROW: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "TIME": pa.time32("ms"),  # the format keeps milliseconds of day whatever the precision says
    "VARIANT": VARIANT_ARROW,
}
_UNITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def type_to_arrow(type_: DataType) -> pa.DataType:
    """The Arrow type in which values of `type_` travel. Raises Unsupported TS1103 for BLOB and VECTOR."""
    root = type_.root
    if root in _PLAIN_TO_ARROW:
        return _PLAIN_TO_ARROW[root]
    if root in CHARACTER_ROOTS:
        return pa.string()
    if root in BINARY_ROOTS:
        return pa.binary()
    if root == "DECIMAL":
        return pa.decimal128(type_.precision, type_.scale)
    if root in TIMESTAMP_ROOTS:
        return pa.timestamp(timestamp_unit(type_.precision or 0), "UTC" if root == "TIMESTAMP_LTZ" else None)
    if root in ("ARRAY", "MULTISET", "MAP", "ROW"):
        return _nested_to_arrow(type_, lambda name, child, _key: _plain_child(name, child))
    raise Unsupported(
        "TS1103",
        f"type {type_to_text(type_)} has no Arrow form here",
        why=f"columns of type {root} are neither read nor written",
        fix="use a table without such a column, or read it with another engine",
    )


def timestamp_unit(precision: int) -> str:
    """Arrow unit of TIMESTAMP(precision): ms up to 3, us up to 6, else ns (format.md#data-files)."""
    return "ms" if precision <= 3 else "us" if precision <= 6 else "ns"


def type_from_arrow(arrow: pa.DataType, nullable: bool = True, *, may_be_void: bool = False) -> DataType:
    """The type of the format for an Arrow type; unsigned integers take the next wider signed type.

    Nested fields get id 0; `schema.new_schema` assigns the real ids. Raises FixRequest TS1104 for types
    without a counterpart (duration, interval, union, time finer than a millisecond), and for null unless it
    `may_be_void`: then it is VOID, inside of others too.
    """
    made = _from_arrow(arrow, nullable)
    if not may_be_void and find_void(made, ()) is not None:
        raise _no_column_of(arrow)
    return made


def _from_arrow(arrow: pa.DataType, nullable: bool = True) -> DataType:
    if pat.is_null(arrow):
        return VOID
    for is_kind, make in _FROM_ARROW:
        if is_kind(arrow):
            return make(arrow).with_nullable(nullable)
    raise _no_column_of(arrow)


def _no_column_of(arrow: pa.DataType) -> FixRequest:
    return FixRequest(
        "TS1104",
        f"Arrow type {arrow} cannot become a column",
        why="the table format has no type that keeps all its values",
        fix="cast the column first, for example to STRING, BIGINT or TIMESTAMP",
    )


def field_to_arrow(field: DataField) -> pa.Field:
    """The Arrow field of a column: name, type, nullability, no metadata."""
    return pa.field(field.name, type_to_arrow(field.type), nullable=field.type.nullable)


def field_with_ids(field: DataField) -> pa.Field:
    """The Arrow field whose metadata has the Parquet field id of the column and of all inside (format.md#data-files).

    ROW children carry their schema ids; elements and map values 536870911 + 1024·id + depth, map keys
    536870911 − 1024·id − depth, where id is the nearest column or ROW child and depth counts from 1.
    """
    return _field_with_id(field.name, field.type, parquet_id=field.id, owner=field.id, depth=0)


def _field_with_id(name: str, type_: DataType, *, parquet_id: int, owner: int, depth: int) -> pa.Field:
    def child(child_name: str, child_type: DataType, is_key: bool | None) -> pa.Field:
        if is_key is None:  # a ROW child starts anew with its own id
            own = next(f.id for f in type_.fields if f.name == child_name)
            return _field_with_id(child_name, child_type, parquet_id=own, owner=own, depth=0)
        distance = NESTED_ID_STEP * owner + depth + 1
        inner_id = NESTED_ID_BASE - distance if is_key else NESTED_ID_BASE + distance
        return _field_with_id(child_name, child_type, parquet_id=inner_id, owner=owner, depth=depth + 1)

    nested = type_.root in ("ARRAY", "MULTISET", "MAP", "ROW")
    arrow = _nested_to_arrow(type_, child) if nested else type_to_arrow(type_)
    if type_.root == "VARIANT":  # PAIMON: each VARIANT has its fields under the ids 0 and 1
        arrow = pa.struct([one.with_metadata({FIELD_ID_KEY: b"%d" % at}) for at, one in enumerate(arrow)])
    return pa.field(name, arrow, nullable=type_.nullable, metadata={FIELD_ID_KEY: str(parquet_id).encode()})


def _plain_child(name: str, type_: DataType) -> pa.Field:
    return pa.field(name, type_to_arrow(type_), nullable=type_.nullable)


def _nested_to_arrow(type_: DataType, child: Callable[[str, DataType, bool | None], pa.Field]) -> pa.DataType:
    """ARRAY, MULTISET, MAP or ROW, with its children made by `child(name, type, is_key | None for ROW)`."""
    if type_.root == "ROW":
        return pa.struct([child(field.name, field.type, None) for field in type_.fields])
    if type_.root == "ARRAY":
        return pa.list_(child("element", _part(type_.element), False))
    key, value = (
        (_part(type_.element), DataType("INT", nullable=False))  # a MULTISET is a MAP of element → count
        if type_.root == "MULTISET"
        else (_part(type_.key), _part(type_.value))
    )
    key_field = child("key", key.with_nullable(False), True)
    return pa.map_(key_field, child("value", value, False))


def _part(type_: DataType | None) -> DataType:
    if type_ is None:
        raise FixRequest(
            "TS1105",
            "a nested type has no element, key or value",
            why="ARRAY and MULTISET need an element, MAP a key and a value",
            fix="build the DataType with its child types",
        )
    return type_


def _decimal_from_arrow(arrow: pa.DataType) -> DataType:
    scale, precision = arrow.scale, arrow.precision
    if scale < 0:  # 12e3 as (2, -3) becomes (5, 0)
        precision, scale = precision - scale, 0
    precision = max(precision, scale)
    if precision > MAX_DECIMAL_PRECISION:
        raise FixRequest(
            "TS1104",
            f"Arrow type {arrow} cannot become a column",
            why=f"a DECIMAL has at most {MAX_DECIMAL_PRECISION} digits",
            fix="cast the column to decimal128 with a smaller precision",
        )
    return DataType("DECIMAL", precision=precision, scale=scale)


def _timestamp_from_arrow(arrow: pa.TimestampType) -> DataType:
    root = "TIMESTAMP" if arrow.tz is None else "TIMESTAMP_LTZ"
    return DataType(root, precision=_UNITS[arrow.unit])


def _list_from_arrow(arrow: pa.DataType) -> DataType:
    item = arrow.value_field
    return DataType("ARRAY", element=_from_arrow(item.type, item.nullable))


def _map_from_arrow(arrow: pa.MapType) -> DataType:
    return DataType(
        "MAP",
        key=_from_arrow(arrow.key_type, False),
        value=_from_arrow(arrow.item_type, arrow.item_field.nullable),
    )


def _struct_from_arrow(arrow: pa.StructType) -> DataType:
    fields = (arrow.field(i) for i in range(arrow.num_fields))
    return DataType(
        "ROW", fields=tuple(DataField(0, f.name, _from_arrow(f.type, f.nullable)) for f in fields)
    )


def is_variant(arrow: pa.DataType) -> bool:
    """Whether the type says that it is one, by Spark's mark; a plain struct of these names is none."""
    return has_variant_fields(arrow) and any(
        (arrow.field(i).metadata or {}).get(_VARIANT_MARK) == b"true" for i in (0, 1)
    )


def has_variant_fields(arrow: pa.DataType) -> bool:
    """Whether it is a struct of exactly `value` and `metadata`, both binary."""
    if not pat.is_struct(arrow) or sorted(field.name for field in arrow) != ["metadata", "value"]:
        return False
    return all(pat.is_binary(field.type) or pat.is_large_binary(field.type) for field in arrow)


def _is_list(arrow: pa.DataType) -> bool:
    return bool(pat.is_list(arrow) or pat.is_large_list(arrow) or pat.is_fixed_size_list(arrow))


def _is_text(arrow: pa.DataType) -> bool:
    return bool(pat.is_string(arrow) or pat.is_large_string(arrow) or pat.is_string_view(arrow))


def _is_bytes(arrow: pa.DataType) -> bool:
    return bool(pat.is_binary(arrow) or pat.is_large_binary(arrow) or pat.is_binary_view(arrow))


def _constant(type_: DataType) -> Callable[[pa.DataType], DataType]:
    return lambda _arrow: type_


# first match wins
_FROM_ARROW: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], DataType]], ...] = (
    (pat.is_boolean, _constant(DataType("BOOLEAN"))),
    (pat.is_int8, _constant(DataType("TINYINT"))),
    (lambda t: pat.is_int16(t) or pat.is_uint8(t), _constant(DataType("SMALLINT"))),
    (lambda t: pat.is_int32(t) or pat.is_uint16(t), _constant(DataType("INT"))),
    (lambda t: pat.is_int64(t) or pat.is_uint32(t), _constant(DataType("BIGINT"))),
    (pat.is_uint64, _constant(DataType("DECIMAL", precision=20, scale=0))),
    (lambda t: pat.is_float32(t) or pat.is_float16(t), _constant(DataType("FLOAT"))),
    (pat.is_float64, _constant(DataType("DOUBLE"))),
    (pat.is_decimal, _decimal_from_arrow),
    (_is_text, _constant(STRING)),
    (_is_bytes, _constant(BYTES)),
    (pat.is_fixed_size_binary, lambda t: DataType("BINARY", length=t.byte_width)),
    (pat.is_date, _constant(DataType("DATE"))),
    (pat.is_time32, lambda t: DataType("TIME", precision=_UNITS[str(t)[7:-1]])),
    (pat.is_timestamp, _timestamp_from_arrow),
    (pat.is_map, _map_from_arrow),
    (_is_list, _list_from_arrow),
    (is_variant, _constant(DataType("VARIANT"))),
    (pat.is_struct, _struct_from_arrow),
    (pat.is_dictionary, lambda t: _from_arrow(t.value_type)),
)
