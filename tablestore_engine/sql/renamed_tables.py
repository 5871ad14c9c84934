"""Tables of a text under other names.

INVARIANT  text outside these names is kept byte for byte: strings, comments, everything else.
INVARIANT  a view's name stands in no text, so no CTE of the text has it; the other name is an alias, which hides no
           table and is hidden by none. An alias of the text behind it takes its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tablestore_engine.sql.scanner import Token, name_text, quote_name, scan, significant


@dataclass(frozen=True)
class StandIn:
    """`alias`: for `orders.id` and `demo.orders.id`."""

    view: str
    alias: str


def rename_tables(text: str, names: Mapping[tuple[str, str], StandIn]) -> str:
    """`names`: (database, table) in lower case. `from a.b` reads the view, `a.b.c` becomes a column of the alias."""
    tokens = significant(scan(text))
    pieces: list[str] = []
    done = index = 0
    while index < len(tokens):
        if not _begins_dotted(tokens, index):
            index += 1
            continue
        found = names.get((name_text(tokens[index]).lower(), name_text(tokens[index + 2]).lower()))
        if found is not None:
            pieces += [text[done : tokens[index].start], _written(found, tokens, index)]
            done = tokens[index + 2].end
        index += 3
    return "".join([*pieces, text[done:]])


def _begins_dotted(tokens: Sequence[Token], index: int) -> bool:
    """Whether `a.b` stands here, and nothing before it."""
    if not tokens[index].is_name or (index > 0 and tokens[index - 1].is_operator(".")):
        return False
    return index + 2 < len(tokens) and tokens[index + 1].is_operator(".") and tokens[index + 2].is_name


def _written(found: StandIn, tokens: Sequence[Token], index: int) -> str:
    if index + 3 < len(tokens) and tokens[index + 3].is_operator("."):
        return quote_name(found.alias)
    before = [one for one in tokens[max(index - 2, 0) : index] if not one.is_operator("(")]
    if before and before[-1].is_word("TABLE"):  # TABLE a.b, f(TABLE(a.b)): no place for an alias
        return quote_name(found.view)
    return f"({quote_name(found.view)} as {quote_name(found.alias)})"
