"""One data or changelog file held against its metadata: it exists, has its size and its rows, every page decodes.

INVARIANT  a file is decoded once, all columns, a step of rows at a time; what its keys are is computed on the way.
INVARIANT  an index that lacks a value is a problem: readers would leave rows out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.errors import TablestoreError
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.file_index import FileIndex
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.parquet_copies import as_parquet
from tablestore_engine.store.files.parquet_input import ParquetInput
from tablestore_engine.store.files.row_budget import step_rows
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.index_pruning import held_values, read_index
from tablestore_engine.store.verify.file_sizes import FileSizes
from tablestore_engine.store.verify.key_facts import (
    SYSTEM_COLUMNS,
    KeyFacts,
    KeyFactsOfBlocks,
    read_key_facts,
)
from tablestore_engine.store.verify.problems import describe_error


def find_index_problems(fileio: FileIO, sizes: FileSizes, file: StoredFile, *, deep: bool) -> tuple[str, ...]:
    """`deep`: each value of the file is looked up."""
    folder = file.path.rpartition("/")[0]
    gone = [name for name in file.meta.extra_files if sizes.find(f"{folder}/{name}", file.fileio) is None]
    if gone:
        return tuple(f"{folder}/{name} is missing" for name in gone)
    try:
        index = read_index(fileio, file)
        return () if index is None or not deep else tuple(_lacking(fileio, file, index))
    except (TablestoreError, ValueError) as error:
        return (f"the file index of {file.path} is damaged: {error}",)


def _lacking(fileio: FileIO, file: StoredFile, index: FileIndex) -> Iterator[str]:
    fields = [field for field in file.schema.fields if field.name in index.places]
    lacking: set[str] = set()
    reader = FileReader(fileio, file.schema)
    for block in reader.read_blocks(file, [field.name for field in fields], rows_max=step_rows([file])):
        for field in fields:
            values = pc.unique(block.rows[field.name].drop_null())
            if field.name not in lacking and not held_values(index, field, values).all():
                lacking.add(field.name)
                yield f"the file index of {file.path} lacks a value of column {field.name}"


@dataclass(frozen=True)
class FileOutcome:
    """`problems` of the file as such. `keys`: what its keys are, the error that hides them, or None: not asked."""

    problems: tuple[str, ...] = ()
    is_whole: bool = True
    keys: KeyFacts | str | None = None

    def without_keys(self) -> FileOutcome:
        """The same without the keys in memory."""
        return replace(self, keys=replace(self.keys, keys=None)) if isinstance(self.keys, KeyFacts) else self


@dataclass(frozen=True)
class FileCheck:
    """`deep`: decode the file; otherwise its footer says how many rows it has."""

    fileio: FileIO
    sizes: FileSizes
    deep: bool

    def run(self, file: StoredFile, reader: FileReader | None = None, *, keeps: bool = False) -> FileOutcome:
        """`reader`: the keys are wanted as well (deep), `keeps`: and kept."""
        path, meta = file.path, file.meta
        size = self.sizes.find(path, file.fileio)
        if size is None:
            return FileOutcome((f"{path} is missing",), is_whole=False)
        if size != meta.file_size:
            return FileOutcome((f"{path} is not {meta.file_size} bytes long",), is_whole=False)
        keys = None if reader is None or not self.deep else _KeysAlong(reader, file, keeps=keeps)
        try:
            rows = self._count_rows(file, keys)
        except TablestoreError as broken:
            found: KeyFacts | str | None = None
            if reader is not None and keys is not None:  # damage of other columns says nothing about keys
                found = _keys_alone(reader, file, keeps=keeps)
            return FileOutcome((describe_error(broken),), keys=found)
        problems = find_index_problems(self.fileio, self.sizes, file, deep=self.deep)
        if rows != meta.row_count:
            problems = (f"{path} has {rows} rows, its metadata says {meta.row_count}", *problems)
        return FileOutcome(problems, keys=None if keys is None else keys.result())

    def _count_rows(self, file: StoredFile, keys: _KeysAlong | None) -> int:
        """Rows that the footer says; deep: after every page of every column was decoded."""
        there = as_parquet(self.fileio, file)
        with ParquetInput(there.fileio or self.fileio, there.path, schema=file.schema) as parquet:
            if self.deep:
                groups = range(parquet.metadata.num_row_groups)
                for rows in parquet.read_portions(None, step_rows([file]), groups):
                    if keys is not None:
                        keys.add(rows)
            return int(parquet.metadata.num_rows)


class _KeysAlong:
    """The keys of a file whose rows are decoded for another reason."""

    def __init__(self, reader: FileReader, file: StoredFile, *, keeps: bool) -> None:
        self._reader, self._file = reader, file
        self._names = reader.schema.trimmed_primary_keys
        self._facts = KeyFactsOfBlocks(self._names, keeps=keeps)
        self._error: str | None = None

    def add(self, rows: pa.Table) -> None:
        if self._error is not None or not rows.num_rows:
            return
        try:
            wanted = self._reader.stored_names(self._file, self._names, SYSTEM_COLUMNS)
            mine = rows.select([name for name in wanted if name in rows.column_names])
            self._facts.add(self._reader.evolved(mine, self._file, self._names, SYSTEM_COLUMNS))
        except TablestoreError as broken:
            self._error = describe_error(broken)

    def result(self) -> KeyFacts | str:
        return self._facts.result() if self._error is None else self._error


def _keys_alone(reader: FileReader, file: StoredFile, *, keeps: bool) -> KeyFacts | str:
    try:
        return read_key_facts(reader, file, keeps=keeps)
    except TablestoreError as broken:
        return describe_error(broken)
