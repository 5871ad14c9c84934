"""Hash index files: the hashes of the keys of one dynamic bucket (format.md#buckets).

PAIMON     signed 32-bit integers, big-endian, in any order, without a header: the murmur hash of the key's BinaryRow.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tablestore_engine.errors import FixData
from tablestore_engine.format.index_manifest import IndexEntry

Hashes = npt.NDArray[np.int32]
NO_HASHES: Hashes = np.empty(0, np.int32)
_STORED = np.dtype(">i4")


def encode_hashes(hashes: Hashes) -> bytes:
    return hashes.astype(_STORED).tobytes()


def decode_hashes(data: bytes, entry: IndexEntry) -> Hashes:
    """int32[row_count of the entry]. Raises FixData TS1195 for a file of another length."""
    if len(data) != _STORED.itemsize * entry.row_count:
        raise FixData(
            "TS1195",
            f"hash index {entry.file_name} cannot be read",
            why=f"{entry.row_count} hashes take {_STORED.itemsize * entry.row_count} bytes, the file has {len(data)}",
            fix="run tablestore verify; roll back to an earlier snapshot, or convert the table to fixed buckets",
        )
    return np.frombuffer(data, _STORED).astype(np.int32)
