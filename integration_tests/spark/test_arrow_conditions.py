"""Arrow rows whose write has conditions: Spark evaluates the conditions, the rows keep their types and values."""

from __future__ import annotations

from datetime import UTC, datetime, time
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tablestore_engine.api import Engine, SparkSettings, TableSpec, WriteSpec
from tablestore_engine.errors import FixData, Unsupported

MOMENT = datetime(2024, 3, 10, 2, 30)  # noqa: DTZ001 - a local time without a zone
COLUMNS = {
    "id": pa.array([1, 2, 3], pa.uint16()),
    "local": pa.array([MOMENT, None, MOMENT.replace(year=2020)], pa.timestamp("us")),
    "coarse": pa.array([MOMENT, None, MOMENT], pa.timestamp("ms")),
    "zoned": pa.array([MOMENT.replace(tzinfo=UTC), None, None], pa.timestamp("ms", "UTC")),
    "clock": pa.array([time(1, 2, 3), None, time(0)], pa.time32("ms")),
    "many": pa.array([[MOMENT], None, []], pa.list_(pa.timestamp("us"))),
    "part": pa.array([{"at": MOMENT}, None, {"at": None}], pa.struct([("at", pa.timestamp("us"))])),
    "amount": pa.array([Decimal("1.50"), None, Decimal("2.00")], pa.decimal128(9, 2)),
    "text": pa.array(["a", None, "b"], pa.large_string()),
}
KEYED = TableSpec(primary_key=("id",), options={"bucket": "1"})


@pytest.fixture
def engine(spark: SparkSession, tmp_path: Path) -> Engine:
    """A warehouse of its own in the shared session."""
    del spark
    return Engine(str(tmp_path / "warehouse"), spark=SparkSettings("local[2]"))


def test_arrow_rows_with_conditions_keep_types_and_values(engine: Engine) -> None:
    """A write with delete_when and checks makes the same columns and rows as one without, but for deleted keys."""
    rows = pa.table(COLUMNS)
    engine.write("demo.plain", rows, WriteSpec(table=KEYED))
    spec = WriteSpec(
        table=KEYED, delete_when="local < timestamp_ntz'2021-01-01 00:00:00'", checks={"positive": "id > 0"}
    )
    engine.write("demo.asked", rows, spec)
    plain, asked = engine.table("demo.plain"), engine.table("demo.asked")
    assert asked.schema.fields == plain.schema.fields
    assert asked.scan().to_arrow().sort_by("id") == plain.scan().to_arrow().sort_by("id").slice(0, 2)


def test_arrow_rows_that_break_a_check_are_refused(engine: Engine) -> None:
    """The check is evaluated on the row it belongs to, and nothing is written."""
    with pytest.raises(FixData, match="TS1605") as caught:
        engine.write("demo.t", pa.table(COLUMNS), WriteSpec(table=KEYED, checks={"early": "text <> 'b'"}))
    assert "id" in caught.value.why
    assert "2.00" in caught.value.why
    assert engine.find_relation("demo.t") is None


def test_condition_over_a_column_without_spark_type_is_refused(engine: Engine) -> None:
    """TIME cannot be asked for in a condition: the error names the column, and nothing is written."""
    with pytest.raises(Unsupported, match=r"TS1571.*'clock'"):
        engine.write("demo.t", pa.table(COLUMNS), WriteSpec(table=KEYED, delete_when="Clock is null"))
    assert engine.find_relation("demo.t") is None


def test_arrow_rows_behind_an_empty_chunk_are_written(engine: Engine) -> None:
    """Spark would end at the empty batch: rows behind it are checked, deleted and kept as the others."""
    first, last = pa.table({"id": [1, 2], "x": [0, 1]}), pa.table({"id": [3, 4], "x": [0, 1]})
    rows = pa.concat_tables([first, first.slice(0, 0), last])
    assert [one.num_rows for one in rows.to_batches()] == [2, 0, 2]
    engine.write("demo.t", rows, WriteSpec(table=KEYED, delete_when="x = 0"))
    assert sorted(engine.table("demo.t").scan().to_arrow().column("id").to_pylist()) == [2, 4]
    with pytest.raises(FixData, match="TS1605"):
        engine.write("demo.t", rows, WriteSpec(table=KEYED, checks={"small": "id < 4"}))
