"""Rows in their final order become files of about the target size, while they come: nothing waits but a row group.

CHANGE     when a data file is closed (option target-file-size)
Steps      pieces → row groups of the table's size → the open file, which is closed at the target size → its facts;
           small files that end together are encoded in memory, written and synced together (finish_together)
INVARIANT  files, row groups and metadata do not depend on how the rows were cut into pieces (groups that bytes cut
           short may).
INVARIANT  when the disk refuses a file (StorageError) all files of this writer are deleted: nobody will name them.
Memory     the pieces that do not fill a row group yet; a file's facts hold no rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

import pyarrow as pa

from tablestore_engine.errors import StorageError
from tablestore_engine.fileio.base import FileIO, NewFile, write_many
from tablestore_engine.format.data_file import DataFileMeta
from tablestore_engine.runtime.progress import NO_METER, Meter
from tablestore_engine.store.files.parquet_output import ParquetOutput, encode_parquet

GROUP_BYTES_MAX = 512 << 20  # 32-bit offsets of other readers end at 2 GiB
SAMPLE_ROWS = 8_192  # of a file's first rows: they decide which columns take a dictionary
SMALL_BYTES = 4 << 20  # a last file of fewer bytes in memory is encoded there: a stream costs more
P = TypeVar("P")


class FileFacts(Protocol):
    """Facts of one file; rows are given in order, all of them once."""

    def add(self, rows: pa.Table) -> None:
        """The next rows of the file."""

    def to_meta(self, name: str, size: int) -> DataFileMeta:
        """The file's metadata, once all its rows were given."""


@dataclass(frozen=True)
class Shape(Generic[P]):
    """How pieces become files: `arrange` makes rows of a piece, which are written with the types of `schema`.

    options   of a file's first rows → how Parquet is written; facts: a new file's
    """

    schema: pa.Schema
    arrange: Callable[[P], pa.Table]
    options: Callable[[pa.Table], Mapping[str, object]]
    facts: Callable[[], FileFacts]
    group_rows: int
    target_bytes: int


class RollingWriter(Generic[P]):
    """`new_path` gives name and path of the next file; `meter` counts rows. Raises StorageError."""

    def __init__(
        self,
        fileio: FileIO,
        new_path: Callable[[], tuple[str, str]],
        shape: Shape[P],
        meter: Meter = NO_METER,
    ) -> None:
        self._meter = meter
        self._fileio = fileio
        self._new_path = new_path
        self._shape = shape
        self._waiting: pa.Table | None = None
        self._file: _OpenFile | None = None
        self._done: list[tuple[str, DataFileMeta]] = []

    @property
    def metas(self) -> tuple[DataFileMeta, ...]:
        """The files that are complete: all of them behind the block, none for no rows."""
        return tuple(meta for _, meta in self._done)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._finish()
            elif self._file is not None:
                self._file.give_up(error)
        except StorageError:
            self.discard()
            raise
        if isinstance(error, StorageError):
            self.discard()

    def add(self, piece: P) -> None:
        rows = self._shape.arrange(piece)
        if rows.num_rows:
            both = [rows] if self._waiting is None else [self._waiting, rows]
            self._waiting = pa.concat_tables(both)
            self._write(is_last=False)
            self._meter.advance(rows.num_rows)

    def finish(self) -> None:
        """Complete the last file; the end of the block does it too, for a writer that is not finished yet."""
        self._finish()

    def encode_last(self) -> NewFile | None:
        """The last file, where it is one small row group: complete in `metas`, and the caller writes it."""
        rows, shape = self._waiting, self._shape
        if rows is None or self._file is not None or rows.nbytes > SMALL_BYTES:
            return None
        if rows.num_rows > min(shape.group_rows, SAMPLE_ROWS):
            return None
        (name, path), facts = self._new_path(), shape.facts()
        data = encode_parquet(rows.cast(shape.schema), dict(shape.options(rows)))
        facts.add(rows)
        self._done.append((path, facts.to_meta(name, len(data))))
        self._waiting = None
        return NewFile(path, data)

    def discard(self) -> None:
        """Delete the files. REQUIRES that no claim was tried with them."""
        for path, meta in self._done:
            for name in meta.file_names:
                self._fileio.delete(f"{path.removesuffix(meta.file_name)}{name}")
        self._done.clear()

    # --------------------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        try:
            self._write(is_last=True)
            if self._file is not None:
                self._close()
        except BaseException as error:
            if self._file is not None:
                self._file.give_up(error)
            raise

    def _enough(self, *, is_last: bool) -> int:
        """So many rows have to wait: with fewer a group, or the sample of a new file, would be cut short."""
        if is_last:
            return 1
        return self._shape.group_rows if self._file is not None else max(self._shape.group_rows, SAMPLE_ROWS)

    def _write(self, *, is_last: bool) -> None:
        """Row groups, as long as there are rows enough."""
        rows = self._waiting
        if rows is None:
            return
        shape, at, noted = self._shape, 0, 0
        while rows.num_rows - at >= self._enough(is_last=is_last) or rows.slice(at).nbytes > GROUP_BYTES_MAX:
            if self._file is None:
                sample = rows.slice(at, SAMPLE_ROWS)
                self._file = _OpenFile(
                    self._fileio, *self._new_path(), shape.schema, shape.options(sample), shape.facts()
                )
            group = _bounded(rows.slice(at, min(shape.group_rows, rows.num_rows - at)))
            self._file.output.write_group(group.cast(shape.schema))
            at += group.num_rows
            if self._file.sink.tell() >= shape.target_bytes:
                self._file.facts.add(rows.slice(noted, at - noted))
                self._close()
                noted = at
        if self._file is not None and at > noted:
            self._file.facts.add(rows.slice(noted, at - noted))
        self._waiting = rows.slice(at) if at < rows.num_rows else None

    def _close(self) -> None:
        assert self._file is not None
        self._done.append((self._file.path, self._file.close()))
        self._file = None


def finish_together(fileio: FileIO, writers: Sequence[RollingWriter[Any]]) -> None:
    """Complete the last files of all; they are durable on return. Raises StorageError."""
    small = [file for one in writers if (file := one.encode_last()) is not None]
    if small:
        write_many(fileio, small)
    fileio.run_together([partial(RollingWriter.finish, one) for one in writers])


class _OpenFile:
    """One file that is being written: complete and durable behind `close`, gone behind `give_up`."""

    def __init__(
        self,
        fileio: FileIO,
        name: str,
        path: str,
        schema: pa.Schema,
        options: Mapping[str, object],
        facts: FileFacts,
    ) -> None:
        self.path, self.facts, self._name, self._fileio = path, facts, name, fileio
        self._size = 0
        with ExitStack() as stack:
            self.sink = stack.enter_context(fileio.open_output(path))
            stack.callback(self._note_size)  # behind the footer, before the sink is closed
            self.output = stack.enter_context(ParquetOutput(self.sink, schema, dict(options)))
            self._stack = stack.pop_all()

    def _note_size(self) -> None:
        self._size = self.sink.tell()

    def close(self) -> DataFileMeta:
        self._stack.close()
        try:
            return self.facts.to_meta(self._name, self._size)
        except StorageError:  # its index could not be written
            self._fileio.delete(self.path)
            raise

    def give_up(self, error: BaseException) -> None:
        """Raises the StorageError that a failure of the disk is told as; any other error is the caller's."""
        self._stack.__exit__(type(error), error, error.__traceback__)


def _bounded(rows: pa.Table) -> pa.Table:
    """The first of the rows, as many as make a row group that every reader holds in one array."""
    while rows.num_rows > 1 and rows.nbytes > GROUP_BYTES_MAX:
        rows = rows.slice(0, rows.num_rows // 2)
    return rows
