"""The footer of a Parquet file: checked, decoded once, and kept in memory while it is used.

Steps      bytes → checksum → Arrow's metadata; on demand: first rows of row groups, leaf columns, facts of a column
INVARIANT  data files never change, so a footer is right for ever. Whether the file is still there is asked when it is
           opened; its pages have checksums of their own.
Memory     FooterCache.capacity_bytes of encoded footers; decoded ones are some five times larger.
INVARIANT  bounds of row groups are used only where the physical and logical type of the file are those that the table's
           type has. Any other combination has no bounds: FLOAT and DOUBLE (a NaN is in no bound, -0.0 may be), INT96,
           unsigned integers, nanoseconds, decimals of another scale, bytes, CHAR, TIME, nested columns.
WHY        Spark lost rows of NaN under `x > 1` by skipping row groups. Writers also shorten the bounds of texts: they
           enclose the values and are no values themselves.
INVARIANT  the facts are those of the columns as the reader's schema has them: by field id, partition columns as
           constants, columns that the file lacks as NULL; a type that changed in another way has no facts.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from tablestore_engine.fileio.object_input import fetch_ranges
from tablestore_engine.format.checksum import ChunkChecksums, damaged, has_checksum, verify_checksum
from tablestore_engine.format.data_type import INTEGER_ROOTS, TIMESTAMP_ROOTS, DataType
from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.store.files.column_facts import (
    ColumnFacts,
    FindFacts,
    StoredColumns,
    constant_facts,
)
from tablestore_engine.store.files.comparable_values import Comparable, is_comparable
from tablestore_engine.store.files.parquet_output import leaf_count
from tablestore_engine.store.files.stored_file import StoredFile


class GroupFacts:
    """Of one file; `columns` are those of the reader's schema."""

    def __init__(self, footer: Footer, file: StoredFile, columns: StoredColumns) -> None:
        self._footer, self._file, self._columns = footer, file, columns

    def of(self, groups: range) -> FindFacts:
        """Facts of the rows of neighbouring row groups, by column."""
        return lambda name: self._find(name, groups)

    def _find(self, name: str, groups: range) -> ColumnFacts | None:
        column, at = self._columns.by_name.get(name), self._columns.partition.get(name)
        if column is None:
            return None
        starts = self._footer.group_starts
        rows = int(starts[groups.stop] - starts[groups.start])
        if at is not None:
            return constant_facts(self._file.partition[at], column, rows)
        stored, _ = self._columns.stored_as(self._file.schema, column)
        if stored is None:
            return ColumnFacts(rows, nulls=rows)  # added later: NULL in every row
        known = self.of_groups(name)
        return None if known is None else joined_facts(known[groups.start : groups.stop])

    def of_groups(self, name: str) -> tuple[ColumnFacts, ...] | None:
        """What statistics say of a column in each row group; None: nothing, as of partition columns."""
        column = self._columns.by_name.get(name)
        if column is None or name in self._columns.partition:
            return None
        stored, is_alike = self._columns.stored_as(self._file.schema, column)
        return self._footer.group_facts(stored.name, stored.type) if stored is not None and is_alike else None


def joined_facts(parts: Sequence[ColumnFacts]) -> ColumnFacts:
    """Facts of the rows of all parts together; REQUIRES one part at least."""
    if len(parts) == 1:
        return parts[0]
    counts = [one.nulls for one in parts if one.nulls is not None]
    rows, nulls = sum(one.rows for one in parts), sum(counts) if len(counts) == len(parts) else None
    valued = [one for one in parts if not one.is_all_null]
    lows = [one.low for one in valued if one.low is not None]
    highs = [one.high for one in valued if one.high is not None]
    if not valued or len(lows) < len(valued) or len(highs) < len(valued):
        return ColumnFacts(rows, nulls)
    exact = all(one.exact for one in valued)
    return ColumnFacts(rows, nulls, min(lows), max(highs), exact)


Decode = Callable[
    [Any], Comparable | None
]  # a bound as the file has it → as conditions compare it; None: unknown
_MICROS = {"milliseconds": 1000, "microseconds": 1}


def read_group_facts(metadata: pq.FileMetaData, leaf: int, type_: DataType) -> tuple[ColumnFacts, ...]:
    """One for each row group; REQUIRES a column that is not nested. `type_`: of the column in the file's schema."""
    decode = _decoder(metadata.schema.column(leaf), type_) if is_comparable(type_) else None
    is_exact = type_.root != "VARCHAR"
    found = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        statistics = group.column(leaf).statistics
        if statistics is None:
            found.append(ColumnFacts(group.num_rows))
            continue
        nulls = statistics.null_count if statistics.has_null_count else None
        low = high = None
        if decode is not None and statistics.has_min_max:
            low, high = decode(statistics.min_raw), decode(statistics.max_raw)
        if low is None or high is None or low > high:  # type: ignore[operator]  # both are of one type
            low = high = None
        found.append(ColumnFacts(group.num_rows, nulls, low, high, is_exact))
    return tuple(found)


def _decoder(column: pq.ColumnSchema, type_: DataType) -> Decode | None:
    physical, logical = column.physical_type, json.loads(column.logical_type.to_json())
    kind, root = logical["Type"], type_.root
    if root in INTEGER_ROOTS:
        is_signed = kind == "None" or (kind == "Int" and logical["isSigned"])
        return _integer if physical in ("INT32", "INT64") and is_signed else None
    if root == "BOOLEAN":
        return int if physical == "BOOLEAN" else None
    if root == "DATE":
        return _integer if physical == "INT32" and kind == "Date" else None
    if root in TIMESTAMP_ROOTS:
        factor = _MICROS.get(logical.get("timeUnit", "")) if kind == "Timestamp" else None
        return None if factor is None or physical != "INT64" else lambda value: int(value) * factor
    if root == "DECIMAL":
        return _decimals(physical, type_) if kind == "Decimal" and logical["scale"] == type_.scale else None
    if root == "VARCHAR":
        return _text if physical == "BYTE_ARRAY" and kind == "String" else None
    return None


def _integer(value: Any) -> Comparable | None:  # noqa: ANN401 - see Decode
    return value if isinstance(value, int) else None


def _text(value: Any) -> Comparable | None:  # noqa: ANN401 - see Decode
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError:
        return None  # shortened within a character


def _decimals(physical: str, type_: DataType) -> Decode | None:
    scale = type_.scale or 0

    def of_bytes(value: bytes) -> Comparable | None:
        return _decimal(int.from_bytes(value, "big", signed=True), scale)

    if physical in ("INT32", "INT64"):
        return lambda value: _decimal(int(value), scale)
    return of_bytes if physical == "FIXED_LEN_BYTE_ARRAY" else None


def _decimal(unscaled: int, scale: int) -> Decimal:
    """Exact: Decimal's own arithmetic rounds to 28 digits."""
    return Decimal((int(unscaled < 0), tuple(int(digit) for digit in str(abs(unscaled))), -scale))


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
