"""Words of a query that is answered without Spark, matched one after the other against templates.

CHANGE     which words such a query may have
INVARIANT  a word that may be more to Spark than a name (`current_date`) is no column here unless it is quoted. A text
           with a hint is no such query.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tablestore_engine.sql.scanner import COMMENT, NUMBER, STRING, WORD, Token, name_text, scan, significant

Value = str | int | bool
_NO_DATABASES = ("session", "system", "builtin")  # Spark has relations of its own there
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
# Spark reads these as functions or literals where a column could stand.
_NOT_NAMES = frozenset(
    [
        *("null", "true", "false", "default", "all", "distinct", "user", "session_user", "current_user"),
        *("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"),
    ]
)


@dataclass(frozen=True)
class Threshold:
    """`warn_if` or `error_if`: failures compared with a number."""

    sign: str
    number: int

    def holds(self, failures: int) -> bool:
        """Whether the test warns, or fails."""
        return bool(_SIGNS[self.sign](failures, self.number))


class QueryWords:
    """The significant tokens of a query, and where the reader is."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self.at = 0

    @classmethod
    def of(cls, text: str) -> QueryWords | None:
        """None: the text has a hint, or a word that Spark's lexer may cut otherwise."""
        tokens = scan(text)
        return None if any(map(_is_sparks, tokens)) else cls(significant(tokens))

    @property
    def is_at_end(self) -> bool:
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
        """database.table; None for relations of Spark's own and for system tables."""
        database = self.name()
        if database is None or self._read(".") is None or database.lower() in _NO_DATABASES:
            return None
        table = self.name()
        return None if table is None or "$" in table else (database, table)

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


def _is_sparks(token: Token) -> bool:
    is_hint = token.kind == COMMENT and token.text.startswith("/*+")
    return is_hint or (token.kind == WORD and not token.text.isascii())


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
