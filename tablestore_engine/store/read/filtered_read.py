"""Reading the rows of a plan that fulfil a condition, without the files that cannot have any.

Steps      files (BoundCondition.prune) → columns that are asked for and those that decide → mask
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pyarrow as pa

from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.row_budget import step_rows
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.scan import ScanPlan
from tablestore_engine.store.read.scan_rows import result_schema
from tablestore_engine.store.rows.row_condition import BoundCondition

_ROWS_MIN = 16_384  # a limit reads no fewer at once: hidden rows may come first


def read_matching(
    fileio: FileIO, plan: ScanPlan, wanted: BoundCondition, columns: Sequence[str] | None = None
) -> pa.Table:
    """The visible rows that `wanted` is TRUE of, in the order of the plan. Raises what scan_rows.read_plan raises."""
    target, needed = result_schema(plan.schema, columns), _needed(plan.schema, wanted, columns)
    reader, parts = FileReader(fileio, plan.schema), [target.empty_table()]

    def read(file: StoredFile) -> pa.Table:
        return _picked(reader.read_visible(file, needed, parallel=True), wanted, target)

    parts += fileio.run_together([partial(read, file) for file in wanted.prune(plan.files)])
    return pa.concat_tables(parts)


def read_some(
    fileio: FileIO,
    plan: ScanPlan,
    wanted: BoundCondition | None,
    columns: Sequence[str] | None = None,
    limit: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """The same as a stream that holds a step of rows (row_budget) and ends after `limit` rows.

    Files after the last row are not opened. No batch is empty.
    """
    target, left = result_schema(plan.schema, columns), limit
    needed = list(target.names) if wanted is None else _needed(plan.schema, wanted, columns)
    reader = FileReader(fileio, plan.schema)
    for file in plan.files if wanted is None else wanted.prune(plan.files):
        if left == 0:
            return
        if not file.visible_rows:
            continue
        step = step_rows([file])
        if wanted is None and left is not None:
            step = min(step, max(left, _ROWS_MIN))
        for rows in reader.read_visible_blocks(file, needed, rows_max=step, parallel=True):
            found = rows.select(target.names) if wanted is None else _picked(rows, wanted, target)
            found = found.slice(0, left)
            yield from (batch for batch in found.to_batches() if batch.num_rows)
            left = None if left is None else left - found.num_rows
            if left == 0:
                return


def _needed(schema: TableSchema, wanted: BoundCondition, columns: Sequence[str] | None) -> list[str]:
    """The columns of the result and those that decide, in table order."""
    asked = {*result_schema(schema, columns).names, *wanted.columns}
    return [name for name in schema.field_names if name in asked]


def _picked(rows: pa.Table, wanted: BoundCondition, target: pa.Schema) -> pa.Table:
    return rows.filter(pa.array(wanted.mask(rows))).select(target.names)
