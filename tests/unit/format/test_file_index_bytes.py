"""File indexes in bytes: hashes, bloom filters, bitmaps, and what is damaged."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from tablestore_engine.format.bitmap_index import TEXT, decode_bitmaps, encode_bitmaps
from tablestore_engine.format.bloom_filter import BloomFilterBuilder, decode_bloom_filter, hash_integers
from tablestore_engine.format.file_index import decode_file_index, encode_file_index
from tablestore_engine.store.files.file_index_output import hashes_of

# xxHash64 of the reference implementation, seed 0
VECTORS = {
    "": 0xEF46DB3751D8E999,
    "a": 0xD24EC4F1A98C6E5B,
    "abc": 0x44BC2CF5AD770999,
    "Nobody inspects the spammish repetition": 0xFBCEA83C8A378BF1,
}


def test_hashes_of_texts_are_those_of_the_reference() -> None:
    """All texts in one call, whatever their lengths, also of a slice."""
    texts = pa.array(["before", *VECTORS])
    assert hashes_of(texts.slice(1)).tolist() == list(VECTORS.values())


def test_a_bloom_filter_has_what_was_added_and_few_others() -> None:
    """No value is lost; others pass about as often as the rate says."""
    values = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 3_000)
    made = BloomFilterBuilder(1_000, 0.05)
    made.add(hash_integers(values[:1_000]))
    found = decode_bloom_filter(made.encode())
    assert found.held(hash_integers(values[:1_000])).all()
    assert 0 < found.held(hash_integers(values[1_000:])).sum() < 200


@pytest.mark.parametrize("code", ["q", TEXT])
def test_a_bitmap_index_has_its_values_and_no_others(code: str) -> None:
    """Over several blocks, with values of one row, and NULL in none, one or many rows."""
    for nulls in (BitMap(), BitMap([3]), BitMap([3, 4])):
        values = {
            number * 3 if code == "q" else b"v%d" % (number * 3): BitMap([number]) for number in range(3_000)
        }
        some = next(iter(values))
        values[some] = BitMap([0, 1, 2])
        data = encode_bitmaps(values, nulls, 3_005, code)
        assert data is not None
        found = decode_bitmaps(data, code)
        assert (found.rows, found.has_null) == (3_005, bool(nulls))
        assert len(found.first) > 1
        assert all(map(found.holds, values))
        others = [number if code == "q" else b"v%d" % number for number in range(1, 3_000, 3)]
        assert not any(map(found.holds, [*others, -1 if code == "q" else b""]))


def test_a_value_that_no_block_takes_has_no_bitmap_index() -> None:
    """Java fails there."""
    assert encode_bitmaps({b"x" * (17 << 10): BitMap([0])}, BitMap(), 1, TEXT) is None


def test_columns_with_any_name_are_found_again() -> None:
    """Names are in Java's modified UTF-8."""
    made = {"a": {"bitmap": b"1", "bloom-filter": b"22"}, "\0é\U0001f600": {"bitmap": b"333"}}
    found = decode_file_index(encode_file_index(made))
    assert {
        column: {kind: found.find(column, kind) for kind in kinds} for column, kinds in made.items()
    } == made
    assert found.find("a", "bsi") is found.find("b", "bitmap") is None


def _bitmaps() -> bytes:
    return encode_bitmaps({b"a": BitMap([0, 1]), b"b": BitMap([2])}, BitMap([3, 4]), 5, TEXT) or b""


@pytest.mark.parametrize(
    ("data", "read"),
    [
        (
            encode_file_index({"a": {"bitmap": b"123"}}),
            lambda data: decode_file_index(data).find("a", "bitmap"),
        ),
        (_bitmaps(), lambda data: decode_bitmaps(data, TEXT).holds(b"a")),
        (_bitmaps(), lambda data: decode_bitmaps(data, "q").holds(1)),
        (
            BloomFilterBuilder(10, 0.1).encode(),
            lambda data: decode_bloom_filter(data).held(np.zeros(1, np.uint64)),
        ),
    ],
)
def test_bytes_that_are_damaged_raise_no_other_error(data: bytes, read: Callable[[bytes], object]) -> None:
    """Cut at any place, or with any byte changed: an answer or a ValueError."""
    draw = random.Random(1)
    cut = [data[:end] for end in range(len(data))]
    changed = [
        data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :] for at in range(len(data)) for _ in range(4)
    ]
    failed = 0
    for one in [*cut, *changed]:
        try:
            read(one)
        except ValueError:
            failed += 1
    assert failed >= 3
