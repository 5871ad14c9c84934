"""Deleted positions of data files, for Iceberg readers: Puffin files of deletion vectors (format version 3), and
position delete files (format version 2).

    file    PFA1 | blob … | PFA1 | footer JSON | int32 LE its length | 4 zero bytes | PFA1
    blob    a 64-bit deletion vector (format/deletion_vector.py)
WHY        written beside our own index files: these begin with another byte, and Puffin readers demand PFA1 there.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

from tablestore_engine.format.deletion_vector import encode_vector

_FILE_PATH_ID, _POSITION_ID = 2147483546, 2147483545


def _column(name: str, type_: pa.DataType, number: int) -> pa.Field:
    return pa.field(name, type_, nullable=False, metadata={b"PARQUET:field_id": str(number).encode()})


_SCHEMA = pa.schema(
    [_column("file_path", pa.string(), _FILE_PATH_ID), _column("pos", pa.int64(), _POSITION_ID)]
)


def encode_position_deletes(path: str, positions: BitMap) -> bytes:
    """A file with these positions of the data file `path`, ascending: a row for each."""
    column = np.asarray(positions.to_array(), dtype=np.int64)
    rows = pa.table([pa.array([path] * len(column), pa.string()), pa.array(column)], schema=_SCHEMA)
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="zstd")
    return bytes(sink.getvalue())


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
