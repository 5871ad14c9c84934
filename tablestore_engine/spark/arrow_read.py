"""The portable read, in a Python worker: slices of data files as Arrow batches for Spark. Nothing here asks Spark.

CHANGE     the portable read in a worker
Steps      the driver cuts files into slices by size → a task reads one: the columns that the plan asks for, without
           rows that are deleted or that a condition excludes → types as Spark has them
INVARIANT  a slice is of named files of one snapshot, with their deletion vectors: it does not depend on when it runs.
INVARIANT  no credentials: the worker's FileIO connects by the worker's environment.
INVARIANT  a condition only leaves out rows that it is not TRUE of; Spark checks the others again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tablestore_engine.errors import FileMissing
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.data_file import VALUE_KIND
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.spark.spark_errors import data_file_gone
from tablestore_engine.spark.spark_types import as_spark_has_it
from tablestore_engine.store.files.file_read import FileReader, OpenFile, part_of
from tablestore_engine.store.files.row_budget import step_rows
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.predicate import ANYTHING, Predicate, matching
from tablestore_engine.store.read.text_condition import PredicateCondition
from tablestore_engine.store.rows.matching_rows import possible_groups

BATCH_ROWS = 65_536  # of one message to the JVM
_SLICE_MIN, _SLICE_MAX = 8 << 20, 64 << 20  # bytes: a task costs as much as some megabytes
_SLICES_PER_CORE = 3


@dataclass(frozen=True)
class FilePart:
    """Row groups of a file: the part `number` of `count` about equal ones. `constant`: see ArrowRead."""

    file: StoredFile
    number: int = 0
    count: int = 1
    constant: int | None = None


@dataclass(frozen=True)
class ArrowRead:
    """`target`: columns and types of the answer: stored ones, VALUE_KIND, and `constant_column`, which is the same in
    all rows of a file.
    """

    fileio: FileIO
    schema: TableSchema
    slices: tuple[tuple[FilePart, ...], ...]
    target: pa.Schema
    wanted: Predicate = ANYTHING
    constant_column: str | None = None

    def rows(self, number: int) -> Iterator[pa.RecordBatch]:
        """Of one slice. Raises what file_read.FileReader raises, and DataFileGone TS1562 for a missing file."""
        reader = FileReader(self.fileio, self.schema)
        stored = set(self.target.names) - {VALUE_KIND, self.constant_column}
        names = [field.name for field in self.schema.fields if field.name in stored]
        keep = [VALUE_KIND] if VALUE_KIND in self.target.names else []
        for part in self.slices[number]:
            try:
                with reader.open(part.file) as opened:
                    groups = self._groups(opened, part)
                    step = step_rows([part.file])
                    for rows in opened.blocks(groups, names, keep=keep, rows_max=step, parallel=True):
                        yield from self._answer(self._chosen(rows), part)
            except FileMissing as error:
                raise data_file_gone(part.file.path, error.why) from error

    def _groups(self, opened: OpenFile, part: FilePart) -> list[int]:
        """Those of a part of a file that may hold a row that is wanted."""
        mine = part_of(len(opened.groups), (part.number, part.count))
        if self.wanted == ANYTHING:
            return list(mine)
        possible = possible_groups(opened, PredicateCondition(self.wanted, self.schema))
        return [group for group in possible if group in mine]

    def _chosen(self, rows: pa.Table) -> pa.Table:
        if self.wanted == ANYTHING:
            return rows
        types = {field.name: field.type for field in self.schema.fields}
        return rows.filter(pa.array(matching(self.wanted, rows, types)))

    def _answer(self, rows: pa.Table, part: FilePart) -> Iterator[pa.RecordBatch]:
        types = {field.name: field.type for field in self.schema.fields}
        columns = []
        for field in self.target:
            if field.name == self.constant_column:
                columns.append(pa.chunked_array([np.full(rows.num_rows, part.constant)]).cast(field.type))
            elif field.name == VALUE_KIND:
                columns.append(rows.column(field.name).cast(field.type))
            else:
                columns.append(as_spark_has_it(rows.column(field.name), types[field.name], field.type))
        if rows.num_rows:
            yield from pa.Table.from_arrays(columns, schema=self.target).to_batches(max_chunksize=BATCH_ROWS)


def reading(read: ArrowRead) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For mapInArrow over numbers of slices."""

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from read.rows(number)

    return rows


def cut_slices(
    files: Sequence[StoredFile], constants: Callable[[StoredFile], int | None], *, cores: int
) -> tuple[tuple[FilePart, ...], ...]:
    """Small neighbours together, large files in parts. Pure."""
    total = sum(file.meta.file_size for file in files)
    size = min(max(total // (_SLICES_PER_CORE * cores), _SLICE_MIN), _SLICE_MAX)
    slices: list[list[FilePart]] = []
    room = 0
    for file in files:
        count = max(1, round(file.meta.file_size / size))
        if count > 1:
            slices += [[FilePart(file, number, count, constants(file))] for number in range(count)]
            room = 0
            continue
        if room <= 0:
            slices.append([])
            room = size
        slices[-1].append(FilePart(file, constant=constants(file)))
        room -= file.meta.file_size
    return tuple(map(tuple, slices))
