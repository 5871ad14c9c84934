"""Filter text (`amount > 5 and region in ('eu', 'us')`) becomes a tree; types are checked where a schema is known.

CHANGE     the grammar of a filter of `Table.scan` and `Table.delete`
Grammar    condition := conjunction { OR conjunction }            conjunction := negation { AND negation }
           negation  := NOT negation | ( condition ) | TRUE | FALSE | column | comparison
           comparison := column (= != <> < <= > >=) literal, or the two sides exchanged
                       | column [NOT] IN (literal, …) | column [NOT] BETWEEN literal AND literal
                       | column [NOT] LIKE 'pattern' | column IS [NOT] NULL
           literal   := number | 'text' | TRUE | FALSE | DATE 'text' | TIMESTAMP 'text'
INVARIANT  text outside of the grammar raises FixRequest TS1564; nothing is skipped or guessed.
WHY        a subset of Spark's SQL on which Spark, DuckDB and the SQL standard agree: "text" in double quotes and
           backslashes in strings mean different things there, so they are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from tablestore_engine.errors import FixRequest
from tablestore_engine.sql.cursor import Cursor
from tablestore_engine.sql.scanner import NUMBER, QUOTED, STRING, WORD, Token, string_value

DEPTH_MAX = 100
NUMBER_LENGTH_MAX = 400
_RESERVED = ("AND", "OR", "NOT", "IN", "IS", "NULL", "LIKE", "BETWEEN", "TRUE", "FALSE")
_FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_SPELLED = {"==": "=", "<>": "!="}
_COMPARED = (*_FLIPPED, *_SPELLED)


@dataclass(frozen=True)
class Literal:
    """`kind`: number, text, boolean, date or timestamp; `text` without quotes, of a number with its sign."""

    kind: str
    text: str


@dataclass(frozen=True)
class Constant:
    """TRUE or FALSE for every row."""

    holds: bool


@dataclass(frozen=True)
class Truth:
    """A BOOLEAN column as a condition."""

    column: str


@dataclass(frozen=True)
class Compared:
    """`column operator literal`; operators are = != < <= > >=."""

    column: str
    operator: str
    literal: Literal


@dataclass(frozen=True)
class Listed:
    """`column IN (literals)`."""

    column: str
    literals: tuple[Literal, ...]


@dataclass(frozen=True)
class Liked:
    """`column LIKE pattern`."""

    column: str
    pattern: str


@dataclass(frozen=True)
class Null:
    """`column IS NULL`."""

    column: str


@dataclass(frozen=True)
class Negated:
    part: FilterNode


@dataclass(frozen=True)
class AllOf:
    parts: tuple[FilterNode, ...]


@dataclass(frozen=True)
class AnyOf:
    parts: tuple[FilterNode, ...]


FilterNode = Constant | Truth | Compared | Listed | Liked | Null | Negated | AllOf | AnyOf


def parse_filter(text: str) -> FilterNode:
    """The tree of a filter. Raises FixRequest TS1564 with the position of what is not understood."""
    cursor = _FilterCursor(text)
    found = _condition(cursor, 0)
    cursor.expect_end()
    return found


class _FilterCursor(Cursor):
    """The tokens of a filter; an error names the filter."""

    def fail(self, expected: str, token: Token | None = None) -> NoReturn:
        token = token or self.peek()
        start = len(self.text) if token is None else token.start
        got = "its end" if token is None else repr(token.text[:40])
        raise FixRequest(
            "TS1564",
            f"filter {self.text!r:.200} is not understood at character {start + 1}",
            why=f"expected {expected}, got {got}",
            fix="compare columns with literals (docs/python-api.md#filters), or pass a pyarrow expression",
        )

    def expect_end(self) -> None:
        if not self.done:
            self.fail("AND, OR or the end")


def _condition(cursor: _FilterCursor, depth: int) -> FilterNode:
    if depth > DEPTH_MAX:
        cursor.fail(f"at most {DEPTH_MAX} nested conditions")
    parts = [_conjunction(cursor, depth)]
    while cursor.accept("OR"):
        parts.append(_conjunction(cursor, depth))
    return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))


def _conjunction(cursor: _FilterCursor, depth: int) -> FilterNode:
    parts = [_negation(cursor, depth)]
    while cursor.accept("AND"):
        parts.append(_negation(cursor, depth))
    return parts[0] if len(parts) == 1 else AllOf(tuple(parts))


def _negation(cursor: _FilterCursor, depth: int) -> FilterNode:
    is_negated = False
    while cursor.accept("NOT"):
        is_negated = not is_negated
    found = _primary(cursor, depth)
    return Negated(found) if is_negated else found


def _primary(cursor: _FilterCursor, depth: int) -> FilterNode:
    if cursor.accept("("):
        found = _condition(cursor, depth + 1)
        if not cursor.accept(")"):
            cursor.fail("AND, OR or )")
        return found
    literal = _find_literal(cursor)
    if literal is not None:
        return _flipped(cursor, literal)
    return _comparison(cursor, _column(cursor))


def _flipped(cursor: _FilterCursor, literal: Literal) -> FilterNode:
    """What begins with a literal: `5 < n`, or TRUE and FALSE alone."""
    operator = _find_operator(cursor)
    if operator is not None:
        return Compared(_column(cursor), _FLIPPED[operator], literal)
    if literal.kind != "boolean":
        cursor.fail("a comparison")
    return Constant(literal.text == "true")


def _comparison(cursor: _FilterCursor, column: str) -> FilterNode:
    operator = _find_operator(cursor)
    if operator is not None:
        return Compared(column, operator, _literal(cursor))
    if cursor.accept("IS"):
        is_negated = cursor.accept("NOT")
        if not cursor.accept("NULL"):
            cursor.fail("NULL or NOT NULL")
        return Negated(Null(column)) if is_negated else Null(column)
    is_negated = cursor.accept("NOT")
    found = _membership(cursor, column)
    if found is not None:
        return Negated(found) if is_negated else found
    token = cursor.peek()
    if is_negated or (token is not None and not (token.is_word("AND", "OR") or token.is_operator(")"))):
        cursor.fail("a comparison, IN, BETWEEN, LIKE or IS NULL")
    return Truth(column)


def _membership(cursor: _FilterCursor, column: str) -> FilterNode | None:
    """What may follow NOT as well."""
    if cursor.accept("IN"):
        cursor.expect("(")
        literals = [_literal(cursor)]
        while cursor.accept(","):
            literals.append(_literal(cursor))
        cursor.expect(")")
        return Listed(column, tuple(literals))
    if cursor.accept("BETWEEN"):
        low = _literal(cursor)
        cursor.expect("AND")
        return AllOf((Compared(column, ">=", low), Compared(column, "<=", _literal(cursor))))
    if cursor.accept("LIKE"):
        return Liked(column, _text(cursor))
    return None


def _find_operator(cursor: _FilterCursor) -> str | None:
    token = cursor.peek()
    if token is None or not token.is_operator(*_COMPARED):
        return None
    cursor.at += 1
    return _SPELLED.get(token.text, token.text)


def _column(cursor: _FilterCursor) -> str:
    token = cursor.peek()
    if token is None or not token.is_name or token.is_word(*_RESERVED):
        cursor.fail("a column; quote a name that is a keyword with `")
    if token.kind == QUOTED:
        return cursor.name()
    follows = cursor.peek(1)
    if follows is not None and follows.is_operator("(", ".", "["):
        cursor.fail("a comparison: filters have neither functions nor parts of columns", follows)
    return cursor.name()


def _literal(cursor: _FilterCursor) -> Literal:
    found = _find_literal(cursor)
    if found is None:
        token = cursor.peek()
        if token is not None and token.is_word("NULL"):
            cursor.fail("a value: ask for NULL with IS NULL or IS NOT NULL")
        cursor.fail("a literal: a number, 'text', TRUE, FALSE, DATE '…' or TIMESTAMP '…'")
    return found


def _find_literal(cursor: _FilterCursor) -> Literal | None:
    token, follows = cursor.peek(), cursor.peek(1)
    if token is None:
        return None
    if token.kind == WORD and token.is_word("TRUE", "FALSE"):
        cursor.at += 1
        return Literal("boolean", token.text.lower())
    if token.kind == STRING:
        return Literal("text", _text(cursor))
    if token.is_word("DATE", "TIMESTAMP") and follows is not None and follows.kind == STRING:
        cursor.at += 1
        return Literal(token.text.lower(), _text(cursor))
    is_signed = token.is_operator("-", "+") and follows is not None and follows.kind == NUMBER
    if is_signed or token.kind == NUMBER:
        cursor.at += is_signed
        sign = "-" if is_signed and token.text == "-" else ""
        return Literal("number", sign + _digits(cursor))
    return None


def _digits(cursor: _FilterCursor) -> str:
    token = cursor.peek()
    assert token is not None  # the caller has looked
    if not (token.text[-1].isdigit() or token.text[-1] == ".") or not token.text.isascii():
        cursor.fail("a number without a letter for its type")
    if len(token.text) > NUMBER_LENGTH_MAX:
        cursor.fail(f"a number of at most {NUMBER_LENGTH_MAX} digits")
    cursor.at += 1
    return token.text


def _text(cursor: _FilterCursor) -> str:
    token = cursor.peek()
    if token is None or token.kind != STRING:
        cursor.fail("a text in single quotes")
    if token.text[0] != "'" or "\\" in token.text:
        cursor.fail("a text in single quotes and without backslashes; a name is quoted with `", token)
    cursor.at += 1
    return string_value(token)
