"""The portable read as a node of an analysed plan: numbers of slices, mapped by Python workers to rows.

Steps      slices of the files → an RDD of their numbers, a partition each, with the size of the files as statistics →
           mapInArrow → the columns of the stand-in with their ids
INVARIANT  a column that was not read is an error when somebody asks for its values (TS1532), never NULL.
WHY        no data source: it would start a Python process to plan each query, and could not leave out columns. The
           statistics keep Spark from broadcasting a large table that looks like a few numbers.
CHANGE     the portable read in a worker
Worker     the driver cuts files into slices by size → a task reads one: the columns that the plan asks for, without
           rows that are deleted or that a condition excludes → types as Spark has them
INVARIANT  a slice is of named files of one snapshot, with their deletion vectors: it does not depend on when it runs.
INVARIANT  no credentials: the worker's FileIO connects by the worker's environment.
INVARIANT  a condition only leaves out rows that it is not TRUE of; Spark checks the others again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StructField, StructType

from tablestore_engine.errors import FileMissing
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.data_file import EMPTY_STATS, VALUE_KIND
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.spark import ship_package
from tablestore_engine.spark.remote_files import RemoteFiles
from tablestore_engine.spark.spark_errors import data_file_gone
from tablestore_engine.spark.spark_internals import Jvm, SparkInner
from tablestore_engine.spark.spark_types import arrow_type, as_spark_has_it
from tablestore_engine.sql.scanner import quote_name, quote_string
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
        columns = []
        for field in self.target:
            if field.name == self.constant_column:
                columns.append(pa.chunked_array([np.full(rows.num_rows, part.constant)]).cast(field.type))
            elif field.name == VALUE_KIND:
                columns.append(rows.column(field.name).cast(field.type))
            else:
                columns.append(as_spark_has_it(rows.column(field.name), field.type))
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


_NUMBER_BYTES = 16  # of a row of numbers, as Spark estimates it


class ArrowRelations:
    """Of one session; `scratch`: where the package for workers is made."""

    def __init__(self, session: SparkSession, inner: SparkInner, scratch: Path) -> None:
        self._session, self._inner, self._scratch = session, inner, scratch

    def on(self, node: Jvm, files: RemoteFiles, wanted: Predicate, columns: frozenset[str] | None) -> Jvm:
        """The rows of `node`, a stand-in, from these files; of `columns` only, where the plan asks for no others."""
        whole = StructType.fromJson(json.loads(str(node.schema().json())))
        asked = whole if columns is None else _narrowed(whole, columns)
        if not files.group.files:
            return self._inner.placeholder(node.output())
        context = self._session.sparkContext
        if not str(context.master).startswith("local"):
            ship_package.ship(self._session, self._scratch)

        def constant(file: StoredFile) -> int | None:
            return files.constants.get(file.meta.file_name)

        read = ArrowRead(
            files.reads.fileio,
            files.group.schema,
            cut_slices(
                [_slim(file) for file in files.group.files], constant, cores=context.defaultParallelism
            ),
            pa.schema([pa.field(one.name, arrow_type(one.dataType)) for one in asked.fields]),
            wanted,
            files.constant_column,
        )
        size = sum(file.meta.file_size for file in files.group.files)
        row_bytes = 8 + int(node.schema().defaultSize())
        numbers = self._inner.numbers(len(read.slices), max(1, size * _NUMBER_BYTES // row_bytes))
        rows = numbers.mapInArrow(reading(read), asked)
        known = set(asked.names)
        items = [quote_name(one.name) if one.name in known else _refusal(one) for one in whole.fields]
        return self._inner.renamed(rows.selectExpr(*items)._jdf.queryExecution().analyzed(), node.output())


def _narrowed(whole: StructType, columns: frozenset[str]) -> StructType:
    """One column at least: rows without any cannot be counted."""
    fields = [one for one in whole.fields if one.name in columns]
    smallest = min(whole.fields, key=_width)
    return StructType(fields or [smallest])


def _width(field: StructField) -> int:
    kind = field.dataType.simpleString()
    return {"boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "date": 4, "bigint": 8, "double": 8}.get(
        kind, 99
    )


def _refusal(field: StructField) -> str:
    told = f"TS1532 column {field.name} was not read, since the query does not name it"
    return f"cast(raise_error({quote_string(told)}) as {_ddl(field)}) as {quote_name(field.name)}"


def _ddl(field: StructField) -> str:
    """A type that is nested and has odd names inside cannot be written as simpleString."""
    return StructType([StructField("c", field.dataType)]).toDDL().partition(" ")[2]


def _slim(file: StoredFile) -> StoredFile:
    """Without statistics, which have done their work in the driver."""
    return replace(file, meta=replace(file.meta, key_stats=EMPTY_STATS, value_stats=EMPTY_STATS))
