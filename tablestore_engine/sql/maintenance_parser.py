"""Statements about a table's storage that projects of other adapters have in their hooks.

CHANGE     the grammar of OPTIMIZE, VACUUM and statements without effect
Rule       what has a meaning here does it (OPTIMIZE, VACUUM); what another engine needs and this one does by itself, or
           leaves to the storage, has no effect and says why (`NoEffect`)
"""

from __future__ import annotations

from tablestore_engine.sql.cursor import Cursor
from tablestore_engine.sql.statement import Analyze, NoEffect, Optimize, Statement, Vacuum

_STATISTICS = "ANALYZE TABLE name COMPUTE STATISTICS counts the whole table; partitions are not counted alone"
_STATE = "each statement reads the newest snapshot, and keeps it until it ends"
_RIGHTS = "rights on a table are those on its files; set them where the warehouse is stored"
_WHY = {
    "ANALYZE": _STATISTICS,
    "CACHE": _STATE,
    "UNCACHE": _STATE,
    "CLEAR": _STATE,
    "REFRESH": _STATE,
    "MSCK": "partitions are found in the table's metadata",
    "REPAIR": "partitions are found in the table's metadata",
    "GRANT": _RIGHTS,
    "REVOKE": _RIGHTS,
    "DENY": _RIGHTS,
}
NO_EFFECT_WORDS = tuple(_WHY)


def parse_no_effect(cursor: Cursor) -> Statement:
    """Whatever follows the first word; CACHE TABLE … AS query would give the query a name, and is refused."""
    first = cursor.peek()
    assert first is not None, "its reader was chosen by it"
    verb = first.text.upper()
    named = next((token for token in cursor.tokens if token.is_word("AS")), None)
    if verb == "CACHE" and named is not None:
        cursor.fail("the end of the statement: a query is not cached", named)
    if verb == "ANALYZE" and (analyzed := _analyze(cursor)) is not None:
        return analyzed
    cursor.rest()
    return NoEffect(verb, _WHY[verb])


def _analyze(cursor: Cursor) -> Analyze | None:
    """ANALYZE TABLE name COMPUTE STATISTICS [NOSCAN | FOR …]; None for others, which have no effect."""
    start = cursor.at
    if cursor.accept("ANALYZE", "TABLE"):
        name = cursor.table_name()
        if cursor.accept("COMPUTE", "STATISTICS"):
            if cursor.accept("FOR", "ALL", "COLUMNS"):
                return Analyze(name, None)
            if cursor.accept("FOR", "COLUMNS"):
                return Analyze(
                    name, cursor.names_in_parentheses() if cursor.sees_operator("(") else _names(cursor)
                )
            cursor.accept("NOSCAN")
            if cursor.done:
                return Analyze(name)
    cursor.at = start
    return None


def parse_optimize(cursor: Cursor) -> Statement:
    """OPTIMIZE name [FULL] [WHERE …] [ZORDER BY (…)]; the whole table is compacted."""
    cursor.expect("OPTIMIZE")
    name = cursor.table_name()
    cursor.accept("FULL")
    order: tuple[str, ...] = ()
    has_filter = cursor.accept("WHERE")
    while has_filter and not cursor.done and not cursor.sees("ZORDER"):
        cursor.at += 1
    if cursor.accept("ZORDER", "BY"):
        order = cursor.names_in_parentheses() if cursor.sees_operator("(") else _names(cursor)
    elif not cursor.done:
        cursor.fail("WHERE or ZORDER BY")
    return Optimize(name, has_filter, order)


def _names(cursor: Cursor) -> tuple[str, ...]:
    found = [cursor.name()]
    while cursor.accept(","):
        found.append(cursor.name())
    return tuple(found)


def parse_vacuum(cursor: Cursor) -> Statement:
    """VACUUM name [FULL | LITE] [RETAIN n HOURS] [DRY RUN]."""
    cursor.expect("VACUUM")
    name = cursor.table_name()
    cursor.accept_any("FULL", "LITE")
    hours: float | None = None
    if cursor.accept("RETAIN"):
        token = cursor.peek()
        if token is None or not token.text.replace(".", "", 1).isdigit():
            cursor.fail("a number of hours")
        hours = float(token.text)
        cursor.at += 1
        cursor.expect("HOURS")
    return Vacuum(name, hours, cursor.accept("DRY", "RUN"))
