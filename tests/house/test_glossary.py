"""The glossary speaks of this code: each of its names stands in it, and each word has one line."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "glossary.md"


def _lines() -> list[tuple[str, str]]:
    """(word, code names) of each line of the table."""
    rows = [line.split("|") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [(row[1].strip(), row[3]) for row in rows[1:]]


def test_each_word_stands_in_the_code_as_it_is_used() -> None:
    """Every name of the page occurs as a whole word in the engine or the adapter, and no word has two lines."""
    lines = _lines()
    assert len(lines) > 40
    found: set[str] = set()
    for package in ("tablestore_engine", "dbt/adapters/tablestore"):
        for path in (ROOT / package).rglob("*.py"):
            found.update(re.findall(r"\w+", path.read_text()))
    missing = [
        (word, name) for word, code in lines for name in re.findall(r"`(\w+)`", code) if name not in found
    ]
    assert missing == []
    assert [word for word, code in lines if "`" not in code] == []
    words = [one for word, _ in lines for one in word.split(", ")]
    assert sorted(words) == sorted(set(words))


def test_the_pages_that_speak_of_names_lead_to_it() -> None:
    """ARCHITECTURE.md and CONTRIBUTING.md link the glossary."""
    for page in ("ARCHITECTURE.md", "CONTRIBUTING.md"):
        assert "(docs/glossary.md)" in (ROOT / page).read_text()
