"""DuckDB with its Iceberg extension: any snapshot of the newest metadata that `version-hint.text` names."""

import duckdb
from answers import answer, whole
from reader_program import duckdb_with_iceberg, open_duckdb

CONNECTION = duckdb_with_iceberg()


def scan(request):
    """The FROM clause of a request."""
    location = request["location"].replace("'", "''")
    snapshot = request.get("snapshot")
    at = "" if snapshot is None else f", snapshot_from_id => {snapshot}"
    return f"iceberg_scan('{location}'{at})"


def read(request):
    """All rows."""
    return whole(open_duckdb(request["location"], request.get("snapshot")))


def count(request):
    """Their number."""
    return CONNECTION.execute(f"SELECT count(*) FROM {scan(request)}").fetchone()[0]


answer({"read": read, "count": count, "ping": lambda _: duckdb.__version__})
