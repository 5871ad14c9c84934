"""Tables of a text under other names.

Names      rename_tables   the text with some `a.b` replaced
INVARIANT  text outside these names is kept byte for byte: strings, comments, everything else.
"""

from __future__ import annotations

from collections.abc import Mapping

from tablestore_engine.sql.scanner import name_text, quote_name, scan, significant


def rename_tables(text: str, names: Mapping[tuple[str, str], str]) -> str:
    """`names`: (database, table) in lower case → one name. `a.b.c` becomes `new.c`, a column of the table."""
    tokens = significant(scan(text))
    pieces: list[str] = []
    done = index = 0
    while index < len(tokens):
        is_begin = tokens[index].is_name and (index == 0 or not tokens[index - 1].is_operator("."))
        is_dotted = (
            index + 2 < len(tokens) and tokens[index + 1].is_operator(".") and tokens[index + 2].is_name
        )
        if not (is_begin and is_dotted):
            index += 1
            continue
        found = names.get((name_text(tokens[index]).lower(), name_text(tokens[index + 2]).lower()))
        if found is not None:
            pieces += [text[done : tokens[index].start], quote_name(found)]
            done = tokens[index + 2].end
        index += 3
    return "".join([*pieces, text[done:]])
