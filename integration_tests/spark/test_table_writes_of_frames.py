"""append, upsert, overwrite and delete with Spark frames, in the driver and by Spark tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tablestore_engine.api import Engine, SparkSettings, Table
from tablestore_engine.spark import task_placement, write
from tablestore_engine.warehouse.write import frame_rows
from tests.doses import cases

SCHEMA = pa.schema({"id": pa.int64(), "n": pa.int64()})


def _rows(table: Table) -> list[tuple[int, int]]:
    return sorted(table.scan().to_polars().rows())


@pytest.mark.parametrize("in_tasks", cases([False, True], 1))
def test_frames_of_spark_are_written_by_each_method(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, in_tasks: bool
) -> None:
    """A condition travels to the tasks, as text and as a pyarrow expression, where each frame is too large."""
    jobs: list[object] = []
    distributed = frame_rows.write_distributed

    def counted(*given: Any, **named: Any) -> Any:
        jobs.append(given)
        return distributed(*given, **named)

    monkeypatch.setattr(frame_rows, "write_distributed", counted)
    if in_tasks:
        monkeypatch.setattr(write, "SMALL_ROWS", 0)
        monkeypatch.setattr(task_placement, "SMALL_BYTES", 0)
    engine = Engine(str(tmp_path), spark=SparkSettings("local[2]"))
    keyed = engine.create_table("demo.k", SCHEMA, primary_key="id", options={"bucket": 2})
    plain = engine.create_table("demo.p", SCHEMA)
    frame = engine.spark.range(10).selectExpr("id", "id * 10 as n")
    keyed.upsert(frame)
    plain.append(frame)
    new = engine.spark.range(100, 102).selectExpr("id", "-1L as n")
    for table in (keyed, plain):
        table.overwrite(new, filter="n >= 20 and n < 50")
        expected = [(i, i * 10) for i in (0, 1, 5, 6, 7, 8, 9)] + [(100, -1), (101, -1)]
        assert _rows(table) == expected
        table.overwrite(frame.where("id = 3"), filter=pc.field("n") * 2 == -2)
        assert _rows(table) == sorted([*expected[:7], (3, 30)])
        assert table.delete("id < 9").deleted == 7
        assert table.scan(columns=["n"]).to_spark().collect() == [(90,)]
    assert keyed.delete(engine.spark.range(9, 10)).deleted == 1
    keyed.overwrite(frame)
    assert len(_rows(keyed)) == 10
    assert len(jobs) == (7 if in_tasks else 0)
