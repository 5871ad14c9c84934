"""Laws of the bucket hash: columns and single rows agree, and position in a batch does not matter."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tablestore_engine.format.binary_row import encode_bare_row
from tablestore_engine.format.bucket import bucket_of, hash_rows
from tablestore_engine.format.data_type import DataType
from tablestore_engine.format.murmur import hash_words
from tablestore_engine.format.type_arrow import type_to_arrow
from tests.laws.strategies_format import typed_rows
from tests.unit.format.row_hash import hash_row_bytes

Case = tuple[list[DataType], list[tuple[object, ...]]]


def _columns(types: list[DataType], rows: list[tuple[object, ...]]) -> list[pa.Array]:
    return [pa.array([row[i] for row in rows], type_to_arrow(t)) for i, t in enumerate(types)]


@given(typed_rows())
def test_columns_hash_as_binary_rows_do(case: Case) -> None:
    """The vectorised hash equals murmur over each row's BinaryRow, for all scalar types, nulls and mixtures."""
    types, rows = case
    expected = [hash_row_bytes(encode_bare_row(row, types)) for row in rows]
    assert hash_rows(_columns(types, rows), types).tolist() == expected


@given(typed_rows(), st.data())
def test_slices_hash_as_their_rows(case: Case, data: st.DataObject) -> None:
    """A slice of a batch has the hashes of its rows: offsets of the Arrow buffers are respected."""
    types, rows = case
    start = data.draw(st.integers(0, len(rows)))
    columns = _columns(types, rows)
    whole = hash_rows(columns, types)
    assert hash_rows([c.slice(start) for c in columns], types).tolist() == whole[start:].tolist()


@given(st.lists(st.integers(-(2**31), 2**31 - 1)), st.integers(1, 2**31 - 1))
def test_buckets_are_absolute_truncating_remainders(hashes: list[int], count: int) -> None:
    """The bucket is Java's Math.abs(hash % n): always within 0 … n-1."""
    buckets = bucket_of(np.array(hashes, np.int32), count)
    assert buckets.tolist() == [abs(h) % count for h in hashes]


@given(st.lists(st.lists(st.integers(0, 2**64 - 1), min_size=3, max_size=3), min_size=1, max_size=5))
def test_words_hash_as_bytes(rows: list[list[int]]) -> None:
    """hash_words over word columns equals hash_row_bytes over the same little-endian bytes."""
    words = [np.array(column, np.uint64) for column in zip(*rows, strict=True)]
    expected = [hash_row_bytes(b"".join(w.to_bytes(8, "little") for w in row)) for row in rows]
    assert hash_words(words, len(rows)).tolist() == expected
