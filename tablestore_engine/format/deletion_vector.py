"""Deletion vectors: which row positions of a data file are gone (format.md#deletion-vectors).

    index file   byte version = 1, then per vector { int32 BE size | body[size] | int32 BE crc32(body) }
    32-bit body  int32 BE magic 1581511376, portable RoaringBitmap                    f2 = size
    64-bit body  int32 LE magic 1681511377, int64 LE count, { int32 LE key, RoaringBitmap }…   f2 = size + 8

CHANGE     the forms of deletion vectors (option deletion-vectors.bitmap64)
PAIMON     f1 points at the size field in both forms; f2 leaves out the 8 framing bytes in the 32-bit form only
           (format.md#deletion-vectors). Java checks f2 against size; we check the checksum as well.
INVARIANT  positions are 0-based row numbers of the physical file; files stay below 2^32 rows.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

from pyroaring import BitMap

from tablestore_engine.errors import FixData
from tablestore_engine.format.index_manifest import DvRange

FILE_VERSION = 1
MAGIC_32 = 1581511376
MAGIC_64 = 1681511377
_FRAME_BYTES = 8


def encode_deletion_vectors(
    vectors: Mapping[str, BitMap], *, is_64_bit: bool
) -> tuple[bytes, tuple[DvRange, ...]]:
    """One index file with all vectors of a bucket in one form; no vectors give the version byte alone."""
    out = bytearray([FILE_VERSION])
    ranges = []
    for data_file, bitmap in vectors.items():
        framed = encode_vector(bitmap, is_64_bit=is_64_bit)
        length = len(framed) - (0 if is_64_bit else _FRAME_BYTES)
        ranges.append(DvRange(data_file, len(out), length, len(bitmap)))
        out += framed
    return bytes(out), tuple(ranges)


def encode_vector(positions: BitMap, *, is_64_bit: bool) -> bytes:
    """One vector with its size and checksum. The 64-bit form is also the blob of a Puffin file."""
    compact = BitMap(positions, optimize=True)  # a copy: the caller's stays as it is
    head = struct.pack("<iqi", MAGIC_64, 1, 0) if is_64_bit else struct.pack(">i", MAGIC_32)
    body = head + compact.serialize()
    return struct.pack(">i", len(body)) + body + struct.pack(">I", zlib.crc32(body))


def decode_deletion_vector(data: bytes, where: DvRange, file_name: str = "") -> BitMap:
    """The vector at a range of an index file's bytes. Raises FixData TS1133 naming file and range."""
    if not data or data[0] != FILE_VERSION:
        raise _damaged(file_name, where, f"version {data[:1].hex() or 'missing'} is not {FILE_VERSION}")
    end = where.start + 4
    if where.start < 1 or len(data) < end:
        raise _damaged(file_name, where, f"the file has only {len(data)} bytes")
    (size,) = struct.unpack_from(">i", data, where.start)
    body = data[end : end + size]
    if size < 4 or len(data) < end + size + 4:
        raise _damaged(file_name, where, f"a body of {size} bytes does not fit into {len(data)}")
    (checksum,) = struct.unpack_from(">I", data, end + size)
    if checksum != zlib.crc32(body):
        raise _damaged(file_name, where, "the checksum is wrong")
    bitmap = _decode_body(body, size, where, file_name)
    if where.cardinality is not None and len(bitmap) != where.cardinality:
        raise _damaged(file_name, where, f"{len(bitmap)} positions instead of {where.cardinality}")
    return bitmap


def _decode_body(body: bytes, size: int, where: DvRange, file_name: str) -> BitMap:
    if struct.unpack_from(">i", body)[0] == MAGIC_32:
        if where.length != size:
            raise _damaged(file_name, where, f"length {where.length} is not {size}")
        return _bitmap(body[4:], where, file_name)
    if struct.unpack_from("<i", body)[0] == MAGIC_64:
        if where.length != size + _FRAME_BYTES:
            raise _damaged(file_name, where, f"length {where.length} is not {size + _FRAME_BYTES}")
        return _decode_64(body, where, file_name)
    raise _damaged(file_name, where, f"magic {body[:4].hex()} is not known")


def _decode_64(body: bytes, where: DvRange, file_name: str) -> BitMap:
    """Only high word 0 can occur: files have fewer than 2^32 rows."""
    if len(body) < 12:
        raise _damaged(file_name, where, f"a body of {len(body)} bytes has no count")
    (count,) = struct.unpack_from("<q", body, 4)
    if count == 0:
        return BitMap()
    if count != 1 or body[12:16] != bytes(4):
        raise _damaged(file_name, where, "positions beyond 2^32 are not possible")
    return _bitmap(body[16:], where, file_name)


def _bitmap(data: bytes, where: DvRange, file_name: str) -> BitMap:
    try:
        return BitMap.deserialize(data)
    except (ValueError, IndexError) as error:  # IndexError: pyroaring takes the address of byte 0
        raise _damaged(file_name, where, f"its {len(data)} bytes are no bitmap: {error}") from error


def _damaged(file_name: str, where: DvRange, why: str) -> FixData:
    return FixData(
        "TS1133",
        f"the deletion vector of {where.data_file} cannot be read",
        why=f"index file {file_name}, bytes {where.start}+{where.length}: {why}",
        fix="run tablestore verify; roll back to an earlier snapshot",
    )
