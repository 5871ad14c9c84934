"""DuckDB with its Iceberg extension: any snapshot of the newest metadata that `version-hint.text` names."""

import duckdb
import pyarrow as pa
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


def where(request):
    """Rows that a filter selects: of the table, or of the Arrow file `rows`, without any metadata."""
    if request.get("rows") is None:
        found = CONNECTION.execute(f"SELECT * FROM {scan(request)} WHERE {request['filter']}")
        return found.to_arrow_table()
    with pa.OSFile(request["rows"]) as source:
        rows = pa.ipc.open_file(source).read_all()
    CONNECTION.register("arrow_rows", rows)
    CONNECTION.execute(
        "CREATE OR REPLACE TEMP TABLE given AS FROM arrow_rows"
    )  # Arrow's filters compare NaN otherwise
    CONNECTION.unregister("arrow_rows")
    return CONNECTION.execute(f"SELECT * FROM given WHERE {request['filter']}").to_arrow_table()


def explain(request):
    """What DuckDB did for a filter."""
    text = f"EXPLAIN ANALYZE SELECT * FROM {scan(request)} WHERE {request['filter']}"
    return CONNECTION.execute(text).fetchall()[0][1]


def count(request):
    """Their number."""
    return CONNECTION.execute(f"SELECT count(*) FROM {scan(request)}").fetchone()[0]


answer(
    {"read": read, "count": count, "where": where, "explain": explain, "ping": lambda _: duckdb.__version__}
)
