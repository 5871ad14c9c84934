"""The adapter's imports, read from its source: import-linter cannot see a package inside dbt's namespace."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import dbt.adapters.tablestore as adapter

HERE = Path(adapter.__file__).parent
FILES = sorted(HERE.rglob("*.py"))
OURS = "dbt.adapters.tablestore"
OF_DBT = {
    "continuous.command": {"dbt.cli.main"},  # its rounds are dbt's own
    "profile_reader": {"dbt.cli.flags", "dbt.config.runtime", "dbt.flags"},  # profiles as dbt reads them
}
ENTRY_POINTS = ("tablestore_engine.api", "tablestore_engine.spi")


def module_of(path: Path) -> str:
    """`write.seeds` of write/seeds.py."""
    return ".".join(path.relative_to(HERE).with_suffix("").parts)


def imports_of(path: Path) -> set[str]:
    """Modules that a file imports, wherever the statement stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_module_imports_only_the_two_entry_points_of_the_engine(path: Path) -> None:
    """api and spi; no other module of the engine, no Spark, no Kafka, and of dbt-core what OF_DBT names."""
    for name in imports_of(path):
        assert not name.startswith("tablestore_engine") or name in ENTRY_POINTS, name
        assert not name.startswith(("pyspark", "py4j", "confluent_kafka")), name
        if name not in OF_DBT.get(module_of(path), set()):
            assert not name.startswith("dbt.") or name.startswith(("dbt.adapters", "dbt.include")), name


def test_the_adapters_modules_have_no_cycle() -> None:
    """Each module can be read after those it imports."""
    graph = {
        module_of(path): {
            name.removeprefix(f"{OURS}.") for name in imports_of(path) if name.startswith(f"{OURS}.")
        }
        for path in FILES
    }
    assert len(tuple(TopologicalSorter(graph).static_order())) >= len(FILES)


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_no_import_stands_inside_a_function(path: Path) -> None:
    """Dependencies are seen at the top of a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert not any(isinstance(inner, ast.Import | ast.ImportFrom) for inner in ast.walk(node)), (
                node.name
            )
