"""`select count(*), sum(a), max(b) as top from demo.orders`: SQL text -> what is asked, or None for every other text.

CHANGE     which aggregates are answered without Spark
INVARIANT  a text that has anything more (WHERE, GROUP BY, DISTINCT, LIMIT, an expression, a hint) is None.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tablestore_engine.sql.query_words import QueryWords

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
    words = QueryWords.of(text)
    if words is None or words.match("select") is None:
        return None
    found: list[Aggregate] = []
    while (one := _aggregate(words)) is not None:
        found.append(one)
        if words.match(",") is None:
            break
    rest = None if one is None else words.match("from $table")
    words.match(";")
    if rest is None or not words.is_at_end:
        return None
    database, table = rest["$table"]
    return AggregateQuery(database, table, tuple(found))


def _aggregate(words: QueryWords) -> Aggregate | None:
    """One item of the list."""
    for function in (COUNT, MIN, MAX, SUM):
        item = words.match(f"{function} ( $column )")
        if item is None and function == COUNT:
            item = words.match("count ( * )")
        if item is not None:
            column, alias = item.get("$column"), words.match("as $column")
            name = f"{function}({1 if column is None else column})" if alias is None else alias["$column"]
            return Aggregate(function, column, name)
    return None
