"""What one Spark task of a write does: its rows, routed to their buckets, as the same tasks that the driver performs.

Names      WriteJob     everything a task needs, frozen and picklable; no driver state
           run_job()    Arrow batches of one task -> one Arrow batch of encoded outcomes
           encode_failure() decode_outcomes()   errors of ours cross the wire as data, with their code and text
           list_files() the files that the tasks made
Steps      rows of all batches → buckets (store.routing) → one BucketTask each (store.bucket_plan) → store.task_runner
INVARIANT  a task commits nothing: a task that runs twice (retry, speculation) leaves files that nothing names.
INVARIANT  errors of ours never fail the Spark job: its message would bury them in a stack trace.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tablestore_engine import errors
from tablestore_engine.errors import EngineBug, TablestoreError
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.log.sizes import MessageLimit, check_sizes
from tablestore_engine.runtime.system import SYSTEM
from tablestore_engine.store.bucket_plan import plan_rows
from tablestore_engine.store.bucket_state import BucketChange, BucketState
from tablestore_engine.store.bucket_task import BucketTask, TaskTable
from tablestore_engine.store.conflict import BucketId
from tablestore_engine.store.routing import RoutedRows, route_rows
from tablestore_engine.store.row_filter import RowFilter
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.store.task_runner import FileAccess, run_task

BUCKET_COLUMN = "__ts_bucket"
OUTCOME_DDL = "outcome binary"
_OUTCOME = pa.schema([("outcome", pa.binary())])


@dataclass(frozen=True)
class WriteJob:
    """`states`: the base snapshot's buckets that have files, each file with the schema that it was written with.

    `picks`: stored rows of a keyed table that are deleted unless a row of the write has their key. An append-only table
    is not shuffled: its tasks share buckets, so what gives way there is decided once, by the driver.
    `kind_column` names the column of row kinds (bytes 0-3), None when every row is put. `limit`: of the log, if any.
    """

    fileio: FileIO
    layout: TableLayout
    schema: TableSchema
    states: Mapping[BucketId, BucketState] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    picks: RowFilter | None = None
    kind_column: str | None = None
    limit: MessageLimit | None = None

    def plan(self, routed: Sequence[RoutedRows]) -> tuple[BucketTask, ...]:
        """The tasks of these rows. Pure."""
        table = TaskTable(self.layout, TableTraits(self.schema, self.options))
        return plan_rows(table, routed, self.states, self.picks if self.schema.is_keyed else None)


def run_job(job: WriteJob, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """All rows of one task; one outcome for each bucket, the last may be a failure."""
    held = [batch for batch in batches if batch.num_rows]
    if not held:
        return
    rows = pa.Table.from_batches(held)
    held.clear()
    if BUCKET_COLUMN in rows.column_names:
        rows = rows.drop_columns([BUCKET_COLUMN])
    kinds = None
    if job.kind_column is not None:
        kinds = np.asarray(rows.column(job.kind_column)).astype(np.int8)
        rows = rows.drop_columns([job.kind_column])
    access = FileAccess(job.fileio, SYSTEM)
    outcomes: list[bytes] = []
    try:
        if job.limit is not None:
            check_sizes(rows, job.schema, job.limit)
        for one in job.plan(route_rows(rows, kinds, job.schema)):
            outcomes.append(pickle.dumps(run_task(one, access)))  # noqa: PERF401 - those before a failure count
    except TablestoreError as error:
        outcomes.append(encode_failure(error))
    yield pa.RecordBatch.from_arrays([pa.array(outcomes, pa.binary())], schema=_OUTCOME)


# --- outcomes on the wire ---


@dataclass(frozen=True)
class _Failure:
    """A TablestoreError as plain texts (its class takes keywords, which pickle cannot give)."""

    kind: str
    code: str
    what: str
    why: str
    fix: str


def encode_failure(error: TablestoreError) -> bytes:
    """The error as an outcome."""
    return pickle.dumps(_Failure(type(error).__name__, error.code, error.what, error.why, error.fix))


def decode_outcomes(encoded: list[bytes]) -> tuple[tuple[BucketChange, ...], TablestoreError | None]:
    """The changes of all tasks, and the first failure as the error that it was: then nothing may be committed."""
    changes: list[BucketChange] = []
    failure: TablestoreError | None = None
    for data in encoded:
        outcome = pickle.loads(data)  # noqa: S301 - written by our own tasks of this very job
        if isinstance(outcome, _Failure):
            kind: type[TablestoreError] = getattr(errors, outcome.kind)
            failure = failure or kind(outcome.code, outcome.what, why=outcome.why, fix=outcome.fix)
            continue
        if not isinstance(outcome, BucketChange):
            raise EngineBug(
                "TS1516",
                "a write task returned something unknown",
                why=f"expected a BucketChange, got {type(outcome).__name__}",
                fix="report this",
            )
        changes.append(outcome)
    return tuple(changes), failure


def list_files(job: WriteJob, changes: Iterable[BucketChange]) -> list[str]:
    """Paths of what was made for these changes."""
    made = []
    for change in changes:
        place = PartitionSpec.of(job.schema).path_of_bytes(change.partition_bytes)
        made += [job.layout.data_file(place, change.bucket, meta.file_name) for meta in change.created]
    return made
