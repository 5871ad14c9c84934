"""Code blocks of a Markdown page."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Snippet:
    """One block."""

    page: str
    line: int
    language: str
    text: str

    @property
    def file_name(self) -> str | None:
        """`models/orders.sql` when the first line is a comment with a path."""
        first = self.text.partition("\n")[0].lstrip("-#/ ")
        return first if re.fullmatch(r"[\w/]+\.\w+", first) else None


def read_snippets(page: Path) -> tuple[Snippet, ...]:
    """Blocks of a page in order."""
    text = page.read_text()
    return tuple(
        Snippet(page.name, text.count("\n", 0, found.start()) + 1, found[1], found[2])
        for found in _BLOCK.finditer(text)
    )


def list_commands(snippet: Snippet) -> tuple[tuple[str, ...], ...]:
    """Words of each command."""
    split = (shlex.split(line, comments=True) for line in snippet.text.splitlines())
    return tuple(tuple(words) for words in split if words)
