"""Code blocks of a Markdown page."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^( *)```([\w-]*)(\{toctree\})?\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Snippet:
    """One block; `language` is empty where the page names none."""

    page: str
    line: int
    language: str
    text: str

    @property
    def file_name(self) -> str | None:
        """`models/orders.sql` when the first line is a comment with a path."""
        first = self.first_line.lstrip("-#/ ")
        return first if self.language and re.fullmatch(r"[\w/]+\.\w+", first) else None

    @property
    def first_line(self) -> str:
        """Without blanks at its ends."""
        return self.text.partition("\n")[0].strip()


def read_blocks(page: Path) -> tuple[Snippet, ...]:
    """All blocks of a page in order, but for lists of pages."""
    text = page.read_text()
    return tuple(
        Snippet(page.name, text.count("\n", 0, found.start()) + 1, found[2], found[4])
        for found in _BLOCK.finditer(text)
        if not found[3]
    )


def read_snippets(page: Path) -> tuple[Snippet, ...]:
    """Those with a language."""
    return tuple(one for one in read_blocks(page) if one.language)


def is_of_project(snippet: Snippet) -> bool:
    """A file that dbt reads."""
    folders = ("models/", "seeds/", "snapshots/", "functions/", "macros/", "tests/", "analyses/")
    return (snippet.file_name or "").startswith((*folders, "dbt_project.yml", "profiles.yml"))


def list_commands(snippet: Snippet) -> tuple[tuple[str, ...], ...]:
    """Words of each command."""
    split = (shlex.split(line, comments=True) for line in snippet.text.splitlines())
    return tuple(tuple(words) for words in split if words)
