"""`from None.demo.orders` and `from .demo.orders` -> `from demo.orders`: names whose catalog a template left empty.

WHY        packages write `{{ target.database }}.information_schema.tables` and `{{ relation.database }}.…`. A warehouse
           has no level above its schemas, so Jinja puts nothing there, or its word for nothing
INVARIANT  only what Spark cannot read in any case is changed: a dot without a name before it, and the catalog `None`
           of a name of three parts behind a word that a table's name follows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tablestore_engine.sql.scanner import Token, name_text, scan, significant

_BEFORE_NAME = (
    "FROM", "JOIN", "TABLE", "VIEW", "INTO", "UPDATE", "EXISTS", "DESCRIBE", "DESC", "EXTENDED", "USING",
)  # fmt: skip
_NOTHING = "None"
_BARE_DOT = re.compile(r"[\s/]\.")  # behind a space, or the end of a comment


def drop_empty_catalogs(text: str) -> str:
    """The text without them; else byte for byte as it was."""
    if (
        _NOTHING not in text and _BARE_DOT.search(text) is None
    ):  # each statement and view comes here: no scan for most
        return text
    tokens = significant(scan(text))
    pieces, done = [], 0
    for index in range(1, len(tokens)):
        if tokens[index - 1].is_word(*_BEFORE_NAME) and _begins_empty(tokens[index : index + 5]):
            dot = tokens[index] if tokens[index].is_operator(".") else tokens[index + 1]
            pieces.append(text[done : tokens[index].start])
            done = dot.end
    return "".join([*pieces, text[done:]])


def _begins_empty(tokens: Sequence[Token]) -> bool:
    dotted = tokens if tokens[0].is_operator(".") else tokens[1:]
    is_dotted = (
        len(dotted) >= 4
        and dotted[0].is_operator(".")
        and dotted[1].is_name
        and dotted[2].is_operator(".")
        and dotted[3].is_name
    )
    return is_dotted and (
        tokens[0].is_operator(".") or (tokens[0].is_name and name_text(tokens[0]) == _NOTHING)
    )
