"""File indexes held against their data file: they are there, and have every value of it.

INVARIANT  an index that lacks a value is a problem: readers would leave rows out.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.compute as pc

from tablestore_engine.errors import TablestoreError
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.file_index import FileIndex
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.row_budget import step_rows
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.index_pruning import held_values, read_index
from tablestore_engine.store.verify.file_sizes import FileSizes


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
