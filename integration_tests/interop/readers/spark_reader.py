"""paimon-spark 0.9.0 on Spark 3.5: batch, VERSION AS OF, count(*), and SQL for the tables that only Spark can make.

Started as: python spark_reader.py <connector jar> <folder for temporary files>
Each warehouse gets a catalog of its own when it is first asked for.
"""

import sys
from pathlib import Path

from answers import answer
from spark_35 import collect, open_session

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


answer({"read": read, "count": count, "sql": sql, "select": select, "ping": lambda _: SPARK.version})
