"""A scan plan becomes rows: file after file, in plan order, with the columns of the plan's schema.

INVARIANT  the order of rows is the order of the plan's files, then of rows in the file: equal for equal plans.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import pyarrow as pa

from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.row_budget import step_rows
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.scan import ScanPlan

THREADS_MAX = 8
T = TypeVar("T")


def read_plan(fileio: FileIO, plan: ScanPlan, columns: Sequence[str] | None = None) -> pa.Table:
    """All visible rows. `columns` None: all, in table order. Raises NotFound TS1110, FixData TS1117, TS1124."""
    target, reader = result_schema(plan.schema, columns), FileReader(fileio, plan.schema)
    files = [file for file in plan.files if file.visible_rows]
    if not files:
        return target.empty_table()
    if len(files) == 1:
        return reader.read_visible(files[0], columns, parallel=True)
    return pa.concat_tables(decode_files(fileio, files, lambda file: reader.read_visible(file, columns)))


def decode_files(
    fileio: FileIO, files: Sequence[StoredFile], decode: Callable[[StoredFile], T]
) -> Sequence[T]:
    """What `decode` makes of each file, in order: in threads, if there is more than one."""
    if fileio.folders is None:  # each file waits for the store most of the time
        return fileio.run_together([partial(decode, file) for file in files])
    if len(files) < 2:
        return [decode(file) for file in files]
    with ThreadPoolExecutor(min(THREADS_MAX, os.cpu_count() or 1, len(files))) as pool:
        return list(pool.map(decode, files))


def read_batches(
    fileio: FileIO, plan: ScanPlan, columns: Sequence[str] | None = None, *, skip: int = 0
) -> Iterator[pa.RecordBatch]:
    """As read_plan, without holding more than a step of rows (row_budget), however large the files are.

    Without the first `skip` rows: files that have none of the others are not opened.
    """
    reader = FileReader(fileio, plan.schema)
    for file in plan.files:
        if file.visible_rows <= skip:
            skip -= file.visible_rows
            continue
        step = step_rows([file])
        for rows in reader.read_visible_blocks(file, columns, rows_max=step, parallel=True):
            passed = min(skip, rows.num_rows)
            skip -= passed
            yield from rows.slice(passed).to_batches()


def result_schema(schema: TableSchema, columns: Sequence[str] | None) -> pa.Schema:
    full = schema.arrow_schema()
    if columns is None:
        return full
    return pa.schema([full.field(field.name) for field in schema.fields_of(columns)])
