"""The footer of a Parquet file: checked, decoded once, and kept in memory while it is used.

Steps      bytes → checksum → Arrow's metadata; on demand: first rows of row groups, leaf columns, facts of a column
INVARIANT  data files never change, so a footer is right for ever. Whether the file is still there is asked when it is
           opened; its pages have checksums of their own.
Memory     FooterCache.capacity_bytes of encoded footers; decoded ones are some five times larger.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from tablestore_engine.fileio.object_input import fetch_ranges
from tablestore_engine.format.checksum import ChunkChecksums, damaged, has_checksum, verify_checksum
from tablestore_engine.format.data_type import DataType
from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.store.files.column_facts import ColumnFacts
from tablestore_engine.store.files.group_statistics import read_group_facts
from tablestore_engine.store.files.parquet_output import leaf_count

TAIL_BYTES = 8  # length of the footer, and the magic word
DATA_FILE = "data file"
CACHED_BYTES = 16 << 20
_CODED_BYTES = (
    2  # of fewer for each row is a text that a dictionary holds: each plain one has a length of four bytes
)


class Footer:
    """Shared by threads: each value is computed from the bytes alone."""

    def __init__(self, data: bytes) -> None:
        self.size_bytes = len(data)
        self.is_checked = has_checksum(data)
        self.metadata: pq.FileMetaData = pq.read_metadata(pa.BufferReader(data))
        self._facts: dict[tuple[str, DataType], tuple[ColumnFacts, ...] | None] = {}

    @cached_property
    def group_starts(self) -> npt.NDArray[np.int64]:
        """First row of each row group, and the row count at the end."""
        counts = [self.metadata.row_group(i).num_rows for i in range(self.metadata.num_row_groups)]
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    @cached_property
    def chunk_sums(self) -> ChunkChecksums | None:
        """Checksums of the column chunks; None: the writer has none."""
        metadata = self.metadata
        return ChunkChecksums.find(metadata.metadata, metadata.num_row_groups * metadata.num_columns)

    @cached_property
    def leaves(self) -> Mapping[str, range]:
        """Arrow column → numbers of its Parquet columns, in file order."""
        found: dict[str, range] = {}
        at = 0
        for column in self.metadata.schema.to_arrow_schema():
            count = leaf_count(column.type)
            found[column.name] = range(at, at + count)
            at += count
        return found

    @cached_property
    def int96(self) -> frozenset[str]:
        """Arrow columns that hold INT96, at any depth."""
        schema = self.metadata.schema
        return frozenset(
            name
            for name, leaves in self.leaves.items()
            if any(schema.column(leaf).physical_type == "INT96" for leaf in leaves)
        )

    @cached_property
    def repeating(self) -> frozenset[str]:
        """Columns of text that are decoded faster as dictionaries, by their first row group."""
        if not self.metadata.num_row_groups:
            return frozenset()
        group = self.metadata.row_group(0)
        return frozenset(
            name
            for name, leaves in self.leaves.items()
            if len(leaves) == 1
            and self._is_text(leaves[0], name)
            and group.column(leaves[0]).has_dictionary_page
            and group.column(leaves[0]).total_uncompressed_size < _CODED_BYTES * group.num_rows
        )

    def _is_text(self, leaf: int, path: str) -> bool:
        column = self.metadata.schema.column(leaf)
        return bool(column.path == path and column.logical_type.type == "STRING")

    def group_facts(self, name: str, type_: DataType) -> tuple[ColumnFacts, ...] | None:
        """What statistics say of a column of this type, row group by row group; None: nothing that can be used."""
        key = (name, type_)
        if key not in self._facts:
            leaves = self.leaves.get(name, range(0))
            single = len(leaves) == 1 and self.metadata.schema.column(leaves[0]).path == name
            self._facts[key] = read_group_facts(self.metadata, leaves[0], type_) if single else None
        return self._facts[key]


@dataclass
class FooterCache:
    """Path → footer; least recently used ones leave first. Shared by threads; a part handed down, never a global."""

    capacity_bytes: int = CACHED_BYTES
    _footers: OrderedDict[str, Footer] = field(default_factory=OrderedDict)
    _held_bytes: int = 0
    _lock: OrderedLock = field(default_factory=lambda: OrderedLock("footers of data files", Rank.PROCESS))

    def find(self, path: str) -> Footer | None:
        with self._lock:
            if path in self._footers:
                self._footers.move_to_end(path)
            return self._footers.get(path)

    def put(self, path: str, footer: Footer) -> None:
        """Keep a footer that was checked; one of half the capacity is not kept."""
        with self._lock:
            if path in self._footers or footer.size_bytes > self.capacity_bytes // 2:
                return
            self._footers[path] = footer
            self._held_bytes += footer.size_bytes
            while self._held_bytes > self.capacity_bytes:
                self._held_bytes -= self._footers.popitem(last=False)[1].size_bytes


def read_footer(source: pa.NativeFile, path: str) -> Footer:
    """Raises FixData TS1160 for a footer that is damaged, pa.ArrowException for one that cannot be decoded."""
    data = footer_bytes(source, path)
    verify_checksum(data, DATA_FILE, path)
    return Footer(data)


def footer_bytes(source: pa.NativeFile, path: str) -> bytes:
    """The bytes from the footer's first one to the end of the file. Raises FixData TS1160."""
    size = source.size()
    if size < TAIL_BYTES:
        raise damaged(DATA_FILE, path, f"it has {size} bytes, no Parquet file is so short")
    source.seek(size - TAIL_BYTES)
    tail = source.read(TAIL_BYTES)
    length = int.from_bytes(tail[:4], "little") + TAIL_BYTES
    if tail[4:] != b"PAR1" or length > size:
        raise damaged(DATA_FILE, path, "it does not end as a Parquet file does; it may be cut off")
    fetch_ranges(
        source, [(size - length, size)]
    )  # a footer that is larger than the end that came with the size
    source.seek(size - length)
    return bytes(source.read(length))
