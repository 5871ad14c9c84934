"""The file with the state of the groups of a `changed_keys` model.

Bytes      one Parquet file, zstd, a checksum for each page; the header as JSON in its footer. Of each count of values
           the file has the number of NULLs instead, which is 0 nearly everywhere and takes no room
INVARIANT  a state is read under the header that it was written with: the version of this form, what its columns mean,
           the query of its rows, and how far each input was read. Another header is no state.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

VERSION = 1
_HEADER = b"tablestore.group-state"
_COUNT = "m"  # of the names of counts of values


class UnusableState(Exception):
    """`why`: a part of a sentence."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def group_state_header(text: str, query: str, positions: Mapping[str, str]) -> str:
    """`text`: what the columns mean. `positions`: source → how far it was read."""
    meaning = hashlib.sha256(text.encode()).hexdigest()
    inputs = hashlib.sha256(json.dumps(sorted(positions.items())).encode()).hexdigest()
    return json.dumps({"version": VERSION, "columns": meaning, "query": query, "inputs": inputs})


def encode_group_state(state: pa.Table, header: str) -> bytes:
    """`state`: as spark/merged_state.py has it."""
    sink = pa.BufferOutputStream()
    pq.write_table(
        _counted(state).replace_schema_metadata({_HEADER: header.encode()}),
        sink,
        compression="zstd",
        write_page_checksum=True,
        write_statistics=False,
        store_schema=True,
    )
    found: bytes = sink.getvalue().to_pybytes()
    return found


def decode_group_state(data: bytes, header: str) -> pa.Table:
    """Raises UnusableState."""
    try:
        found = pq.read_table(pa.BufferReader(data), page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise UnusableState(f"it is damaged: {error}") from error
    known = json.loads((found.schema.metadata or {}).get(_HEADER, b"{}"))
    wanted = json.loads(header)
    other = [name for name in wanted if known.get(name) != wanted[name]]
    if other:
        raise UnusableState(f"it is of another {' and '.join(other)}")
    return _counted(found.replace_schema_metadata(None)).combine_chunks()


def _counted(state: pa.Table) -> pa.Table:
    """Counts of values as numbers of NULLs, and back."""
    for at, name in enumerate(state.column_names):
        if name.startswith(_COUNT):
            less = pc.subtract(state.column("n"), state.column(name))
            state = state.set_column(at, name, less)
    return state
