"""A session of Spark 3.5 with the jar of a connector, and its rows as Arrow."""

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession


def open_session(jar, folder, more):
    """The one session of the process, without a metastore; `folder` is for its temporary files."""
    conf = {
        "spark.master": "local[1]",
        "spark.ui.enabled": "false",
        "spark.jars": jar,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Duser.timezone=UTC",
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": f"{folder}/unused",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.log.level": "OFF",
        **more,
    }
    builder = SparkSession.builder
    for key, value in conf.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def collect(folder, frame):
    """A DataFrame as an Arrow table, by way of a parquet file: Spark 3.5's own Arrow does not run on Java 21."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        frame.coalesce(1).write.parquet(f"{place}/rows")
        files = sorted(Path(place, "rows").glob("*.parquet"))
        return pa.concat_tables([pq.ParquetFile(file).read() for file in files])


def operations(folder, spark):
    """What readers of all connectors do: `set` configures the session, `run` gives the frame of a program's name."""

    def set_all(request):
        for key, value in request["values"].items():
            spark.conf.set(key, value)

    def run(request):
        names = {"spark": spark}
        exec(request["text"], names)  # a program of docs/engines.md
        return collect(folder, names[request["name"]])

    return {"set": set_all, "run": run, "ping": lambda _: spark.version}
