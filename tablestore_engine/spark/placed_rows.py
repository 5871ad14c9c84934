"""Rows of a large write whose keys may be stored in other partitions: a pass before the one that writes buckets.

Steps      all rows of a key to one task → store.write.key_moves → rows in their partitions, with kind and bucket
INVARIANT  an error of ours is a row of its own, which the second pass passes on: it never fails the Spark job.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tablestore_engine.errors import TablestoreError
from tablestore_engine.format.bucket import hash_rows
from tablestore_engine.format.kind_column import kinds_of_column
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.lsm.key_order import Index
from tablestore_engine.lsm.key_versions import retracts
from tablestore_engine.spark.task_outcomes import BUCKET_COLUMN, encode_failure
from tablestore_engine.spark.worker_versions import check_here
from tablestore_engine.store.rows.bucket_assigner import AssignedRows
from tablestore_engine.store.rows.conformed_rows import conform
from tablestore_engine.store.rows.routing import Kinds
from tablestore_engine.store.write.key_moves import KeyMoves

FAILURE_COLUMN = "__ts_failure"
ADDED_COLUMNS = ((ROW_KIND_COLUMN, pa.int8()), (BUCKET_COLUMN, pa.int32()), (FAILURE_COLUMN, pa.binary()))


@dataclass(frozen=True)
class GivenPlaces:
    """Of rows that were placed in the pass before; `buckets`: dynamic ones."""

    buckets: np.ndarray

    def place(
        self, rows: pa.Table, kinds: Kinds | None, /
    ) -> tuple[pa.Table, Kinds | None, AssignedRows | None]:
        """The rows as they are."""
        if not (self.buckets >= 0).all():
            return rows, kinds, None
        none = np.zeros(len(self.buckets), np.int32)
        return rows, kinds, AssignedRows(self.buckets, none, none.astype(np.bool_))


def split_kinds_of(rows: pa.Table) -> tuple[pa.Table, Kinds | None]:
    """The rows without the column of their kinds, and these."""
    if ROW_KIND_COLUMN not in rows.column_names:
        return rows, None
    kinds = np.asarray(rows.column(ROW_KIND_COLUMN)).astype(np.int8)
    return rows.drop_columns([ROW_KIND_COLUMN]), kinds


def take_places(rows: pa.Table) -> tuple[pa.Table, GivenPlaces, bytes | None]:
    """Placed rows without the columns of the first pass, their places, and its failure."""
    failures = rows.column(FAILURE_COLUMN).drop_null()
    if len(failures):
        return rows, GivenPlaces(np.zeros(0, np.int32)), failures[0].as_py()
    buckets = np.asarray(rows.column(BUCKET_COLUMN)).astype(np.int32)
    return rows.drop_columns([BUCKET_COLUMN, FAILURE_COLUMN]), GivenPlaces(buckets), None


def run_places(moves: KeyMoves, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """All rows of one task, with ADDED_COLUMNS; a table with fixed buckets has -1 there."""
    held = [batch for batch in batches if batch.num_rows]
    if not held:
        return
    given = pa.Table.from_batches(held)
    held.clear()
    columns = given.drop_columns([name for name in (ROW_KIND_COLUMN,) if name in given.column_names]).schema
    shape = pa.schema([field.with_nullable(True) for field in columns])
    try:
        check_here()
        placed = place_rows(moves, given).cast(_with_added(shape))
    except TablestoreError as error:
        failure = {name: pa.nulls(1, type_) for name, type_ in ADDED_COLUMNS}
        failure[ROW_KIND_COLUMN] = pa.array([0], pa.int8())
        failure[BUCKET_COLUMN] = pa.array([0], pa.int32())
        failure[FAILURE_COLUMN] = pa.array([encode_failure(error)], pa.binary())
        arrays = [*(pa.nulls(1, field.type) for field in shape), *failure.values()]
        placed = pa.Table.from_arrays(arrays, schema=_with_added(shape))
    yield from placed.to_batches()


def place_rows(moves: KeyMoves, given: pa.Table) -> pa.Table:
    """The rows with the columns of the table, then ADDED_COLUMNS. Raises what conform and KeyMoves.place raise."""
    rows, kinds = split_kinds_of(given)
    rows = conform(rows, moves.schema, None if kinds is None else retracts(kinds))
    kinds = kinds_of_column(rows, moves.schema) if kinds is None else kinds
    placed, kinds, assigned = moves.place(rows, kinds)
    count = placed.num_rows
    added = (
        pa.array(np.zeros(count, np.int8) if kinds is None else kinds, pa.int8()),
        pa.array(np.full(count, -1, np.int32) if assigned is None else assigned.buckets, pa.int32()),
        pa.nulls(count, pa.binary()),
    )
    for (name, _), column in zip(ADDED_COLUMNS, added, strict=True):
        placed = placed.append_column(name, column)
    return placed


def key_groups(rows: pa.Table, schema: TableSchema, count: int) -> Index:
    """For each row a number below `count`: rows of one key have the same."""
    fields = schema.fields_of(schema.primary_keys)
    shape = [name for name in rows.column_names if name != ROW_KIND_COLUMN]
    made = conform(rows.select(shape), schema, np.ones(rows.num_rows, np.bool_))
    hashes = hash_rows([made.column(one.name) for one in fields], [one.type for one in fields])
    return hashes.astype(np.int64) % count


def _with_added(shape: pa.Schema) -> pa.Schema:
    fields: Sequence[pa.Field] = [*shape, *(pa.field(name, type_) for name, type_ in ADDED_COLUMNS)]
    return pa.schema(fields)
