"""Iceberg's Java reader in Spark 3.5: any snapshot of the newest metadata that `version-hint.text` names.

Started as: python spark_iceberg_reader.py <connector jar> <folder for temporary files>
"""

import sys

from answers import answer
from spark_35 import collect, open_session, operations

JAR, FOLDER = sys.argv[1], sys.argv[2]
MORE = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
SPARK = open_session(JAR, FOLDER, MORE)


def frame(request):
    """The table, at a snapshot when one is asked for; others write to it, so nothing is kept."""
    reader, at = SPARK.read.format("iceberg"), request.get("snapshot")
    if at is not None:
        reader = reader.option("snapshot-id", int(at))
    return reader.load(request["location"])


def read(request):
    """All rows."""
    return collect(FOLDER, frame(request))


def count(request):
    """Number of rows, which Iceberg answers from metadata where it can."""
    return frame(request).count()


answer({"read": read, "count": count, **operations(FOLDER, SPARK)})
