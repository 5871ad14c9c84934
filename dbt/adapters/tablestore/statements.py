"""Cut a SQL text into its statements.

WHY        hooks and dbt's default macros send `delete …; insert …;` as one text, and `commit;` although
           nothing here has transactions. Spark takes one statement at a time.
INVARIANT  a semicolon in a string, a quoted name or a comment does not end a statement.
"""

from __future__ import annotations

import re

_PIECE = re.compile(
    r"""
      '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | `[^`]*`   # strings and quoted names
    | --[^\n]* | /\*.*?\*/                               # comments
    | ;
    | [^;'"`/-]+ | .
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_NO_TRANSACTIONS = frozenset({"", "begin", "commit", "rollback"})


def split_statements(text: str) -> tuple[str, ...]:
    """The statements of a text, each with its comments."""
    statements: list[str] = []
    current: list[str] = []
    for piece in (match.group() for match in _PIECE.finditer(text)):
        if piece == ";":
            statements.append("".join(current))
            current = []
        else:
            current.append(piece)
    statements.append("".join(current))
    texts = (one.strip() for one in statements)
    return tuple(one for one in texts if _COMMENT.sub("", one).strip().lower() not in _NO_TRANSACTIONS)
