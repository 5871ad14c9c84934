"""Hive's bucket hash of rows, for `bucket-function.type=hive` (format.md#buckets).

Facts      null 0 · BOOLEAN 1/0 · TINYINT, SMALLINT, INT, DATE, TIME the number · BIGINT (v >>> 32) ^ v ·
           FLOAT, DOUBLE their bits with -0.0 as 0.0 and one NaN · texts and binaries 31·h + signed byte ·
           DECIMAL as Java's BigDecimal.hashCode after its trailing zeros are cut · TIMESTAMP has none
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore_engine.errors import Unsupported
from tablestore_engine.format.data_type import BINARY_ROOTS, CHARACTER_ROOTS, DataType
from tablestore_engine.format.scalar import cast_exact, python_values
from tablestore_engine.format.type_arrow import type_to_arrow
from tablestore_engine.format.type_text import type_to_text

Int32Array = npt.NDArray[np.int32]
_MASK = 0xFFFFFFFF


def hive_hash_rows(columns: Sequence[pa.Array | pa.ChunkedArray], types: Sequence[DataType]) -> Int32Array:
    """The hash of each row: int32[rows]. Raises Unsupported TS1121 for types that Hive's hash does not know."""
    total = np.zeros(len(columns[0]), np.uint32)
    for column, type_ in zip(columns, types, strict=True):
        total = total * np.uint32(31) + _hash_column(column, type_).astype(np.uint32)
    return total.view(np.int32)


def _hash_column(column: pa.Array | pa.ChunkedArray, type_: DataType) -> npt.NDArray[np.uint32]:
    root = type_.root
    if root in CHARACTER_ROOTS or root in BINARY_ROOTS or root == "DECIMAL":
        hash_one = _hash_decimal if root == "DECIMAL" else _hash_text
        values = python_values(column, type_)
        return np.array([0 if v is None else hash_one(v) for v in values], np.uint32)
    if not type_.is_atomic or root.startswith("TIMESTAMP"):
        raise Unsupported(
            "TS1121",
            f"bucket function hive cannot hash {type_to_text(type_)}",
            why="Hive's hash has no rule for this type",
            fix="use bucket-function.type=default, or another bucket-key",
        )
    column = cast_exact(column, type_to_arrow(type_), type_)
    if root in ("DATE", "TIME"):
        column = column.cast(pa.int32())
    if root == "BOOLEAN":
        column = column.cast(pa.int8())
    numbers = np.asarray(column.fill_null(0))
    if root in ("BIGINT", "DOUBLE"):
        bits = numbers if root == "BIGINT" else _float_bits(numbers, np.int64)
        wide = bits.astype(np.int64).view(np.uint64)
        return ((wide >> np.uint64(32)) ^ wide).astype(np.uint32)
    narrow = _float_bits(numbers, np.int32) if root == "FLOAT" else numbers.astype(np.int32)
    return np.asarray(narrow.view(np.uint32), np.uint32)


def _float_bits(
    values: npt.NDArray[np.floating], integer: type[np.signedinteger]
) -> npt.NDArray[np.signedinteger]:
    """Java's floatToIntBits: -0.0 as 0.0, every NaN as the one canonical NaN."""
    plain = np.where(np.isnan(values), np.array(np.nan, values.dtype), np.where(values == 0, 0, values))
    return np.ascontiguousarray(plain.astype(values.dtype)).view(integer)


def _hash_text(value: object) -> int:
    data = value.encode() if isinstance(value, str) else bytes(value)  # type: ignore[call-overload]
    total = 0
    for byte in data:
        total = (31 * total + (byte - 256 if byte > 127 else byte)) & _MASK
    return total


def _hash_decimal(value: object) -> int:
    """31·hash(unscaled) + scale, where the hash of an integer runs over its 32-bit digits from the top."""
    if not isinstance(value, Decimal) or value == 0:
        return 0
    sign, digits, exponent = value.as_tuple()
    unscaled, scale = int("".join(map(str, digits))), -int(exponent)
    while scale > 0 and unscaled % 10 == 0:
        unscaled, scale = unscaled // 10, scale - 1
    total = 0
    for digit in unscaled.to_bytes((unscaled.bit_length() + 31) // 32 * 4, "big").hex(" ", 4).split():
        total = (31 * total + int(digit, 16)) & _MASK
    return (31 * (-total if sign else total) + scale) & _MASK
