"""Reading one stored file with any newer schema of its table: the only way to rows of a file.

CHANGE     how rows of a stored file are read
Steps      plan by field id → read the needed columns → old types to new, partition columns as constants →
           drop hidden positions
INVARIANT  partition columns come from the manifest, never from the file (format.md#evolution).
PAIMON     `ParquetInput` is one open file: dataset readers would add columns of the path (format.md#data-files).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.evolution import evolve, plan_columns
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.lsm.arrow_take import take_rows
from tablestore_engine.store.files.parquet_input import ParquetInput
from tablestore_engine.store.files.stored_file import StoredFile, visible_mask

Part = tuple[int, int]
WHOLE: Part = (0, 1)


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
        return self._evolved(rows, file, columns, keep)

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
        return self._evolved(rows, file, columns, keep)

    def read_blocks(
        self,
        file: StoredFile,
        columns: Sequence[str] | None = None,
        *,
        keep: Sequence[str] = (),
        rows_max: int,
    ) -> Iterator[RowBlock]:
        """All physical rows in file order, about `rows_max` at a time, and never the whole of a large file."""
        names, first = self._stored_names(file, columns, keep), 0
        with ParquetInput(self.fileio, file.path) as parquet:
            groups = _part_of(len(parquet.group_starts) - 1, WHOLE)
            for rows in _portions_of(parquet, names, rows_max, groups):
                yield RowBlock(first, self._evolved(rows, file, columns, keep))
                first += rows.num_rows

    def read_visible_blocks(
        self,
        file: StoredFile,
        columns: Sequence[str] | None = None,
        *,
        keep: Sequence[str] = (),
        rows_max: int,
        part: Part = WHOLE,
        parallel: bool = False,
    ) -> Iterator[pa.Table]:
        """The rows of read_visible, about `rows_max` at a time; no table is empty. `part` of its row groups: number and
        count. Raises FixData TS1390 as well.
        """
        names = self._stored_names(file, columns, keep)
        with ParquetInput(self.fileio, file.path) as parquet:
            visible = visible_mask(file, int(parquet.group_starts[-1])) if file.deleted else None
            groups = _part_of(len(parquet.group_starts) - 1, part)
            first = int(parquet.group_starts[groups.start])
            for rows in _portions_of(parquet, names, rows_max, groups, parallel=parallel):
                mine = None if visible is None else visible[first : first + rows.num_rows]
                first += rows.num_rows
                kept = rows if mine is None else rows.filter(pa.array(mine))
                if kept.num_rows:
                    yield self._evolved(kept, file, columns, keep)

    def read_positions(
        self,
        file: StoredFile,
        positions: npt.NDArray[np.int64],
        columns: Sequence[str] | None = None,
        *,
        keep: Sequence[str] = (),
    ) -> pa.Table:
        """The rows at `positions`, in that order; only the row groups that hold them are decoded."""
        names = self._stored_names(file, columns, keep)
        with ParquetInput(self.fileio, file.path) as parquet:
            starts = parquet.group_starts
            group_of = np.searchsorted(starts, positions, side="right") - 1
            groups = np.unique(group_of)
            rows = _rows_of(parquet, names, groups.tolist())
        lengths = starts[groups + 1] - starts[groups]
        offsets = np.concatenate([[0], np.cumsum(lengths)[:-1]])  # where each group begins in what was read
        local = positions - starts[group_of] + offsets[np.searchsorted(groups, group_of)]
        return self._evolved(take_rows(rows, local), file, columns, keep)

    # --------------------------------------------------------------------------------------------------------

    def _decode(
        self,
        file: StoredFile,
        columns: Sequence[str] | None,
        *,
        keep: Sequence[str],
        groups: Sequence[int] | None = None,
        parallel: bool = False,
    ) -> pa.Table:
        names = self._stored_names(file, columns, keep)
        with ParquetInput(self.fileio, file.path) as parquet:
            return _rows_of(parquet, names, groups, parallel=parallel)

    def _stored_names(
        self, file: StoredFile, columns: Sequence[str] | None, keep: Sequence[str]
    ) -> list[str]:
        """The file's own names of what has to be read from it."""
        constants = self.schema.partition_keys
        wanted = [
            plan.source
            for plan in plan_columns(file.schema, self.schema, columns)
            if plan.source is not None and plan.field.name not in constants
        ]
        return list(dict.fromkeys([*keep, *wanted]))

    def _evolved(
        self, rows: pa.Table, file: StoredFile, columns: Sequence[str] | None, keep: Sequence[str]
    ) -> pa.Table:
        constants: Mapping[str, object] = dict(zip(self.schema.partition_keys, file.partition, strict=True))
        return evolve(rows, file.schema, self.schema, columns, partition=constants, keep=keep)


def _rows_of(
    parquet: ParquetInput, names: Sequence[str], groups: Sequence[int] | None, *, parallel: bool = False
) -> pa.Table:
    """These columns of some row groups; without any: as many rows, for evolve to fill with nulls and constants."""
    if names:
        return parquet.read(names, groups, parallel=parallel)
    sizes = np.diff(parquet.group_starts)
    return pa.table({"_": pa.nulls(int(sizes.sum() if groups is None else sizes[list(groups)].sum()))})


def _part_of(groups: int, part: Part) -> range:
    """Neighbouring row groups; all parts together are all groups, each once."""
    number, count = part
    return range(groups * number // count, groups * (number + 1) // count)


def _portions_of(
    parquet: ParquetInput, names: Sequence[str], rows_max: int, groups: range, *, parallel: bool = False
) -> Iterator[pa.Table]:
    """The same in portions."""
    if names:
        yield from parquet.read_portions(names, rows_max, groups, parallel=parallel)
        return
    total = int(parquet.group_starts[groups.stop] - parquet.group_starts[groups.start])
    for first in range(0, total, rows_max):
        yield pa.table({"_": pa.nulls(min(rows_max, total - first))})
