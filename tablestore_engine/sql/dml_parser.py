"""INSERT, DELETE, UPDATE and MERGE: which statement changes the rows of which table.

INVARIANT  names of columns, expressions and clauses are left to Spark's parser (spark/parsed_changes.py), which reads
           the text of the statement; only the query of an INSERT is cut off, where it begins.
"""

from __future__ import annotations

from tablestore_engine.sql.cursor import Cursor
from tablestore_engine.sql.statement import Delete, Insert, Merge, Update

QUERY_STARTS = ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "REDUCE", "MAP")


def starts_query(cursor: Cursor) -> bool:
    """SELECT, WITH, VALUES, FROM, TABLE, or parentheses around one."""
    ahead = 0
    while cursor.sees_operator("(", ahead=ahead):
        ahead += 1
    return cursor.sees(*QUERY_STARTS, ahead=ahead)


def parse_insert(cursor: Cursor, prefix: str = "") -> Insert:
    """INSERT INTO | OVERWRITE [TABLE] name [PARTITION (…)] [(columns)] [BY NAME] query."""
    start = cursor.peek()
    cursor.expect("INSERT")
    mode = cursor.accept_any("INTO", "OVERWRITE")
    if mode is None or cursor.sees("DIRECTORY", "LOCAL"):
        cursor.fail("INTO or OVERWRITE and a table")
    cursor.accept("TABLE")
    name = cursor.table_name()
    partition = _partition(cursor) if cursor.accept("PARTITION") else ()
    if cursor.sees("IF"):
        cursor.fail("no IF NOT EXISTS (it is not offered for INSERT)")
    columns: tuple[str, ...] = ()
    if cursor.sees_operator("(") and not starts_query(cursor):
        columns = cursor.names_in_parentheses()
    by_name = cursor.accept("BY", "NAME")
    if not starts_query(cursor):
        cursor.fail("a query or VALUES")
    head = cursor.slice(start, cursor.peek())
    query = cursor.rest()
    query = f"{prefix} {query}" if prefix else query
    return Insert(name, query, mode == "OVERWRITE", partition, columns, by_name, head)


def _partition(cursor: Cursor) -> tuple[tuple[str, str | None], ...]:
    cursor.expect("(")
    spec: list[tuple[str, str | None]] = []
    while True:
        column = cursor.name()
        spec.append((column, cursor.text_until(",", ")") if cursor.accept("=") else None))
        if not cursor.accept(","):
            cursor.expect(")")
            return tuple(spec)


def parse_delete(cursor: Cursor) -> Delete:
    """DELETE FROM name [alias] [WHERE condition]."""
    start = cursor.peek()
    cursor.expect("DELETE", "FROM")
    name = cursor.table_name()
    cursor.alias("WHERE")
    all_rows = cursor.done
    if not all_rows:
        cursor.expect("WHERE")
        cursor.rest()
    return Delete(name, cursor.slice(start), all_rows)


def parse_update(cursor: Cursor) -> Update:
    """UPDATE name …."""
    start = cursor.peek()
    cursor.expect("UPDATE")
    name = cursor.table_name()
    cursor.rest()
    return Update(name, cursor.slice(start))


def parse_merge(cursor: Cursor) -> Merge:
    """MERGE INTO name …."""
    start = cursor.peek()
    cursor.expect("MERGE")
    if cursor.sees("WITH"):
        cursor.fail("INTO (WITH SCHEMA EVOLUTION is not offered)")
    cursor.expect("INTO")
    name = cursor.table_name()
    cursor.rest()
    return Merge(name, cursor.slice(start))
