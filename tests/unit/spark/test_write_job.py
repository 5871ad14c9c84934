"""write_job: a Spark task plans and performs what the driver would, and only on buckets that it has to itself."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.spark.outcomes import decode_outcomes
from tablestore_engine.spark.write_job import BUCKET_COLUMN, WriteJob, run_job
from tablestore_engine.store.bucket_plan import plan_rows
from tablestore_engine.store.bucket_task import Append, BucketTask
from tablestore_engine.store.routing import RoutedRows, route_rows
from tablestore_engine.store.row_filter import EVERY_ROW
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write import WriteMode, WriteRequest
from tests.unit.store.table_world import as_table, make_table, put, row, rows_of


def _job(store: TableStore, **more: object) -> WriteJob:
    parts = store.parts
    states = parts.scanner.bucket_states(store.latest(), store.schema)
    return WriteJob(parts.fileio, parts.layout, store.schema, states=states, **more)  # type: ignore[arg-type]


def _routed(store: TableStore) -> tuple[RoutedRows, ...]:
    return route_rows(as_table([row(n, "b") for n in range(3, 9)], store.schema), None, store.schema)


@pytest.mark.parametrize("picks", [None, EVERY_ROW])
def test_a_task_plans_as_the_driver(tmp_path: Path, picks: object) -> None:
    """Equal rows on equal buckets of a keyed table are equal tasks, also for a job that was shipped."""
    store = make_table(tmp_path, options={"bucket": "2"})
    put(store, *(row(n) for n in range(6)))
    job, routed = _job(store, picks=picks), _routed(store)
    driver: tuple[BucketTask, ...] = plan_rows(
        store.parts.task_table(store.schema), routed, job.states, picks
    )  # type: ignore[arg-type]
    assert pickle.loads(pickle.dumps(job)).plan(routed) == driver
    assert len(driver) == 2


def test_tasks_of_an_append_only_table_only_append(tmp_path: Path) -> None:
    """Its buckets are shared by tasks: what gives way to the rows is for the driver to say."""
    store = make_table(tmp_path, keys=())
    put(store, *(row(n) for n in range(6)))
    (task,) = _job(store, picks=EVERY_ROW).plan(_routed(store))
    assert isinstance(task, Append)
    assert task.first_sequence == 0


def test_rows_through_a_job_are_a_write(tmp_path: Path) -> None:
    """Batches of a task, its outcomes decoded and committed: the same rows as a write of the driver."""
    store, twin = (make_table(tmp_path / name, options={"bucket": "2"}) for name in ("tasks", "driver"))
    for one in (store, twin):
        put(one, *(row(n) for n in range(6)))
    rows = as_table([row(n, "b") for n in range(3, 9)], store.schema)
    job = _job(store)
    batches = rows.append_column(BUCKET_COLUMN, pa.array([0] * 6, pa.int32())).to_batches(max_chunksize=2)
    outcomes = [value for batch in run_job(job, iter(batches)) for value in batch.column(0).to_pylist()]
    changes, failure = decode_outcomes(outcomes)
    report = store.write_changes(lambda *_: changes, WriteRequest(mode=WriteMode.UPSERT))
    put(twin, *rows.to_pylist())
    assert failure is None
    assert (report.inserted, report.updated) == (3, 3)
    assert rows_of(store) == rows_of(twin)
    assert isinstance(job.fileio, LocalFileIO)
    assert store.verify() == ()
