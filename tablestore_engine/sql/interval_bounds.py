"""The two bounds of a batch in SQL text, and the text with placeholders for them.

dbt filters an input of a microbatch by `column >= '<start>' and column < '<end>'`. The texts of two batches of one
model differ in these literals alone, so what Spark's analysis says of the text with placeholders holds for every batch.

INVARIANT  only a whole string literal directly after `>=` (start) or `<` (end) becomes a placeholder. It is an operand
           of a comparison, so its value changes neither names nor types nor the shape of the analyzed plan.
"""

from __future__ import annotations

from collections.abc import Iterator

from tablestore_engine.sql.scanner import COMMENT, SPACE, STRING, scan

LOW = "1902-03-04 05:06:07.890123+00:00"
HIGH = "1902-03-05 06:07:08.901234+00:00"


def with_placeholders(text: str, start: str, end: str) -> str | None:
    """The text with LOW and HIGH for the bounds; None when it compares with neither, or has a placeholder itself."""
    if LOW in text or HIGH in text or f"'{start}'" not in text or f"'{end}'" not in text:
        return None
    made = "".join(_pieces(text, f"'{start}'", f"'{end}'"))
    return made if LOW in made and HIGH in made else None


def _pieces(text: str, start: str, end: str) -> Iterator[str]:
    before = ""
    for token in scan(text):
        piece = token.text
        if token.kind == STRING and (before, piece) == (">=", start):
            piece = f"'{LOW}'"
        elif token.kind == STRING and (before, piece) == ("<", end):
            piece = f"'{HIGH}'"
        if token.kind not in (SPACE, COMMENT):
            before = token.text
        yield piece
