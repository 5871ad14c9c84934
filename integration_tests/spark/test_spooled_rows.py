"""Rows of a local session as files that the driver maps: the rows that Spark has, or none."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from tablestore_engine.api import Engine, SparkSettings, TableSpec, WriteSpec
from tablestore_engine.runtime.scratch import process_scratch
from tablestore_engine.spark import spooled_rows, write
from tablestore_engine.spark.collected_rows import to_arrow
from tablestore_engine.spark.spooled_rows import spool
from tablestore_engine.store.files.scratch_folder import ScratchFolder
from tablestore_engine.warehouse.write import frame_rows

_COLUMNS = (
    "id", "cast(id as string) as text", "cast(id / 3 as decimal(20, 4)) as price", "id / 7 as score",
    "if(id % 5 = 0, null, timestamp_micros(id * 1234567)) as at",
    "cast(timestamp_micros(id) as timestamp_ntz) as wall", "date_add(date'1900-01-01', cast(id as int)) as day",
    "named_struct('a', if(id % 3 = 0, null, id), 'b', array(id, null)) as inner",
    "map(cast(id as string), id) as pairs", "cast(cast(id as string) as binary) as bytes",
)  # fmt: skip


def _folders() -> list[Path]:
    return list(process_scratch().glob("rows-*"))


def test_rows_of_every_type_are_those_that_are_collected(spark: SparkSession) -> None:
    """In the order of Spark's partitions, one of them empty; the files are gone while the rows are still there."""
    frame = spark.range(0, 30_000, 1, 3).where("id < 8000 or id >= 20000").selectExpr(*_COLUMNS)
    rows = spool(frame)
    assert rows is not None
    assert not _folders()
    expected = to_arrow(frame)
    assert rows.column_names == expected.column_names
    assert rows.cast(expected.schema).equals(expected)


def test_no_rows_are_not_spooled(spark: SparkSession) -> None:
    """Without a row there is no file, and so no schema."""
    assert spool(spark.range(10).where("id < 0")) is None


def test_tasks_stop_at_the_limit(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is held, no file stays, and the session goes on with its workers."""
    monkeypatch.setattr(spooled_rows, "SPOOLED_BYTES_MAX", 100_000)
    frame = spark.range(0, 500_000, 1, 4)
    assert spool(frame) is None
    assert not _folders()
    monkeypatch.undo()
    again = spool(frame)
    assert again is not None
    assert again.column("id").to_pylist() == list(range(500_000))


def test_without_a_disk_another_way_is_taken(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder in which no file can be made; a query that fails is an error all the same."""
    with monkeypatch.context() as patch:
        patch.setattr(spooled_rows, "open_scratch_folder", lambda _: ScratchFolder("/dev/null", None))  # type: ignore[arg-type]
        assert spool(spark.range(10)) is None
    with pytest.raises(PySparkException, match="boom"):
        spool(spark.range(3).select(sf.raise_error(sf.lit("boom"))))


@pytest.mark.parametrize(("kept", "is_spooled"), [(1 << 30, True), (1, False)])
def test_a_load_of_a_keyed_table_has_its_rows_in_both_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, kept: int, is_spooled: bool
) -> None:
    """Written by the driver, and by tasks where the rows are too many; a table without buckets is never spooled."""
    held: list[pa.Table | None] = []
    jobs: list[object] = []
    spool_rows, distribute = write.spool, frame_rows.write_distributed
    monkeypatch.setattr(spooled_rows, "SPOOLED_BYTES_MAX", kept)
    monkeypatch.setattr(
        write, "plan_route", lambda *_, **__: write.Route(on_driver=False, limit=True, tasks=2)
    )
    monkeypatch.setattr(write, "spool", lambda frame: held.append(spool_rows(frame)) or held[-1])
    monkeypatch.setattr(
        frame_rows, "write_distributed", lambda *given: jobs.append(given) or distribute(*given)
    )
    with Engine(str(tmp_path), spark=SparkSettings("local[2]")) as engine:
        frame = engine.spark.range(5_000).selectExpr("(id * 7) % 5000 as id", "id as v")
        keyed = WriteSpec(table=TableSpec(primary_key=("id",), options={"bucket": "2"}))
        engine.write("demo.k", frame, keyed)
        assert [one is not None for one in held] == [is_spooled]
        assert len(jobs) == (0 if is_spooled else 1)
        engine.write("demo.p", frame, WriteSpec())
        assert len(held) == 1
        for name in ("demo.k", "demo.p"):
            rows = engine.table(name).scan().to_arrow().sort_by("id")
            assert rows.column("id").to_pylist() == list(range(5_000))
            assert all(
                v * 7 % 5_000 == id_
                for id_, v in zip(*map(pa.ChunkedArray.to_pylist, rows.columns), strict=True)
            )
        assert engine.table("demo.k").changes(0).num_rows == 5_000
        assert engine.table("demo.k").verify() == ()
