"""What code cites lies in this repository: a page and its heading, a promise by its number, a decision record."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.statements import parsed, walk_statements

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
OF_OTHERS = {"dbt/__init__.py", "setup.py"}  # dbt-core's; of a package that is built from its source
PLAIN_MODULE = re.compile(r"(?<![\w/{}.<>\"'-])([a-z_0-9]+\.py)\b")
DOTTED_MODULE = re.compile(
    r"\b((?:tablestore_(?:engine|demo)|integration_tests|tests|benchmarks)(?:\.[a-z_0-9]+)+)\b"
)
NAME_OF_FILE = re.compile(r"(?<![\w/{}.<>-])(\w[\w/]*\.py)::(\w+)")
MEMBER = re.compile(r"(?<![\w.])([A-Z]\w+)\.([a-zA-Z_]\w+)")
OF_OTHER_CLASSES = {"Expression.deterministic"}  # Catalyst's
# Python's own tokenizer takes three seconds for all files; the group is empty for a string
STRING_OR_COMMENT = re.compile(
    r"""\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|(\#[^\n]*)""",
    re.DOTALL,
)
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


def _tops(name: str) -> list[Path]:
    """Folders that a path in a file may begin from."""
    tops = [ROOT, ROOT / "tablestore_engine", ROOT / "dbt/adapters/tablestore", ROOT / "integration_tests"]
    return [*tops, *(ROOT / name).parents[:2]]


@cache
def _prose() -> tuple[tuple[str, str], ...]:
    """Each docstring and comment of the Python files."""
    return tuple(
        (name, part)
        for name, text in _texts()
        if name.endswith(".py")
        for part in _docstrings_and_comments(text)
    )


def _docstrings_and_comments(source: str) -> Iterator[str]:
    for node in walk_statements(ast.parse(source)):  # also of tests, whose trees would fill the memory
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node, clean=False) or ""
    yield from (found for found in STRING_OR_COMMENT.findall(source) if found)


def stale_modules(name: str, text: str) -> list[str]:
    """Paths that a docstring or comment of file `name` cites and that lead nowhere: from the top, in a package, or
    beside the file or its folder; a plain file name in a folder above; a dotted name from the top.
    """
    found = [path for path in MODULE.findall(text) if not any((top / path).exists() for top in _tops(name))]
    found += [
        plain
        for plain in PLAIN_MODULE.findall(text)
        if not any((up / plain).exists() for up in (ROOT / name).parents)
    ]
    found += [
        dotted
        for dotted in DOTTED_MODULE.findall(text)
        if not any((ROOT / dotted.replace(".", "/")).with_suffix(end).exists() for end in ("", ".py"))
    ]
    return [one for one in found if one not in OF_OTHERS]


def test_modules_that_are_cited_exist() -> None:
    """In docstrings and comments, and paths in other texts too."""
    assert [(name, one) for name, text in _prose() for one in stale_modules(name, text)] == []
    rest = ((name, path) for name, text in _texts() for path in MODULE.findall(text) if path not in OF_OTHERS)
    assert [one for one in rest if not any((top / one[1]).exists() for top in _tops(one[0]))] == []


def stale_names(name: str, text: str) -> list[str]:
    """`file.py::name` in a text of file `name`, where the file has no function, class or constant of that name."""
    found = []
    for path, wanted in NAME_OF_FILE.findall(text):
        file = next((top / path for top in _tops(name) if (top / path).exists()), None)
        if file is None or wanted not in _defined(file):
            found.append(f"{path}::{wanted}")
    return found


@cache
def _defined(file: Path) -> frozenset[str]:
    tree = parsed(file.read_text())
    made = {node.name for node in walk_statements(tree) if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    return frozenset(made | _assigned(tree))


def _assigned(tree: ast.AST) -> set[str]:
    """Names and attributes that are set anywhere in it."""
    set_there = [node for node in ast.walk(tree) if isinstance(getattr(node, "ctx", None), ast.Store)]
    return {node.id if isinstance(node, ast.Name) else getattr(node, "attr", "") for node in set_there}


def test_names_of_files_exist() -> None:
    """`tests/house/test_citations.py::stale_names`, in code and in the pages."""
    pages = (
        (str(page.relative_to(ROOT)), page.read_text()) for page in (*ROOT.glob("*.md"), *DOCS.rglob("*.md"))
    )
    texts = [(name, one) for name, text in (*_texts(), *pages) for one in stale_names(name, text)]
    assert texts == []


@cache
def _classes() -> dict[str, ast.ClassDef]:
    packages = ("tablestore_engine/", "dbt/")
    texts = [text for name, text in _texts() if name.startswith(packages) and name.endswith(".py")]
    trees = map(parsed, texts)
    return {
        node.name: node for tree in trees for node in walk_statements(tree) if isinstance(node, ast.ClassDef)
    }


@cache
def _members(name: str) -> frozenset[str] | None:
    """What a class has, with what its bases have; None where one of them is another package's."""
    found: set[str] = set()
    node = _classes().get(name)
    if node is None:
        is_plain = name in {"Protocol", "Enum", "StrEnum", "IntEnum", "Exception", "ValueError"}
        return frozenset() if is_plain else None
    for base in node.bases:
        above = _members(ast.unparse(base).partition("[")[0].rpartition(".")[2])
        if above is None:
            return None
        found |= above
    functions = {one.name for one in walk_statements(node) if isinstance(one, ast.FunctionDef)}
    return frozenset(found | _assigned(node) | functions)


def stale_members(text: str) -> list[str]:
    """`Class.member` in a text, where the class is ours and has no such member."""
    return [
        f"{owner}.{member}"
        for owner, member in MEMBER.findall(text)
        if owner in _classes() and member not in (_members(owner) or {member})
    ]


def test_members_of_classes_exist() -> None:
    """A field or method that a docstring or comment cites is there, or in a base."""
    stale = [
        (name, one) for name, text in _prose() for one in stale_members(text) if one not in OF_OTHER_CLASSES
    ]
    assert stale == []


def test_stale_references_are_found() -> None:
    """Planted ones of each form; the right form of each passes."""
    name = "tablestore_engine/log/kafka/settings.py"
    assert stale_modules(name, "log/kafka/shards.py, marker.py and tablestore_engine.log.kafka.marker") == [
        "log/kafka/shards.py", "marker.py", "tablestore_engine.log.kafka.marker",
    ]  # fmt: skip
    assert (
        stale_modules(
            name, "log/kafka/publisher.py, bounded_reader.py and tablestore_engine.log.kafka.bounded_reader"
        )
        == []
    )
    assert stale_names(name, "tests/unit/log/test_sizes.py::test_gone") == [
        "tests/unit/log/test_sizes.py::test_gone"
    ]
    assert stale_names(name, "tests/unit/log/test_sizes.py::test_the_limit_is_exact") == []
    assert stale_members("LogSettings.timeout_s and ClientConfig.timeout_s") == ["LogSettings.timeout_s"]
