"""Text of one SQL statement -> the statement value; what we do not know is refused, never passed on.

CHANGE     which SQL statements are understood
Steps      1 cut into tokens  2 choose by the first words  3 read the clauses  4 nothing may be left over
INVARIANT  a statement that could change one of our tables is either parsed completely here or refused
           (TS1501 malformed, TS1502 not offered).
"""

from __future__ import annotations

from collections.abc import Callable

from tablestore_engine.errors import Unsupported
from tablestore_engine.sql.alter_parser import parse_alter, parse_comment_on
from tablestore_engine.sql.cursor import Cursor
from tablestore_engine.sql.dml_parser import (
    QUERY_STARTS,
    parse_delete,
    parse_insert,
    parse_merge,
    parse_update,
    starts_query,
)
from tablestore_engine.sql.empty_catalog import drop_empty_catalogs
from tablestore_engine.sql.function_parser import (
    function_name,
    parse_create_function,
    parse_describe_function,
    parse_drop_function,
    parse_show_functions,
    refused,
)
from tablestore_engine.sql.maintenance_parser import (
    NO_EFFECT_WORDS,
    parse_no_effect,
    parse_optimize,
    parse_vacuum,
)
from tablestore_engine.sql.statement import (
    ColumnDefinition,
    CreateSchema,
    CreateTable,
    CreateView,
    Describe,
    DescribeHistory,
    Drop,
    DropSchema,
    Pairs,
    Query,
    Restore,
    SessionSql,
    Show,
    Statement,
    TableName,
    Truncate,
)

_SCHEMA_WORDS = ("SCHEMA", "DATABASE", "NAMESPACE")


def parse(text: str) -> Statement:
    """The statement that `text` holds; leading comments (dbt's query comment) do not matter."""
    cursor = Cursor(drop_empty_catalogs(text))
    first = cursor.peek()
    if first is None:
        cursor.fail("a statement")
    if starts_query(cursor):
        return _query(cursor)
    reader = _READERS.get(first.text.upper()) if first.is_name else None
    if reader is None:
        raise not_offered(first.text)
    statement = reader(cursor)
    cursor.expect_end()
    return statement


def not_offered(what: str) -> Unsupported:
    """The refusal of a statement or clause that is SQL but not ours."""
    return Unsupported(
        "TS1502",
        f"SQL {what.upper()} is not offered",
        why="what we do not know is refused: Spark would run it on its own catalog, not on our tables",
        fix="use one of the statements of docs/sql.md, or the Python API",
    )


def _query(cursor: Cursor) -> Statement:
    """A query, or `WITH … INSERT`, whose common table expressions belong to the inserted query."""
    if cursor.sees("WITH"):
        depth, first = 0, cursor.peek()
        for index, token in enumerate(cursor.tokens):
            depth += token.is_operator("(") - token.is_operator(")")
            previous = cursor.tokens[index - 1]
            if depth == 0 and index and previous.is_operator(")"):
                if token.is_word("INSERT"):
                    prefix = cursor.slice(first, token)
                    cursor.at = index
                    insert = parse_insert(cursor, prefix)
                    cursor.expect_end()
                    return insert
                if token.is_word("MERGE", "UPDATE", "DELETE"):
                    raise not_offered(f"WITH … {token.text}")
    _refuse_hidden_insert(cursor)
    return Query(cursor.rest())


def _refuse_hidden_insert(cursor: Cursor) -> None:
    """Hive's `FROM source INSERT INTO …` begins like a query but writes."""
    depth = 0
    for index, token in enumerate(cursor.tokens[:-1]):
        depth += token.is_operator("(") - token.is_operator(")")
        if depth == 0 and token.is_word("INSERT") and cursor.tokens[index + 1].is_word("INTO", "OVERWRITE"):
            raise not_offered("FROM … INSERT")


def _create(cursor: Cursor) -> Statement:
    start = cursor.peek()
    cursor.expect("CREATE")
    replace = cursor.accept("OR", "REPLACE")
    temporary = cursor.accept("GLOBAL") or False
    temporary = bool(cursor.accept_any("TEMPORARY", "TEMP")) or temporary
    if temporary and cursor.sees("FUNCTION", "VIEW"):
        cursor.rest()
        return SessionSql(cursor.slice(start))
    if cursor.accept("FUNCTION"):
        return parse_create_function(cursor, replace=replace)
    if cursor.accept("AGGREGATE", "FUNCTION"):
        raise refused(
            function_name(cursor),
            "an aggregate function",
            "write the aggregate in the query, or as a dbt macro",
        )
    if temporary:
        raise not_offered("CREATE TEMPORARY TABLE")
    if not replace and cursor.accept_any(*_SCHEMA_WORDS):
        return _create_schema(cursor)
    if cursor.accept("TABLE"):
        return _create_table(cursor, replace=replace)
    if cursor.accept("VIEW"):
        return _create_view(cursor, replace=replace)
    token = cursor.peek()
    raise not_offered(f"CREATE {token.text if token else ''}")


def _if_not_exists(cursor: Cursor) -> bool:
    return cursor.accept("IF", "NOT", "EXISTS")


def _create_schema(cursor: Cursor) -> CreateSchema:
    if_not_exists = _if_not_exists(cursor)
    name = _schema_name(cursor)
    comment = cursor.string() if cursor.accept("COMMENT") else None
    if cursor.sees("LOCATION"):
        raise not_offered("CREATE SCHEMA … LOCATION")
    if cursor.accept("WITH"):
        raise not_offered("CREATE SCHEMA … WITH DBPROPERTIES")
    return CreateSchema(name, if_not_exists, comment)


def _schema_name(cursor: Cursor) -> str:
    first = cursor.peek()
    parts = cursor.parts()
    if len(parts) > 1 and not (len(parts) == 2 and parts[0].lower() == "spark_catalog"):
        cursor.fail("a schema name of one part", first)
    return parts[-1]


def _create_table(cursor: Cursor, *, replace: bool) -> CreateTable:
    if_not_exists = _if_not_exists(cursor)
    name = cursor.table_name()
    columns: tuple[ColumnDefinition, ...] = ()
    key: tuple[str, ...] = ()
    checks: Pairs = ()
    if cursor.sees_operator("(") and not cursor.sees(*QUERY_STARTS, ahead=1):
        columns, key, checks = _table_elements(cursor)
    provider: str | None = None
    partition_by: tuple[str, ...] = ()
    comment: str | None = None
    properties: Pairs = ()
    while not cursor.done and not cursor.sees("AS") and not starts_query(cursor):
        if cursor.accept("USING"):
            provider = cursor.name()
        elif cursor.accept("PARTITIONED", "BY"):
            partition_by = cursor.names_in_parentheses()
        elif cursor.accept("COMMENT"):
            comment = cursor.string()
        elif cursor.accept("TBLPROPERTIES"):
            properties = cursor.properties()
        elif cursor.sees("LOCATION", "OPTIONS", "CLUSTERED", "CLUSTER", "STORED", "ROW", "LIKE"):
            token = cursor.peek()
            raise not_offered(f"CREATE TABLE … {token.text if token else ''}")
        else:
            cursor.fail("USING, PARTITIONED BY, COMMENT, TBLPROPERTIES or AS")
    cursor.accept("AS")
    query = cursor.rest() if starts_query(cursor) else None
    if checks and query is None:  # a table keeps no constraints, so nothing would ever look at them
        raise not_offered("CREATE TABLE … CHECK without AS")
    return CreateTable(
        name, replace, if_not_exists, columns, key, checks, provider, partition_by, comment, properties, query
    )


def _table_elements(cursor: Cursor) -> tuple[tuple[ColumnDefinition, ...], tuple[str, ...], Pairs]:
    """Columns, primary key and checks between the parentheses of CREATE TABLE."""
    columns: list[ColumnDefinition] = []
    key: tuple[str, ...] = ()
    checks: list[tuple[str, str]] = []
    cursor.expect("(")
    while True:
        constraint = cursor.name() if cursor.accept("CONSTRAINT") else ""
        if cursor.accept("PRIMARY", "KEY"):
            key = _only_key(key, cursor.names_in_parentheses())
            cursor.accept("NOT", "ENFORCED")
        elif cursor.sees("CHECK") and cursor.sees_operator("(", ahead=1):
            cursor.expect("CHECK")
            name = constraint or f"check_{len(checks) + 1}"
            if name.lower() in (known.lower() for known, _ in checks):
                raise not_offered(f"CREATE TABLE … a second constraint {name}")
            checks.append((name, cursor.parenthesized()))
        elif constraint or (cursor.sees("FOREIGN", "UNIQUE") and cursor.sees("KEY", ahead=1)):
            raise not_offered("CREATE TABLE … CONSTRAINT other than PRIMARY KEY and CHECK")
        else:
            columns.append(cursor.column())
            if cursor.accept("PRIMARY", "KEY"):
                key = _only_key(key, (columns[-1].name,))
                cursor.accept("NOT", "ENFORCED")
        if not cursor.accept(","):
            cursor.expect(")")
            return tuple(columns), key, tuple(checks)


def _only_key(known: tuple[str, ...], key: tuple[str, ...]) -> tuple[str, ...]:
    if known:
        raise not_offered("CREATE TABLE … a second PRIMARY KEY")
    return key


def _create_view(cursor: Cursor, *, replace: bool) -> CreateView:
    if_not_exists = _if_not_exists(cursor)
    name = cursor.table_name()
    columns: list[tuple[str, str]] = []
    if cursor.accept("("):
        while not cursor.accept(")"):
            if columns:
                cursor.expect(",")
            column = cursor.name()
            columns.append((column, cursor.string() if cursor.accept("COMMENT") else ""))
    comment: str | None = None
    properties: Pairs = ()
    while not cursor.accept("AS"):
        if cursor.accept("COMMENT"):
            comment = cursor.string()
        elif cursor.accept("TBLPROPERTIES"):
            properties = cursor.properties()
        else:
            cursor.fail("COMMENT, TBLPROPERTIES or AS")
    return CreateView(name, cursor.rest(), replace, if_not_exists, tuple(columns), comment, properties)


def _drop(cursor: Cursor) -> Statement:
    start = cursor.peek()
    cursor.expect("DROP")
    if cursor.sees("TEMPORARY"):
        cursor.rest()
        return SessionSql(cursor.slice(start))
    if cursor.accept("FUNCTION"):
        return parse_drop_function(cursor)
    if cursor.accept_any(*_SCHEMA_WORDS):
        if_exists = cursor.accept("IF", "EXISTS")
        name = _schema_name(cursor)
        ending = cursor.accept_any("CASCADE", "RESTRICT")
        return DropSchema(name, if_exists, ending == "CASCADE")
    kind = cursor.accept_any("TABLE", "VIEW")
    if kind is None:
        token = cursor.peek()
        raise not_offered(f"DROP {token.text if token else ''}")
    if_exists = cursor.accept("IF", "EXISTS")
    dropped = cursor.table_name()
    cursor.accept("PURGE")
    return Drop(kind.lower(), dropped, if_exists)


def _truncate(cursor: Cursor) -> Truncate:
    cursor.expect("TRUNCATE", "TABLE")
    name = cursor.table_name()
    if cursor.sees("PARTITION"):
        raise not_offered("TRUNCATE … PARTITION")
    return Truncate(name)


def _restore(cursor: Cursor) -> Restore:
    cursor.expect("RESTORE")
    cursor.accept("TABLE")
    name = cursor.table_name()
    cursor.expect("TO")
    is_version = cursor.accept("VERSION", "AS", "OF")
    if not is_version:
        cursor.expect("TIMESTAMP", "AS", "OF")
        return Restore(name, timestamp=cursor.string())
    token = cursor.peek()
    if token is None or not token.text.isdigit():
        return Restore(name, tag=cursor.string())
    cursor.at += 1
    return Restore(name, snapshot=int(token.text))


def _show(cursor: Cursor) -> Statement:
    cursor.expect("SHOW")
    kind = cursor.accept_any(
        "TABLES", "VIEWS", "SCHEMAS", "DATABASES", "NAMESPACES", "COLUMNS", "TBLPROPERTIES"
    )
    if kind is None and cursor.accept("CREATE", "TABLE"):
        return Show("create table", None, cursor.table_name())
    if kind is None and cursor.accept("TABLE", "EXTENDED"):
        database = _schema_name(cursor) if cursor.accept_any("IN", "FROM") else None
        cursor.expect("LIKE")
        return Show("table extended", database, None, cursor.string())
    if kind is None:
        if cursor.sees("FUNCTIONS", "USER", "SYSTEM", "ALL"):
            return parse_show_functions(cursor)
        token = cursor.peek()
        raise not_offered(f"SHOW {token.text if token else ''}")
    if kind in ("COLUMNS", "TBLPROPERTIES"):
        if kind == "COLUMNS" and not cursor.accept_any("IN", "FROM"):
            cursor.fail("IN or FROM")
        name = cursor.table_name()
        pattern = cursor.parenthesized() if cursor.sees_operator("(") else None
        return Show(kind.lower(), None, name, pattern)
    database = _schema_name(cursor) if cursor.accept_any("IN", "FROM") else None
    pattern = cursor.string() if cursor.accept("LIKE") or not cursor.done else None
    return Show("schemas" if kind in ("DATABASES", "NAMESPACES") else kind.lower(), database, None, pattern)


def _describe(cursor: Cursor) -> Statement:
    start = cursor.peek()
    cursor.at += 1
    if cursor.sees("FUNCTION"):
        return parse_describe_function(cursor)
    if cursor.sees("QUERY", *QUERY_STARTS) and not cursor.sees("TABLE"):
        cursor.rest()
        return Query(cursor.slice(start))
    if cursor.sees(*_SCHEMA_WORDS) and cursor.peek(1) is not None:
        raise not_offered("DESCRIBE SCHEMA")
    if cursor.sees("HISTORY") and cursor.peek(1) is not None:
        return _describe_history(cursor)
    cursor.accept("TABLE")
    extended = bool(cursor.accept_any("EXTENDED", "FORMATTED"))
    name: TableName = cursor.table_name()
    return Describe(name, extended)


def _describe_history(cursor: Cursor) -> DescribeHistory:
    cursor.expect("HISTORY")
    name = cursor.table_name()
    if not cursor.accept("LIMIT"):
        return DescribeHistory(name)
    token = cursor.peek()
    if token is None or not token.text.isdigit():
        cursor.fail("a number")
    cursor.at += 1
    return DescribeHistory(name, int(token.text))


def _session(cursor: Cursor) -> SessionSql:
    return SessionSql(cursor.rest())


def _explain(cursor: Cursor) -> Query:
    """EXPLAIN of a query only: an explained write would be resolved against Spark's own catalog."""
    start = cursor.peek()
    cursor.expect("EXPLAIN")
    cursor.accept_any("EXTENDED", "FORMATTED", "CODEGEN", "COST")
    if not starts_query(cursor):
        raise not_offered("EXPLAIN of anything but a query")
    cursor.rest()
    return Query(cursor.slice(start))


_READERS: dict[str, Callable[[Cursor], Statement]] = {
    "CREATE": _create,
    "DROP": _drop,
    "INSERT": parse_insert,
    "DELETE": parse_delete,
    "UPDATE": parse_update,
    "MERGE": parse_merge,
    "TRUNCATE": _truncate,
    "RESTORE": _restore,
    "ALTER": parse_alter,
    "COMMENT": parse_comment_on,
    "SHOW": _show,
    "DESCRIBE": _describe,
    "DESC": _describe,
    "EXPLAIN": _explain,
    "SET": _session,
    "RESET": _session,
    "DECLARE": _session,
    "OPTIMIZE": parse_optimize,
    "VACUUM": parse_vacuum,
    **dict.fromkeys(NO_EFFECT_WORDS, parse_no_effect),
}
