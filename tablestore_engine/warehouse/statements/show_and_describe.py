"""SHOW and DESCRIBE, answered from our catalog in the columns that Spark uses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from tablestore_engine.catalog.near_names import TABLES
from tablestore_engine.errors import NotFound
from tablestore_engine.format.column_default import shown_default
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.spark.fetch_rows import Fetched
from tablestore_engine.spark.type_ddl import shown_type
from tablestore_engine.sql.parser import not_offered
from tablestore_engine.sql.scanner import quote_name, quote_string
from tablestore_engine.sql.statement import Show
from tablestore_engine.store.metadata.identity import UUID_OPTION
from tablestore_engine.warehouse.statements.table_actions import TableActions


def show(actions: TableActions, statement: Show, database: str) -> Fetched:
    """SHOW SCHEMAS | TABLES | TABLE EXTENDED | VIEWS | FUNCTIONS | COLUMNS | TBLPROPERTIES | CREATE TABLE."""
    if statement.kind == "schemas":
        names = [name for name in actions.list_schemas() if _matches(name, statement.pattern)]
        return _answer(("namespace",), [(name,) for name in names])
    if statement.kind in ("tables", "views"):
        return _show_relations(actions, statement, statement.database or database)
    if statement.kind == "functions":
        at = statement.database or database
        names = [name for name in actions.list_functions(at) if _matches(name, statement.pattern)]
        return _answer(("function",), [(f"{at}.{name}",) for name in names])
    if statement.kind == "table extended":
        return _show_extended(actions, statement, statement.database or database)
    if statement.name is None:
        raise not_offered(f"SHOW {statement.kind}")
    place = (statement.name.database or database, statement.name.table)
    schema = actions.find_schema(*place)
    if statement.kind == "create table":
        return _answer(("createtab_stmt",), [(_create_text(actions, place, schema),)])
    if schema is None:
        raise NotFound(
            "TS1525",
            f"{place[0]}.{place[1]} is no table",
            why="SHOW COLUMNS and SHOW TBLPROPERTIES are answered for tables",
            fix=f"check the spelling and the schema{actions.near_hint(*place, (TABLES,))}",
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


def _show_extended(actions: TableActions, statement: Show, database: str) -> Fetched:
    rows = []
    for name, kind, comment in actions.list_relations(database):
        if not _matches(name, statement.pattern):
            continue
        schema = actions.find_schema(database, name) if kind == "table" else None
        facts = {
            "Database": database,
            "Table": name,
            "Type": "MANAGED" if kind == "table" else "VIEW",
            "Provider": "tablestore" if kind == "table" else "",
            "Comment": comment or "",
        }
        lines = [f"{key}: {value}" for key, value in facts.items() if value]
        if schema is not None:
            lines += ["Schema: root", *(f" |-- {f.name}: {shown_type(f.type)}" for f in schema.fields)]
        rows.append((database, name, False, "\n".join(lines) + "\n"))
    names = (("namespace", "string"), ("tableName", "string"), ("isTemporary", "boolean"))
    return Fetched((*names, ("information", "string")), tuple(rows))


def _create_text(actions: TableActions, place: tuple[str, str], schema: TableSchema | None) -> str:
    """A statement that makes it again. Raises NotFound TS1538."""
    full = ".".join(map(quote_name, place))
    if schema is not None:
        return create_table_text(full, schema)
    view = actions.find_view_text(*place)
    if view is None:
        raise NotFound(
            "TS1538",
            f"{place[0]}.{place[1]} does not exist",
            why="no table and no stored view of that name is in the warehouse",
            fix=f"check the spelling and the schema{actions.near_hint(*place)}",
        )
    return f"CREATE VIEW {full} AS {view}"


def create_table_text(full: str, schema: TableSchema) -> str:
    """CREATE TABLE, as this package reads it. `full`: the quoted name."""
    columns = [
        f"{quote_name(f.name)} {shown_type(f.type)}"
        + ("" if f.type.nullable else " NOT NULL")
        + (f" DEFAULT {shown_default(f.default_value)}" if f.default_value is not None else "")
        + (f" COMMENT {quote_string(f.description)}" if f.description else "")
        for f in schema.fields
    ]
    if schema.primary_keys:
        columns.append(f"PRIMARY KEY ({', '.join(map(quote_name, schema.primary_keys))})")
    clauses = [f"CREATE TABLE {full} (", ",\n".join(f"  {one}" for one in columns), ")", "USING tablestore"]
    if schema.partition_keys:
        clauses.append(f"PARTITIONED BY ({', '.join(map(quote_name, schema.partition_keys))})")
    if schema.comment:
        clauses.append(f"COMMENT {quote_string(schema.comment)}")
    given = {key: value for key, value in schema.options.items() if key != UUID_OPTION}
    if given:
        pairs = ", ".join(
            f"{quote_string(key)} = {quote_string(value)}" for key, value in sorted(given.items())
        )
        clauses.append(f"TBLPROPERTIES ({pairs})")
    return "\n".join(clauses)


def describe_history(snapshots: Sequence[tuple[Snapshot, int | None]]) -> Fetched:
    """One row per snapshot, in the columns that Delta users look for. With each its number of rows, None: not known.

    numRows        rows that a query of the snapshot returns
    numStoredRows  records in its files; rows that deletion vectors hide are among them
    """
    names = (
        ("version", "bigint"),
        ("timestamp", "timestamp"),
        ("userName", "string"),
        ("operation", "string"),
        ("operationMetrics", "map<string,string>"),
    )
    rows = tuple(
        (
            one.id,
            datetime.fromtimestamp(one.time_millis / 1000, UTC),
            one.commit_user,
            one.operation or one.commit_kind.value,
            {
                "numRows": None if rows is None else str(rows),
                "numStoredRows": str(one.total_record_count),
                "numChangedRows": str(one.delta_record_count),
            },
        )
        for one, rows in snapshots
    )
    return Fetched(names, rows)


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
