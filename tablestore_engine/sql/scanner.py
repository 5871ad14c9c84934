"""Cut Spark SQL text into tokens, so that names are found without being fooled by strings and comments.

INVARIANT  "".join(token.text) == text, and token.start is the offset of its text.
WHY        only lexical facts live here: Spark's own parser remains the one that judges SQL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

SPACE, COMMENT, WORD, QUOTED, STRING, NUMBER, OPERATOR, BROKEN = (
    "space", "comment", "word", "quoted", "string", "number", "operator", "broken",
)  # fmt: skip


@dataclass(frozen=True)
class Token:
    """One lexical piece; `start` is its offset in the text."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        """Offset just after the token."""
        return self.start + len(self.text)

    def is_word(self, *words: str) -> bool:
        """Whether this is one of the given keywords (upper case), unquoted."""
        return self.kind == WORD and self.text.upper() in words

    def is_operator(self, *texts: str) -> bool:
        """Whether this is one of the given operator texts."""
        return self.kind == OPERATOR and self.text in texts

    @property
    def is_name(self) -> bool:
        """A name part: a plain word or a back-quoted one."""
        return self.kind in (WORD, QUOTED)


# Order matters: the first alternative that matches wins. A word may begin with a digit (`2020_orders`),
# so numbers come after the check that no letter follows them.
_PIECES = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<comment>--(?:\\\r?\n|[^\r\n])*)
    | (?P<string>
          [rR]'[^']*' | [rR]"[^"]*"
        | '(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*"
        | (?P<dollar>\$[A-Za-z_]*\$).*?(?P=dollar)
      )
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<number>
          (?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?(?:BD|bd|[dDfF])?(?![\w])
        | \d+[eE][+-]?\d+(?:BD|bd|[dDfF])?(?![\w])
        | \d+(?:BD|bd|[lLsSyYdDfF])?(?![\w])
      )
    | (?P<word>\w+)
    | (?P<operator><=>|->>|->|=>|::|<=|>=|<>|!=|==|\|\||<<|>>|:=|[^\w\s'"`])
    | (?P<broken>['"`].*)
    """,
    re.VERBOSE | re.DOTALL,
)


def scan(text: str) -> tuple[Token, ...]:
    """All tokens of the text, in order and without gaps."""
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        if text.startswith("/*", position):
            token = _bracketed_comment(text, position)
        else:
            token = _next_piece(text, position, tokens)
        tokens.append(token)
        position = token.end
    return tuple(tokens)


def _next_piece(text: str, position: int, before: list[Token]) -> Token:
    match = _PIECES.match(text, position)
    if match is None:
        return Token(BROKEN, text[position:], position)
    kind = str(match.lastgroup if match.lastgroup != "dollar" else STRING)
    if kind == NUMBER and match.group().startswith(".") and before and before[-1].is_name:
        return Token(OPERATOR, ".", position)  # `t.5x` is no number: the point belongs to a name
    return Token(kind, match.group(), position)


def _bracketed_comment(text: str, start: int) -> Token:
    """`/* … */`, nested as Spark nests them; without its end the rest of the text is broken."""
    depth, position = 0, start
    for mark in re.finditer(r"/\*|\*/", text[start:]):
        if start + mark.start() < position:
            continue
        position = start + mark.end()
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return Token(COMMENT, text[start:position], start)
    return Token(BROKEN, text[start:], start)


def significant(tokens: Iterable[Token]) -> tuple[Token, ...]:
    """Without spaces and comments."""
    return tuple(token for token in tokens if token.kind not in (SPACE, COMMENT))


def name_text(token: Token) -> str:
    """The name that a name token stands for."""
    if token.kind == QUOTED:
        return token.text[1:-1].replace("``", "`")
    return token.text


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0", "Z": "\x1a"}


def string_value(token: Token) -> str:
    """The characters that a string literal stands for (escapes as Spark reads them)."""
    text = token.text
    if text[0] in "rR":
        return text[2:-1]
    if text[0] == "$":
        fence = text[: text.index("$", 1) + 1]
        return text[len(fence) : -len(fence)]
    body = text[1:-1].replace(text[0] * 2, text[0])

    def unescape(match: re.Match[str]) -> str:
        code = match.group(1)
        if code[0] in "uU" and len(code) > 1:
            return chr(int(code[1:], 16))
        if code in ("%", "_"):
            return "\\" + code  # kept for LIKE patterns
        return _ESCAPES.get(code, code)

    return re.sub(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", unescape, body, flags=re.DOTALL)


def quote_name(name: str) -> str:
    """A name as it is written in SQL text, whatever its characters."""
    return "`" + name.replace("`", "``") + "`"


def quote_string(value: str) -> str:
    """A string literal that Spark reads back as exactly this value: also where it substitutes ${…} in its text."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{") + "'"
