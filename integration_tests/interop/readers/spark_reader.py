"""paimon-spark 0.9.0 on Spark 3.5: batch, VERSION AS OF, count(*), and SQL for the tables that only Spark can make.

Started as: python spark_reader.py <connector jar> <folder for temporary files>
Each warehouse gets a catalog of its own when it is first asked for.
"""

import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from answers import answer
from pyspark.sql import SparkSession

JAR, FOLDER = sys.argv[1], sys.argv[2]
KNOWN = {}
CONF = {
    "spark.master": "local[1]",
    "spark.ui.enabled": "false",
    "spark.jars": JAR,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Duser.timezone=UTC",
    "spark.local.dir": FOLDER,
    "spark.sql.warehouse.dir": f"{FOLDER}/unused",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.readSideCharPadding": "false",
    "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.log.level": "OFF",
}


def session():
    """The one session, without a metastore."""
    builder = SparkSession.builder
    for key, value in CONF.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


SPARK = session()


def table_name(request):
    """`catalog.db.table` of a location <warehouse>/<db>.db/<table>."""
    location = Path(request["location"])
    warehouse, database, table = str(location.parent.parent), location.parent.name, location.name
    if warehouse not in KNOWN:
        name = f"w{len(KNOWN)}"
        SPARK.conf.set(f"spark.sql.catalog.{name}", "org.apache.paimon.spark.SparkCatalog")
        SPARK.conf.set(f"spark.sql.catalog.{name}.warehouse", warehouse)
        KNOWN[warehouse] = name
    return f"{KNOWN[warehouse]}.`{database[:-3]}`.`{table}`"


def source(request):
    """The FROM item: the table, at a snapshot when one is asked for."""
    name = table_name(request)
    at = request.get("snapshot")
    return name if at is None else f"{name} VERSION AS OF {int(at)}"


def fresh(request):
    """Spark caches what it knows of a table: forget it, others write to it."""
    SPARK.sql(f"REFRESH TABLE {table_name(request)}")


def collect(frame):
    """A DataFrame as an Arrow table, by way of a parquet file: Spark 3.5's own Arrow does not run on Java 21."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        frame.coalesce(1).write.parquet(f"{folder}/rows")
        files = sorted(Path(folder, "rows").glob("*.parquet"))
        return pa.concat_tables([pq.ParquetFile(file).read() for file in files])


def read(request):
    """All rows."""
    fresh(request)
    return collect(SPARK.sql(f"SELECT * FROM {source(request)}"))


def count(request):
    """Number of rows, which Paimon answers from metadata where it can."""
    fresh(request)
    return SPARK.sql(f"SELECT count(*) FROM {source(request)}").collect()[0][0]


def sql(request):
    """A statement with {table} for the table's name."""
    fresh(request)
    SPARK.sql(request["text"].replace("{table}", table_name(request)))


def select(request):
    """Rows of a query with {table} for the table's name."""
    fresh(request)
    return collect(SPARK.sql(request["text"].replace("{table}", table_name(request))))


answer({"read": read, "count": count, "sql": sql, "select": select, "ping": lambda _: SPARK.version})
