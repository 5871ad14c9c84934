"""Puffin files of deletion vectors (format version 3): the deleted positions of data files, for Iceberg readers.

    file    PFA1 | blob … | PFA1 | footer JSON | int32 LE its length | 4 zero bytes | PFA1
    blob    a 64-bit deletion vector (format/deletion_vector.py)
WHY        written beside our own index files: these begin with another byte, and Puffin readers demand PFA1 there.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass

from pyroaring import BitMap

from tablestore_engine.format.deletion_vector import encode_vector

_MAGIC = b"PFA1"
_ROW_POSITION_ID = 2147483645
_UNKNOWN = -1  # the snapshot is known only when the file is in one


@dataclass(frozen=True)
class VectorBlob:
    """Where the vector of a data file is."""

    offset: int
    length: int
    cardinality: int


def encode_puffin(vectors: Mapping[str, BitMap]) -> tuple[bytes, dict[str, VectorBlob]]:
    """One file with the vectors of these data files (by path), and where each is."""
    out = bytearray(_MAGIC)
    blobs: dict[str, VectorBlob] = {}
    footer = []
    for path, positions in vectors.items():
        blob = encode_vector(positions, is_64_bit=True)
        blobs[path] = VectorBlob(len(out), len(blob), len(positions))
        footer.append(
            {
                "type": "deletion-vector-v1",
                "fields": [_ROW_POSITION_ID],
                "snapshot-id": _UNKNOWN,
                "sequence-number": _UNKNOWN,
                "offset": len(out),
                "length": len(blob),
                "properties": {"referenced-data-file": path, "cardinality": str(len(positions))},
            }
        )
        out += blob
    payload = json.dumps({"blobs": footer, "properties": {}}, ensure_ascii=False).encode()
    out += _MAGIC + payload + struct.pack("<i", len(payload)) + bytes(4) + _MAGIC
    return bytes(out), blobs
