"""Rows of some buckets that belong into one bucket of another layout: the same rows in other files.

CHANGE     the rows of a bucket after a rescale
Steps      keyed: visible rows of all files, one key range after the other → those of this bucket, in key order → a run;
           without deletion vectors, under an engine that combines values, they are merged first (version_merge)
           append-only: file by file, in the order that they have
INVARIANT  visible rows are the same before and after, by key with their sequence numbers; no changelog, since nothing
           changed.
Memory     a step of rows (row_budget) of all files together, however large the buckets are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore_engine.format.bucket import assign_buckets
from tablestore_engine.format.data_file import SEQUENCE_NUMBER, SOURCE_COMPACT
from tablestore_engine.lsm.arrow_take import take_rows
from tablestore_engine.lsm.key_order import Mask, order_columns, order_permutation
from tablestore_engine.store.files.bucket_state import BucketChange, BucketState
from tablestore_engine.store.files.data_files import DataFiles, RunRows
from tablestore_engine.store.files.rolling_writer import RollingWriter
from tablestore_engine.store.files.row_budget import step_rows
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.merge.range_read import read_ranges
from tablestore_engine.store.merge.version_merge import read_merged


def rescale_rows(
    files: DataFiles, state: BucketState, sources: Sequence[StoredFile], *, level: int
) -> BucketChange:
    """The rows of `sources` that the schema's buckets put into the bucket of `state`, which is empty."""
    there = [file for file in sources if file.visible_rows]
    if files.schema.is_keyed:
        added = _write_run(files, state, there, level).metas
        return BucketChange(state.partition_bytes, state.bucket, added=added)
    added = _write_files(files, state, there).metas
    return BucketChange(state.partition_bytes, state.bucket, added=added)


def _write_run(
    files: DataFiles, state: BucketState, sources: Sequence[StoredFile], level: int
) -> RollingWriter[RunRows]:
    keys = files.schema.trimmed_primary_keys
    with files.open_run(state, level=level, source=SOURCE_COMPACT) as output:
        if not files.traits.has_inbox and files.traits.merge_engine.combines:
            for run in read_merged(files.reader, sources, files.traits):
                mine = _is_of_bucket(files, state, run.rows)
                output.add(RunRows(run.rows.filter(pa.array(mine)), run.numbers[mine]))
            return output
        ranges = read_ranges(files.reader, sources, keep=(SEQUENCE_NUMBER,), visible=True) if sources else ()
        for pieces in ranges:
            rows = _of_bucket(files, state, pa.concat_tables([piece.rows for piece in pieces]))
            pieces.clear()  # gone before the next range is read
            rows = take_rows(rows, order_permutation(order_columns(rows, keys)))
            numbers = np.asarray(rows.column(SEQUENCE_NUMBER))
            output.add(RunRows(rows.drop_columns([SEQUENCE_NUMBER]), numbers))
    return output


def _write_files(
    files: DataFiles, state: BucketState, sources: Sequence[StoredFile]
) -> RollingWriter[pa.Table]:
    """Numbers begin anew: files of two buckets have the same ones, and files of one bucket must not."""
    with files.open_append(state, 0, source=SOURCE_COMPACT) as output:
        for file in sorted(sources, key=lambda one: (one.meta.min_sequence_number, one.bucket)):
            for rows in files.reader.read_visible_blocks(file, rows_max=step_rows([file])):
                output.add(_of_bucket(files, state, rows))
    return output


def _of_bucket(files: DataFiles, state: BucketState, rows: pa.Table) -> pa.Table:
    return rows.filter(pa.array(_is_of_bucket(files, state, rows)))


def _is_of_bucket(files: DataFiles, state: BucketState, rows: pa.Table) -> Mask:
    schema = files.schema
    fields = schema.fields_of(schema.bucket_keys)
    buckets: npt.NDArray[np.int32] = assign_buckets(
        [rows.column(field.name) for field in fields],
        [field.type for field in fields],
        schema.bucket_count,
        files.traits.bucket_function,
    )
    return np.asarray(buckets == state.bucket)
