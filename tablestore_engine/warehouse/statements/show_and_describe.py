"""SHOW and DESCRIBE, answered from our catalog in the columns that Spark uses."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tablestore_engine.errors import NotFound
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.spark.fetch_rows import Fetched
from tablestore_engine.spark.spark_types import shown_type
from tablestore_engine.sql.parser import not_offered
from tablestore_engine.sql.statement import Show
from tablestore_engine.warehouse.statements.table_actions import TableActions


def show(actions: TableActions, statement: Show, database: str) -> Fetched:
    """SHOW SCHEMAS | TABLES | VIEWS | FUNCTIONS | COLUMNS | TBLPROPERTIES."""
    if statement.kind == "schemas":
        names = [name for name in actions.list_schemas() if _matches(name, statement.pattern)]
        return _answer(("namespace",), [(name,) for name in names])
    if statement.kind in ("tables", "views"):
        return _show_relations(actions, statement, statement.database or database)
    if statement.kind == "functions":
        at = statement.database or database
        names = [name for name in actions.list_functions(at) if _matches(name, statement.pattern)]
        return _answer(("function",), [(f"{at}.{name}",) for name in names])
    if statement.name is None or statement.kind == "create table":
        raise not_offered(f"SHOW {statement.kind}")
    place = (statement.name.database or database, statement.name.table)
    schema = actions.find_schema(*place)
    if schema is None:
        raise NotFound(
            "TS1525",
            f"{place[0]}.{place[1]} is no table",
            why="SHOW COLUMNS and SHOW TBLPROPERTIES are answered for tables",
            fix="check the spelling and the schema",
        )
    if statement.kind == "columns":
        return _answer(("col_name",), [(name,) for name in schema.field_names])
    wanted = statement.pattern.strip("'\"") if statement.pattern else None
    pairs = [pair for pair in sorted(schema.options.items()) if wanted in (None, pair[0])]
    return _answer(("key", "value"), pairs)


def _show_relations(actions: TableActions, statement: Show, database: str) -> Fetched:
    found = [
        (database, name, False)
        for name, kind, _ in actions.list_relations(database)
        if (statement.kind == "tables" or kind == "view") and _matches(name, statement.pattern)
    ]
    first = "namespace"
    second = "tableName" if statement.kind == "tables" else "viewName"
    return Fetched(((first, "string"), (second, "string"), ("isTemporary", "boolean")), tuple(found))


def _matches(name: str, pattern: str | None) -> bool:
    """Spark's SHOW patterns: `*` for any text, `|` between alternatives, case ignored."""
    if pattern is None:
        return True
    parts = (re.escape(part).replace(r"\*", ".*") for part in pattern.split("|"))
    return any(re.fullmatch(part, name, re.IGNORECASE) for part in parts)


def describe(schema: TableSchema, place: tuple[str, str], *, extended: bool) -> Fetched:
    """col_name, data_type, comment; partition columns again as Spark lists them; facts when extended."""
    rows = [(f.name, shown_type(f.type), f.description) for f in schema.fields]
    if schema.partition_keys:
        rows += [("# Partition Information", "", ""), ("# col_name", "data_type", "comment")]
        rows += [(f.name, shown_type(f.type), f.description) for f in schema.fields_of(schema.partition_keys)]
    if extended:
        options = ",".join(f"{key}={value}" for key, value in sorted(schema.options.items()))
        rows += [
            ("", "", ""),
            ("# Detailed Table Information", "", ""),
            ("Database", place[0], ""),
            ("Table", place[1], ""),
            ("Type", "MANAGED", ""),
            ("Provider", "tablestore", ""),
            ("Comment", schema.comment or "", ""),
            ("Primary Key", ",".join(schema.primary_keys), ""),
            ("Table Properties", f"[{options}]", ""),
        ]
    return _answer(("col_name", "data_type", "comment"), rows)


def _answer(names: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> Fetched:
    return Fetched(tuple((name, "string") for name in names), tuple(rows))
