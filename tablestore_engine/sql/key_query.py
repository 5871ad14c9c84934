"""`select * from demo.orders where id = 5`: SQL text -> the columns and values that are asked for, or None for every
other text.

CHANGE     which texts of queries by key are answered without Spark
INVARIANT  conditions are equalities, and IN, of a column with whole numbers or texts, joined by AND. A text that has
           anything more (an expression, an alias, OR, LIMIT, a hint) is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tablestore_engine.sql.query_words import QueryWords, Value

_LONGEST = 4_000  # characters; longer texts are seldom one of these, and each statement passes here


@dataclass(frozen=True)
class KeyQuery:
    """`columns` None: all. `values`: column → the values that it may equal."""

    database: str
    table: str
    columns: tuple[str, ...] | None
    values: Mapping[str, tuple[Value, ...]]


def read_key_query(text: str) -> KeyQuery | None:
    """What the query asks; None: it is something else."""
    if len(text) > _LONGEST or "where" not in text.lower() or "${" in text:
        return None
    words = QueryWords.of(text)
    if words is None or words.match("select") is None:
        return None
    columns = None if words.match("*") is not None else _columns(words)
    found = words.match("from $table where")
    values = None if found is None else _values(words)
    words.match(";")
    if found is None or values is None or columns == () or not words.is_at_end:
        return None
    database, table = found["$table"]
    return KeyQuery(database, table, columns, values)


def _columns(words: QueryWords) -> tuple[str, ...]:
    """Names with commas between; nothing for anything else."""
    found: list[str] = []
    while (one := words.match("$column")) is not None:
        found.append(one["$column"])
        if words.match(",") is None:
            return tuple(found)
    return ()


def _values(words: QueryWords) -> Mapping[str, tuple[Value, ...]] | None:
    """Each column once; None for anything else."""
    found: dict[str, tuple[Value, ...]] = {}
    while True:
        one = words.match("$column in ( $values )")
        equal = words.match("$column = $value") if one is None else None
        if one is None and equal is None:
            return None
        column, values = (one["$column"], one["$values"]) if one else (equal["$column"], (equal["$value"],))  # type: ignore[index]
        if found.setdefault(column, values) is not values:
            return None
        if words.match("and") is None:
            return found
