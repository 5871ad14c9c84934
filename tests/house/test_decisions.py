"""Decision records can be found and understood: each has a summary, and the index lists each once."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "decisions"
LIMIT = 600
SUMMARY = re.compile(r"\A# \d{4} [^\n]+\n\n(\*\*Summary\.\*\* .+?)\n\n", re.DOTALL)


def _records() -> list[Path]:
    return sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")


def _problem(record: Path) -> str | None:
    """What is wrong with the summary of a record."""
    found = SUMMARY.match(record.read_text())
    if found is None:
        return f"{record.name}: no **Summary.** directly under the title"
    length = len(found[1].replace("\n", " "))
    return f"{record.name}: {length} characters" if length > LIMIT else None


def test_each_record_begins_with_a_short_summary() -> None:
    """A paragraph **Summary.** of at most 600 characters stands directly under the title."""
    records = _records()
    assert len(records) > 40
    assert [problem for problem in map(_problem, records) if problem] == []


def test_index_lists_each_record_once() -> None:
    """Every record has one line in docs/decisions/README.md, under its own number; no line leads elsewhere."""
    lines = re.findall(
        r"^- \[(\d{4})\]\(([\w-]+\.md)\): \S", (FOLDER / "README.md").read_text(), re.MULTILINE
    )
    assert sorted(name for _, name in lines) == [record.name for record in _records()]
    assert [(number, name) for number, name in lines if name[:4] != number] == []
