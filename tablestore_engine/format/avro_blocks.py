"""Splits Avro container files before a decoder sees them: framing, compression and the writer's schema, within limits.

Steps      magic → header map → is the codec known → writer's schema within limits → each block unpacked up to a limit
INVARIANT  memory is bounded: all blocks together unpack to RATIO_MAX times the file's size at most (or FREE_BYTES).
INVARIANT  a record takes a byte and no schema contains itself: a count cannot promise more than there is.
WHY        the decoder unpacks a block whatever its size, loops as often as a count says, and recurses in C.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from tablestore_engine.format.json_file import DEPTH_MAX

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdDecompressor
else:
    from backports.zstd import ZstdDecompressor

# optional: what fastavro decodes snappy with
_CRAMJAM: Any = importlib.import_module("cramjam") if importlib.util.find_spec("cramjam") else None
FREE_BYTES = 64 << 20
RATIO_MAX = 32
_MAGIC = b"Obj\x01"
_SYNC_BYTES = 16
_NODES_MAX = 10_000
_WIDTHS = {"null": 0, "boolean": 1, "int": 1, "long": 1, "float": 4, "double": 8, "bytes": 1, "string": 1}


class _Cursor:
    """A position in the bytes; every fault is a ValueError."""

    def __init__(self, data: bytes) -> None:
        self.data = memoryview(data)
        self.at = 0

    def take(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self.data):
            raise ValueError(f"{count} bytes are expected at {self.at}, the file has {len(self.data)}")
        self.at += count
        return bytes(self.data[self.at - count : self.at])

    def long(self) -> int:
        """Zigzag, seven bits per byte."""
        value, shift = 0, 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
            shift += 7
            if shift > 63:
                raise ValueError(f"a number at {self.at} has no end")


def open_container(data: bytes, codecs: Mapping[str, object]) -> tuple[str, bytes]:
    """(codec, container without compression); an unknown codec gives no bytes. Raises ValueError for damage."""
    cursor = _Cursor(data)
    if cursor.take(len(_MAGIC)) != _MAGIC:
        raise ValueError("it does not begin as an Avro file does")
    meta = dict(_header(cursor))
    sync = cursor.take(_SYNC_BYTES)
    codec = meta.get("avro.codec", b"null").decode()
    if codec not in codecs:
        return codec, b""
    schema = json.loads(meta.get("avro.schema", b""))
    _Shapes().width(schema, 0)
    left = max(FREE_BYTES, RATIO_MAX * len(data))
    out = bytearray(_MAGIC + _encode_header(meta["avro.schema"]) + sync)
    while cursor.at < len(data):
        count, size = cursor.long(), cursor.long()
        block = _unpack(codec, cursor.take(size), left)
        left -= len(block)
        if not 0 <= count <= len(block):
            raise ValueError(f"a block of {len(block)} bytes cannot hold {count} records")
        if cursor.take(_SYNC_BYTES) != sync:
            raise ValueError(f"the mark at {cursor.at} is not that of the header")
        out += _encode_long(count) + _encode_long(len(block)) + block + sync
    return codec, bytes(out)


def _header(cursor: _Cursor) -> Iterator[tuple[str, bytes]]:
    while (count := cursor.long()) != 0:
        if count < 0:
            count = -count
            cursor.long()  # the size of the map's block in bytes
        for _ in range(count):
            key = cursor.take(cursor.long()).decode()
            yield key, cursor.take(cursor.long())


def _unpack(codec: str, data: bytes, limit: int) -> bytes:
    """The block's records; ValueError once it would be larger than `limit`."""
    if codec == "null":
        block = data
    elif codec == "deflate":
        block = zlib.decompressobj(-15).decompress(data, limit + 1)
    elif codec == "zstandard":
        block = _unpack_zstd(data, limit)
    else:  # snappy: the length stands in front, four bytes of checksum behind
        length = _snappy_length(data)
        block = b"" if length > limit else bytes(_CRAMJAM.snappy.decompress_raw(data[:-4]))
        if length > limit or zlib.crc32(block).to_bytes(4, "big") != data[-4:]:
            raise ValueError(f"a block says it unpacks to {length} bytes (limit {limit}), or is damaged")
    if len(block) > limit:
        raise ValueError(f"it unpacks to more than {limit} bytes, {RATIO_MAX} times its size")
    return block


def _unpack_zstd(data: bytes, limit: int) -> bytes:
    parts, room = [], limit + 1
    while data and room > 0:  # frames one after the other
        unpacker = ZstdDecompressor()
        part = unpacker.decompress(data, max_length=room)
        parts.append(part)
        room -= len(part)
        if room > 0 and not unpacker.eof:
            raise ValueError("a compressed block ends too early")
        data = unpacker.unused_data if unpacker.eof else b""
    return b"".join(parts)


def _snappy_length(data: bytes) -> int:
    value = 0
    for index, byte in enumerate(data[:5]):
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value
    raise ValueError("a snappy block has no length")


def _encode_long(value: int) -> bytes:
    rest, out = (value << 1) ^ (value >> 63), bytearray()
    while rest > 0x7F:
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _encode_header(schema: bytes) -> bytes:
    pairs = ((b"avro.schema", schema), (b"avro.codec", b"null"))
    texts = b"".join(_encode_long(len(part)) + part for pair in pairs for part in pair)
    return _encode_long(len(pairs)) + texts + _encode_long(0)


class _Shapes:
    """Fewest bytes of a schema's values, by name; refuses what a decoder would not end at."""

    def __init__(self) -> None:
        self.named: dict[str, int | None] = {}
        self.nodes = 0

    def width(self, schema: Any, depth: int) -> int:  # noqa: ANN401 - parsed JSON
        self.nodes += 1
        if depth > DEPTH_MAX or self.nodes > _NODES_MAX:
            raise ValueError("the writer's schema is too large")
        if isinstance(schema, str):
            return self._named(schema)
        if isinstance(schema, list):
            widths = [self.width(branch, depth + 1) for branch in schema]
            return 1 + min(widths)
        kind = schema["type"]
        if kind in ("record", "error"):
            return self._record(schema, depth)
        if kind in ("array", "map"):
            if (
                self.width(schema["items" if kind == "array" else "values"], depth + 1) == 0
                and kind == "array"
            ):
                raise ValueError("an array of values without bytes could have any length")
            return 1
        if kind in ("enum", "fixed"):
            self.named[schema["name"]] = 1 if kind == "enum" else int(schema["size"])
            return self._named(schema["name"])
        return self.width(kind, depth + 1)

    def _record(self, schema: Any, depth: int) -> int:  # noqa: ANN401
        name = schema["name"]
        self.named[name] = None  # open: it must not be named inside itself
        total = sum(self.width(field["type"], depth + 1) for field in schema["fields"])
        self.named[name] = total
        return total

    def _named(self, name: str) -> int:
        if name in _WIDTHS:
            return _WIDTHS[name]
        known = self.named.get(name) or self.named.get(name.rpartition(".")[2])
        if known is None:
            raise ValueError(f"the writer's schema names {name!r} inside itself, before it, or it is empty")
        return known
