"""What the lowest pyspark that setup.py allows can do: `make test-pyspark-4.1`, in an environment of its own."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyspark
import pytest
from pyspark.errors import PySparkException

from tablestore_engine.api import Engine, SparkSettings, TableSpec, WriteSpec, explain_failure

KEYED = WriteSpec(TableSpec(primary_key=("id",)))


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """A warehouse with a table."""
    made = Engine(str(tmp_path_factory.mktemp("lowest") / "warehouse"), spark=SparkSettings("local[2]"))
    made.write("demo.t", pa.table({"id": [1, 2], "v": ["a", "b"]}), KEYED)
    return made


def test_it_is_the_lowest() -> None:
    """Another version would prove nothing here."""
    assert pyspark.__version__.startswith("4.1.")


def test_batches_in_and_out(engine: Engine) -> None:
    """Reading and writing by format("tablestore")."""
    address = {"warehouse": engine.warehouse, "table": "demo.t"}
    frame = engine.spark.read.format("tablestore").options(**address).load()
    assert sorted((row.id, row.v) for row in frame.collect()) == [(1, "a"), (2, "b")]
    more = engine.spark.createDataFrame([(2, "c"), (3, "d")], "id bigint, v string")
    more.write.format("tablestore").options(**address).mode("append").save()
    rows = engine.table("demo.t").scan().to_arrow().to_pylist()
    assert {row["id"]: row["v"] for row in rows} == {1: "a", 2: "c", 3: "d"}


def test_streams_are_refused_by_name(engine: Engine, tmp_path: Path) -> None:
    """TS1448 says which pyspark has them; nothing is written."""
    address = {"warehouse": engine.warehouse, "table": "demo.t", "rowKinds": "upserts"}

    def follow() -> None:
        frame = engine.spark.readStream.format("tablestore").options(**address).load()
        writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c"))
        writer.trigger(availableNow=True).start().awaitTermination()

    with pytest.raises(PySparkException) as error:
        follow()
    found = explain_failure(error.value)
    assert found.code == "TS1448"
    assert "4.2" in str(found)
