"""ARCHITECTURE.md tells the truth: what it names is there, and its walks go where the code goes."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from docs.generate import change_lines
from tablestore_engine.options import OPTIONS
from tests.statements import parsed, walk_statements

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "ARCHITECTURE.md").read_text()
ENGINE = "tablestore_engine"
NAMED = re.compile(r"`([\w./]+)`")
PAGE_BYTES_MAX = 10_000
WALKS = ("Write", "Read", "SQL")


def _files(text: str) -> list[Path]:
    """Every file and folder that a text names, in order: from the top, or inside the engine."""
    names = [name for name in NAMED.findall(text) if name.endswith((".py", ".md", "/"))]
    return [
        next((top / name for top in (ROOT, ROOT / ENGINE) if (top / name).exists()), ROOT / name)
        for name in names
    ]


def _walk(name: str) -> list[str]:
    """The engine's modules of one walk, in order, each once."""
    text = TEXT[TEXT.index(f"**{name}** ①") :].split("\n\n")[0]
    modules = [path for path in _files(text) if path.suffix == ".py" and ENGINE in path.parts]
    return list(dict.fromkeys(_module(path) for path in modules))


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


@cache
def _imports(module: str) -> frozenset[str]:
    """The engine's modules that one imports."""
    path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
    found: set[str] = set()
    for node in walk_statements(parsed(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(ENGINE):
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(one for one in found if ROOT.joinpath(*one.split(".")).with_suffix(".py").exists())


@cache
def _reaches(module: str) -> frozenset[str]:
    """What it imports, at any distance."""
    seen: set[str] = set()
    left = [module]
    while left:
        new = _imports(left.pop()) - seen
        seen |= new
        left += new
    return frozenset(seen)


@pytest.mark.parametrize("path", sorted(set(_files(TEXT))), ids=lambda path: str(path.relative_to(ROOT)))
def test_what_it_names_is_there(path: Path) -> None:
    """No file of the page was moved or renamed behind its back."""
    assert path.exists()


@pytest.mark.parametrize("walk", WALKS)
def test_each_step_of_a_walk_follows_from_an_earlier_one(walk: str) -> None:
    """The first file is the door's; every other one is imported by one before it, directly or through others."""
    first, *steps = _walk(walk)
    assert first.startswith(f"{ENGINE}.api.")
    assert len(steps) > 1
    before = [first]
    for step in steps:
        assert any(step in _reaches(one) for one in before), f"{step} follows from none of {before}"
        before.append(step)


def test_page_is_short() -> None:
    """At most 10 KB: what a module does is in its head, and docs/where.md lists the heads."""
    assert len(TEXT.encode()) <= PAGE_BYTES_MAX


def test_change_lines_name_every_option() -> None:
    """`(option a, b)` in a CHANGE line: these are the table options, each in the head of a rule that it drives."""
    named = [one for text in change_lines().values() for one in re.findall(r"\(options? (.+?)\)", text)]
    assert {one for part in named for one in part.split(", ")} == set(OPTIONS)
