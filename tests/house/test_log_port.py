"""What a log is made of is known in log/ alone: above it the port is spoken, beside it nothing is known of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.statements import parsed

ENGINE = Path(__file__).resolve().parents[2] / "tablestore_engine"
PORT = {"sink", "changes", "decode", "followed_log"}
ROOMS = ("warehouse", "spark", "catalog", "stream", "store", "lsm")
FILES = [path for room in ROOMS for path in sorted((ENGINE / room).rglob("*.py"))]
WORDS = re.compile(r"kafka|topic|broker|confluent", re.IGNORECASE)


def _said(tree: ast.Module) -> Iterator[str]:
    """Every name and every text of a module that is no docstring."""
    scopes = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, scopes)]
    docs = {id(body[0].value) for body in bodies if body and isinstance(body[0], ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.arg | ast.keyword):
            yield node.arg or ""
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ENGINE)))
def test_only_the_port_is_known_outside_of_log(path: Path) -> None:
    """Imports from log/ are those of the port; no name and no text says Kafka, topic or broker."""
    tree = parsed(path.read_text())
    modules = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    taken = {name.split(".")[2] for name in modules if name.startswith("tablestore_engine.log.")}
    assert taken <= PORT
    assert [text for text in _said(tree) if WORDS.search(text)] == []


def test_the_port_itself_needs_no_kafka() -> None:
    """It, and all of log/ that it stands on, can be imported where no client is installed."""
    waiting, seen = set(PORT), set[str]()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        imported = re.findall(
            r"^(?:from|import) (\S+)", (ENGINE / "log" / f"{name}.py").read_text(), re.MULTILINE
        )
        assert [one for one in imported if one.startswith("confluent_kafka")] == []
        waiting |= {one.split(".")[2] for one in imported if one.startswith("tablestore_engine.log.")} - seen
    assert "kafka" not in seen
