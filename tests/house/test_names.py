"""A name means one thing: no two classes share one, and hardly any two modules."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from tests.statements import parsed, walk_statements

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("tablestore_engine", "tablestore_demo", "dbt/adapters/tablestore")
# a command of tablestore, and what it does
TWO_MODULES = {"rollback.py"}


def _modules() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def test_class_name_is_used_once() -> None:
    """Private ones too: who searches for a class finds one."""
    names = Counter(
        node.name
        for path in _modules()
        for node in walk_statements(parsed(path.read_text()))
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_base_name_of_a_module_is_used_once() -> None:
    """All but the two of TWO_MODULES, which may only shrink."""
    names = Counter(path.name for path in _modules() if path.name != "__init__.py")
    assert {name for name, count in names.items() if count > 1} == TWO_MODULES
