"""The glossary speaks of this code: each of its names stands in it, and each word has one line."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "glossary.md"


HEADER = ["term", "meaning", "in code", "formerly"]


def _rows() -> list[list[str]]:
    """Cells of each line of the tables: term, meaning, code names, former words."""
    terms = PAGE.read_text().partition("## Other former words")[0]
    lines = [line for line in terms.splitlines() if line.startswith("| ")]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert all(len(row) == len(HEADER) for row in rows)
    return [row for row in rows if row != HEADER]


def _lines() -> list[tuple[str, str]]:
    """(term, code names) of each line."""
    return [(row[0], row[2]) for row in _rows()]


def test_each_word_stands_in_the_code_as_it_is_used() -> None:
    """Every name of the page occurs as a whole word in the engine or the adapter, and no word has two lines."""
    lines = _lines()
    assert len(lines) > 40
    found: set[str] = set()
    for package in ("tablestore_engine", "tablestore_demo", "dbt/adapters/tablestore"):
        for path in (ROOT / package).rglob("*.py"):
            found.update(re.findall(r"\w+", path.read_text()))
    missing = [
        (word, name) for word, code in lines for name in re.findall(r"`(\w+)`", code) if name not in found
    ]
    assert missing == []
    assert [word for word, code in lines if "`" not in code] == []
    words = [one for word, _ in lines for one in word.split(", ")]
    assert sorted(words) == sorted(set(words))


def test_no_former_word_is_a_term() -> None:
    """The standard term stands first: no word that is out of use is the term of another line."""
    terms = {word for row in _rows() for word in row[0].split(", ")}
    former = {word for row in _rows() for word in row[3].split(", ") if word}
    assert former, "no former words were read"
    assert terms & former == set()


def test_the_pages_that_speak_of_names_lead_to_it() -> None:
    """ARCHITECTURE.md and CONTRIBUTING.md link the glossary."""
    for page in ("ARCHITECTURE.md", "CONTRIBUTING.md"):
        assert "(docs/glossary.md)" in (ROOT / page).read_text()
