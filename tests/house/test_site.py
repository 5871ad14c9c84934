"""The navigation of the documentation site is complete: each page has one entry, and each entry is a page.

Sphinx checks the same when `make docs` builds the site; this test needs no build.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from docs.generate import collect_errors

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / "docs" / "index.md"
PAGES = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))
TREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ENTRY = re.compile(r"(?:[^<\n]* )?<?([\w./*-]+)>?")


def _entries(page: Path) -> list[Path]:
    """Files that the navigation blocks of a page name; `:glob:` allows patterns."""
    found: list[Path] = []
    for block in TREE.findall(page.read_text()):
        for line in block.splitlines():
            if not line or line.startswith(":"):
                continue
            entry = ENTRY.fullmatch(line)
            assert entry, f"{page.name}: {line}"
            matched = sorted(page.parent.glob(f"{entry[1]}.md")) if ":glob:" in block else []
            found += matched or [(page.parent / f"{entry[1]}.md").resolve()]
    return found


def test_each_page_is_in_the_navigation_once() -> None:
    """All pages beside README and under docs/ except the home page, each once; no entry names a missing page."""
    entries = Counter(entry for page in PAGES for entry in _entries(page))
    assert [str(entry) for entry in entries if not entry.exists()] == []
    assert sorted(set(PAGES) - {HOME} - set(entries)) == []
    assert [str(entry) for entry, times in entries.items() if times > 1] == []


def test_each_error_code_is_a_heading() -> None:
    """A heading gives each code its anchor and its entry in the search of the site."""
    headings = re.findall(r"^## (TS\d{4})$", (ROOT / "docs" / "errors.md").read_text(), re.MULTILINE)
    assert headings == sorted({error.code for error in collect_errors()})


def test_site_folder_is_ignored_by_git() -> None:
    """`make docs` builds into a folder that is never committed."""
    (site,) = re.findall(r"^SITE := (\w+)/", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert f"{site}/" in (ROOT / ".gitignore").read_text().splitlines()
