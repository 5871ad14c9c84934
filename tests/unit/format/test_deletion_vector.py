"""Deletion vectors: bytes of both forms by hand, ranges as Java counts them, damage by name."""

from __future__ import annotations

import struct
import zlib

import pytest
from pyroaring import BitMap

from tablestore_engine.errors import FixData
from tablestore_engine.format.deletion_vector import decode_deletion_vector, encode_deletion_vectors
from tablestore_engine.format.index_manifest import DvRange

# portable RoaringBitmap of 1…10 as one run: cookie 12347 | (containers - 1) << 16, run flags, key, cardinality - 1,
# runs, start, length - 1; and of {1, 5} as an array: cookie 12346, containers, key, cardinality - 1, offset, values
RUN = struct.pack("<I", 12347) + b"\x01" + struct.pack("<HHHHH", 0, 9, 1, 1, 9)
ARRAY = struct.pack("<IIHHIHH", 12346, 1, 0, 1, 16, 1, 5)
BODY_32 = struct.pack(">i", 1581511376)
BODY_64 = struct.pack("<i", 1681511377)


def _file(body: bytes) -> bytes:
    return b"\x01" + struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def _added(positions: range) -> BitMap:
    """A bitmap as deletes fill it: the constructor would have optimised it already."""
    bitmap = BitMap()
    for position in positions:
        bitmap.add(position)
    return bitmap


def test_golden_bytes_of_the_32_bit_form() -> None:
    """Version, big-endian size, big-endian magic, run-optimised bitmap, big-endian crc; f1 at the size, f2 = size."""
    data, ranges = encode_deletion_vectors({"data-a": _added(range(1, 11))}, is_64_bit=False)
    assert data == _file(BODY_32 + RUN)
    assert ranges == (DvRange("data-a", 1, 4 + len(RUN), 10),)


def test_golden_bytes_of_the_64_bit_form() -> None:
    """The frame of a Puffin blob, by which f2 counts."""
    data, ranges = encode_deletion_vectors({"data-a": _added(range(1, 11))}, is_64_bit=True)
    body = BODY_64 + struct.pack("<qi", 1, 0) + RUN
    assert data == _file(body)
    assert ranges == (DvRange("data-a", 1, len(body) + 8, 10),)


def test_several_vectors_follow_each_other() -> None:
    """Each range decodes to its own vector; frames have eight bytes around the body."""
    vectors = {"a": BitMap([1, 5]), "b": BitMap(range(100_000)), "c": BitMap([2**32 - 1])}
    data, ranges = encode_deletion_vectors(vectors, is_64_bit=False)
    assert {one.data_file: decode_deletion_vector(data, one) for one in ranges} == vectors
    assert [one.cardinality for one in ranges] == [2, 100_000, 1]
    assert ranges[1].start == 1 + ranges[0].length + 8
    assert len(data) == 1 + sum(one.length + 8 for one in ranges)


def test_when_the_last_vector_is_gone_one_byte_is_left() -> None:
    """A file without vectors is just the version byte, as Java writes it."""
    assert encode_deletion_vectors({}, is_64_bit=False) == (b"\x01", ())


def test_encoding_leaves_the_callers_bitmap_alone() -> None:
    """Run optimisation works on a copy."""
    bitmap = _added(range(1, 11))
    before = bitmap.serialize()
    encode_deletion_vectors({"a": bitmap}, is_64_bit=False)
    assert bitmap.serialize() == before


def test_a_bitmap_that_is_not_run_optimised_is_read() -> None:
    """Array containers, as other writers leave them, decode."""
    body = BODY_32 + ARRAY
    assert decode_deletion_vector(_file(body), DvRange("a", 1, len(body))) == BitMap([1, 5])


def test_the_64_bit_form_is_read() -> None:
    """Little-endian magic, count and key; f2 counts the eight framing bytes here (format.md#deletion-vectors)."""
    body = BODY_64 + struct.pack("<qi", 1, 0) + ARRAY
    assert decode_deletion_vector(_file(body), DvRange("a", 1, len(body) + 8)) == BitMap([1, 5])
    none = BODY_64 + struct.pack("<q", 0)
    assert decode_deletion_vector(_file(none), DvRange("a", 1, len(none) + 8)) == BitMap()


@pytest.mark.parametrize(
    ("body", "length"),
    [
        (BODY_32 + ARRAY, len(ARRAY) + 4 + 8),
        (BODY_64 + struct.pack("<qi", 1, 0) + ARRAY, 16 + len(ARRAY)),
        (BODY_32, 4),
        (BODY_32 + b"garbage", 11),
        (BODY_64, 12),
        (BODY_64 + struct.pack("<q", 1), 20),
        (BODY_64 + struct.pack("<qi", 1, 1) + ARRAY, 24 + len(ARRAY)),
        (BODY_64 + struct.pack("<qi", 1, 0), 24),
        (b"\0\0\0\x07" + ARRAY, 4 + len(ARRAY)),
        (b"", 0),
    ],
    ids=["32 counted as 64", "64 counted as 32", "no bitmap", "no bitmap inside", "no count", "no key", "high word",
         "64 without bitmap", "magic", "empty"],
)  # fmt: skip
def test_a_wrong_body_is_refused_though_its_checksum_fits(body: bytes, length: int) -> None:
    """Lengths, magic and bitmap are checked one by one, never by an exception of a library."""
    with pytest.raises(FixData) as caught:
        decode_deletion_vector(_file(body), DvRange("a", 1, length))
    assert caught.value.code == "TS1133"


@pytest.mark.parametrize("start", [-100, -3, 0, 2, 17, 10**6])
def test_a_range_that_starts_elsewhere_is_refused(start: int) -> None:
    """A wrong offset, negative or beyond the end, is damage."""
    data, (where,) = encode_deletion_vectors({"a": BitMap([1, 5])}, is_64_bit=False)
    with pytest.raises(FixData) as caught:
        decode_deletion_vector(data, DvRange("a", start, where.length))
    assert caught.value.code == "TS1133"


def test_a_wrong_checksum_names_file_and_range() -> None:
    """The message has the data file, the index file and the bytes, so that a person can look there."""
    data, (where,) = encode_deletion_vectors({"data-a": BitMap([1, 5])}, is_64_bit=False)
    broken = data[:-1] + bytes([data[-1] ^ 1])
    with pytest.raises(FixData) as caught:
        decode_deletion_vector(broken, where, "index-9")
    assert caught.value.code == "TS1133"
    for part in ("data-a", "index-9", f"1+{where.length}", "checksum"):
        assert part in str(caught.value)


@pytest.mark.parametrize("data", [b"", b"\x02" + bytes(40)])
def test_an_unknown_version_is_refused(data: bytes) -> None:
    """An empty file or another version byte is named, not guessed."""
    with pytest.raises(FixData, match="version") as caught:
        decode_deletion_vector(data, DvRange("a", 1, 20))
    assert caught.value.code == "TS1133"
