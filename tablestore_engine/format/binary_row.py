"""BinaryRow: a row of scalars as canonical bytes, for partitions, keys, statistics (format.md#binaryrow).

    int32 BE arity | header and null bits (W bytes) | 8-byte slots | variable part, each value padded to 8

Values     BOOLEAN bool · integers int · FLOAT, DOUBLE float · DECIMAL Decimal · CHAR, VARCHAR str · BINARY,
           VARBINARY bytes · DATE date · TIME time · TIMESTAMP naive datetime · TIMESTAMP_LTZ aware datetime.
           Values beyond datetime (nanoseconds, years beyond 9999) are numpy.datetime64, both ways.
INVARIANT  manifests compare these bytes: unused bytes are zero, the header byte is zero, and a null DECIMAL(>18)
           or TIMESTAMP(>3) still reserves its variable space (format.md#binaryrow).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pyarrow as pa

from tablestore_engine.errors import FixData, TablestoreError, Unsupported
from tablestore_engine.format.data_type import BINARY_ROOTS, CHARACTER_ROOTS, TIMESTAMP_ROOTS, DataType
from tablestore_engine.format.scalar import (
    date_from_days,
    days_from_date,
    decimal_from_unscaled,
    millis_from_time,
    nanos_from_timestamp,
    python_values,
    time_from_millis,
    timestamp_from_nanos,
    unscaled_from_decimal,
)
from tablestore_engine.format.type_text import type_to_text

EMPTY_ROW = bytes(12)
INLINE_BYTES = 7  # a text or binary up to here lies in its slot
DECIMAL_SPACE = 16  # bytes reserved for every DECIMAL of more than 18 digits
_NANOS_PER_MILLI = 1_000_000
_PACK = {
    "BOOLEAN": "<?7x", "TINYINT": "<b7x", "SMALLINT": "<h6x", "INT": "<i4x", "BIGINT": "<q",
    "FLOAT": "<f4x", "DOUBLE": "<d", "DATE": "<i4x", "TIME": "<i4x",
}  # fmt: skip


def header_bytes(arity: int) -> int:
    """W: bytes of the header and null bits of a row of `arity` fields."""
    return (arity + 63 + 8) // 64 * 8


def encode_row(values: Sequence[object], types: Sequence[DataType]) -> bytes:
    """The row as manifests hold it: int32 big-endian arity, then the row (format.md#binaryrow).

    Raises FixData TS1114 when a value does not fit its type, Unsupported TS1115 for a non-null nested value.
    """
    return struct.pack(">i", len(types)) + encode_bare_row(values, types)


def encode_bare_row(values: Sequence[object], types: Sequence[DataType]) -> bytes:
    """The row without arity prefix, a multiple of 8 bytes long: what the bucket hash reads (format.md#binaryrow)."""
    if len(values) != len(types):
        raise FixData(
            "TS1114",
            "a row cannot be encoded",
            why=f"it has {len(values)} values for {len(types)} types",
            fix="give one value for each type",
        )
    width = header_bytes(len(types))
    header, slots, variable = bytearray(width), bytearray(), bytearray()
    for i, (value, type_) in enumerate(zip(values, types, strict=True)):
        if value is None:
            header[(8 + i) // 8] |= 1 << (i % 8)
        slot, extra = _encode(value, type_, offset=width + 8 * len(types) + len(variable))
        slots += slot
        variable += extra
    return bytes(header + slots + variable)


def decode_row(data: bytes, types: Sequence[DataType]) -> tuple[object, ...]:
    """The values of an encoded row. Raises FixData TS1116 when the bytes are no row of these types."""
    row = _body(data, len(types))
    return tuple(_field(row, len(types), at, type_) for at, type_ in enumerate(types))


def decode_field(data: bytes, arity: int, at: int, type_: DataType) -> object:
    """One value of an encoded row of `arity` fields. Raises FixData TS1116 when the bytes are no such row."""
    return _field(_body(data, arity), arity, at, type_)


def _body(data: bytes, expected: int) -> memoryview:
    arity = row_arity(data)
    if arity != expected:
        raise _damaged(f"it has {arity} fields, {expected} are expected")
    row = memoryview(data)[4:]
    if len(row) < header_bytes(arity) + 8 * arity:
        raise _damaged(f"it ends after {len(row)} bytes")
    return row


def _field(row: memoryview, arity: int, at: int, type_: DataType) -> object:
    is_null = row[(8 + at) // 8] & (1 << (at % 8))
    return None if is_null else _decode(row, header_bytes(arity) + 8 * at, type_)


def row_arity(data: bytes) -> int:
    """Number of fields of an encoded row. Raises FixData TS1116 when the prefix is missing."""
    if len(data) < 4:
        raise _damaged(f"it has only {len(data)} bytes")
    return int.from_bytes(data[:4], "big", signed=True)


def encode_key_columns(
    columns: Sequence[pa.Array | pa.ChunkedArray], types: Sequence[DataType]
) -> list[bytes]:
    """One encoded row (with arity prefix) for each row of the Arrow columns, which are cast to `types` first."""
    values = [python_values(column, type_) for column, type_ in zip(columns, types, strict=True)]
    return [encode_row(row, types) for row in zip(*values, strict=True)]


def _encode(value: object, type_: DataType, *, offset: int) -> tuple[bytes, bytes]:
    """The eight bytes of the slot, and the padded variable part that starts at `offset`."""
    if value is None:
        return _encode_null(type_, offset)
    root = type_.root
    try:
        if root in CHARACTER_ROOTS:
            return _encode_bytes(str.encode(value), offset)  # type: ignore[arg-type]
        if root in BINARY_ROOTS:
            return _encode_bytes(bytes(memoryview(value)), offset)  # type: ignore[arg-type]
        if root == "DECIMAL":
            return _encode_decimal(unscaled_from_decimal(value, type_), type_, offset)
        if root in TIMESTAMP_ROOTS:
            return _encode_timestamp(nanos_from_timestamp(value, type_), type_, offset)
        if root == "DATE":
            value = days_from_date(value)
        elif root == "TIME":
            value = millis_from_time(value)
        if root in _PACK:
            return struct.pack(_PACK[root], value), b""
    except TablestoreError:
        raise
    except (struct.error, TypeError, ValueError, OverflowError) as wrong:
        raise FixData(
            "TS1114",
            f"the value {value!r:.80} cannot be encoded as {type_to_text(type_)}",
            why=str(wrong),
            fix="correct or cast the value",
        ) from wrong
    raise no_row_bytes(type_)


def _encode_null(type_: DataType, offset: int) -> tuple[bytes, bytes]:
    """Zero slot; types with a fixed variable part keep their offset and space."""
    if type_.is_compact:
        return bytes(8), b""
    return struct.pack("<Q", offset << 32), bytes(DECIMAL_SPACE if type_.root == "DECIMAL" else 8)


def _encode_bytes(data: bytes, offset: int) -> tuple[bytes, bytes]:
    size = len(data)
    if size <= INLINE_BYTES:
        return data.ljust(7, b"\0") + bytes([0x80 | size]), b""
    return struct.pack("<Q", offset << 32 | size), data + bytes(-size % 8)


def _encode_decimal(unscaled: int, type_: DataType, offset: int) -> tuple[bytes, bytes]:
    if type_.is_compact:
        return struct.pack("<q", unscaled), b""
    size = minimal_bytes(unscaled)
    return struct.pack("<Q", offset << 32 | size), unscaled.to_bytes(size, "big", signed=True).ljust(
        16, b"\0"
    )


def minimal_bytes(number: int) -> int:
    """Bytes of the shortest two's complement of `number`, as Java's BigInteger.toByteArray (format.md#binaryrow)."""
    return (number if number >= 0 else ~number).bit_length() // 8 + 1


def _encode_timestamp(nanos: int, type_: DataType, offset: int) -> tuple[bytes, bytes]:
    millis, nano_of_milli = divmod(nanos, _NANOS_PER_MILLI)
    if type_.is_compact:
        return struct.pack("<q", millis), b""
    return struct.pack("<Q", offset << 32 | nano_of_milli), struct.pack("<q", millis)


def _decode(row: memoryview, at: int, type_: DataType) -> object:
    """The value of the slot at byte `at` of the row."""
    root = type_.root
    if root in CHARACTER_ROOTS or root in BINARY_ROOTS:
        data = _decode_bytes(row, at)
        return data.decode("utf-8", "replace") if root in CHARACTER_ROOTS else data
    if root == "DECIMAL":
        return decimal_from_unscaled(_decode_unscaled(row, at, type_), type_)
    if root in TIMESTAMP_ROOTS:
        return timestamp_from_nanos(_decode_nanos(row, at, type_), type_)
    if root not in _PACK:
        raise no_row_bytes(type_)
    value = struct.unpack_from(_PACK[root], row, at)[0]
    if root == "DATE":
        return date_from_days(value)
    return time_from_millis(value) if root == "TIME" else value


def _decode_bytes(row: memoryview, at: int) -> bytes:
    mark = row[at + 7]
    if mark & 0x80:
        return bytes(row[at : at + (mark & 0x7F)])
    low, offset = struct.unpack_from("<II", row, at)
    return _slice(row, offset, low)


def _decode_unscaled(row: memoryview, at: int, type_: DataType) -> int:
    if type_.is_compact:
        return int(struct.unpack_from("<q", row, at)[0])
    size, offset = struct.unpack_from("<II", row, at)
    return int.from_bytes(_slice(row, offset, size), "big", signed=True)


def _decode_nanos(row: memoryview, at: int, type_: DataType) -> int:
    if type_.is_compact:
        return int(struct.unpack_from("<q", row, at)[0]) * _NANOS_PER_MILLI
    nano_of_milli, offset = struct.unpack_from("<II", row, at)
    return int.from_bytes(_slice(row, offset, 8), "little", signed=True) * _NANOS_PER_MILLI + int(
        nano_of_milli
    )


def _slice(row: memoryview, offset: int, size: int) -> bytes:
    if offset + size > len(row):
        raise _damaged(f"a value at {offset} of {size} bytes lies behind its end at {len(row)}")
    return bytes(row[offset : offset + size])


def no_row_bytes(type_: DataType) -> Unsupported:
    """The error for a value that is neither scalar nor null, here and in bucket keys."""
    return Unsupported(
        "TS1115",
        f"a value of type {type_to_text(type_)} has no row bytes here",
        why="only scalar values occur in partitions, keys, bucket keys and statistics",
        fix="choose other key, partition or bucket-key columns",
    )


def _damaged(why: str) -> FixData:
    return FixData(
        "TS1116",
        "a binary row of a manifest cannot be read",
        why=why,
        fix="the manifest is damaged or belongs to another schema: verify the table",
    )
