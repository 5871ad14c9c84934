"""Reading one stored file with any newer schema of its table: the only way to rows of a file.

CHANGE     how rows of a stored file are read
Steps      plan by field id → read the needed columns → old types to new, partition columns as constants →
           drop hidden positions
INVARIANT  partition columns come from the manifest, never from the file (format.md#evolution).
PAIMON     `ParquetInput` is one open file: dataset readers would add columns of the path (format.md#data-files).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.evolution import evolve, plan_columns
from tablestore_engine.format.scalar import arrow_values
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_arrow import field_to_arrow
from tablestore_engine.lsm.arrow_take import decoded_texts, take_rows
from tablestore_engine.store.files.column_facts import StoredColumns
from tablestore_engine.store.files.parquet_copies import as_parquet
from tablestore_engine.store.files.parquet_footer import FooterCache, GroupFacts
from tablestore_engine.store.files.parquet_input import ParquetInput
from tablestore_engine.store.files.row_budget import STEP_ROWS
from tablestore_engine.store.files.stored_file import StoredFile, visible_mask

if TYPE_CHECKING:
    from tablestore_engine.lsm.key_order import Index, Mask

Part = tuple[int, int]
_TAKEN_SHARE = 16  # of so many rows one: fewer are taken by number


@dataclass(frozen=True)
class RowBlock:
    """Rows of a file from position `first` on."""

    first: int
    rows: pa.Table


@dataclass(frozen=True)
class FileReader:
    """`schema` says what rows look like; `keep` everywhere: system columns of the file, which then come first.

    All methods raise FixData TS1160, TS1360 (damage), TS1117, TS1124 (values, columns), NotFound TS1201, TS1110.
    """

    fileio: FileIO
    schema: TableSchema
    footers: FooterCache | None = field(default=None, compare=False, repr=False)

    @cached_property
    def _columns(self) -> StoredColumns:
        return StoredColumns(self.schema)

    @contextmanager
    def open(self, file: StoredFile) -> Iterator[OpenFile]:
        with self._input(file) as parquet:
            yield OpenFile(self, file, parquet, GroupFacts(parquet.footer, file, self._columns))

    def read(
        self,
        file: StoredFile,
        columns: Sequence[str] | None = None,
        *,
        keep: Sequence[str] = (),
        groups: Sequence[int] | None = None,
        parallel: bool = False,
    ) -> pa.Table:
        """All physical rows (of some row groups) in file order, hidden ones too."""
        rows = self._decode(file, columns, keep=keep, groups=groups, parallel=parallel)
        return self.evolved(rows, file, columns, keep)

    def read_visible(
        self,
        file: StoredFile,
        columns: Sequence[str] | None = None,
        *,
        keep: Sequence[str] = (),
        parallel: bool = False,
    ) -> pa.Table:
        """The rows that the deletion vector does not hide, in file order. Raises FixData TS1390 as well."""
        rows = self._decode(file, columns, keep=keep, parallel=parallel)
        if file.deleted:  # before the casts: hidden rows need none
            rows = rows.filter(pa.array(visible_mask(file, rows.num_rows)))
        return self.evolved(rows, file, columns, keep)

    def read_blocks(
        self,
        file: StoredFile,
        columns: Sequence[str] | None = None,
        *,
        keep: Sequence[str] = (),
        rows_max: int,
    ) -> Iterator[RowBlock]:
        """All physical rows in file order, about `rows_max` at a time, and never the whole of a large file."""
        names, first = self.stored_names(file, columns, keep), 0
        with self._input(file) as parquet:
            groups = range(len(parquet.group_starts) - 1)
            for rows in _portions_of(parquet, names, rows_max, groups):
                yield RowBlock(first, self.evolved(rows, file, columns, keep))
                first += rows.num_rows

    def read_visible_blocks(
        self,
        file: StoredFile,
        columns: Sequence[str] | None = None,
        *,
        keep: Sequence[str] = (),
        rows_max: int,
        parallel: bool = False,
    ) -> Iterator[pa.Table]:
        """The rows of read_visible, about `rows_max` at a time; no table is empty. Raises FixData TS1390 as well."""
        with self.open(file) as opened:
            yield from opened.blocks(opened.groups, columns, keep=keep, rows_max=rows_max, parallel=parallel)

    def read_positions(
        self,
        file: StoredFile,
        positions: Index,
        columns: Sequence[str] | None = None,
        *,
        keep: Sequence[str] = (),
        known: pa.Table | None = None,
        parallel: bool = False,
    ) -> pa.Table:
        """The rows at `positions`, in that order; only the row groups that hold them are decoded. `known`: columns of
        just these rows whose values the caller has, of the reader's types; they are not read again.
        """
        with self.open(file) as opened:
            return opened.read_positions(positions, columns, keep=keep, known=known, parallel=parallel)

    def read_whole(
        self, files: Sequence[StoredFile], columns: Sequence[str], *, keep: Sequence[str] = ()
    ) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        """All physical rows of small files, file after file, and how many each has."""
        parts = self.fileio.run_together([partial(self._decode, file, columns, keep=keep) for file in files])
        counts = np.array([part.num_rows for part in parts], np.int64)
        stored = [name for name in columns if name not in self.schema.partition_keys]
        made = []
        # other writers' files may have other nullability, or another unit of time, under one schema
        for _, group in groupby(range(len(files)), key=lambda at: (files[at].schema.id, parts[at].schema)):
            places = list(group)
            rows = pa.concat_tables([parts[at] for at in places])
            made.append(evolve(rows, files[places[0]].schema, self.schema, stored, keep=keep))
        found = pa.concat_tables(made)
        file_of = pa.array(np.repeat(np.arange(len(files)), counts))
        for at, name in enumerate(self.schema.partition_keys):
            if name in columns:
                field = self.schema.field(name)
                values = arrow_values([file.partition[at] for file in files], field.type)
                found = found.append_column(field_to_arrow(field), values.take(file_of))
        return found.select([*keep, *columns]), counts

    # --------------------------------------------------------------------------------------------------------

    def _input(self, file: StoredFile) -> ParquetInput:
        there = as_parquet(self.fileio, file)
        return ParquetInput(there.fileio or self.fileio, there.path, self.footers, file.schema)

    def _decode(
        self,
        file: StoredFile,
        columns: Sequence[str] | None,
        *,
        keep: Sequence[str],
        groups: Sequence[int] | None = None,
        parallel: bool = False,
    ) -> pa.Table:
        names = self.stored_names(file, columns, keep)
        with self._input(file) as parquet:
            return _rows_of(parquet, names, groups, parallel=parallel)

    def stored_names(self, file: StoredFile, columns: Sequence[str] | None, keep: Sequence[str]) -> list[str]:
        """The file's own names of what has to be read from it."""
        constants = self.schema.partition_keys
        wanted = [
            plan.source
            for plan in plan_columns(file.schema, self.schema, columns)
            if plan.source is not None and plan.field.name not in constants
        ]
        return list(dict.fromkeys([*keep, *wanted]))

    def evolved(
        self, rows: pa.Table, file: StoredFile, columns: Sequence[str] | None, keep: Sequence[str]
    ) -> pa.Table:
        """Rows of a file with the columns and types of the reader's schema."""
        constants: Mapping[str, object] = dict(zip(self.schema.partition_keys, file.partition, strict=True))
        return evolve(rows, file.schema, self.schema, columns, partition=constants, keep=keep)


@dataclass(frozen=True)
class OpenFile:
    """One file, opened; its methods raise as those of FileReader. `facts`: of its row groups."""

    reader: FileReader
    file: StoredFile
    parquet: ParquetInput
    facts: GroupFacts

    @property
    def groups(self) -> range:
        return range(len(self.parquet.group_starts) - 1)

    @cached_property
    def visible(self) -> Mask:
        """For each row of the file whether readers see it. Raises FixData TS1390."""
        return visible_mask(self.file, int(self.parquet.group_starts[-1]))

    def visible_rows(self, groups: Sequence[int]) -> Mask | None:
        """For each row of ascending row groups whether readers see it; None: all, no deletion vector hides any."""
        if not self.file.deleted:
            return None
        starts = self.parquet.group_starts
        parts = [self.visible[starts[one] : starts[one + 1]] for one in groups]
        return np.concatenate(parts) if parts else np.empty(0, np.bool_)

    def positions_of(self, groups: Sequence[int], places: Index) -> Index:
        """The positions in the file of rows that read_groups gave: at `places` of all rows of these groups."""
        first, offsets = self._shifts(groups)
        at = np.searchsorted(offsets, places, side="right") - 1
        return np.asarray(places + (first - offsets)[at], np.int64) if len(first) else places

    def prefetch(self, groups: Sequence[int], columns: Sequence[str] | None, bytes_max: int) -> None:
        """Have columns of row groups ready, where they are few bytes of an object."""
        names = self.reader.stored_names(self.file, columns, ())
        if names:
            self.parquet.prefetch(groups, names, bytes_max)

    def read_groups(
        self,
        groups: Sequence[int],
        columns: Sequence[str] | None = None,
        *,
        keep: Sequence[str] = (),
        picked: Mask | None = None,
        parallel: bool = False,
    ) -> pa.Table:
        """Rows of ascending row groups in file order; `picked`: some of them."""
        names = self.reader.stored_names(self.file, columns, keep)
        rows = _rows_of(self.parquet, names, groups, parallel=parallel)
        if picked is not None:  # before the casts: other rows need none
            rows = filtered_rows(rows, picked)
        return self.reader.evolved(rows, self.file, columns, keep)

    def blocks(
        self,
        groups: Sequence[int],
        columns: Sequence[str] | None = None,
        *,
        keep: Sequence[str] = (),
        rows_max: int,
        parallel: bool = False,
    ) -> Iterator[pa.Table]:
        """The visible rows of ascending row groups, about `rows_max` at a time; no table is empty."""
        for portion in self.parquet.portions(rows_max, groups):
            if self.is_large(portion, rows_max):
                yield from self.read_parts(portion[0], columns, keep=keep, rows_max=rows_max)
                continue
            visible = self.visible_rows(portion)
            if visible is None or bool(visible.any()):
                yield self.read_groups(portion, columns, keep=keep, picked=visible, parallel=parallel)

    def read_positions(
        self,
        positions: Index,
        columns: Sequence[str] | None = None,
        *,
        keep: Sequence[str] = (),
        known: pa.Table | None = None,
        parallel: bool = False,
    ) -> pa.Table:
        """The rows at `positions`, in that order; only the row groups that hold them are decoded, a step at a time.
        `known` as in FileReader.
        """
        if known is not None:
            wanted = self.reader.schema.field_names if columns is None else columns
            rest = [name for name in wanted if name not in known.column_names]
            if not rest and not keep:
                return known.select(wanted)
            rows = self.read_positions(positions, rest, keep=keep, parallel=parallel)
            return _joined(rows, known, [*keep, *wanted])
        names, starts = self.reader.stored_names(self.file, columns, keep), self.parquet.group_starts
        group_of = np.searchsorted(starts, positions, side="right") - 1
        portions = self.parquet.portions(STEP_ROWS, np.unique(group_of).tolist()) or [[]]
        parts, places = [], []
        for groups in portions:
            rows = _rows_of(self.parquet, names, groups, parallel=parallel, coded=True)
            mine = (
                np.arange(len(positions)) if len(portions) == 1 else np.flatnonzero(np.isin(group_of, groups))
            )
            parts.append(decoded_texts(take_rows(rows, self._places(groups, positions[mine]))))
            places.append(mine)
        found = parts[0] if len(parts) == 1 else pa.concat_tables(parts)
        order = np.concatenate(places)
        if bool((order[1:] < order[:-1]).any()):
            found = take_rows(found, np.argsort(order, kind="stable"))
        return self.reader.evolved(found, self.file, columns, keep)

    def read_physical(self, columns: Sequence[str] | None) -> pa.Table:
        """All rows, deleted ones too, with the file's own names and types: FileReader.evolved takes parts of them."""
        return _rows_of(self.parquet, self.reader.stored_names(self.file, columns, ()), None, parallel=True)

    def is_large(self, portion: Sequence[int], rows_max: int) -> bool:
        """Whether it is one row group, and too large to be decoded at once."""
        starts = self.parquet.group_starts
        return len(portion) == 1 and int(starts[portion[0] + 1] - starts[portion[0]]) > rows_max

    def read_parts(
        self,
        group: int,
        columns: Sequence[str] | None = None,
        *,
        keep: Sequence[str] = (),
        rows_max: int,
    ) -> Iterator[pa.Table]:
        """The visible rows of one large row group, about `rows_max` at a time; no table is empty."""
        names = self.reader.stored_names(self.file, columns, keep)
        first = int(self.parquet.group_starts[group])
        for rows in _portions_of(self.parquet, names, rows_max, range(group, group + 1)):
            mine = self.visible[first : first + rows.num_rows]
            first += rows.num_rows
            kept = rows if bool(mine.all()) else rows.filter(pa.array(mine))
            if kept.num_rows:
                yield self.reader.evolved(kept, self.file, columns, keep)

    def _places(self, groups: Sequence[int], positions: Index) -> Index:
        """Where rows of the file are among those of ascending row groups."""
        first, offsets = self._shifts(groups)
        at = np.searchsorted(first, positions, side="right") - 1
        return np.asarray(positions + (offsets - first)[at], np.int64) if len(first) else positions

    def _shifts(self, groups: Sequence[int]) -> tuple[Index, Index]:
        """First position of each row group, in the file and among the rows of these groups."""
        starts, chosen = self.parquet.group_starts, np.asarray(groups, np.int64)
        sizes = starts[chosen + 1] - starts[chosen]
        return np.asarray(starts[chosen], np.int64), np.asarray(np.cumsum(sizes) - sizes, np.int64)


def filtered_rows(rows: pa.Table, picked: Mask) -> pa.Table:
    """A filter is several times faster than a take of many rows, and slower for few."""
    count = int(np.count_nonzero(picked))
    if count * _TAKEN_SHARE < rows.num_rows:
        return take_rows(rows, np.flatnonzero(picked))
    return rows if count == rows.num_rows else rows.filter(pa.array(picked))


def _joined(rows: pa.Table, known: pa.Table, names: Sequence[str]) -> pa.Table:
    """Columns of these names, of `rows` where it has them."""
    parts = [rows if name in rows.column_names else known for name in names]
    fields = [part.field(name) for part, name in zip(parts, names, strict=True)]
    arrays = [part.column(name) for part, name in zip(parts, names, strict=True)]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _rows_of(
    parquet: ParquetInput, names: Sequence[str], groups: Sequence[int] | None, **how: bool
) -> pa.Table:
    """These columns of some row groups; without any: as many rows, for evolve to fill with nulls and constants."""
    if names:
        return parquet.read(names, groups, **how)
    sizes = np.diff(parquet.group_starts)
    return pa.table({"_": pa.nulls(int(sizes.sum() if groups is None else sizes[list(groups)].sum()))})


def part_of(groups: int, part: Part) -> range:
    """Neighbouring row groups; all parts together are all groups, each once."""
    number, count = part
    return range(groups * number // count, groups * (number + 1) // count)


def _portions_of(
    parquet: ParquetInput, names: Sequence[str], rows_max: int, groups: range
) -> Iterator[pa.Table]:
    if names:
        yield from parquet.read_portions(names, rows_max, groups)
        return
    total = int(parquet.group_starts[groups.stop] - parquet.group_starts[groups.start])
    for first in range(0, total, rows_max):
        yield pa.table({"_": pa.nulls(min(rows_max, total - first))})
