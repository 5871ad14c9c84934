"""Find the one visible stored row of each key, and fetch it: what merge-on-write costs.

CHANGE     how stored rows of incoming keys are found
Steps      1 skip files by key range  2 skip row groups that no incoming key can be in, by their statistics
           3 key columns → comparable words  4 binary search (one fixed-width key) or join
           5 drop positions that are already deleted
Cost       k keys read the key columns of at most k row groups of each file that may have them. A writer that has read
           half of a file's row groups so reads its whole key column once and remembers it.
INVARIANT  a key has at most one visible row in a bucket; two mean corruption and stop the commit (TS1652).
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from tablestore_engine.errors import EngineBug
from tablestore_engine.fileio.object_input import GAP_BYTES
from tablestore_engine.format.binary_row import decode_row
from tablestore_engine.format.data_type import INTEGER_ROOTS
from tablestore_engine.format.scalar import arrow_values
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_arrow import field_to_arrow
from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.store.files.file_read import FileReader, OpenFile
from tablestore_engine.store.files.parquet_footer import FooterCache
from tablestore_engine.store.files.stored_file import StoredFile, visible_mask

if TYPE_CHECKING:
    import polars as pl

    from tablestore_engine.lsm.key_order import Index, Mask
    from tablestore_engine.store.files.comparable_values import Comparable

KEY_CACHE_BYTES = 256 << 20
WHOLE_FILE_SHARE = (
    0.5  # of the row groups, in one look-up or several: then the whole key column is read, and remembered
)
FEW_ROWS = 8_192  # to look up the row groups of such a file costs as much as reading its keys
_NOTED_MAX = 10_000  # paths
_NARROWED_MAX = 1_000_000  # keys that are compared with the second column of row groups
_PLAIN_ROOTS = (*INTEGER_ROOTS, "VARCHAR")  # their values are comparable as they are
_NONE = np.empty(0, dtype=np.int64)


@dataclass
class KeyCache:
    """What is remembered of data files: key columns, of which least recently used ones leave first, and footers.

    Shared by threads; a part handed down, never a global.
    """

    capacity_bytes: int = KEY_CACHE_BYTES
    footers: FooterCache = field(default_factory=FooterCache)
    _groups_read: dict[str, int] = field(default_factory=dict)
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

    def note_groups(self, path: str, count: int) -> int:
        """Note that the keys of so many row groups of a file are about to be read; how many were, with these."""
        with self._lock:
            if len(self._groups_read) >= _NOTED_MAX:
                self._groups_read.clear()
            self._groups_read[path] = self._groups_read.get(path, 0) + count
            return self._groups_read[path]

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

    @property
    def mask(self) -> Mask:
        mask = np.zeros(self.file.meta.row_count, np.bool_)
        mask[self.positions] = True
        return mask


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
            raise two_visible_rows([one.file for one in by_file])
        return cls(tuple(by_file), incoming, order)


def two_visible_rows(files: Sequence[StoredFile]) -> EngineBug:
    """TS1652 of files that share a key."""
    return EngineBug(
        "TS1652",
        "a key has two visible rows in one bucket",
        why=f"files {', '.join(file.meta.file_name for file in files)} share a key",
        fix="stop writing to the table, verify it, and report this with the facts",
    )


def find_hits(
    reader: FileReader,
    live: Sequence[StoredFile],
    keys: pl.DataFrame,
    cache: KeyCache | None,
    *,
    remembers: bool = True,
) -> Hits:
    """The visible stored row of each incoming key; `keys` are sorted and without repeats. `remembers`: hits_of_file."""
    if not keys.height:
        return Hits.of(())
    wanted = [file for file in live if may_hit(reader.schema, file, keys)]
    found = reader.fileio.run_together(
        [partial(hits_of_file, reader, file, keys, cache, remembers=remembers) for file in wanted]
    )
    return Hits.of([one for one in found if len(one.incoming)])


def may_hit(schema: TableSchema, file: StoredFile, keys: pl.DataFrame) -> bool:
    """Whether a file has a visible row and its key range meets that of the incoming keys."""
    from tablestore_engine.lsm.key_order import key_at

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
    keys: pl.DataFrame | None = None,
) -> pa.Table | None:
    """The hit rows, file by file; None when there are none. Only row groups that were hit are decoded. `keys`: those
    that `incoming` counts, where it does.
    """
    reads = [
        partial(
            reader.read_positions,
            one.file,
            one.positions,
            columns,
            keep=keep,
            known=None if keys is None else key_values(reader.schema, keys, one.incoming),
        )
        for one in by_file
    ]
    tables = reader.fileio.run_together(reads)
    return pa.concat_tables(tables) if tables else None


def key_values(schema: TableSchema, keys: pl.DataFrame, at: Index) -> pa.Table | None:
    """Key columns of the rows that `keys` hit, from these keys themselves: a hit has the same values, so nothing has to
    be decoded. None: their comparable form is not the value.
    """
    fields = schema.fields_of(schema.trimmed_primary_keys)
    if any(field.type.root not in _PLAIN_ROOTS for field in fields):
        return None
    taken = keys[at].to_arrow()
    target = pa.schema([field_to_arrow(field) for field in fields])
    return taken.rename_columns(target.names).cast(target)


def key_range(schema: TableSchema, file: StoredFile) -> tuple[tuple[object, ...], tuple[object, ...]]:
    """Smallest and largest key of a file, comparable as key_at makes them."""
    from tablestore_engine.lsm.key_order import key_at, order_frame

    types = [column.type for column in schema.fields_of(schema.trimmed_primary_keys)]
    low, high = decode_row(file.meta.min_key, types), decode_row(file.meta.max_key, types)
    if all(type_.root in _PLAIN_ROOTS for type_ in types):  # a frame of two rows costs ten times as much
        return tuple((one is not None, one) for one in low), tuple((one is not None, one) for one in high)
    bounds = zip(low, high, strict=True)
    frame = order_frame([arrow_values(both, type_) for both, type_ in zip(bounds, types, strict=True)])
    return key_at(frame, 0), key_at(frame, 1)


def hits_of_file(
    reader: FileReader,
    file: StoredFile,
    keys: pl.DataFrame,
    cache: KeyCache | None,
    *,
    remembers: bool = True,
) -> FileHits:
    """The visible rows of a file that have these keys, which are sorted and without repeats.

    `remembers`: whether a key column that is read as a whole is put into the cache.
    """
    from tablestore_engine.lsm.key_order import match_sorted

    known = cache.find(file.path, reader.schema.trimmed_primary_keys) if cache is not None else None
    if known is not None:
        return _visible_hits(file, *match_sorted(keys, known))
    with reader.open(file) as opened:
        return hits_in(opened, keys, cache if remembers else None)


def hits_in(
    opened: OpenFile, keys: pl.DataFrame, cache: KeyCache | None, also: Sequence[str] | None = ()
) -> FileHits:
    """The same of an open file. `also`: columns that are read next, None: all; of few bytes they come along."""
    from tablestore_engine.lsm.key_order import match_sorted, order_columns

    file, names = opened.file, opened.reader.schema.trimmed_primary_keys
    whole = list(opened.groups)
    groups = groups_of_keys(opened, keys) if file.meta.row_count > FEW_ROWS else whole
    if cache is not None and cache.note_groups(file.path, len(groups)) >= WHOLE_FILE_SHARE * len(whole):
        groups = whole
    opened.prefetch(groups, None if also is None else list(dict.fromkeys([*names, *also])), GAP_BYTES)
    stored = order_columns(opened.read_groups(groups, names), names)
    if cache is not None and groups == whole:
        cache.put(file.path, names, stored)
    incoming, places = match_sorted(keys, stored)
    return _visible_hits(file, incoming, opened.positions_of(groups, places))


def _visible_hits(file: StoredFile, incoming: Index, positions: Index) -> FileHits:
    if file.deleted and len(positions):
        alive = visible_mask(file)[positions]
        incoming, positions = incoming[alive], positions[alive]
    return FileHits(file, incoming, positions)


def groups_of_keys(opened: OpenFile, keys: pl.DataFrame) -> list[int]:
    """Ascending numbers of the row groups that can hold one of the sorted keys, by the statistics of key columns."""
    count, names = len(opened.groups), opened.reader.schema.trimmed_primary_keys
    if not keys.height:
        return []
    first = _group_words(opened, names[0])
    if first is None or (len(names) == 1) != (keys.width == 1):
        return list(range(count))
    known, low, high = first
    start, stop = np.zeros(count, np.int64), np.full(count, keys.height, np.int64)
    start[known] = _search(keys.to_series(0), low, "left")
    stop[known] = _search(keys.to_series(0), high, "right")
    may = start < stop
    if len(names) > 1 and int((stop - start)[may].sum()) <= _NARROWED_MAX:
        _narrow(opened, keys, may, start, stop)
    return [int(one) for one in np.flatnonzero(may)]


def _narrow(opened: OpenFile, keys: pl.DataFrame, may: Mask, start: Index, stop: Index) -> None:
    """Leave row groups out whose second key column has no value of the keys that their first one allows."""
    names = opened.reader.schema.trimmed_primary_keys
    second = _group_words(opened, names[1])
    if second is None or len(_words(opened.reader.schema, names[0], [])) != 1:
        return
    known, low, high = second
    column = keys.to_series(1)
    for at, group in enumerate(np.flatnonzero(known)):
        if may[group]:
            part = column.slice(int(start[group]), int(stop[group] - start[group]))
            may[group] = bool(part.is_between(low[at], high[at]).any())


def _group_words(opened: OpenFile, name: str) -> tuple[Mask, pl.Series, pl.Series] | None:
    """Which row groups have bounds of a key column, and these, comparable; None: none has, or they are two words."""
    facts = opened.facts.of_groups(name)
    if facts is None:
        return None
    known = np.array([one.low is not None and one.high is not None for one in facts], np.bool_)
    low = _words(opened.reader.schema, name, [one.low for one in facts if one.low is not None])
    high = _words(opened.reader.schema, name, [one.high for one in facts if one.high is not None])
    return (known, low[0], high[0]) if len(low) == 1 and bool(known.any()) else None


def _words(schema: TableSchema, name: str, values: Sequence[Comparable]) -> list[pl.Series]:
    from tablestore_engine.lsm.key_order import order_frame
    from tablestore_engine.store.files.comparable_values import stored_form

    return order_frame([stored_form(values, schema.field(name).type)]).get_columns()


def _search(keys: pl.Series, bounds: pl.Series, side: Literal["left", "right"]) -> Index:
    """For each bound the number of keys before it, with `right` or equal to it."""
    if keys.dtype.is_integer() and bounds.dtype.is_integer():
        return np.searchsorted(keys.to_numpy(), bounds.to_numpy(), side).astype(np.int64)
    return keys.search_sorted(bounds, side=side).to_numpy().astype(np.int64)
