"""A scan plan becomes rows: file after file, in plan order, with the columns of the plan's schema.

Names      read_plan      all rows as one Arrow table
           read_batches   the same as a stream of record batches, one file in memory at a time
           read_scan_file one file of a plan
INVARIANT  the order of rows is the order of the plan's files, then of rows in the file: equal for equal plans.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.store.file_read import FileSource, read_file
from tablestore_engine.store.scan import ScanFile, ScanPlan

THREADS_MAX = 8


def read_plan(fileio: FileIO, plan: ScanPlan, columns: Sequence[str] | None = None) -> pa.Table:
    """All visible rows. `columns` None: all, in table order. Raises NotFound TS1110, FixData TS1117, TS1124."""
    target = result_schema(plan.schema, columns)
    if not plan.files:
        return target.empty_table()
    if len(plan.files) == 1:
        tables = [read_scan_file(fileio, plan.files[0], plan.schema, columns, parallel=True)]
    else:
        with ThreadPoolExecutor(min(THREADS_MAX, os.cpu_count() or 1, len(plan.files))) as pool:
            tables = list(
                pool.map(lambda file: read_scan_file(fileio, file, plan.schema, columns), plan.files)
            )
    return pa.concat_tables(tables)


def read_batches(
    fileio: FileIO, plan: ScanPlan, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """As read_plan, without holding more than one file."""
    for file in plan.files:
        yield from read_scan_file(fileio, file, plan.schema, columns, parallel=True).to_batches()


def read_scan_file(
    fileio: FileIO,
    file: ScanFile,
    schema: TableSchema,
    columns: Sequence[str] | None = None,
    *,
    parallel: bool = False,
) -> pa.Table:
    """The visible rows of one file of a plan."""
    partition = dict(zip(schema.partition_keys, file.partition, strict=True))
    source = FileSource(file.path, file.schema, partition, file.deleted)
    return read_file(fileio, source, schema, columns=columns, parallel=parallel)


def result_schema(schema: TableSchema, columns: Sequence[str] | None) -> pa.Schema:
    """Arrow schema of a read of these columns."""
    full = schema.arrow_schema()
    if columns is None:
        return full
    return pa.schema([full.field(field.name) for field in schema.fields_of(columns)])
