"""A query by DuckDB instead of Spark: no JVM, DuckDB's SQL, the tables of the warehouse by their names.

Steps      DuckDB's parser: one query, the tables in it -> each name means one pinned state -> a view in DuckDB over
           a dataset of it -> run
INVARIANT  views of the warehouse are Spark's SQL, which DuckDB reads in another way: a query over one is refused.
INVARIANT  the query reads nothing but these tables: DuckDB opens no file, loads no extension, sees no Python variable.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from tablestore_engine.api.results import SqlResult
from tablestore_engine.api.scan_dataset import Failures, ScanDataset
from tablestore_engine.api.scan_request import ScanRequest
from tablestore_engine.api.table_scan import Scan, load_package
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.resolved_names import ResolvedTable
from tablestore_engine.errors import FixRequest, NotFound, Unsupported
from tablestore_engine.spark.session import DEFAULT_CONF
from tablestore_engine.spark.spark_settings import SparkSettings
from tablestore_engine.sql.table_version import split_database
from tablestore_engine.warehouse.warehouse import Warehouse

_TIME_ZONE = "spark.sql.session.timeZone"
_CLOSED: Mapping[str, object] = {
    "enable_external_access": False,
    "python_enable_replacements": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}


def query_duckdb(warehouse: Warehouse, text: str) -> SqlResult:
    """Columns with DuckDB's types, and rows, in the time zone that Spark's session would have.

    Raises FixRequest TS1552, TS1567, Unsupported TS1553, NotFound TS1554.
    """
    duckdb = load_package("duckdb", extra="duckdb", needed_by="a query by DuckDB")
    connection, failures = duckdb.connect(config=dict(_CLOSED)), Failures()
    try:
        connection.execute("set TimeZone = ?", [_zone(warehouse.session.settings)])
        for number, place in enumerate(sorted(_find_tables(connection, text))):
            dataset = ScanDataset(_scan_of(warehouse, *place), failures)
            _give(connection, f"__table_{number}", dataset, *map(_quoted, place))
        connection.execute("set lock_configuration = true")
        found = connection.sql(text)
        columns = tuple(zip(found.columns, (str(one) for one in found.types), strict=True))
        return SqlResult(columns, _rows(found.to_arrow_table()))
    except duckdb.Error as error:
        failures.reraise()
        raise _refused(str(error).strip()) from error
    finally:
        connection.close()


def _zone(settings: SparkSettings) -> str:
    name = settings.conf.get(_TIME_ZONE, DEFAULT_CONF[_TIME_ZONE])
    return "UTC" if name == "Z" else name


def _find_tables(connection: Any, text: str) -> frozenset[tuple[str, str]]:  # noqa: ANN401 - duckdb is an extra
    """(database, name) of the tables in one query, by DuckDB's parser; names without database are left to DuckDB."""
    tree = json.loads(connection.execute("select json_serialize_sql(?)", [text]).fetchall()[0][0])
    if tree["error"] or len(tree["statements"]) != 1:
        raise _refused(tree.get("error_message") or f"expected one query, got {len(tree['statements'])}")
    nodes = tuple(_nodes(tree))
    for node in nodes:
        if node["type"] == "SHOW_REF" and node.get("show_type") not in ("DESCRIBE", "SUMMARY"):
            raise _refused("DuckDB would list its own tables: write `describe demo.orders`, or ask Spark")
        if node["type"] == "BASE_TABLE" and node["catalog_name"]:
            raise _no_table(
                f"{node['catalog_name']}.{node['schema_name']}.{node['table_name']}", "it has three parts"
            )
    found = ((node["schema_name"], node["table_name"]) for node in nodes if node["type"] == "BASE_TABLE")
    return frozenset((database, name) for database, name in found if database)


def _nodes(tree: object) -> Iterator[Mapping[str, Any]]:
    """Every node of a parsed query that has a type."""
    if isinstance(tree, dict):
        if isinstance(tree.get("type"), str):
            yield tree
        for part in tree.values():
            yield from _nodes(part)
    elif isinstance(tree, list):
        for part in tree:
            yield from _nodes(part)


def _refused(why: str) -> FixRequest:
    return FixRequest(
        "TS1552",
        "DuckDB cannot run this statement",
        why=why,
        fix="correct it for DuckDB's SQL, or leave --engine duckdb out: Spark runs it",
    )


def _give(connection: Any, key: str, dataset: ScanDataset, database: str, name: str) -> None:  # noqa: ANN401 - duckdb is an extra
    """A view of this name in DuckDB."""
    connection.register(key, dataset)
    connection.execute(f"create schema if not exists {database}")
    connection.execute(f"create view {database}.{name} as from {key}")


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _scan_of(warehouse: Warehouse, database: str, name: str) -> Scan:
    found = warehouse.relations.names.lookup(database, name, None)
    base, version = split_database(database)
    if isinstance(found, ResolvedTable) and (version is None or version.changes is None):
        identifier = Identifier(base, name)
        store = warehouse.stores.get(identifier)
        store = store if found.stage is None else store.on_staged(found.stage)
        return Scan(warehouse, identifier, store, found, ScanRequest())
    if found is None:
        near = warehouse.relations.names.near_hint(database, name)
        raise _no_table(f"{database}.{name}", f"nothing has this name{near}")
    raise Unsupported(
        "TS1553",
        f"DuckDB cannot read {database}.{name}",
        why="it is no table: the text of a view is Spark's SQL, which DuckDB would read in another way",
        fix="query the tables below it, or leave --engine duckdb out: Spark runs it",
    )


def _no_table(name: str, why: str) -> NotFound:
    return NotFound(
        "TS1554",
        f"{name} is no table of the warehouse",
        why=why,
        fix="write database.table, as in demo.orders; `tablestore show` lists the tables",
    )


def _rows(table: pa.Table) -> tuple[tuple[object, ...], ...]:
    columns = [column.to_pylist() for column in table.columns]
    return tuple(zip(*columns, strict=True)) if columns else ((),) * table.num_rows
