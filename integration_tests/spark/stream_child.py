"""A driver that is killed: follows demo.t into demo.copy, a snapshot for each batch, until nothing is there.

Run as `python -m integration_tests.spark.stream_child <warehouse> <checkpoint>`.
"""

from __future__ import annotations

import sys

from tablestore_engine.api import Engine, SparkSettings


def main(warehouse: str, checkpoint: str) -> None:
    """One run of the query."""
    spark = Engine(warehouse, spark=SparkSettings("local[1]", {"spark.driver.memory": "1g"})).spark
    options = {
        "warehouse": warehouse,
        "scan.mode": "earliest",
        "maxSnapshotsPerTrigger": "1",
        "consumer-id": "copy",
    }
    frame = spark.readStream.format("tablestore").options(table="demo.t", **options).load()
    writer = (
        frame.writeStream.format("tablestore").option("warehouse", warehouse).option("table", "demo.copy")
    )
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
