"""dbt's four built-in data tests, as dbt writes them: SQL text -> what is counted, or None for every other text.

CHANGE     which texts of data tests are answered without Spark
Steps      without comments, token by token: the frame of `get_test_sql`, in it one of the four queries
INVARIANT  a text that differs in anything but letter case, spaces and comments is None, and so is one with a hint:
           a macro that a project overrides, a `where`, another `fail_calc` are Spark's.
INVARIANT  a word that may be more to Spark than a name (`current_date`) is no column here unless it is quoted.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tablestore_engine.sql.scanner import COMMENT, NUMBER, STRING, Token, name_text, scan, significant

Value = str | int | bool


class DataTest(Enum):
    """Which test; `failures` is a number of rows of its query."""

    NOT_NULL = "not_null"  # rows with NULL
    UNIQUE = "unique"  # values that are there twice or more
    ACCEPTED_VALUES = "accepted_values"  # values outside of the list
    RELATIONSHIPS = "relationships"  # rows whose value the parent lacks


@dataclass(frozen=True)
class ColumnName:
    """A column of `database.table`, as it is written."""

    database: str
    table: str
    column: str


@dataclass(frozen=True)
class Threshold:
    """`warn_if` or `error_if`: failures compared with a number."""

    sign: str
    number: int

    def holds(self, failures: int) -> bool:
        """Whether the test warns, or fails."""
        return bool(_SIGNS[self.sign](failures, self.number))


@dataclass(frozen=True)
class DataTestQuery:
    """`values`: of accepted_values; `parent`: of relationships; `limit`: of the rows that are counted."""

    test: DataTest
    column: ColumnName
    warn_if: Threshold
    error_if: Threshold
    values: tuple[Value, ...] = ()
    parent: ColumnName | None = None
    limit: int | None = None


_SIGNS: Mapping[str, Callable[[int, int], bool]] = {
    "!=": operator.ne,
    "<>": operator.ne,
    "=": operator.eq,
    "==": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_LAST_WORD = "dbt_internal_test"
_HEAD = "select count ( * ) as failures , count ( * ) $warn as should_warn , count ( * ) $error as should_error from ("
_QUERIES: Mapping[DataTest, str] = {
    DataTest.NOT_NULL: "select $column from $table where $column is null",
    DataTest.UNIQUE: (
        "select $column as unique_field , count ( * ) as n_records from $table where $column is not null"
        " group by $column having count ( * ) > 1"
    ),
    DataTest.ACCEPTED_VALUES: (
        "with all_values as ( select $column as value_field , count ( * ) as n_records from $table"
        " group by $column ) select * from all_values where value_field not in ( $values )"
    ),
    DataTest.RELATIONSHIPS: (
        "with child as ( select $column as from_field from $table where $column is not null ) ,"
        " parent as ( select $field as to_field from $parent ) select from_field from child left join parent"
        " on child . from_field = parent . to_field where parent . to_field is null"
    ),
}
# Spark reads these as functions or literals where a column could stand.
_NOT_NAMES = frozenset(
    [
        *("null", "true", "false", "default", "all", "distinct", "user", "session_user", "current_user"),
        *("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"),
    ]
)


def read_data_test(text: str) -> DataTestQuery | None:
    """The test that a query is; None: it is something else."""
    if not text.rstrip().lower().endswith(_LAST_WORD):
        return None
    tokens = scan(text)
    if any(token.kind == COMMENT and token.text.startswith("/*+") for token in tokens):
        return None
    words = QueryWords(significant(tokens))
    head = words.match(_HEAD)
    if head is None:
        return None
    after_head = words.at
    for test, template in _QUERIES.items():
        words.at = after_head
        found = words.match(template)
        if found is not None:
            return _test_of(test, {**head, **found}, words)
    return None


def _test_of(test: DataTest, found: Mapping[str, Any], words: QueryWords) -> DataTestQuery | None:
    """The whole, once its query was matched: what is left is a limit and the end."""
    limit = words.match("limit $number")
    if words.match(f") {_LAST_WORD}") is None or not words.is_at_end:
        return None
    return DataTestQuery(
        test,
        _column(found["$table"], found["$column"]),
        found["$warn"],
        found["$error"],
        found.get("$values", ()),
        _column(found["$parent"], found["$field"]) if "$parent" in found else None,
        None if limit is None else limit["$number"],
    )


def _column(table: tuple[str, str], name: str) -> ColumnName:
    return ColumnName(table[0], table[1], name)


class QueryWords:
    """The significant tokens of a query, and where the reader is."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self.at = 0

    @property
    def is_at_end(self) -> bool:
        """Whether every token was matched."""
        return self.at == len(self._tokens)

    def match(self, template: str) -> dict[str, Any] | None:
        """What stands for the `$` words of a template, which is behind the reader then; None moves nobody."""
        start, found = self.at, dict[str, Any]()
        for word in template.split():
            value = self._read(word)
            if value is None or found.setdefault(word, value) != value:
                self.at = start
                return None
        return found

    def _read(self, word: str) -> object | None:
        if word in _READERS:
            return _READERS[word](self)
        token = self._next()
        return word if token is not None and token.text.lower() == word else None

    def _next(self) -> Token | None:
        if self.at >= len(self._tokens):
            return None
        self.at += 1
        return self._tokens[self.at - 1]

    def name(self) -> str | None:
        """A column, as it is written; a number of dots after it leaves the next word unmatched."""
        token = self._next()
        if token is None or not token.is_name or token.text.lower() in _NOT_NAMES:
            return None
        return name_text(token)

    def table(self) -> tuple[str, str] | None:
        """database.table."""
        database = self.name()
        if database is None or self._read(".") is None:
            return None
        table = self.name()
        return None if table is None else (database, table)

    def number(self) -> int | None:
        """A whole number that Spark reads as INT or BIGINT."""
        token = self._next()
        if token is None or token.kind != NUMBER or not re.fullmatch("[0-9]{1,18}", token.text):
            return None
        return int(token.text)

    def threshold(self) -> Threshold | None:
        """`!= 0`, `> 10`."""
        sign = self._next()
        if sign is None or sign.text not in _SIGNS:
            return None
        number = self.number()
        return None if number is None else Threshold(sign.text, number)

    def values(self) -> tuple[Value, ...] | None:
        """Literals with commas between; the `)` behind them is left."""
        found: list[Value] = []
        while True:
            value = self.literal()
            if value is None:
                return None
            found.append(value)
            if self.at >= len(self._tokens) or not self._tokens[self.at].is_operator(","):
                return tuple(found)
            self.at += 1

    def literal(self) -> Value | None:
        """A text without quotes and escapes in it, a whole number, TRUE or FALSE."""
        token = self._next()
        if token is None:
            return None
        if token.kind == STRING:
            body = token.text[1:-1]
            return body if token.text[0] == "'" and "'" not in body and "\\" not in body else None
        if token.is_word("TRUE", "FALSE"):
            return token.is_word("TRUE")
        if token.is_operator("-"):
            number = self.number()
            return None if number is None else -number
        self.at -= 1
        return self.number()


_READERS: Mapping[str, Callable[[QueryWords], object | None]] = {
    "$column": QueryWords.name,
    "$field": QueryWords.name,
    "$table": QueryWords.table,
    "$parent": QueryWords.table,
    "$values": QueryWords.values,
    "$value": QueryWords.literal,
    "$number": QueryWords.number,
    "$warn": QueryWords.threshold,
    "$error": QueryWords.threshold,
}
