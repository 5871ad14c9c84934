"""`tablestore_engine.api` stays small and documented; whatever enters the engine from outside uses it and `spi`."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from tablestore_engine import api, spi
from tests.statements import parsed, walk_statements

ROOT = Path(__file__).resolve().parents[2]
NAMES_MAX = 40
ENTRY_POINTS = {"tablestore_engine.api", "tablestore_engine.spi"}
OUTSIDE = ("dbt/adapters/tablestore", "tablestore_demo")


def _docstring(found: object) -> str:
    """The text that stands at the definition itself, not at a base class or at the type of a constant."""
    if not inspect.isclass(found) and not inspect.isfunction(found):
        return ""
    text = found.__doc__ or ""
    return "" if inspect.isclass(found) and text.startswith(f"{found.__name__}(") else text


def _engine_imports(path: Path) -> set[str]:
    """Modules of the engine that a file imports, wherever the statement stands."""
    found: set[str] = set()
    for node in walk_statements(parsed(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            is_top = node.module == "tablestore_engine"
            found |= {f"{node.module}.{alias.name}" for alias in node.names} if is_top else {node.module}
    return {name for name in found if name.split(".")[0] == "tablestore_engine"}


def test_api_has_at_most_forty_names() -> None:
    """Each of them is a promise to users."""
    assert len(api.__all__) == len(set(api.__all__)) <= NAMES_MAX


@pytest.mark.parametrize("name", sorted(api.__all__))
def test_name_of_api_has_a_docstring(name: str) -> None:
    """Classes and functions alone, each with a text of its own: a dataclass without one shows its fields."""
    assert _docstring(getattr(api, name)).strip()


def test_api_and_spi_have_no_name_in_common() -> None:
    """A name has one home."""
    assert set(api.__all__) & set(spi.__all__) == set()


@pytest.mark.parametrize("package", OUTSIDE)
def test_adapter_and_demo_import_only_api_and_spi(package: str) -> None:
    """No other module of the engine, at the top of a file or inside a function."""
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    found = {str(path.relative_to(ROOT)): _engine_imports(path) - ENTRY_POINTS for path in files}
    assert {path: names for path, names in found.items() if names} == {}


def test_each_name_of_spi_is_used() -> None:
    """Nothing stands in spi in advance."""
    used = {
        alias.name
        for package in (*OUTSIDE, "tablestore_engine/cli", "tablestore_engine/ui")
        for path in (ROOT / package).rglob("*.py")
        for node in walk_statements(parsed(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "tablestore_engine.spi"
        for alias in node.names
    }
    assert set(spi.__all__) - used == set()
