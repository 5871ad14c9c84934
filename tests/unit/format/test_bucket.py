"""Bucket hash: equal to Paimon's Java on every vector, for scalars and for whole columns."""

# ruff: noqa: DTZ001 — values of TIMESTAMP have no zone
from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from tablestore_engine.errors import FixData, FixRequest, Unsupported
from tablestore_engine.format.binary_row import encode_bare_row
from tablestore_engine.format.bucket import assign_buckets, bucket_of, hash_rows
from tablestore_engine.format.data_type import DataType
from tablestore_engine.format.type_arrow import type_to_arrow
from tablestore_engine.format.type_text import parse_type
from tests.unit.format.bucket_vectors import BUCKET_VECTORS, BucketVector
from tests.unit.format.row_hash import hash_row_bytes


@pytest.mark.parametrize("vector", BUCKET_VECTORS, ids=lambda v: f"{'_'.join(v.types)}-{v.hash}")
def test_vectors_by_row_bytes(vector: BucketVector) -> None:
    """Murmur over the BinaryRow of each vector gives Java's hash and buckets."""
    value = hash_row_bytes(encode_bare_row(vector.row, [parse_type(t) for t in vector.types]))
    assert value == vector.hash
    hashes = np.array([value], np.int32)
    assert (bucket_of(hashes, 4)[0], bucket_of(hashes, 7)[0]) == (vector.bucket_of_4, vector.bucket_of_7)


@pytest.mark.parametrize(
    "vector", [v for v in BUCKET_VECTORS if v.types], ids=lambda v: f"{'_'.join(v.types)}-{v.hash}"
)
def test_vectors_by_arrow_columns(vector: BucketVector) -> None:
    """The column form gives the same, also between nulls, in slices and in chunks."""
    types = [parse_type(t) for t in vector.types]
    columns = [pa.array([None, v, None, v], type_to_arrow(t)) for v, t in zip(vector.row, types, strict=True)]
    null = hash_row_bytes(encode_bare_row((None,) * len(types), types))
    assert hash_rows(columns, types).tolist() == [null, vector.hash, null, vector.hash]
    assert hash_rows([c.slice(1, 2) for c in columns], types).tolist() == [vector.hash, null]
    chunked = [pa.chunked_array([c.slice(0, 1), c.slice(1, 3)]) for c in columns]
    assert hash_rows(chunked, types).tolist() == [null, vector.hash, null, vector.hash]
    assert assign_buckets(columns, types, 7)[1] == vector.bucket_of_7


def test_texts_of_many_lengths_in_one_batch() -> None:
    """Rows of different padded lengths are hashed in groups and come back in order."""
    types = [parse_type("STRING"), parse_type("BIGINT"), parse_type("STRING")]
    first = ["x" * n for n in range(40)]
    third = [None if n % 5 == 0 else "ü" * (n % 11) for n in range(40)]
    columns = [pa.array(first), pa.array(range(40), pa.int64()), pa.array(third, pa.string())]
    expected = [
        hash_row_bytes(encode_bare_row(row, types)) for row in zip(first, range(40), third, strict=True)
    ]
    assert hash_rows(columns, types).tolist() == expected


def test_bytes_below_a_null_are_not_hashed() -> None:
    """A null text whose buffer still holds bytes hashes as any null."""
    full = pa.array(["longer than seven", "b"], pa.large_string())
    hidden = pa.Array.from_buffers(pa.large_string(), 2, [pa.py_buffer(b"\x02"), *full.buffers()[1:]])
    text = parse_type("STRING")
    assert hash_rows([hidden], [text]).tolist() == hash_rows([pa.array([None, "b"])], [text]).tolist()


def test_more_rows_than_one_chunk() -> None:
    """The inner chunking does not show: every row of a long column has its own hash."""
    column = pa.array(range(70_000), pa.int64())
    hashes = hash_rows([column], [parse_type("BIGINT")])
    for i in (0, 65_535, 65_536, 69_999):
        assert hashes[i] == hash_row_bytes(encode_bare_row((i,), [parse_type("BIGINT")]))


def test_other_arrow_forms_are_cast_first() -> None:
    """Dictionaries, views, narrower integers and coarser timestamps hash as the column type says."""
    text, big, stamp = parse_type("STRING"), parse_type("BIGINT"), parse_type("TIMESTAMP(6)")
    plain = hash_rows([pa.array(["a", "longer than seven"])], [text]).tolist()
    assert hash_rows([pa.array(["a", "longer than seven"]).dictionary_encode()], [text]).tolist() == plain
    assert hash_rows([pa.array(["a", "longer than seven"], pa.string_view())], [text]).tolist() == plain
    assert hash_rows([pa.array([-1], pa.int8())], [big]).tolist() == [-821098432]
    day = dt.datetime(2024, 1, 1)
    assert hash_rows([pa.array([day], pa.timestamp("s"))], [stamp]) == hash_rows(
        [pa.array([day], pa.timestamp("us"))], [stamp]
    )


def test_empty_batches() -> None:
    """No rows, no hashes, whatever the type."""
    for text in ("STRING", "DECIMAL(20,2)", "BIGINT", "TIMESTAMP(6)", "BOOLEAN"):
        type_ = parse_type(text)
        assert len(hash_rows([pa.array([], type_to_arrow(type_))], [type_])) == 0
        assert len(hash_rows([pa.chunked_array([], type_to_arrow(type_))], [type_])) == 0


def test_bucket_of_extreme_hashes() -> None:
    """The absolute value is taken in 64 bits: -2**31 does not overflow (format.md#buckets)."""
    assert bucket_of(np.array([-(2**31), 2**31 - 1, -1], np.int32), 3).tolist() == [2, 1, 1]
    with pytest.raises(FixRequest):
        bucket_of(np.array([1], np.int32), 0)


def test_mod_function() -> None:
    """`mod` is floorMod of the one integer key; anything else is refused."""
    big = parse_type("BIGINT")
    assert assign_buckets([pa.array([-1, 0, 7, None])], [big], 4, "mod").tolist() == [3, 0, 3, 0]
    for columns, types in (([pa.array(["a"])], [parse_type("STRING")]), ([pa.array([1])] * 2, [big] * 2)):
        with pytest.raises(FixRequest):
            assign_buckets(columns, types, 4, "mod")
    with pytest.raises(FixRequest):
        assign_buckets([pa.array([1])], [big], 0, "mod")


@pytest.mark.parametrize(
    ("text", "value", "hash_"),
    [
        ("INT", 84, 84),
        ("BIGINT", -42, 41),
        ("BIGINT", 2**63 - 1, -(2**31)),
        ("BOOLEAN", True, 1),
        ("STRING", "val_84", -823832826 - 31 * 84),
        ("STRING", "é", (31 * (0xC3 - 256) + (0xA9 - 256))),
        ("BYTES", b"\xff", -1),
        ("DATE", dt.date(1970, 1, 3), 2),
        ("FLOAT", -0.0, 0),
        ("FLOAT", 1.0, 0x3F800000),
        ("DOUBLE", 1.0, 0x3FF00000),
        ("DECIMAL(10,2)", Decimal("1.50"), 31 * 15 + 1),
        ("DECIMAL(10,2)", Decimal("-1.50"), 31 * -15 + 1),
        ("DECIMAL(10,2)", Decimal("100.00"), 31 * 100),
        ("DECIMAL(38,2)", Decimal(2**32), 31 * (31 * 1 + 0)),
        ("INT", None, 0),
    ],
)
def test_hive_function(text: str, value: object, hash_: int) -> None:
    """`hive` follows Hive's hash of each type, then masks the sign."""
    type_ = parse_type(text)
    wrapped = (hash_ + 2**31) % 2**32 - 2**31
    column = pa.array([value], type_to_arrow(type_))
    assert assign_buckets([column], [type_], 1009, "hive").tolist() == [(wrapped & 0x7FFFFFFF) % 1009]


@pytest.mark.parametrize(
    ("text", "value", "bucket"),
    [
        ("DECIMAL(10,2)", Decimal("-1.50"), 232),
        ("DECIMAL(10,2)", Decimal("100.00"), 73),
        ("DECIMAL(38,2)", Decimal("4294967296.00"), 961),
        ("DECIMAL(38,0)", Decimal(-12345678901234567890123456789012345678), 1001),
        ("STRING", "é", 736),
        ("DOUBLE", 1.5, 740),
        ("BYTES", b"\xff\x02", 667),
        ("SMALLINT", -3, 693),
        ("DATE", dt.date(1969, 12, 29), 693),
    ],
)
def test_hive_buckets_are_those_of_paimon(text: str, value: object, bucket: int) -> None:
    """Buckets of 1009 as Paimon 1.4.2's own HiveBucketFunction (Java) gave them."""
    type_ = parse_type(text)
    assert assign_buckets([pa.array([value], type_to_arrow(type_))], [type_], 1009, "hive").tolist() == [
        bucket
    ]


def test_hive_function_combines_columns() -> None:
    """Several columns are combined by 31·h + hash, and timestamps are refused."""
    types = [parse_type("INT"), parse_type("STRING")]
    columns = [pa.array([19]), pa.array(["val_19"])]
    assert assign_buckets(columns, types, 1009, "hive").tolist() == [(-823835053 & 0x7FFFFFFF) % 1009]
    stamp = parse_type("TIMESTAMP(3)")
    with pytest.raises(Unsupported, match="TIMESTAMP"):
        assign_buckets([pa.array([0], pa.timestamp("ms"))], [stamp], 4, "hive")


def test_wrong_calls_are_refused() -> None:
    """Nested keys, unequal columns, no columns, unknown functions and lossy casts name themselves."""
    with pytest.raises(Unsupported):
        hash_rows([pa.array([[1]])], [DataType("ARRAY", element=parse_type("INT"))])
    for columns in ([], [pa.array([1]), pa.array([1, 2])]):
        with pytest.raises(FixRequest):
            hash_rows(columns, [parse_type("BIGINT")] * len(columns))
    with pytest.raises(FixRequest):
        assign_buckets([pa.array([1])], [parse_type("BIGINT")], 4, "md5")
    with pytest.raises(FixData):
        hash_rows([pa.array([300])], [parse_type("TINYINT")])
