"""Bucket tasks as real Spark tasks: the same rows, files and changelogs as threads of the driver leave."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tablestore_engine.api import Engine, SparkSettings, TableSpec
from tablestore_engine.errors import NotFound
from tablestore_engine.runtime.scratch import ScratchPlace
from tablestore_engine.spark import task_placement, write
from tablestore_engine.spark.executors import Executors
from tablestore_engine.spark.lazy_session import LazySession
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.write_request import WriteMode
from tablestore_engine.warehouse.write import frame_rows
from tests.doses import case_rows, is_nightly
from tests.unit.store.table_world import changes_of, make_table, put, row, rows_of
from tests.unit.store.test_changelog import foreign_level_zero

Work = Callable[[TableStore], None]


@pytest.fixture
def runner(spark: SparkSession, warehouse: str, monkeypatch: pytest.MonkeyPatch) -> Executors:
    """Every task that reads a stored file from end to end goes to Spark, on the session of all tests."""
    monkeypatch.setattr(task_placement, "SMALL_BYTES", 0)
    session = LazySession(SparkSettings("local[2]"), ScratchPlace(warehouse))
    same = session.get()._jsparkSession.equals(spark._jsparkSession)
    assert same  # the Python object may be another one: RDD.toDF of an earlier test makes its own active
    return Executors(session)


def _on(runner: Executors, made: TableStore) -> TableStore:
    return TableStore(made.fileio, made.location, made.runtime, runner=runner)


def _jobs(spark: SparkSession, work: Callable[[], None]) -> int:
    """How many Spark jobs the work started."""
    context = spark.sparkContext
    context.setJobGroup("counted", "bucket tasks")
    try:
        work()
        return len(context.statusTracker().getJobIdsForGroup("counted"))
    finally:
        context.setJobGroup("", "")


def _folds(store: TableStore) -> None:
    """More runs than a bucket may have, so that a write folds first; then everything into one run."""
    for turn in range(12):
        put(store, *(row(number, f"t{turn}") for number in range(turn, turn + 20)))
    store.compact(full=True)


def _differences(store: TableStore) -> None:
    """Overwrites of everything and of the partitions of the rows; buckets without rows are emptied."""
    put(store, *(row(number, dt=f"d{number % 3}") for number in range(60)))
    put(
        store,
        *(row(number, "b", dt=f"d{number % 3}") for number in range(0, 30, 3)),
        mode=WriteMode.OVERWRITE_PARTITIONS,
    )
    put(
        store, *(row(number, "b", dt=f"d{number % 3}") for number in range(5)), mode=WriteMode.OVERWRITE_TABLE
    )
    put(store, mode=WriteMode.OVERWRITE_TABLE)


def _level_zero(store: TableStore) -> None:
    """Rows that another engine's writer left are taken in before the next write."""
    put(store, *(row(number) for number in range(30)))
    foreign_level_zero(store, [row(3, "theirs"), row(9), row(50)], [0, 3, 0])
    put(store, row(4, "ours"))


def _appends(store: TableStore) -> None:
    """Small files are joined on the way and when asked for; then rows are compared with what replaces them."""
    for turn in range(7):
        put(store, row(turn), row(turn, None))
    store.compact(full=True)
    put(store, *(row(turn) for turn in range(4)), mode=WriteMode.OVERWRITE_TABLE)


@pytest.mark.nightly  # by day tests/unit/spark/test_executors.py; the statements below
@pytest.mark.parametrize(
    ("work", "table"),
    case_rows(
        [
            (_folds, {"options": {"bucket": "3"}}),
            (
                _differences,
                {
                    "keys": ("dt", "id"),
                    "partitions": ("dt",),
                    "columns": {"id": "BIGINT", "name": "STRING", "n": "INT", "dt": "STRING"},
                    "options": {"bucket": "2"},
                },
            ),
            (_level_zero, {}),
            (_appends, {"keys": ()}),
        ],
        1,
    ),
)
def test_executors_leave_what_threads_leave(
    spark: SparkSession, runner: Executors, tmp_path: Path, work: Work, table: dict[str, object]
) -> None:
    """Snapshot by snapshot: kind, rows, changelog, and the files with their levels and rows; both tables are valid."""
    there = _on(runner, make_table(tmp_path / "executors", **table))  # type: ignore[arg-type]
    here = make_table(tmp_path / "threads", **table)  # type: ignore[arg-type]
    assert _jobs(spark, lambda: work(there)) > 0
    work(here)
    assert there.snapshots.list_ids() == here.snapshots.list_ids()
    for one, other in zip(there.snapshots.list_all(), here.snapshots.list_all(), strict=True):
        assert one.commit_kind == other.commit_kind
        assert rows_of(there, one.id) == rows_of(here, one.id)
        assert changes_of(there, one.id) == changes_of(here, one.id)
        assert _shape(there, one.id) == _shape(here, one.id)
    assert there.verify() == here.verify() == ()


def _shape(store: TableStore, snapshot_id: int) -> list[object]:
    """Files of a snapshot as readers meet them, without what ids and the clock decide."""
    plan = store.plan_scan(store.snapshots.get(snapshot_id))
    return sorted(
        (
            one.partition,
            one.bucket,
            one.meta.level,
            one.meta.row_count,
            one.dead_count,
            one.meta.min_sequence_number,
        )
        for one in plan.files
    )


def test_a_task_that_fails_in_a_worker(runner: Executors, tmp_path: Path) -> None:
    """A file that is gone fails the fold of one bucket: TS1201 as itself, nothing committed, no file of the others."""
    made = make_table(tmp_path, options={"bucket": "4"})
    for turn in range(2):
        put(made, *(row(number, f"t{turn}") for number in range(40 * turn, 80)))
    store = _on(runner, made)
    newest = store.latest()
    # a file that is wholly dead would not be read
    lost = Path(next(one.path for one in store.plan_scan().files if not one.deleted))
    hidden = lost.rename(lost.with_suffix(".hidden"))
    before = set(tmp_path.rglob("*.parquet"))
    with pytest.raises(NotFound, match="TS1201"):
        store.compact(full=True)
    assert store.latest() == newest
    assert set(tmp_path.rglob("*.parquet")) == before
    hidden.rename(lost)
    store.compact(full=True)
    assert len(store.plan_scan().files) == 4
    assert store.verify() == ()


_STATEMENTS = """
INSERT OVERWRITE d.k SELECT id, cast(id % 3 as string) AS part, id * 2 AS v FROM range(600)
UPDATE d.k SET v = v + 1 WHERE id % 2 = 0
DELETE FROM d.k WHERE id % 5 = 0
MERGE INTO d.k t USING (SELECT id, cast(id % 3 as string) AS part FROM range(500, 700)) s
    ON t.id = s.id AND t.part = s.part
    WHEN MATCHED AND t.id % 2 = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET v = -1
    WHEN NOT MATCHED THEN INSERT (id, part, v) VALUES (s.id, s.part, 0)
INSERT OVERWRITE d.k PARTITION (part = '2') SELECT id, id AS v FROM range(2, 30, 3)
TRUNCATE TABLE d.k
CREATE TABLE d.a AS SELECT id, id % 7 AS v FROM range(400)
UPDATE d.a SET v = 100 WHERE id < 50
DELETE FROM d.a WHERE id % 3 = 0
INSERT OVERWRITE d.a SELECT * FROM d.a WHERE id < 300
"""

# by day the same statements of the other table; overwritten partitions in tests/unit/spark/test_executors.py
_AT_NIGHT = ("UPDATE d.k", "TRUNCATE", "DELETE FROM d.a", "INSERT OVERWRITE d.a")


def _run_statements(folder: Path) -> list[object]:
    """Each statement with the rows, the changelog and (by key) the counts that it left."""
    key = TableSpec(primary_key=("id", "part"), partition_by=("part",), options={"bucket": "2"})
    columns = pa.schema({"id": pa.int64(), "part": pa.string(), "v": pa.int64()})
    done: list[object] = []
    with Engine(str(folder), spark=SparkSettings("local[2]")) as engine:
        engine.create_database("d")
        engine.create_table(
            "d.k", columns, primary_key=key.primary_key, partition_by=key.partition_by, options=key.options
        )
        for text in _STATEMENTS.strip().replace("\n    ", " ").splitlines():
            if text.startswith(_AT_NIGHT) and not is_nightly():
                continue
            report = engine.sql(text).report
            assert report is not None
            assert report.snapshot_id is not None
            table = engine.table(str(report.table))
            changes = table.changes(report.snapshot_id - 1)
            found = [sorted(map(repr, rows.to_pylist())) for rows in (table.scan().to_arrow(), changes)]
            # rows without a key are not compared by tasks (decision 0014): other counts, equal changes
            counts = (report.inserted, report.updated, report.deleted) if table.schema.is_keyed else None
            done.append((text, found, counts))
            assert table.verify() == ()
    return done


@pytest.mark.usefixtures("spark")
def test_statements_on_executors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """UPDATE, DELETE, MERGE and INSERT OVERWRITE above the limit, at night TRUNCATE too: after each the rows, changes
    and counts are those of the same statement in the driver.
    """
    driver = _run_statements(tmp_path / "driver")
    monkeypatch.setattr(task_placement, "SMALL_BYTES", 0)
    monkeypatch.setattr(write, "SMALL_ROWS", 0)
    jobs: list[int] = []
    monkeypatch.setattr(frame_rows, "write_distributed", _counted(jobs, frame_rows.write_distributed))
    for one, other in zip(driver, _run_statements(tmp_path / "tasks"), strict=True):
        assert one == other
    assert len(jobs) >= len(driver) - 2  # TRUNCATE brings no rows


def _counted(jobs: list[int], call: Callable[..., object]) -> Callable[..., object]:
    def counted(*given: object) -> object:
        jobs.append(1)
        return call(*given)

    return counted
