"""What a query that remembers rows leaves behind in a session that goes on: nothing."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tablestore_engine.api import ChangesBetween, Engine, SparkSettings, TableSpec, TableVersion, WriteSpec
from tablestore_engine.spi import OutputMode

STREAM = "demo__changes_start_to_now.clicks"
PLAIN = TableSpec(options={"bucket": "-1"})
SQL = f"select page, count(*) as n from {STREAM} group by page"


def listeners(spark: SparkSession) -> list[str]:
    """Names of the classes of those that hear what Spark's context tells."""
    context: Any = spark.sparkContext._jsc.sc()
    found = context.listenerBus().listeners()
    return sorted(found.get(n).getClass().getSimpleName() for n in range(found.size()))


@pytest.mark.nightly
def test_what_is_remembered_does_not_grow_with_each_run(spark: SparkSession, tmp_path: Path) -> None:
    """Spark merges its state once a minute, which a run of a second never sees: each left two files more, for ever, and
    the next one read them all.
    """
    engine = Engine(str(tmp_path / "warehouse"), spark=SparkSettings("local[2]"))
    engine.create_database("demo")
    state, place, sizes = None, None, []
    for number in range(1, 31):
        engine.write("demo.clicks", pa.table({"page": [f"p{number % 7}", "a"]}), WriteSpec(table=PLAIN))
        newest = engine.table("demo.clicks").latest_snapshot_id()
        versions = {STREAM: TableVersion(changes=ChangesBetween(place, newest))}
        with engine.stateful.run(
            "demo.t", SQL, [STREAM], mode=OutputMode.UPDATE, state=state, key=["page"], versions=versions
        ) as run:
            state, place = run.state, newest
            assert ("a", number) in set(map(tuple, engine.query(run.select).collect()))
        path = tmp_path / "warehouse" / ".tablestore" / "states" / "demo.t" / f"{state}.tar"
        with tarfile.open(path) as archive:
            sizes.append(len(archive.getnames()))
    assert max(sizes) < 100  # two partitions, each with a dozen files and their sums; 147 without


def test_no_session_stays_behind_a_run(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's context would hear for the session of each query and of each run, and keep both, for ever; a run also
    took RDD.toDF over.
    """
    engine = Engine(str(tmp_path / "warehouse"), spark=SparkSettings("local[2]"))
    engine.create_database("demo")
    engine.sql("select 1")
    before, state = listeners(spark), None
    for snapshot in (1, 2, 3):
        engine.write("demo.clicks", pa.table({"page": ["a", "b"]}), WriteSpec(table=PLAIN))
        start = None if snapshot == 1 else snapshot - 1
        versions = {STREAM: TableVersion(changes=ChangesBetween(start, snapshot))}
        assert engine.stateful.choose_mode(
            SQL, [STREAM], wanted=[OutputMode.UPDATE], key=["page"], versions=versions
        )
        with engine.stateful.run(
            "demo.t", SQL, [STREAM], mode=OutputMode.UPDATE, state=state, key=["page"], versions=versions
        ) as run:
            state = run.state
            assert sorted(map(tuple, engine.query(run.select).collect())) == [
                ("a", snapshot),
                ("b", snapshot),
            ]
    assert listeners(spark) == before
    spark.conf.set("tablestore.test.mark", "common")
    frame = spark.sparkContext.parallelize([(1,)]).toDF(["id"])
    assert frame.sparkSession.conf.get("tablestore.test.mark") == "common"
