"""Laws of deletion vectors: round trip, ranges that tile the file, and damage that is always noticed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap

from tablestore_engine.errors import FixData
from tablestore_engine.format.deletion_vector import decode_deletion_vector, encode_deletion_vectors

POSITIONS = st.sets(st.integers(0, 2**32 - 1) | st.integers(0, 100), max_size=30)
STRETCHES = st.tuples(st.integers(0, 2**20), st.integers(1, 5000)).map(lambda pair: range(pair[0], sum(pair)))
BITMAPS = st.builds(
    lambda single, stretch: BitMap([*single, *stretch]), POSITIONS, st.just(range(0)) | STRETCHES
)
VECTORS = st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=8), BITMAPS, max_size=4)


@given(VECTORS, st.booleans())
def test_vectors_round_trip(vectors: dict[str, BitMap], is_64_bit: bool) -> None:
    """Each range gives back its file's positions, and says how many they are."""
    data, ranges = encode_deletion_vectors(vectors, is_64_bit=is_64_bit)
    assert {one.data_file: decode_deletion_vector(data, one) for one in ranges} == vectors
    assert [one.cardinality for one in ranges] == [len(bitmap) for bitmap in vectors.values()]


@given(VECTORS, st.booleans())
def test_ranges_tile_the_file(vectors: dict[str, BitMap], is_64_bit: bool) -> None:
    """Frames follow the version byte one after another without gaps up to the end."""
    frame = 0 if is_64_bit else 8  # which a range of the 32-bit form leaves out
    data, ranges = encode_deletion_vectors(vectors, is_64_bit=is_64_bit)
    at = 1
    for one in ranges:
        assert one.start == at
        assert int.from_bytes(data[at : at + 4], "big") == one.length + frame - 8
        at += one.length + frame
    assert at == len(data)


@given(BITMAPS, st.booleans(), st.data())
def test_any_changed_byte_is_noticed(bitmap: BitMap, is_64_bit: bool, data: st.DataObject) -> None:
    """One byte changed anywhere, or any cut, is TS1133: deleted rows never come back silently."""
    good, (where,) = encode_deletion_vectors({"a": bitmap}, is_64_bit=is_64_bit)
    place = data.draw(st.integers(0, len(good) - 1))
    if data.draw(st.booleans()):
        broken = good[:place]
    else:
        flipped = good[place] ^ data.draw(st.integers(1, 255))
        broken = good[:place] + bytes([flipped]) + good[place + 1 :]
    with pytest.raises(FixData) as caught:
        decode_deletion_vector(broken, where)
    assert caught.value.code == "TS1133"
