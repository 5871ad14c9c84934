"""Index files of Paimon: indexes of columns of one data file in one sequence of bytes, embedded in a manifest or beside
the data file.

Bytes      magic, version, length of the head, columns: name, indexes: type, start, length · an unused length · the
           indexes. Numbers are big endian; names are in Java's modified UTF-8 behind two bytes of length
PAIMON     a start of -1 stands for an index of a column without any value, of maps (format.md#file-indexes).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

_MAGIC, _VERSION, _EMPTY = 1493475289347502, 1, -1
_FIXED = struct.Struct(">qii")  # magic, version, length of the head
_PLACE = struct.Struct(">ii")
INDEX_SUFFIX = ".index"

Indexes = Mapping[str, Mapping[str, bytes]]  # column → index type → its bytes


@dataclass(frozen=True)
class FileIndex:
    """What a data file has indexes of; `places`: column → index type → first byte and length."""

    data: bytes
    places: Mapping[str, Mapping[str, tuple[int, int]]]

    def find(self, column: str, kind: str) -> bytes | None:
        """The bytes of an index; None without, b'' where the column has no value. Raises ValueError."""
        place = self.places.get(column, {}).get(kind)
        if place is None:
            return None
        start, length = place
        if start == _EMPTY:
            return b""
        if start < 0 or length < 1 or start + length > len(self.data):
            raise ValueError(f"index {kind} of {column} ends outside of the file")
        return self.data[start : start + length]


def encode_file_index(indexes: Indexes) -> bytes:
    names = [(_encode_text(column), kinds) for column, kinds in indexes.items()]
    size = _FIXED.size + 4 + 4
    size += sum(
        len(name) + 4 + sum(len(_encode_text(kind)) + _PLACE.size for kind in kinds) for name, kinds in names
    )
    head, body = [_FIXED.pack(_MAGIC, _VERSION, size), struct.pack(">i", len(names))], b""
    for name, kinds in names:
        head += [name, struct.pack(">i", len(kinds))]
        for kind, data in kinds.items():
            head += [_encode_text(kind), _PLACE.pack(size + len(body), len(data))]
            body += data
    return b"".join([*head, struct.pack(">i", 0), body])


def decode_file_index(data: bytes) -> FileIndex:
    """Raises ValueError for bytes that are no index file of this version."""
    try:
        magic, version, _ = _FIXED.unpack_from(data)
        if magic != _MAGIC or version != _VERSION:
            raise ValueError(f"no index file of version {_VERSION}")
        at, places = _FIXED.size + 4, {}
        for _ in range(struct.unpack_from(">i", data, _FIXED.size)[0]):
            column, at = _decode_text(data, at)
            (count,) = struct.unpack_from(">i", data, at)
            at, kinds = at + 4, {}
            for _ in range(count):
                kind, at = _decode_text(data, at)
                kinds[kind] = _PLACE.unpack_from(data, at)
                at += _PLACE.size
            places[column] = kinds
    except struct.error as error:
        raise ValueError("an index file that is cut off") from error
    return FileIndex(data, places)


def _encode_text(text: str) -> bytes:
    """As DataOutput.writeUTF does: surrogates one by one, NUL as two bytes."""
    units = memoryview(text.encode("utf-16-be", "surrogatepass")).cast("B")
    pairs = (chr(units[at] << 8 | units[at + 1]) for at in range(0, len(units), 2))
    data = "".join(pairs).encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")
    return struct.pack(">H", len(data)) + data


def _decode_text(data: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">H", data, at)
    end = at + 2 + length
    if end > len(data):
        raise ValueError("an index file that is cut off")
    text = data[at + 2 : end].replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
    return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass"), end
