"""What one Spark task of a write does: its rows, routed to their buckets, as the same tasks that the driver performs.

Steps      rows of all batches → buckets (store.rows.routing) → one BucketTask each (store.tasks.bucket_plan)
           → store.tasks.task_runner
INVARIANT  a task commits nothing: a task that runs twice (retry, speculation) leaves files that nothing names.
INVARIANT  errors of ours are outcomes (spark.task_outcomes): they never fail the Spark job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tablestore_engine.errors import TablestoreError
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.log.sink import RowLimit
from tablestore_engine.runtime.outside_world import SYSTEM
from tablestore_engine.spark.task_outcomes import BUCKET_COLUMN, encode_change, encode_failure, load_receiver
from tablestore_engine.spark.worker_versions import check_here
from tablestore_engine.store.files.bucket_state import BucketId, BucketState
from tablestore_engine.store.rows.bucket_assigner import BucketAssigner
from tablestore_engine.store.rows.routing import RoutedRows, route_rows
from tablestore_engine.store.rows.row_filter import RowFilter
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.store.tasks.bucket_plan import plan_rows
from tablestore_engine.store.tasks.bucket_task import BucketTask, TaskTable
from tablestore_engine.store.tasks.small_upserts import group_upserts
from tablestore_engine.store.tasks.task_runner import FileAccess, run_group
from tablestore_engine.store.write.dynamic_buckets import with_hashes

if TYPE_CHECKING:
    from tablestore_engine.store.write.key_moves import KeyMoves

OUTCOME_DDL = "outcome binary"
_OUTCOME = pa.schema([("outcome", pa.binary())])


@dataclass(frozen=True)
class WriteJob:
    """`states`: the base snapshot's buckets that have files, each file with the schema that it was written with.

    `picks`: stored rows of a keyed table that are deleted unless a row of the write has their key. An append-only table
    is not shuffled: its tasks share buckets, so what gives way there is decided once, by the driver.
    `kind_column` names the column of row kinds (bytes 0-3), None when every row is put. `limit`: of the log, if any.
    `early`: who gets changelog rows before the commit, as task_outcomes.dump_receiver has it. `assigner`: of dynamic
    buckets. `places`: of keys across partitions; then rows come as placed_rows.run_places gives them.
    """

    fileio: FileIO
    layout: TableLayout
    schema: TableSchema
    states: Mapping[BucketId, BucketState] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    picks: RowFilter | None = None
    kind_column: str | None = None
    limit: RowLimit | None = None
    early: bytes | None = field(default=None, repr=False)
    assigner: BucketAssigner | None = None
    places: KeyMoves | None = None

    @property
    def has_buckets(self) -> bool:
        """Whether the bucket of a row is known by its key."""
        return self.assigner is not None or self.places is not None or self.schema.bucket_count > 0

    def plan(self, routed: Sequence[RoutedRows]) -> tuple[BucketTask, ...]:
        """The tasks of these rows. Pure."""
        options = self.options if self.places is None else self.places.task_options
        table = TaskTable(self.layout, TableTraits(self.schema, options))
        picks = self.picks if self.schema.is_keyed else None
        if self.places is None or picks is None:
            return plan_rows(table, routed, self.states, picks)
        return tuple(
            task
            for one in routed
            for task in plan_rows(
                table, [one], self.states, picks if self.places.replaces_in(one.partition_bytes) else None
            )
        )


def run_job(job: WriteJob, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """All rows of one task; one outcome for each bucket, the last may be a failure."""
    held = [batch for batch in batches if batch.num_rows]
    if not held:
        return
    rows = pa.Table.from_batches(held)
    held.clear()
    given = None
    if job.places is not None:
        from tablestore_engine.spark.placed_rows import take_places  # noqa: PLC0415 - few tables need it (decision 0137)

        rows, given, failure = take_places(rows)
        if failure is not None:
            yield _answer([failure])
            return
    elif BUCKET_COLUMN in rows.column_names:
        rows = rows.drop_columns([BUCKET_COLUMN])
    kinds = None
    if job.kind_column is not None:
        kinds = np.asarray(rows.column(job.kind_column)).astype(np.int8)
        rows = rows.drop_columns([job.kind_column])
    access = FileAccess(job.fileio, SYSTEM, early=load_receiver(job.early))
    outcomes: list[bytes] = []
    try:
        check_here()
        if job.limit is not None:
            job.limit.check(rows, job.schema)
        routed = route_rows(rows, kinds, job.schema, job.assigner, given)
        tasks = job.plan(routed)
        for places in group_upserts(tasks):
            changes = run_group([tasks[place] for place in places], access)
            named = with_hashes(changes, [routed[place] for place in places], job.assigner)
            outcomes += map(encode_change, named)  # those before a failure count
    except TablestoreError as error:
        outcomes.append(encode_failure(error))
    yield _answer(outcomes)


def _answer(outcomes: Sequence[bytes]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(outcomes, pa.binary())], schema=_OUTCOME)
