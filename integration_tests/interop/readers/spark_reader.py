"""paimon-spark 0.9.0 on Spark 3.5: batch, VERSION AS OF, count(*), and SQL for the tables that only Spark can make.

Started as: python spark_reader.py <connector jar> <folder for temporary files>
Each warehouse gets a catalog of its own when it is first asked for.
"""

import sys
import tempfile
from pathlib import Path

from answers import answer
from spark_35 import collect, open_session, operations

JAR, FOLDER = sys.argv[1], sys.argv[2]
KNOWN = {}
MORE = {
    "spark.sql.readSideCharPadding": "false",
    "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
SPARK = open_session(JAR, FOLDER, MORE)


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


def read(request):
    """All rows."""
    fresh(request)
    return collect(FOLDER, SPARK.sql(f"SELECT * FROM {source(request)}"))


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
    return collect(FOLDER, SPARK.sql(request["text"].replace("{table}", table_name(request))))


def follow(request):
    """Changes from snapshot 1 to the newest, by a stream that ends there; kind in the column `rowkind`."""
    options = {"read.changelog": "true", "scan.mode": "from-snapshot", "scan.snapshot-id": "1"}
    stream = SPARK.readStream.format("paimon").options(**options).load(request["location"])
    with tempfile.TemporaryDirectory(dir=FOLDER) as place:
        sink = stream.writeStream.format("parquet").option("checkpointLocation", f"{place}/checkpoint")
        sink.trigger(availableNow=True).start(f"{place}/rows").awaitTermination()
        return collect(FOLDER, SPARK.read.schema(stream.schema).parquet(f"{place}/rows"))


OF_TABLES = {"read": read, "follow": follow, "count": count, "sql": sql, "select": select, "name": table_name}
answer({**OF_TABLES, **operations(FOLDER, SPARK)})
