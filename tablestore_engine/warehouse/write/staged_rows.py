"""Rows that lie in files, as tasks of Spark left them: on their way into a table, a part of them in memory at a time.

Steps      few rows come to memory and are written like any others. Many are dealt out to groups of buckets, in files
           again, and a group after the other becomes changes, by the task that Spark's workers perform
           (spark/write_job.py). Without buckets a portion after the other does
WHY        Spark's writers in Python cannot shuffle rows to their buckets, nor start a job when they commit.
INVARIANT  rows keep their order: files in the order of the tasks, and rows of a bucket as they came.
CRASH      the files stay; nothing names them. The batch that comes again leaves others (datasource/spark_source.py).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.spark.task_outcomes import BUCKET_COLUMN, discard, gather
from tablestore_engine.spark.task_placement import SMALL_BYTES
from tablestore_engine.spark.write import SMALL_ROWS
from tablestore_engine.spark.write_job import WriteJob, run_job
from tablestore_engine.store.files.bucket_state import BucketChange
from tablestore_engine.store.files.row_budget import STEP_ROWS
from tablestore_engine.store.rows.routing import route_rows
from tablestore_engine.store.rows.row_filter import RowFilter
from tablestore_engine.warehouse.write.incoming import check_names, group_count, shape_arrow

if TYPE_CHECKING:
    from tablestore_engine.store.write.key_moves import KeyMoves

Shape = Callable[[pa.Table], pa.Table]


class Deal(Protocol):
    """Which rows of a batch go to which of `count` groups."""

    def __call__(self, batch: pa.RecordBatch, /, *, count: int) -> Iterator[tuple[int, pa.Table]]:
        """(group, rows)."""


_GROUPS_MAX = 256  # files that are open at once


@dataclass(frozen=True)
class StagedFile:
    """`size`: bytes of the rows in memory."""

    path: str
    rows: int
    size: int


def stage_rows(fileio: FileIO, path: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> StagedFile:
    """Write them as they come; durable on return."""
    rows, size = 0, 0
    with fileio.open_output(path) as output, _writer(output, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
    return StagedFile(path, rows, size)


def _writer(output: pa.NativeFile, schema: pa.Schema) -> pa.ipc.RecordBatchStreamWriter:
    return pa.ipc.new_stream(output, schema, options=pa.ipc.IpcWriteOptions(compression="lz4"))


@dataclass(frozen=True)
class StagedRows:
    """`files` in the order of their rows, with the Arrow columns `schema`; `folder` is this write's, for more files.

    Raises FixRequest TS1024 for repeated names.
    """

    fields: tuple[DataField, ...]
    fileio: FileIO
    folder: str
    files: tuple[StagedFile, ...]
    schema: pa.Schema
    new_name: Callable[[], str]

    def __post_init__(self) -> None:
        check_names([field.name for field in self.fields])

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def has_kinds(self) -> bool:
        """Whether a column _ROW_KIND comes along."""
        return ROW_KIND_COLUMN in self.schema.names

    @property
    def only_deletes(self) -> bool:
        """Not known before the files are read."""
        return False

    def size_bytes(self) -> int:
        return sum(file.size for file in self.files)

    def count_groups(self, columns: Sequence[str]) -> int:
        """Of all files, one batch in memory at a time."""
        batches = self._batches(file.path for file in self.files)
        return group_count((pa.Table.from_batches([one]) for one in batches), columns)

    def read(self, schema: TableSchema) -> pa.Table | StagedRows:
        """As a table, when they are at most about a million."""
        if self.rows > SMALL_ROWS or self.size_bytes() > SMALL_BYTES:
            return self
        batches = self._batches(file.path for file in self.files)
        return shape_arrow(pa.Table.from_batches(batches, schema=self.schema), schema)

    def find_violations(self) -> None:
        """A sink of Spark has no check constraints."""

    def narrowed(self, replaces: RowFilter | None) -> RowFilter | None:
        """A sink of Spark has no such filter."""
        return replaces

    def count_rows(self, columns: Sequence[str]) -> pa.Table:
        """Of all files, one batch in memory at a time."""
        have = {name.lower(): name for name in self.schema.names}
        names = [have[name.lower()] for name in columns]
        parts = [
            pa.Table.from_batches([one]).select(names).group_by(names).aggregate([([], "count_all")])
            for one in self._batches(file.path for file in self.files)
        ]
        return pa.concat_tables(parts).group_by(names).aggregate([("count_all", "sum")])

    def write(self, job: WriteJob, _: Callable[[], Path], /) -> Sequence[BucketChange]:
        """A part of them in memory at a time. Raises what rows can break; then no file of theirs is left."""
        rows, shape = self, partial(shape_arrow, schema=job.schema)
        if job.places is not None:
            rows, shape = self._placed(job.places, shape), partial(_as_it_is)
            job = replace(job, kind_column=ROW_KIND_COLUMN)
        groups = rows._by_bucket(job, shape) if job.has_buckets else rows._portions(shape)
        outcomes: list[bytes] = []
        for group in groups:
            for answer in run_job(job, group):
                outcomes += answer.column(0).to_pylist()
            gathered = gather(enumerate(outcomes))
            if gathered.failure is not None:
                discard(job.fileio, job.layout, job.schema, gathered.changes.values())
                raise gathered.failure
        return gather(enumerate(outcomes)).in_order(len(outcomes))

    def _placed(self, moves: KeyMoves, shape: Shape) -> StagedRows:
        """The rows where they belong whose keys may be stored in other partitions: a group of keys at a time."""
        from tablestore_engine.spark import placed_rows  # noqa: PLC0415 - few tables need it (decision 0137)

        paths = self._new_paths()
        target = _stored_shape(moves.schema, has_kinds=self.has_kinds)
        self._deal(partial(_by_key, schema=moves.schema), shape, paths, target)
        files = []
        for path in paths:
            held = pa.Table.from_batches(self._batches([path]), schema=target)
            self.fileio.delete(path)
            placed = placed_rows.place_rows(moves, held)
            name = f"{self.folder}/{self.new_name()}"
            files.append(stage_rows(self.fileio, name, placed.to_batches(), placed.schema))
        return replace(self, files=tuple(files), schema=placed.schema)

    def _batches(self, paths: Iterable[str]) -> Iterator[pa.RecordBatch]:
        for path in paths:
            with self.fileio.open_input(path) as source, pa.ipc.open_stream(source) as stream:
                yield from stream

    def _shaped(self, shape: Shape) -> Iterator[pa.RecordBatch]:
        for batch in self._batches(file.path for file in self.files):
            yield from shape(pa.Table.from_batches([batch])).to_batches()

    def _portions(self, shape: Shape) -> Iterator[Iterator[pa.RecordBatch]]:
        """Rows of a table without buckets: a step of them each."""
        held: list[pa.RecordBatch] = []
        rows = 0
        for batch in self._shaped(shape):
            held.append(batch)
            rows += batch.num_rows
            if rows >= STEP_ROWS:
                yield iter(held)
                held, rows = [], 0
        if held:
            yield iter(held)

    def _by_bucket(self, job: WriteJob, shape: Shape) -> Iterator[Iterator[pa.RecordBatch]]:
        """Rows of some buckets each, about a step of them, as far as there are so many buckets."""
        paths = self._new_paths()
        target = _stored_shape(job.schema, has_kinds=self.has_kinds, is_placed=job.places is not None)
        self._deal(partial(_dealt, job=job), shape, paths, target)
        if job.places is not None:  # files of the pass that placed the rows
            self.fileio.delete_many([file.path for file in self.files])
        for path in paths:
            yield self._batches([path])
            self.fileio.delete(path)

    def _new_paths(self) -> list[str]:
        """Of files with a step of the rows each."""
        count = max(1, min(-(-self.rows // STEP_ROWS), _GROUPS_MAX))
        return [f"{self.folder}/{self.new_name()}" for _ in range(count)]

    def _deal(self, dealt: Deal, shape: Shape, paths: Sequence[str], target: pa.Schema) -> None:
        with ExitStack() as opened:
            outputs = [opened.enter_context(self.fileio.open_output(path)) for path in paths]
            writers = [opened.enter_context(_writer(output, target)) for output in outputs]
            for batch in self._shaped(shape):
                for number, rows in dealt(batch, count=len(paths)):
                    writers[number].write_table(rows.cast(target))


def _as_it_is(rows: pa.Table) -> pa.Table:
    return rows


def _stored_shape(schema: TableSchema, *, has_kinds: bool, is_placed: bool = False) -> pa.Schema:
    """The columns of a table, and those of the pass that places rows."""
    fields = [field.with_nullable(True) for field in schema.arrow_schema()]
    if is_placed:
        from tablestore_engine.spark import placed_rows  # noqa: PLC0415 - few tables need it (decision 0137)

        return pa.schema([*fields, *(pa.field(name, type_) for name, type_ in placed_rows.ADDED_COLUMNS)])
    return pa.schema([*fields, *[pa.field(ROW_KIND_COLUMN, pa.int8())] * has_kinds])


def _by_key(batch: pa.RecordBatch, *, schema: TableSchema, count: int) -> Iterator[tuple[int, pa.Table]]:
    """(group, rows) of a batch: all rows of a key are in one group. Raises what conform raises."""
    from tablestore_engine.spark import placed_rows  # noqa: PLC0415 - few tables need it (decision 0137)

    rows = pa.Table.from_batches([batch])
    groups = placed_rows.key_groups(rows, schema, count)
    for number in np.unique(groups):
        yield int(number), rows.filter(pa.array(groups == number))


def _dealt(batch: pa.RecordBatch, *, job: WriteJob, count: int) -> Iterator[tuple[int, pa.Table]]:
    """(group, rows) of a batch, with their kinds. Raises what route_rows raises."""
    from tablestore_engine.spark import placed_rows  # noqa: PLC0415 - few tables need it (decision 0137)

    rows, places = pa.Table.from_batches([batch]), None
    if job.places is not None:
        rows, places, _ = placed_rows.take_places(rows)
    rows, kinds = placed_rows.split_kinds_of(rows)
    for one in route_rows(rows, kinds, job.schema, job.assigner, places):
        found = one.rows
        if kinds is not None:
            assert one.kinds is not None  # they are split like the rows
            found = found.append_column(ROW_KIND_COLUMN, pa.array(one.kinds, pa.int8()))
        if places is not None:
            bucket = one.bucket if one.assigned is not None else -1
            found = found.append_column(BUCKET_COLUMN, pa.repeat(pa.scalar(bucket, pa.int32()), len(found)))
            found = found.append_column(placed_rows.FAILURE_COLUMN, pa.nulls(len(found), pa.binary()))
        yield (zlib.crc32(one.partition_bytes) + one.bucket) % count, found
