"""The driver program of the cluster test, in a process of its own (one process has one Spark session).

Usage: python -m integration_tests.spark.cluster_write <master url> <worker python> <warehouse>
Prints one JSON line of what happened.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pyarrow as pa

from integration_tests.spark.tables import LOCAL_READS
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.schema import new_schema
from tablestore_engine.runtime.scratch import ScratchPlace
from tablestore_engine.spark.resolver import Resolver
from tablestore_engine.spark.session import SparkSettings, open_session, session_scratch
from tablestore_engine.spark.write import write_distributed
from tablestore_engine.spark.write_job import WriteJob

ROWS = 20_000


def main(master: str, python: str, warehouse: str) -> None:
    """Write a keyed table on the cluster, read it back through a view there."""
    conf = {"spark.pyspark.python": python, "spark.executor.memory": "512m", "spark.driver.memory": "1g"}
    settings, place = SparkSettings(master, conf), ScratchPlace(warehouse)
    spark = open_session(settings, place)
    scratch = session_scratch(place, settings)
    frame = spark.range(ROWS).selectExpr("id", "concat('n', id % 7) as name")

    def probe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import importlib.util

        list(batches)
        spec = importlib.util.find_spec("tablestore_engine")
        yield pa.RecordBatch.from_pydict({"place": [str(spec.origin) if spec else "missing"]})

    before = {row["place"] for row in frame.mapInArrow(probe, "place string").collect()}
    arrow = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
    options = {
        "bucket": "4",
        "deletion-vectors.enabled": "true",
        "changelog-producer": "lookup",
        "num-levels": "20",
    }
    schema = new_schema(arrow, primary_keys=["id"], options=options)
    job = WriteJob(LocalFileIO(warehouse), TableLayout(f"{warehouse}/demo.db/t"), schema)
    changes = write_distributed(frame, job, scratch)
    after = {row["place"] for row in frame.mapInArrow(probe, "place string").collect()}
    files = [_file(job, change, meta) for change in changes for meta in change.added]
    source = _source(schema, files)
    count = (
        Resolver(spark, source, scratch, reads=LOCAL_READS)
        .query("select count(*), sum(id), count(distinct name) from demo.t")
        .collect()[0]
    )
    spark.stop()
    print(json.dumps({
        "before": sorted(before), "after": sorted(after), "buckets": sorted(change.bucket for change in changes),
        "inserted": sum(change.inserted for change in changes), "read": list(count),
    }))  # fmt: skip


def _file(job, change, meta):
    from types import SimpleNamespace

    path = job.layout.data_file("", change.bucket, meta.file_name)
    return SimpleNamespace(path=path, meta=meta, schema=job.schema, deleted=None)


def _source(schema, files):
    from integration_tests.spark.tables import StubTables, scan

    source = StubTables()
    source.put("demo", "t", "s1", scan(schema, *files))
    return source


if __name__ == "__main__":
    main(*sys.argv[1:])
