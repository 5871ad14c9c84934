"""DuckDB with its Iceberg extension: any snapshot of the newest metadata that `version-hint.text` names."""

import importlib
from pathlib import Path

import duckdb
from answers import answer


def _connected():
    """Extensions come from their wheels, so that nothing is fetched; Avro first, Iceberg needs it."""
    connection = duckdb.connect()
    for name in ("avro", "iceberg"):
        folder = Path(importlib.import_module(f"duckdb_extension_{name}").__file__).parent
        [extension] = folder.glob("extensions/*/*.duckdb_extension")
        connection.execute(f"LOAD '{extension}'")
    connection.execute("SET TimeZone = 'UTC'")
    return connection


CONNECTION = _connected()


def scan(request):
    """The FROM clause of a request."""
    location = request["location"].replace("'", "''")
    snapshot = request.get("snapshot")
    at = "" if snapshot is None else f", snapshot_from_id => {snapshot}"
    return f"iceberg_scan('{location}'{at})"


def read(request):
    """All rows."""
    return CONNECTION.execute(f"SELECT * FROM {scan(request)}").to_arrow_table()


def count(request):
    """Their number."""
    return CONNECTION.execute(f"SELECT count(*) FROM {scan(request)}").fetchone()[0]


answer({"read": read, "count": count, "ping": lambda _: duckdb.__version__})
