"""A standalone cluster whose workers do not have our package: writes, compaction, reads, streams, stateful queries."""

from __future__ import annotations

import importlib.util
import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from integration_tests.cluster.worker_python import worker_python
from integration_tests.spark.streams import run_once
from tablestore_engine.api import ChangesBetween, Engine, TableSpec, TableVersion, WriteSpec
from tablestore_engine.devservers.spark_cluster import ClusterInfo, ask_master, find_cluster
from tablestore_engine.errors import FixRequest
from tablestore_engine.spark import worker_check
from tablestore_engine.spark.worker_versions import versions_here
from tablestore_engine.spi import OutputMode

ROWS = 20_000
KEYED = WriteSpec(TableSpec(primary_key=("id",), options={"bucket": "4"}))
PLAIN = WriteSpec(TableSpec(options={"bucket": "-1"}))
STREAM = "demo__changes_start_to_now.clicks"


def test_the_cluster_is_for_this_user_alone(cluster: ClusterInfo) -> None:
    """Files with the secret are 0600, no command line has it, and each worker has a work folder of its own."""
    folder = Path(cluster.data_dir)
    secret = cluster.conf["spark.authenticate.secret"]
    holders = [path for path in folder.iterdir() if path.is_file() and secret in path.read_text()]
    assert {path.name for path in holders} == {"secret", "spark.properties"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in holders} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for process in cluster.processes:
        assert secret not in Path(f"/proc/{process.pid}/cmdline").read_text()
    assert {path.name for path in (folder / "work").iterdir()} == {"1", "2"}
    assert find_cluster(folder) == cluster
    answer = ask_master(cluster.web)
    assert answer is not None
    assert (answer.workers, answer.cores) == (2, 2)


@pytest.mark.nightly  # by day the next test; many rows in spark/test_executors.py
def test_tasks_on_workers_write_compact_and_read(engine: Engine) -> None:
    """Workers run the shipped code: an upsert by tasks, a compaction by tasks, every row through the view."""
    spark = engine.spark

    def probe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import importlib.util

        list(batches)
        spec = importlib.util.find_spec("tablestore_engine")
        yield pa.RecordBatch.from_pydict({"place": [str(spec.origin) if spec else "missing"]})

    first = engine.write("demo.t", f"select id, id * 2 as v from range({ROWS})", KEYED)
    again = engine.write("demo.t", "select id, id * 3 as v from range(1000, 2000)", KEYED)
    assert (first.inserted, again.updated) == (ROWS, 1000)
    expected = (ROWS, sum(range(0, 2 * ROWS, 2)) + sum(range(1000, 2000)))
    assert engine.sql("select count(*), sum(v) from demo.t").rows == (expected,)
    engine.table("demo.t").compact(full=True)
    assert engine.sql("select count(*), sum(v) from demo.t").rows == (expected,)
    table = engine.table("demo.t")
    assert [one.commit_kind for one in table.snapshots()] == ["APPEND", "APPEND", "COMPACT"]
    assert table.verify() == ()
    places = {row["place"] for row in spark.range(4).mapInArrow(probe, "place string").collect()}
    assert all(one.endswith("tablestore_engine.zip/tablestore_engine/__init__.pyc") for one in places)
    assert importlib.util.find_spec("tablestore_engine").origin not in places  # type: ignore[union-attr]


def test_format_tablestore_reads_writes_and_streams(engine: Engine, tmp_path: Path) -> None:
    """Spark's own sources and sinks run in the workers' Python, with the package that was sent there."""
    engine.write("demo.t", "select id, id * 2 as v from range(100)", KEYED)
    spark = engine.spark
    options = {"warehouse": engine.warehouse, "table": "demo.t"}
    frame = spark.read.format("tablestore").options(**options).load()
    assert sorted(map(tuple, frame.collect())) == [(n, 2 * n) for n in range(100)]
    more = spark.createDataFrame(pa.table({"id": [100, 101], "v": [1, 2]}))
    more.write.format("tablestore").mode("append").options(**options).save()
    assert engine.sql("select count(*), max(id) from demo.t where true").rows == ((102, 101),)
    engine.table("demo.t").compact(full=True)
    assert engine.table("demo.t").verify() == ()
    stream = spark.readStream.format("tablestore").options(**options, rowKinds="upserts").load()
    first = [row for _, rows in run_once(stream, str(tmp_path / "c")) for row in rows]
    assert len(first) == 102
    engine.write("demo.t", pa.table({"id": [7], "v": [0]}), KEYED)
    assert [rows for _, rows in run_once(stream, str(tmp_path / "c"))] == [[(7, 0)]]


@pytest.mark.nightly  # by day spark/test_stateful_sessions.py
def test_stateful_query_resumes_on_a_cluster(engine: Engine) -> None:
    """Executors write state into the folder that all see; the second run counts on from the first one's state."""
    sql = f"select page, count(*) as n from {STREAM} group by page"
    state, place, told = None, None, []
    for pages in (["a", "b"], ["a"]):
        engine.write("demo.clicks", pa.table({"page": pages}), PLAIN)
        newest = engine.table("demo.clicks").latest_snapshot_id()
        versions = {STREAM: TableVersion(changes=ChangesBetween(place, newest))}
        with engine.stateful.run(
            "demo.counts", sql, [STREAM], mode=OutputMode.UPDATE, state=state, key=["page"], versions=versions
        ) as run:
            state, place = run.state, newest
            told.append(sorted(map(tuple, engine.query(run.select).collect())))
    assert told == [[("a", 1), ("b", 1)], [("a", 2)]]


@pytest.mark.nightly  # by day tests/unit/spark/test_worker_versions.py
def test_workers_of_other_versions_are_refused(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """TS1540 names what the workers have and what the driver has, and nothing was written."""
    here = versions_here()
    other = replace(here, packages={**here.packages, "pyarrow": "9.8.7"})
    monkeypatch.setattr(worker_check, "versions_here", lambda: other)
    with pytest.raises(FixRequest, match=f"(?s)TS1540.*pyarrow {pa.__version__} instead of 9.8.7"):
        worker_check.check_workers(engine.spark.sparkContext)
    monkeypatch.undo()
    answered = worker_check.check_workers(engine.spark.sparkContext)
    assert [one.place.partition(": ")[2] for one in answered] == [worker_python()]
    assert os.path.isabs(worker_python())
