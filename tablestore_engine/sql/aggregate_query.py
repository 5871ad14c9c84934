"""`select count(*), sum(a), max(b) as top from demo.orders`: SQL text -> what is asked, or None for every other text.

CHANGE     which aggregates are answered without Spark
INVARIANT  a text that has anything more (WHERE, GROUP BY, DISTINCT, LIMIT, an expression, a hint) is None.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tablestore_engine.sql.scanner import COMMENT, QUOTED, Token, name_text, scan, significant

COUNT, MIN, MAX, SUM = "count", "min", "max", "sum"
_BEGINS = re.compile(r"select\s+(count|min|max|sum)\s*\(", re.IGNORECASE)


@dataclass(frozen=True)
class Aggregate:
    """`column` None: count(*). `name`: of the column in the result, as Spark calls it."""

    function: str
    column: str | None
    name: str


@dataclass(frozen=True)
class AggregateQuery:
    """Aggregates over all rows of `database.table`."""

    database: str
    table: str
    aggregates: tuple[Aggregate, ...]


def read_aggregates(text: str) -> AggregateQuery | None:
    """What the query asks; None: it is something else."""
    if _BEGINS.search(text) is None:  # each statement passes here: most are not read token by token
        return None
    tokens = scan(text)
    if any(token.kind == COMMENT and token.text.startswith("/*+") for token in tokens):
        return None
    words = significant(tokens)
    if not words or not words[0].is_word("SELECT"):
        return None
    found: list[Aggregate] = []
    at = 1
    while True:
        read = _aggregate(words, at)
        if read is None:
            return None
        found.append(read[0])
        at = read[1]
        if at < len(words) and words[at].is_operator(","):
            at += 1
            continue
        break
    rest = words[at:]
    if rest and rest[-1].is_operator(";"):
        rest = rest[:-1]
    is_whole = len(rest) == 4 and rest[0].is_word("FROM") and rest[2].is_operator(".")
    if not is_whole or not (rest[1].is_name and rest[3].is_name):
        return None
    return AggregateQuery(name_text(rest[1]), name_text(rest[3]), tuple(found))


def _aggregate(words: Sequence[Token], at: int) -> tuple[Aggregate, int] | None:
    """One item of the list, and where the next token is."""
    item = words[at : at + 4]
    if len(item) < 4 or not item[0].is_word("COUNT", "MIN", "MAX", "SUM"):
        return None
    if not item[1].is_operator("(") or not item[3].is_operator(")"):
        return None
    function, inside = item[0].text.lower(), item[2]
    column: str | None = None
    if inside.kind == QUOTED or _is_plain(inside):
        column = name_text(inside)
    elif function != COUNT or not inside.is_operator("*"):
        return None
    name, at = f"{function}({1 if column is None else column})", at + 4
    if at + 1 < len(words) and words[at].is_word("AS"):
        if not (words[at + 1].kind == QUOTED or _is_plain(words[at + 1])):
            return None
        name, at = name_text(words[at + 1]), at + 2
    return Aggregate(function, column, name), at


def _is_plain(token: Token) -> bool:
    """A word that can only be a name: Spark has functions and literals that are written like one."""
    reserved = token.text.lower().startswith(("current_", "local", "session_"))
    return (
        token.is_name
        and not reserved
        and not token.is_word("NULL", "TRUE", "FALSE", "USER", "ALL", "DISTINCT")
    )
