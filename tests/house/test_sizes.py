"""House rules that a reader meets first: small files, small functions, a header on every module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.statements import parsed, walk_statements

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("tablestore_engine", "tablestore_demo", "dbt/adapters/tablestore")
FILE_LINES_MAX = 400
BODY_LINES_MAX = 40

# name -> reason; the list may only shrink
LARGE_FILES: dict[str, str] = {}
LARGE_FUNCTIONS: dict[str, str] = {}


def _modules() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in walk_statements(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a body without its docstring."""
    body = node.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1:
        body = body[1:]
    return (body[-1].end_lineno or 0) - body[0].lineno + 1


@pytest.mark.parametrize("path", _modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_module_is_small_and_introduces_itself(path: Path) -> None:
    """A file has at most 400 lines, no function body over 40, and opens with its purpose."""
    text = path.read_text()
    name = str(path.relative_to(ROOT))
    lines = text.count("\n")
    assert lines <= FILE_LINES_MAX or name in LARGE_FILES, f"{name} has {lines} lines"
    tree = parsed(text)
    if path.name != "__version__.py" and text.strip():
        assert ast.get_docstring(tree), f"{name} has no docstring"
    for function in _functions(tree):
        where = f"{name}:{function.name}"
        assert _body_lines(function) <= BODY_LINES_MAX or where in LARGE_FUNCTIONS, (
            f"{where} has {_body_lines(function)} lines"
        )


def test_no_drawer_modules() -> None:
    """No module is called utils, common or helpers: such drawers are where layers leak."""
    assert not [path for path in _modules() if path.stem in {"utils", "util", "common", "helpers", "misc"}]


def test_no_machine_paths_or_hosts() -> None:
    """No committed Python, SQL or YAML file names a path of some machine or a package registry."""
    banned = ("/" + "root/", "/" + "home/", "/" + "work/", "pypi" + ".org", "repo1" + ".maven")
    for pattern in ("*.py", "*.sql", "*.yml", "*.md", "*.toml", "*.txt"):
        for path in ROOT.rglob(pattern):
            if any(part.startswith(".venv") or part in {"target", ".git"} for part in path.parts):
                continue
            text = path.read_text(errors="replace")
            assert not [word for word in banned if word in text], path
