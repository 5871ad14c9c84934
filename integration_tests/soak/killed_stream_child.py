"""A driver that is meant to be killed: queries from table to table, one after the other, availableNow.

Run as `python -m integration_tests.soak.killed_stream_child <plan.json>`; the plan: warehouse, master, folder, queries.

Steps      1 a session  2 the file `begun` in the folder  3 each query, whether others failed or not
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tablestore_engine.api import Engine, SparkSettings, explain_failure

_CONF = {"spark.driver.memory": "1g"}


def main(path: str) -> int:
    """Of a plan."""
    plan = json.loads(Path(path).read_text())
    spark = Engine(plan["warehouse"], spark=SparkSettings(plan["master"], _CONF)).spark
    (Path(plan["folder"]) / "begun").touch()
    is_good = [try_query(spark, plan, one) for one in plan["queries"]]
    return 0 if all(is_good) else 1


def try_query(spark: SparkSession, plan: dict[str, Any], one: dict[str, Any]) -> bool:
    """Whether it came to its end."""
    print(f"query {one['name']}", flush=True)
    try:
        run_query(spark, plan["warehouse"], one)
    except (PySparkException, Py4JError) as error:
        traceback.print_exc()
        told = explain_failure(error)
        print(f"query {one['name']} failed: {told}", flush=True)
        with (Path(plan["folder"]) / "failed").open("a") as file:
            file.write(f"{one['name']}: {told.code} {'crashed' if '(crashed)' in str(error) else ''}\n")
        return False
    return True


def run_query(spark: SparkSession, warehouse: str, one: dict[str, Any]) -> None:
    """Raises what Spark does."""
    reader = spark.readStream.format("tablestore").options(warehouse=warehouse, table=one["input"])
    frame = reader.options(**one["options"]).load().drop("_snapshot_id")
    writer = frame.writeStream.format("tablestore").options(warehouse=warehouse, table=one["copy"])
    writer = writer.options(**one["sink"])
    query = writer.option("checkpointLocation", one["checkpoint"]).trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    finally:
        query.stop()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
