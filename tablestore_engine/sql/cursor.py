"""Walk over the tokens of one statement; the small words of every clause live here.

INVARIANT  texts handed out are slices of the original text: comments and spacing inside them are kept.
ENSURES    whatever does not fit raises FixRequest TS1501 with line and column; nothing is skipped.
"""

from __future__ import annotations

from typing import NoReturn

from tablestore_engine.errors import FixRequest
from tablestore_engine.sql.scanner import (
    BROKEN,
    NUMBER,
    STRING,
    Token,
    name_text,
    scan,
    significant,
    string_value,
)
from tablestore_engine.sql.statement import ColumnDefinition, Pairs, TableName

_OPEN, _CLOSE = {"(": ")", "[": "]"}, {")", "]"}


class Cursor:
    """A position in the significant tokens of `text`, whose trailing semicolons are ignored."""

    def __init__(self, text: str) -> None:
        tokens = list(significant(scan(text)))
        while tokens and tokens[-1].is_operator(";"):
            tokens.pop()
        self.text = text
        self.tokens = tokens
        self.at = 0
        broken = next((token for token in tokens if token.kind == BROKEN), None)
        if broken is not None:
            self.fail("a string, a quoted name or a comment to end", broken)
        semicolon = next((token for token in tokens if token.is_operator(";")), None)
        if semicolon is not None:
            self.fail("one statement only", semicolon)

    # --- tokens ---

    @property
    def done(self) -> bool:
        return self.at >= len(self.tokens)

    def peek(self, ahead: int = 0) -> Token | None:
        """The token `ahead` places from here, or None behind the end."""
        index = self.at + ahead
        return self.tokens[index] if index < len(self.tokens) else None

    def sees(self, *words: str, ahead: int = 0) -> bool:
        """Whether the keyword there is one of `words`."""
        token = self.peek(ahead)
        return token is not None and token.is_word(*words)

    def sees_operator(self, *texts: str, ahead: int = 0) -> bool:
        """Whether the operator there is one of `texts`."""
        token = self.peek(ahead)
        return token is not None and token.is_operator(*texts)

    def accept(self, *sequence: str) -> bool:
        """Use the words (or operators) of `sequence` if all are next, in this order."""
        for ahead, text in enumerate(sequence):
            token = self.peek(ahead)
            if token is None or not (token.is_word(text) or token.is_operator(text)):
                return False
        self.at += len(sequence)
        return True

    def accept_any(self, *words: str) -> str | None:
        """Use one keyword out of `words`; its upper-case text, or None."""
        for word in words:
            if self.accept(word):
                return word
        return None

    def expect(self, *sequence: str) -> None:
        """Use the sequence, or fail."""
        if not self.accept(*sequence):
            self.fail(" ".join(sequence))

    def expect_end(self) -> None:
        """Fail unless every token is used."""
        if not self.done:
            self.fail("the end of the statement")

    def fail(self, expected: str, token: Token | None = None) -> NoReturn:
        """Refuse the statement at `token` (or here)."""
        token = token or self.peek()
        start = len(self.text) if token is None else token.start
        line = self.text.count("\n", 0, start) + 1
        column = start - (self.text.rfind("\n", 0, start) + 1) + 1
        got = "the end of the text" if token is None else repr(token.text[:40])
        raise FixRequest(
            "TS1501",
            f"SQL statement not understood at line {line}, column {column}",
            why=f"expected {expected}, got {got}",
            fix="correct the statement; the statements we run are listed in docs/sql.md",
            line=line,
            column=column,
        )

    # --- values ---

    def name(self) -> str:
        token = self.peek()
        if token is None or not token.is_name:
            self.fail("a name")
        self.at += 1
        return name_text(token)

    def parts(self) -> tuple[str, ...]:
        parts = [self.name()]
        while self.accept("."):
            parts.append(self.name())
        return tuple(parts)

    def table_name(self) -> TableName:
        """`table`, `database.table` or `spark_catalog.database.table`."""
        first = self.peek()
        parts = self.parts()
        if len(parts) == 3 and parts[0].lower() == "spark_catalog":
            parts = parts[1:]
        if len(parts) > 2:
            self.fail("a name of at most two parts (database.table)", first)
        return TableName(parts[0] if len(parts) == 2 else None, parts[-1])

    def alias(self, *stops: str) -> str | None:
        """`[AS] alias` unless the next word is one of `stops`."""
        if self.accept("AS"):
            return self.name()
        token = self.peek()
        if token is None or not token.is_name or token.is_word(*stops):
            return None
        return self.name()

    def string(self) -> str:
        token = self.peek()
        if token is None or token.kind != STRING:
            self.fail("a string literal")
        self.at += 1
        return string_value(token)

    def names_in_parentheses(self) -> tuple[str, ...]:
        """`(a, b.c, …)`; dotted ones are joined by a point."""
        self.expect("(")
        names = [".".join(self.parts())]
        while self.accept(","):
            names.append(".".join(self.parts()))
        self.expect(")")
        return tuple(names)

    def properties(self) -> Pairs:
        """`('key' = 'value', key.part = 1, …)`."""
        self.expect("(")
        pairs: list[tuple[str, str]] = []
        while not self.accept(")"):
            if pairs:
                self.expect(",")
            key = self.property_key()
            self.accept("=")
            pairs.append((key, self._property_value()))
        return tuple(pairs)

    def property_key(self) -> str:
        """A quoted or dotted key; the dashes of unquoted option names are not SQL."""
        token = self.peek()
        if token is not None and token.kind == STRING:
            return self.string()
        return ".".join(self.parts())

    def _property_value(self) -> str:
        token = self.peek()
        if token is not None and token.kind == STRING:
            return self.string()
        sign = "-" if self.accept("-") else ""
        token = self.peek()
        if token is None or not (token.kind == NUMBER or token.is_word("TRUE", "FALSE")):
            self.fail("a literal as property value")
        self.at += 1
        return sign + token.text.lower()

    # --- texts ---

    def slice(self, first: Token | None, last: Token | None = None) -> str:
        """Text from `first` up to `last` (exclusive) or to the end of the statement."""
        if first is None:
            self.fail("more text")
        end = last.start if last is not None else self.tokens[-1].end
        return self.text[first.start : end].strip()

    def rest(self) -> str:
        """Everything from here to the end of the statement."""
        if self.done:
            self.fail("a query")
        text = self.slice(self.peek())
        self.at = len(self.tokens)
        return text

    def text_until(self, *stops: str, types: bool = False) -> str:
        """Text up to a keyword or operator of `stops` outside parentheses, CASE and (for types) `<>`."""
        first, depth = self.peek(), 0
        while (token := self.peek()) is not None:
            if depth == 0 and (token.is_word(*stops) or token.is_operator(*stops)):
                break
            if token.text in _OPEN or token.is_word("CASE") or (types and token.text == "<"):
                depth += 1
            elif token.text in _CLOSE or (token.is_word("END") and depth):
                depth -= 1
            elif types and token.text in (">", ">>"):
                depth -= len(token.text)
            if depth < 0:
                break
            self.at += 1
        if first is self.peek() or first is None:
            self.fail("an expression")
        return self.slice(first, self.peek())

    def parenthesized(self) -> str:
        """The text inside `( … )`."""
        self.expect("(")
        text = self.text_until()
        self.expect(")")
        return text

    def column(self, *, is_nested: bool = False) -> ColumnDefinition:
        """`name TYPE [NOT NULL] [DEFAULT expr] [COMMENT text]`. `is_nested`: the name may be a path into a column."""
        first = self.peek()
        *parents, name = self.parts()
        if parents and not is_nested:
            self.fail("the name of a column, without a dot", first)
        ends = (",", ")", "NOT", "NULL", "COMMENT", "DEFAULT", "FIRST", "AFTER", "PRIMARY", "GENERATED")
        type_text = self.text_until(*ends, types=True)
        nullable, comment, default = True, None, None
        while True:
            if self.accept("NOT", "NULL"):
                nullable = False
            elif self.accept("COMMENT"):
                comment = self.string()
            elif self.accept("DEFAULT"):
                text = self.text_until(",", ")", "NOT", "COMMENT")
                default = None if text.strip().upper() == "NULL" else text  # NULL is what no default gives
            elif not self.accept("NULL"):
                return ColumnDefinition(name, type_text, nullable, comment, default, tuple(parents))
