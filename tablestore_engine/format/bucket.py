"""Row → bucket: Paimon's hash of the bucket key, over whole Arrow columns (format.md#buckets).

CHANGE     the bucket of a row (options bucket, bucket-key, bucket-function.type)
Steps      a BinaryRow of each row is never built: its 8-byte words are arrays, one per word position;
           rows whose texts have equal padded lengths have words at equal positions and are hashed together
INVARIANT  equal to murmur over binary_row.encode_bare_row for every row (tests/laws/test_bucket_laws.py).
Hive       null 0 · BOOLEAN 1/0 · TINYINT, SMALLINT, INT, DATE, TIME the number · BIGINT (v >>> 32) ^ v ·
           FLOAT, DOUBLE their bits with -0.0 as 0.0 and one NaN · texts and binaries 31·h + signed byte ·
           DECIMAL as Java's BigDecimal.hashCode after its trailing zeros are cut · TIMESTAMP has none
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore_engine.errors import FixRequest, Unsupported
from tablestore_engine.format.bucket_columns import (
    KeyColumn,
    TextWords,
    key_column,
    row_words,
)
from tablestore_engine.format.data_type import BINARY_ROOTS, CHARACTER_ROOTS, DataType
from tablestore_engine.format.murmur import U64Array, hash_words
from tablestore_engine.format.scalar import cast_exact, python_values
from tablestore_engine.format.type_arrow import type_to_arrow
from tablestore_engine.format.type_text import type_to_text

Int32Array = npt.NDArray[np.int32]
BUCKET_FUNCTIONS = ("default", "mod", "hive")
_CHUNK_ROWS = 1 << 16  # the working arrays of a chunk stay in the processor's cache


def hash_rows(columns: Sequence[pa.Array | pa.ChunkedArray], types: Sequence[DataType]) -> Int32Array:
    """The signed 32-bit hash of each row: int32[rows]. Columns are cast to `types`; nulls count (format.md#buckets).

    Raises Unsupported TS1115 for nested types, FixData TS1117 when a column does not fit its type,
    FixRequest TS1118 for no columns.
    """
    rows = _row_count(columns)
    out = np.empty(rows, np.int32)
    for start in range(0, rows, _CHUNK_ROWS):
        count = min(_CHUNK_ROWS, rows - start)
        keys = [key_column(c.slice(start, count), t) for c, t in zip(columns, types, strict=True)]
        out[start : start + count] = _hash_chunk(keys, count)
    return out


def bucket_of(hashes: Int32Array, bucket_count: int) -> Int32Array:
    """|hash % n| with Java's truncating remainder: int32[rows] in 0 … n-1."""
    if bucket_count < 1:
        raise FixRequest(
            "TS1119",
            f"{bucket_count} buckets cannot be filled",
            why="a fixed bucket count is at least 1",
            fix="set the table option bucket to 1 or more",
        )
    wide = np.abs(hashes.astype(np.int64))  # 64 bits first: abs(-2**31) overflows in 32 (format.md#buckets)
    return (wide % bucket_count).astype(np.int32)


def assign_buckets(
    columns: Sequence[pa.Array | pa.ChunkedArray],
    types: Sequence[DataType],
    bucket_count: int,
    function: str = "default",
) -> Int32Array:
    """The bucket of each row by that `bucket-function.type`: int32[rows] (format.md#buckets).

    Raises FixRequest TS1119 (bucket count, or `mod` on anything but one INT or BIGINT), TS1120 (unknown function),
    and what hash_rows raises.
    """
    if function == "default":
        return bucket_of(hash_rows(columns, types), bucket_count)
    if function == "hive":
        return bucket_of(hive_hash_rows(columns, types) & np.int32(0x7FFFFFFF), bucket_count)
    if function == "mod":
        return _mod_buckets(columns, types, bucket_count)
    raise FixRequest(
        "TS1120",
        f"bucket function {function!r} is unknown",
        why=f"expected one of {', '.join(BUCKET_FUNCTIONS)}",
        fix="correct the table option bucket-function.type",
    )


def _mod_buckets(
    columns: Sequence[pa.Array | pa.ChunkedArray], types: Sequence[DataType], bucket_count: int
) -> Int32Array:
    bucket_of(np.empty(0, np.int32), bucket_count)
    if len(types) != 1 or types[0].root not in ("INT", "BIGINT"):
        raise FixRequest(
            "TS1119",
            f"bucket function mod cannot take ({', '.join(type_to_text(t) for t in types)})",
            why="it needs exactly one bucket key of type INT or BIGINT",
            fix="use bucket-function.type=default, or one integer as bucket-key",
        )
    column = cast_exact(columns[0], pa.int64(), types[0]).fill_null(0)  # a null slot reads as 0
    values: npt.NDArray[np.int64] = np.asarray(column, dtype=np.int64)
    return np.mod(values, bucket_count).astype(np.int32)


def _row_count(columns: Sequence[pa.Array | pa.ChunkedArray]) -> int:
    lengths = {len(column) for column in columns}
    if len(lengths) != 1:
        raise FixRequest(
            "TS1118",
            "rows cannot be hashed",
            why=f"columns of one common length are expected, got {sorted(lengths)}",
            fix="pass at least one key column, all from the same batch",
        )
    return lengths.pop()


def _hash_chunk(keys: Sequence[KeyColumn], rows: int) -> Int32Array:
    texts = [key for key in keys if isinstance(key, TextWords)]
    if not texts:
        return hash_words(row_words(keys, None), rows)
    groups = _groups_of_equal_size(texts)
    if len(groups) == 1:
        return hash_words(row_words(keys, None), rows)
    out = np.empty(rows, np.int32)
    for group in groups:
        out[group] = hash_words(row_words(keys, group), len(group))
    return out


def _groups_of_equal_size(texts: Sequence[TextWords]) -> list[npt.NDArray[np.intp]]:
    """Row numbers grouped by the padded lengths of all texts, which fix all offsets of a row."""
    group: U64Array = np.zeros(len(texts[0].padded), np.uint64)
    for text in texts:  # renumber after each column so that the combined key never overflows
        group = group * np.uint64(int(text.padded.max(initial=0)) + 1) + text.padded
        group = np.unique(group, return_inverse=True)[1].reshape(-1).astype(np.uint64)
    order = np.argsort(group, kind="stable")
    cuts = np.flatnonzero(np.diff(group[order])) + 1
    return np.split(order, cuts)


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
