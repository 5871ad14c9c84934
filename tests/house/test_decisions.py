"""Decision records can be found and understood: each has a summary, and the index lists each once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "decisions"
LIMIT = 600
SUMMARY = re.compile(r"\A# \d{4} [^\n]+\n\n(\*\*Summary\.\*\* .+?)\n\n", re.DOTALL)

# a file in code quotes; of what was rejected none needs to exist
NAMED = re.compile(r"`([a-z_0-9.-]+(?:/[a-z_0-9.-]+)*\.(?:py|sql))(?:::\w+)?`")
PAST = re.compile(r"\b(?:was|formerly)\b", re.IGNORECASE)
LINES_OF_CODE = re.compile(r"\b[\d,]{3,} lines\b(?! of (?:a|the) log)")


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


def _sentences(record: str) -> Iterator[str]:
    """Sentences of a record but of what was rejected; of a table each row with the heading of its columns."""
    for is_table, lines in groupby(record.splitlines(), lambda line: line.startswith("|")):
        block = list(lines)
        if is_table:
            yield from (f"{block[0]}\n{row}" for row in block)
        for paragraph in () if is_table else "\n".join(block).split("\n\n"):
            if not paragraph.lstrip().startswith("**Rejected"):
                yield from re.split(r"(?<=[.:;])\s", paragraph)


def stale_files(record: str, tree: str) -> list[str]:
    """Files that a record names and that are not in the tree, where it does not say that they were."""
    named = (file for one in _sentences(record) if not PAST.search(one) for file in NAMED.findall(one))
    return [file for file in named if f"/{file}\n" not in tree]


def test_records_name_files_that_exist() -> None:
    """A path of a record ends a path of the repository, or its sentence says "was"; no count of lines of code."""
    parts = (
        "tablestore_engine",
        "tablestore_demo",
        "dbt",
        "tests",
        "integration_tests",
        "benchmarks",
        "docs",
    )
    tree = "".join(f"/{path}\n" for part in parts for path in (ROOT / part).rglob("*.*"))
    texts = {record.name: record.read_text() for record in _records()}
    assert {name: stale for name, text in texts.items() if (stale := stale_files(text, tree))} == {}
    assert {name: lines for name, text in texts.items() if (lines := LINES_OF_CODE.findall(text))} == {}


def test_stale_files_are_found() -> None:
    """Planted ones, in a sentence and in a table; "was" in the paragraph or in the heading of the column passes."""
    tree = "/x/lsm/merge.py\n"
    record = "In `gone.py` and `lsm/merge.py`.\n\nThis was `a.py`.\n\n| was | is |\n|---|---|\n| `b.py` | |\n"
    assert stale_files(record, tree) == ["gone.py"]
    assert stale_files("| file |\n|---|\n| `b.py` |", tree) == ["b.py"]
