"""Find the one visible stored row of each key, and fetch it: what merge-on-write costs.

CHANGE     how stored rows of incoming keys are found
Steps      1 skip files by key range  2 skip row groups of large files outside of the range of incoming keys
           3 key columns → comparable words  4 binary search (one fixed-width key) or join
           5 drop positions that are already deleted
INVARIANT  a key has at most one visible row in a bucket; two mean corruption and stop the commit (TS1652).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from tablestore_engine.errors import EngineBug
from tablestore_engine.format.binary_row import decode_row
from tablestore_engine.format.scalar import arrow_values
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.lsm.key_order import (
    Index,
    Mask,
    fixed_words,
    key_at,
    match_sorted,
    order_columns,
    order_frame,
)
from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.parquet_input import ParquetInput
from tablestore_engine.store.files.stored_file import StoredFile, visible_mask

KEY_CACHE_BYTES = 256 << 20
WHOLE_FILE_SHARE = 0.5  # from here on the whole key column is read, and remembered
FEW_ROWS = 8_192  # to look up the row groups of such a file costs as much as reading its keys
_NONE = np.empty(0, dtype=np.int64)


@dataclass
class KeyCache:
    """Least recently used key columns leave first. Shared by threads; a part handed down, never a global."""

    capacity_bytes: int = KEY_CACHE_BYTES
    _frames: OrderedDict[tuple[str, tuple[str, ...]], pl.DataFrame] = field(default_factory=OrderedDict)
    _held_bytes: int = 0
    _lock: OrderedLock = field(default_factory=lambda: OrderedLock("remembered keys", Rank.PROCESS))

    def find(self, path: str, names: tuple[str, ...]) -> pl.DataFrame | None:
        """The comparable key columns of a whole file, if remembered."""
        with self._lock:
            frame = self._frames.get((path, names))
            if frame is not None:
                self._frames.move_to_end((path, names))
            return frame

    def put(self, path: str, names: tuple[str, ...], frame: pl.DataFrame) -> None:
        """Remember a file's columns; what does not fit pushes out the oldest."""
        size = int(frame.estimated_size())
        if size > self.capacity_bytes // 2:
            return
        with self._lock:
            if (path, names) in self._frames:
                return
            self._frames[path, names] = frame
            self._held_bytes += size
            while self._held_bytes > self.capacity_bytes:
                _, oldest = self._frames.popitem(last=False)
                self._held_bytes -= int(oldest.estimated_size())


@dataclass(frozen=True)
class FileHits:
    """Hits in one file, ascending by incoming row."""

    file: StoredFile
    incoming: Index
    positions: Index


@dataclass(frozen=True)
class Hits:
    """All hits: `incoming` rows ascending; `order` brings rows fetched file by file into that order."""

    by_file: tuple[FileHits, ...]
    incoming: Index
    order: Index

    @classmethod
    def of(cls, by_file: Sequence[FileHits]) -> Hits:
        """Join the hits of all files. Raises EngineBug TS1652 when a key has two visible rows."""
        stacked = np.concatenate([one.incoming for one in by_file]) if by_file else _NONE
        order = np.argsort(stacked, kind="stable")
        incoming = stacked[order]
        if len(incoming) > 1 and bool((incoming[1:] == incoming[:-1]).any()):
            raise EngineBug(
                "TS1652",
                "a key has two visible rows in one bucket",
                why=f"files {', '.join(one.file.meta.file_name for one in by_file)} share a key",
                fix="stop writing to the table, verify it, and report this with the facts",
            )
        return cls(tuple(by_file), incoming, order)


def find_hits(
    reader: FileReader, live: Sequence[StoredFile], keys: pl.DataFrame, cache: KeyCache | None
) -> Hits:
    """The visible stored row of each incoming key; `keys` are sorted and without repeats."""
    if not keys.height:
        return Hits.of(())
    wanted = [file for file in live if _may_hit(reader.schema, file, keys)]
    found = reader.fileio.run_together([partial(_hits_of_file, reader, file, keys, cache) for file in wanted])
    return Hits.of([one for one in found if len(one.incoming)])


def _may_hit(schema: TableSchema, file: StoredFile, keys: pl.DataFrame) -> bool:
    """Whether a file has a visible row and its key range meets that of the incoming keys."""
    low, high = key_range(schema, file)
    return file.dead_count < file.meta.row_count and low <= key_at(keys, -1) and key_at(keys, 0) <= high


def absent_rows(live: Sequence[StoredFile], hits: Hits, picked: Mapping[str, Mask]) -> tuple[FileHits, ...]:
    """The picked rows (path → positions) of each file that no incoming row hits (a difference commit deletes them)."""
    hit = {one.file.path: one.positions for one in hits.by_file}
    absent = []
    for file in live:
        if file.path not in picked:
            continue
        rest = picked[file.path].copy()
        rest[hit.get(file.path, _NONE)] = False
        positions = np.flatnonzero(rest)
        if len(positions):
            absent.append(FileHits(file, np.full(len(positions), -1, dtype=np.int64), positions))
    return tuple(absent)


def fetch(
    reader: FileReader,
    by_file: Sequence[FileHits],
    columns: Sequence[str] | None,
    *,
    keep: Sequence[str] = (),
) -> pa.Table | None:
    """The hit rows, file by file; None when there are none. Only row groups that were hit are decoded."""
    reads = [partial(reader.read_positions, one.file, one.positions, columns, keep=keep) for one in by_file]
    tables = reader.fileio.run_together(reads)
    return pa.concat_tables(tables) if tables else None


def key_columns(
    reader: FileReader, file: StoredFile, cache: KeyCache | None, groups: Sequence[int] | None = None
) -> pl.DataFrame:
    """Comparable key columns of a file; whole files are remembered."""
    names = reader.schema.trimmed_primary_keys
    known = cache.find(file.path, names) if cache is not None else None
    if known is not None and groups is None:
        return known
    frame = order_columns(reader.read(file, names, groups=groups), names)
    if cache is not None and groups is None:
        cache.put(file.path, names, frame)
    return frame


def key_range(schema: TableSchema, file: StoredFile) -> tuple[tuple[object, ...], tuple[object, ...]]:
    """Smallest and largest key of a file, comparable as key_at makes them."""
    types = [column.type for column in schema.fields_of(schema.trimmed_primary_keys)]
    bounds = zip(decode_row(file.meta.min_key, types), decode_row(file.meta.max_key, types), strict=True)
    frame = order_frame([arrow_values(both, type_) for both, type_ in zip(bounds, types, strict=True)])
    return key_at(frame, 0), key_at(frame, 1)


def _hits_of_file(
    reader: FileReader, file: StoredFile, keys: pl.DataFrame, cache: KeyCache | None
) -> FileHits:
    known = cache.find(file.path, reader.schema.trimmed_primary_keys) if cache is not None else None
    first = 0
    if known is None and file.meta.row_count <= FEW_ROWS:
        known = key_columns(reader, file, cache)
    elif known is None:
        starts, groups = _groups_in_range(reader, file, keys)
        if not len(groups):
            return FileHits(file, _NONE, _NONE)
        if len(groups) < WHOLE_FILE_SHARE * (len(starts) - 1):
            known, first = key_columns(reader, file, None, groups.tolist()), int(starts[groups[0]])
        else:
            known = key_columns(reader, file, cache)
    incoming, positions = match_sorted(keys, known)
    positions = positions + first
    if file.deleted and len(positions):
        alive = visible_mask(file)[positions]
        incoming, positions = incoming[alive], positions[alive]
    return FileHits(file, incoming, positions)


def _groups_in_range(reader: FileReader, file: StoredFile, keys: pl.DataFrame) -> tuple[Index, Index]:
    """Row group starts, and the neighbouring groups from the first to the last that can hold one of `keys`.

    Statistics of one fixed-width integer key are trusted; any other key takes all groups.
    """
    with ParquetInput(reader.fileio, file.path) as parquet:
        metadata, starts = parquet.metadata, parquet.group_starts
    everything = np.arange(metadata.num_row_groups, dtype=np.int64)
    words = fixed_words(keys)
    bounds = None if words is None else _integer_bounds(metadata, _stored_key_name(reader.schema, file))
    if words is None or bounds is None:
        return starts, everything
    low, high = bounds
    within = everything[(high >= words[0]) & (low <= words[-1])]
    return starts, within if not len(within) else np.arange(within[0], within[-1] + 1)


def _stored_key_name(schema: TableSchema, file: StoredFile) -> str:
    """Today's key column under the name it has in the file."""
    column = schema.field(schema.trimmed_primary_keys[0])
    names = {field.id: field.name for field in file.schema.fields}
    return names[column.id]


def _integer_bounds(metadata: pq.FileMetaData, name: str) -> tuple[Index, Index] | None:
    """Smallest and largest value of an integer column in each row group; None when any of them is unknown."""
    at = [i for i in range(metadata.num_columns) if metadata.schema.column(i).path == name]
    if len(at) != 1:
        return None
    low, high = [], []
    for group in range(metadata.num_row_groups):
        statistics = metadata.row_group(group).column(at[0]).statistics
        if statistics is None or not statistics.has_min_max or type(statistics.min) is not int:
            return None
        low.append(statistics.min)
        high.append(statistics.max)
    return np.array(low, dtype=np.int64), np.array(high, dtype=np.int64)
