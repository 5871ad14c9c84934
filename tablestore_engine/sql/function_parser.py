"""CREATE, DROP, SHOW and DESCRIBE FUNCTION: text → statement.

INVARIANT  functions of the warehouse are SQL functions with a RETURN; each other kind is refused by name (TS1534).
INVARIANT  a function has a schema, and not `default`: Spark would call one in `default` by its bare name, which is
           not looked up in the warehouse (TS1459).
INVARIANT  the definition is an exact slice of the user's text: all that follows the name.
"""

from __future__ import annotations

from tablestore_engine.errors import FixRequest, Unsupported
from tablestore_engine.sql.cursor import Cursor
from tablestore_engine.sql.statement import (
    ColumnDefinition,
    CreateFunction,
    DescribeFunction,
    DropFunction,
    SessionSql,
    Show,
    Statement,
    TableName,
)

_UNQUALIFIED = "default"
_CLAUSES = (
    "LANGUAGE", "DETERMINISTIC", "NOT", "COMMENT", "CONTAINS", "READS", "SQL", "DEFAULT", "RETURN", "AS",
)  # fmt: skip


def parse_create_function(cursor: Cursor, *, replace: bool) -> CreateFunction:
    """After CREATE [OR REPLACE] FUNCTION. Raises FixRequest TS1459, TS1501, Unsupported TS1534."""
    first = cursor.peek()
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    if if_not_exists and replace:
        cursor.fail("OR REPLACE or IF NOT EXISTS, not both", first)
    name = function_name(cursor)
    if cursor.sees("AS"):
        raise refused(name, "AS 'class' (a function of a jar)", "use CREATE TEMPORARY FUNCTION in a hook")
    found = _read_definition(cursor, name)
    return CreateFunction(**{**found.__dict__, "replace": replace, "if_not_exists": if_not_exists})


def parse_definition(name: TableName, text: str) -> CreateFunction:
    """The stored text of a function: all that follows its name."""
    cursor = Cursor(text)
    found = _read_definition(cursor, name)
    cursor.expect_end()
    return found


def function_name(cursor: Cursor) -> TableName:
    """`schema.name`. Raises FixRequest TS1459."""
    name = cursor.table_name()
    if name.database is None or name.database.lower() == _UNQUALIFIED:
        raise FixRequest(
            "TS1459",
            f"function {name} needs a schema of its own",
            why="a function is stored in a schema and called as schema.name; schema default is not possible, since "
            "Spark calls its functions by their bare name",
            fix=f"write the name as schema.name, as in demo.{name.table}",
        )
    return name


def refused(name: TableName, feature: str, way_out: str) -> Unsupported:
    """The refusal of a kind of function that cannot be stored."""
    return Unsupported(
        "TS1534",
        f"function {name}: {feature} is not supported",
        why="functions of the warehouse are SQL functions: one RETURN with an expression or a query",
        fix=way_out,
    )


def _read_definition(cursor: Cursor, name: TableName) -> CreateFunction:
    first = cursor.peek()
    parameters = _parameters(cursor)
    returns = cursor.text_until(*_CLAUSES, types=True) if cursor.accept("RETURNS") else None
    is_deterministic, comment = _characteristics(cursor, name)
    cursor.expect("RETURN")
    body = cursor.rest()
    return CreateFunction(
        name=name,
        definition=cursor.slice(first),
        parameters=parameters,
        returns=returns,
        is_table=returns is not None and Cursor(returns).sees("TABLE"),
        is_deterministic=is_deterministic,
        comment=comment,
        body=body,
    )


def _parameters(cursor: Cursor) -> tuple[ColumnDefinition, ...]:
    cursor.expect("(")
    found: list[ColumnDefinition] = []
    while not cursor.accept(")"):
        if found:
            cursor.expect(",")
        found.append(cursor.column())
    return tuple(found)


def _characteristics(cursor: Cursor, name: TableName) -> tuple[bool | None, str | None]:
    """Declared determinism and comment."""
    is_deterministic: bool | None = None
    comment: str | None = None
    while not cursor.sees("RETURN") and not cursor.done:
        if cursor.accept("LANGUAGE"):
            language = cursor.name().upper()
            if language != "SQL":
                raise refused(name, f"LANGUAGE {language}", "write the body as SQL: RETURN expression")
        elif cursor.accept("NOT", "DETERMINISTIC"):
            is_deterministic = False
        elif cursor.accept("DETERMINISTIC"):
            is_deterministic = True
        elif cursor.accept("COMMENT"):
            comment = cursor.string()
        elif cursor.sees("AS"):
            raise refused(name, "AS $$ body $$", "write RETURN and the body without quotes")
        elif not (cursor.accept("CONTAINS", "SQL") or cursor.accept("READS", "SQL", "DATA")):
            cursor.fail("[NOT] DETERMINISTIC, COMMENT, CONTAINS SQL, READS SQL DATA or RETURN")
    return is_deterministic, comment


def parse_drop_function(cursor: Cursor) -> DropFunction:
    if_exists = cursor.accept("IF", "EXISTS")
    return DropFunction(function_name(cursor), if_exists)


def parse_show_functions(cursor: Cursor) -> Statement:
    """After SHOW: the functions of a schema; without one, Spark's own."""
    start = cursor.at - 1
    scope = cursor.accept_any("USER", "SYSTEM", "ALL") or "USER"
    cursor.expect("FUNCTIONS")
    if scope != "USER" or not cursor.accept_any("IN", "FROM"):
        cursor.at = start
        return SessionSql(cursor.rest())
    parts = cursor.parts()
    pattern = cursor.string() if cursor.accept("LIKE") or not cursor.done else None
    return Show("functions", parts[-1], None, pattern)


def parse_describe_function(cursor: Cursor) -> Statement:
    """After DESCRIBE: a function of a schema; of Spark, by its bare name."""
    start = cursor.at - 1
    cursor.expect("FUNCTION")
    extended = cursor.accept("EXTENDED")
    at = cursor.at
    if not cursor.done and cursor.tokens[at].is_name and len(cursor.parts()) > 1:
        cursor.at = at
        return DescribeFunction(cursor.table_name(), extended)
    cursor.at = start
    return SessionSql(cursor.rest())
