"""Links between pages hold: each relative link of a Markdown page names a file, and its anchor a heading of it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def _anchors(page: Path) -> set[str]:
    """Headings of a page as links name them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_links_of_pages_hold() -> None:
    """No link of README, the pages beside it or docs/ leads to a file or heading that is not there."""
    broken = []
    for page in PAGES:
        for name, anchor in LINK.findall(CODE.sub("", page.read_text())):
            target = (page.parent / name) if name else page
            if not target.exists() or (anchor and anchor not in _anchors(target)):
                broken.append(f"{page.relative_to(ROOT)} → {name}#{anchor}")
    assert broken == []
