"""INSERT, DELETE, UPDATE and MERGE: the statements that change rows."""

from __future__ import annotations

from tablestore_engine.sql.cursor import Cursor
from tablestore_engine.sql.statement import Delete, Insert, Merge, MergeClause, Pairs, Update

QUERY_STARTS = ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "REDUCE", "MAP")
_MERGE_STOPS = ("WHEN",)


def starts_query(cursor: Cursor) -> bool:
    """SELECT, WITH, VALUES, FROM, TABLE, or parentheses around one."""
    ahead = 0
    while cursor.sees_operator("(", ahead=ahead):
        ahead += 1
    return cursor.sees(*QUERY_STARTS, ahead=ahead)


def parse_insert(cursor: Cursor, prefix: str = "") -> Insert:
    """INSERT INTO | OVERWRITE [TABLE] name [PARTITION (…)] [(columns)] [BY NAME] query."""
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
    query = cursor.rest()
    return Insert(
        name, f"{prefix} {query}" if prefix else query, mode == "OVERWRITE", partition, columns, by_name
    )


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
    cursor.expect("DELETE", "FROM")
    name = cursor.table_name()
    alias = cursor.alias("WHERE")
    return Delete(name, alias, cursor.rest() if cursor.accept("WHERE") else None)


def parse_update(cursor: Cursor) -> Update:
    """UPDATE name [alias] SET column = expression, … [WHERE condition]."""
    cursor.expect("UPDATE")
    name = cursor.table_name()
    alias = cursor.alias("SET")
    cursor.expect("SET")
    assignments = _assignments(cursor, "WHERE")
    return Update(name, assignments, alias, cursor.rest() if cursor.accept("WHERE") else None)


def _assignments(cursor: Cursor, *stops: str) -> Pairs:
    """`[alias.]column = expression, …`; the last name part is the column."""
    pairs: list[tuple[str, str]] = []
    while True:
        column = cursor.parts()[-1]
        if not (cursor.accept("=") or cursor.accept("==")):
            cursor.fail("=")
        pairs.append((column, cursor.text_until(",", *stops)))
        if not cursor.accept(","):
            return tuple(pairs)


def parse_merge(cursor: Cursor) -> Merge:
    """MERGE INTO name [alias] USING source [alias] ON condition WHEN …."""
    cursor.expect("MERGE")
    if cursor.sees("WITH"):
        cursor.fail("INTO (WITH SCHEMA EVOLUTION is not offered)")
    cursor.expect("INTO")
    name = cursor.table_name()
    alias = cursor.alias("USING")
    cursor.expect("USING")
    if cursor.sees_operator("("):
        source = f"({cursor.parenthesized()})"
    else:
        first = cursor.peek()
        cursor.parts()
        while not cursor.done and cursor.sees("FOR", "VERSION", "TIMESTAMP", "SYSTEM_VERSION", "SYSTEM_TIME"):
            _skip_time_travel(cursor)
        source = cursor.slice(first, cursor.peek())
    source_alias = cursor.alias("ON")
    cursor.expect("ON")
    condition = cursor.text_until("WHEN")
    clauses: list[MergeClause] = []
    while not cursor.done:
        clauses.append(_merge_clause(cursor))
    if not clauses:
        cursor.fail("WHEN")
    return Merge(name, source, condition, tuple(clauses), alias, source_alias)


def _skip_time_travel(cursor: Cursor) -> None:
    cursor.accept("FOR")
    cursor.at += 1
    cursor.expect("AS", "OF")
    if cursor.sees("TIMESTAMP", "DATE"):
        cursor.at += 1
    cursor.at += 1


def _merge_clause(cursor: Cursor) -> MergeClause:
    cursor.expect("WHEN")
    match = "matched"
    if cursor.accept("NOT"):
        match = "not_matched"
    cursor.expect("MATCHED")
    if match == "not_matched" and cursor.accept("BY", "SOURCE"):
        match = "not_matched_by_source"
    else:
        cursor.accept("BY", "TARGET")
    condition = cursor.text_until("THEN") if cursor.accept("AND") else None
    cursor.expect("THEN")
    if cursor.accept("DELETE") and match != "not_matched":
        return MergeClause(match, "delete", condition)
    if match != "not_matched" and cursor.accept("UPDATE", "SET"):
        if match == "matched" and cursor.accept("*"):
            return MergeClause(match, "update", condition, star=True)
        return MergeClause(match, "update", condition, assignments=_assignments(cursor, *_MERGE_STOPS))
    if match != "not_matched" or not cursor.accept("INSERT"):
        cursor.fail("UPDATE SET, DELETE or INSERT as the action of this WHEN")
    if cursor.accept("*"):
        return MergeClause(match, "insert", condition, star=True)
    return MergeClause(match, "insert", condition, assignments=_insert_values(cursor))


def _insert_values(cursor: Cursor) -> Pairs:
    """`(columns) VALUES (expressions)` as pairs."""
    columns = [name.rpartition(".")[2] for name in cursor.names_in_parentheses()]
    cursor.expect("VALUES")
    cursor.expect("(")
    values = [cursor.text_until(",")]
    while cursor.accept(","):
        values.append(cursor.text_until(","))
    cursor.expect(")")
    if len(values) != len(columns):
        cursor.fail(f"{len(columns)} values, one for each column, but {len(values)} came", cursor.tokens[-1])
    return tuple(zip(columns, values, strict=True))
