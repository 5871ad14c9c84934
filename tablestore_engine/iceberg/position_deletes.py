"""Position delete files (format version 2): the deleted positions of one data file as Parquet rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyroaring import BitMap

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
