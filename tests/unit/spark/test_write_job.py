"""write_job: a Spark task plans and performs what the driver would, and only on buckets that it has to itself."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pytest

from tablestore_engine.errors import FixRequest
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.spark.task_outcomes import gather
from tablestore_engine.spark.write_job import BUCKET_COLUMN, WriteJob, run_job
from tablestore_engine.store.commit.commit_report import CommitReport
from tablestore_engine.store.files.bucket_state import BucketChange
from tablestore_engine.store.merge import merge_buckets
from tablestore_engine.store.rows.routing import RoutedRows, route_rows
from tablestore_engine.store.rows.row_filter import EVERY_ROW
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.tasks.bucket_plan import plan_rows
from tablestore_engine.store.tasks.bucket_task import Append, BucketTask
from tablestore_engine.store.write.write_request import WriteMode, WriteRequest
from tests.unit.store.table_world import as_table, changes_of, make_table, put, row, rows_of


def _job(store: TableStore, **more: object) -> WriteJob:
    context = store.context
    states = context.scanner.bucket_states(store.latest(), store.schema)
    return WriteJob(context.fileio, context.layout, store.schema, states=states, **more)  # type: ignore[arg-type]


def _routed(store: TableStore) -> tuple[RoutedRows, ...]:
    return route_rows(as_table([row(n, "b") for n in range(3, 9)], store.schema), None, store.schema)


@pytest.mark.parametrize("picks", [None, EVERY_ROW])
def test_a_task_plans_as_the_driver(tmp_path: Path, picks: object) -> None:
    """Equal rows on equal buckets of a keyed table are equal tasks, also for a job that was shipped."""
    store = make_table(tmp_path, options={"bucket": "2"})
    put(store, *(row(n) for n in range(6)))
    job, routed = _job(store, picks=picks), _routed(store)
    driver: tuple[BucketTask, ...] = plan_rows(
        store.context.task_table(store.schema), routed, job.states, picks
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


def test_rows_through_a_job_are_a_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of a task, its outcomes decoded and committed: the same rows as a write of the driver. Its small buckets
    are merged in one pass.
    """
    store, twin = (make_table(tmp_path / name, options={"bucket": "2"}) for name in ("tasks", "driver"))
    for one in (store, twin):
        put(one, *(row(n) for n in range(6)))
    rows = as_table([row(n, "b") for n in range(3, 9)], store.schema)
    job = _job(store)
    batches = rows.append_column(BUCKET_COLUMN, pa.array([0] * 6, pa.int32())).to_batches(max_chunksize=2)
    passes = Mock(side_effect=merge_buckets.merge_buckets)
    monkeypatch.setattr(merge_buckets, "merge_buckets", passes)
    outcomes = [value for batch in run_job(job, iter(batches)) for value in batch.column(0).to_pylist()]
    assert [len(call.args[1]) for call in passes.call_args_list] == [2]
    changes = gather(enumerate(outcomes)).in_order(len(outcomes))
    report = store.write_changes(lambda *_: changes, WriteRequest(mode=WriteMode.UPSERT))
    put(twin, *rows.to_pylist())
    assert (report.inserted, report.updated) == (3, 3)
    assert rows_of(store) == rows_of(twin)
    assert isinstance(job.fileio, LocalFileIO)
    assert store.verify() == ()


def test_rules_of_rows_hold_in_a_job(tmp_path: Path) -> None:
    """Kinds of a column and defaults of columns, as in the driver; a bad kind is a failure of the task."""
    columns = {"id": "BIGINT", "op": "STRING", "n": "INT"}
    store = make_table(tmp_path, columns=columns, options={"rowkind.field": "op"})
    fields = (replace(one, default_value="7" if one.name == "n" else None) for one in store.schema.fields)
    job = replace(_job(store), schema=replace(store.schema, fields=tuple(fields)))
    given = [{"id": 1, "op": "+I"}, {"id": 2, "op": "-D"}]
    batches = as_table(given, store.schema).to_batches()
    outcomes = [value for batch in run_job(job, iter(batches)) for value in batch.column(0).to_pylist()]
    changes = gather(enumerate(outcomes)).in_order(len(outcomes))
    store.write_changes(lambda *_: changes, WriteRequest(mode=WriteMode.UPSERT))
    assert rows_of(store) == [{"id": 1, "op": "+I", "n": 7}]
    bad = as_table([{"id": 3, "op": "x"}], store.schema).to_batches()
    (outcome,) = [value for batch in run_job(job, iter(bad)) for value in batch.column(0).to_pylist()]
    failure = gather([(0, outcome)]).failure
    assert failure is not None
    assert failure.code == "TS1156"


def _rewrite(store: TableStore, rows: pa.Table, wider: TableSchema, request: WriteRequest) -> CommitReport:
    """An overwrite with rows through one task, on whatever base and schema the store names."""
    seen: list[object] = []

    def make(base: Snapshot | None, target: TableSchema, *_: object) -> list[BucketChange]:
        seen.append(base)
        states = {(one.partition_bytes, one.bucket): one for one in store.bucket_states(base)}
        context, picks = store.context, EVERY_ROW if target.is_keyed else None
        job = WriteJob(context.fileio, context.layout, target, states=states, picks=picks)
        outcomes = [
            value for batch in run_job(job, iter(rows.to_batches())) for value in batch.column(0).to_pylist()
        ]
        return gather(enumerate(outcomes)).in_order(len(outcomes))

    report = store.write_changes(make, replace(request, new_schema=wider))
    assert len(seen) == 1
    return report


@pytest.mark.parametrize("keys", [("id",), ()])
def test_another_bucket_count_by_tasks(tmp_path: Path, keys: tuple[str, ...]) -> None:
    """An overwrite with two buckets less: every file is of the new count, as after the same write of the driver."""
    options = {"bucket": "5", "bucket-key": "id"}
    store, twin = (make_table(tmp_path / name, keys=keys, options=options) for name in ("tasks", "driver"))
    wider = replace(store.schema, id=1, options={**store.schema.options, "bucket": "3"})
    rows = as_table([row(n, "b") for n in range(3, 40)], store.schema)
    request = WriteRequest(mode=WriteMode.OVERWRITE_TABLE)
    for one in (store, twin):
        put(one, *(row(n) for n in range(60)))
    report = _rewrite(store, rows, wider, request)
    other = twin.write(replace(request, rows=rows, new_schema=wider))
    assert replace(report, commit_user=None, bytes_added=0) == replace(other, commit_user=None, bytes_added=0)
    assert {file.total_buckets for file in store.plan_scan().files} == {3}
    assert rows_of(store) == rows_of(twin) == sorted(rows.to_pylist(), key=repr)
    for number in (1, 2):
        assert store.snapshots.get(number).commit_kind == twin.snapshots.get(number).commit_kind
        assert changes_of(store, number) == changes_of(twin, number)
    assert len(list((tmp_path / "tasks").rglob("*.parquet"))) == len(
        list((tmp_path / "driver").rglob("*.parquet"))
    )
    put(store, row(5, "c"))
    assert store.verify() == ()


def test_a_rescale_that_cannot_be_runs_no_task(tmp_path: Path) -> None:
    """The topic of a log has a partition for each bucket: TS1314 before a single row is written."""
    store = make_table(tmp_path, options={"bucket": "5", "log.system": "kafka"})
    put(store, row(1))
    wider = replace(store.schema, id=1, options={**store.schema.options, "bucket": "3"})
    files = set(tmp_path.rglob("*"))
    with pytest.raises(FixRequest, match="TS1314"):
        store.write_changes(
            lambda *_: pytest.fail("rows were written"),
            WriteRequest(mode=WriteMode.OVERWRITE_TABLE, new_schema=wider),
        )
    assert set(tmp_path.rglob("*.parquet")) == {path for path in files if path.suffix == ".parquet"}


def test_partitions_of_rows_keep_their_bucket_count(tmp_path: Path) -> None:
    """Which partitions are overwritten is known when the rows are written: TS1313, and the table is as it was."""
    store = make_table(tmp_path, keys=("n", "id"), partitions=("n",), options={"bucket": "2"})
    put(store, row(1))
    wider = replace(store.schema, id=1, options={**store.schema.options, "bucket": "3"})
    rows = as_table([row(2)], store.schema)
    with pytest.raises(FixRequest, match="TS1313"):
        _rewrite(store, rows, wider, WriteRequest(mode=WriteMode.OVERWRITE_PARTITIONS))
    assert rows_of(store) == [row(1)]
    static = WriteRequest(mode=WriteMode.OVERWRITE_STATIC, partition={"n": 0})
    _rewrite(store, rows, wider, static)
    assert rows_of(store) == [row(2)]
    assert store.verify() == ()
