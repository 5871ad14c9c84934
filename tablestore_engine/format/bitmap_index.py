"""Paimon's bitmap index of a column of one data file, in its bytes: value → the rows that have it (type `bitmap`).

Version 2  version, rows, values, whether there is NULL, its offset and length · blocks: first value, offset · length of
           all blocks · blocks: entries of value, offset, length · Roaring bitmaps. Written
Version 1  one list of value and offset instead of blocks. Read
PAIMON     an offset below 0 is a single row, -1 - row; blocks have 16 KiB at most and values in ascending order.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pyroaring import BitMap

BITMAP = "bitmap"
TEXT = "text"  # values with a length before them
_BLOCK_BYTES = 16 << 10
_V1, _V2 = 1, 2

Value = int | bytes


def encode_bitmaps(values: Mapping[Value, BitMap], nulls: BitMap, rows: int, code: str) -> bytes | None:
    """`code`: of struct for the values, or TEXT. None: a value is longer than a block."""
    body, at, entries = [], 0, []
    if len(nulls) > 1:
        body.append(nulls.serialize())
        at = len(body[0])
    for value in sorted(values):
        found = values[value]
        if len(found) == 1:
            entries.append((value, -1 - found[0], -1))
            continue
        data = found.serialize()
        entries.append((value, at, len(data)))
        body.append(data)
        at += len(data)
    blocks = _blocks(entries, code)
    if any(len(block) > _BLOCK_BYTES for _, block in blocks):
        return None
    parts = [struct.pack(">Bii?", _V2, rows, len(values), bool(nulls))]
    if nulls:
        parts.append(struct.pack(">ii", -1 - nulls[0] if len(nulls) == 1 else 0, len(nulls.serialize())))
    parts.append(struct.pack(">i", len(blocks)))
    offset = 0
    for value, block in blocks:
        parts += [_encode(value, code), struct.pack(">i", offset)]
        offset += len(block)
    parts.append(struct.pack(">i", offset))
    return b"".join([*parts, *(block for _, block in blocks), *body])


def _blocks(entries: list[tuple[Value, int, int]], code: str) -> list[tuple[Value, bytes]]:
    found: list[tuple[Value, list[bytes]]] = []
    size = 0
    for value, offset, length in entries:
        data = _encode(value, code) + struct.pack(">ii", offset, length)
        if not found or size + len(data) > _BLOCK_BYTES:
            found.append((value, []))
            size = 4
        size += len(data)
        found[-1][1].append(data)
    return [(value, b"".join([struct.pack(">i", len(parts)), *parts])) for value, parts in found]


@dataclass(frozen=True)
class BitmapIndex:
    """`blocks`: first values, ascending, and their places; version 1 has one block, with no first value needed.

    All methods raise ValueError for bytes that are damaged.
    """

    data: bytes
    code: str
    rows: int
    has_null: bool
    first: tuple[Value, ...]
    places: tuple[int, ...]
    counted: int | None = None  # entries of the one list of version 1

    def holds(self, value: Value) -> bool:
        if self.counted is not None:
            return value in self._listed
        at = bisect_right(self.first, value) - 1
        return at >= 0 and value in self._of_block(at)

    def _of_block(self, at: int) -> frozenset[Value]:
        if at not in self._known:
            self._known[at] = _entries(self.data, self.places[at], self.code)
        return self._known[at]

    @cached_property
    def _known(self) -> dict[int, frozenset[Value]]:
        return {}

    @cached_property
    def _listed(self) -> frozenset[Value]:
        return _values(self.data, self.places[0], self.counted or 0, self.code, beside=4)


def decode_bitmaps(data: bytes, code: str) -> BitmapIndex:
    """Raises ValueError for bytes that are none."""
    try:
        version, rows, values, has_null = struct.unpack_from(">Bii?", data)
        at = 10
        if version == _V1:
            return BitmapIndex(data, code, rows, has_null, (), (at + 4 * has_null,), values)
        if version != _V2:
            raise ValueError(f"a bitmap index of version {version}")
        at += 8 * has_null
        (count,) = struct.unpack_from(">i", data, at)
        at, first, offsets = at + 4, [], []
        for _ in range(count):
            value, at = _decode(data, at, code)
            first.append(value)
            offsets.append(struct.unpack_from(">i", data, at)[0])
            at += 4
    except struct.error as error:
        raise ValueError("a bitmap index that is cut off") from error
    return BitmapIndex(data, code, rows, has_null, tuple(first), tuple(at + 4 + one for one in offsets))


def _entries(data: bytes, at: int, code: str) -> frozenset[Value]:
    if at < 0 or at + 4 > len(data):
        raise ValueError("a block of a bitmap index outside of it")
    return _values(data, at + 4, struct.unpack_from(">i", data, at)[0], code, beside=8)


def _values(data: bytes, at: int, count: int, code: str, *, beside: int) -> frozenset[Value]:
    """Of entries, each with so many bytes behind its value."""
    found = set()
    try:
        for _ in range(count):
            value, at = _decode(data, at, code)
            found.add(value)
            at += beside
    except struct.error as error:
        raise ValueError("a bitmap index that is cut off") from error
    return frozenset(found)


def _encode(value: Value, code: str) -> bytes:
    if isinstance(value, bytes):
        return struct.pack(">i", len(value)) + value
    return struct.pack(f">{code}", value)


def _decode(data: bytes, at: int, code: str) -> tuple[Value, int]:
    if code != TEXT:
        return int(struct.unpack_from(f">{code}", data, at)[0]), at + struct.calcsize(f">{code}")
    (length,) = struct.unpack_from(">i", data, at)
    end = at + 4 + length
    if length < 0 or end > len(data):
        raise ValueError("a bitmap index that is cut off")
    return data[at + 4 : end], end
