"""What code cites lies in this repository: a page and its heading, a promise by its number, a decision record."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CODE = ("tablestore_engine", "tablestore_demo", "dbt", "tests", "integration_tests", "benchmarks")
DOCS = ROOT / "docs"
# numbers of lists that lie elsewhere, and names of pages that are not here
ELSEWHERE = re.compile(
    r"\bsections? \d|\btraps? \d|\bfield bugs? \d|§|\b[DK]\d{1,2}[a-z]?\b"
    r"|\b(?:mow-interop|paimon-format|field-bugs)\b|\b(?:style|spark|dbt|environment|DESIGN)\.md\b|\bDESIGN section"
)
LINK = re.compile(r"\b([\w-]+\.md)#([\w-]+)")
PROMISE = re.compile(r"\((P\d(?:, P\d)*)\)|\bpromise (P\d)|^\"\"\"(P\d) ", re.MULTILINE)
MODULE = re.compile(r"(?<![\w/{}.<>\"'-])((?:[a-z_0-9]+/)+[a-z_0-9]+\.py)\b")
OF_OTHERS = {"dbt/__init__.py"}  # dbt-core's
DECISION = re.compile(r"\b(?:decisions?|ADR)[ -](\d{4})\b")


@cache
def _texts() -> tuple[tuple[str, str], ...]:
    return tuple(_read())


def _read() -> Iterator[tuple[str, str]]:
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".py", ".sql", ".yml"} and path != Path(__file__):
                yield str(path.relative_to(ROOT)), path.read_text()


def _anchors(page: str) -> set[str]:
    """Headings of a page as links name them."""
    headings = re.findall(r"^#+ (.+)$", (DOCS / page).read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


def test_no_citation_leads_elsewhere() -> None:
    """No number of a list that this repository does not have, no page that is not in it."""
    assert [(name, hit[0]) for name, text in _texts() for hit in ELSEWHERE.finditer(text)] == []


def test_links_to_headings_hold() -> None:
    """`page.md#heading` exists below docs/; and nothing stands in format.md that no code cites."""
    links = {(name, page, anchor) for name, text in _texts() for page, anchor in LINK.findall(text)}
    assert [link for link in links if not (DOCS / link[1]).exists() or link[2] not in _anchors(link[1])] == []
    title = {"the-format-as-this-engine-keeps-it"}
    assert {anchor for _, page, anchor in links if page == "format.md"} | title >= _anchors("format.md")


def test_promises_and_decisions_are_written_down() -> None:
    """Every P number is one of docs/promises.md, and every promise there is cited; every decision record exists."""
    promised = set(re.findall(r"\*\*(P\d)\*\*", (DOCS / "promises.md").read_text()))
    cited = {
        number
        for _, text in _texts()
        for found in PROMISE.findall(text)
        for number in re.findall(r"P\d", "".join(found))
    }
    assert cited == promised
    records = {path.name[:4] for path in (DOCS / "decisions").iterdir()}
    numbers = {(name, number) for name, text in _texts() for number in DECISION.findall(text)}
    assert [one for one in numbers if one[1] not in records] == []


def test_modules_that_are_cited_exist() -> None:
    """A path in a docstring or comment, from the top, in a package, or beside the file or its folder."""
    tops = [ROOT, ROOT / "tablestore_engine", ROOT / "dbt/adapters/tablestore", ROOT / "integration_tests"]
    stale = [
        (name, path)
        for name, text in _texts()
        for path in MODULE.findall(text)
        if path not in OF_OTHERS
        and not any(
            (top / path).exists() for top in [*tops, (ROOT / name).parents[0], (ROOT / name).parents[1]]
        )
    ]
    assert stale == []
