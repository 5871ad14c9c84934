"""The list of tests that `make check` leaves out names tests that are there, and is chosen as it says."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.slow_tests import name_of, pick_slow, read_slow
from tests.statements import parsed

ROOT = Path(__file__).parent.parent.parent


def _functions() -> set[str]:
    found = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for node in parsed(path.read_text()).body:
            if isinstance(node, ast.FunctionDef):
                found.add(f"{module}::{node.name}")
            elif isinstance(node, ast.ClassDef):
                found |= {f"{module}.{node.name}::{one.name}" for one in node.body if hasattr(one, "name")}
            elif isinstance(node, ast.Assign):  # hypothesis: TestTable = TableMachine.TestCase
                found |= {f"{module}.{one.id}::runTest" for one in node.targets if isinstance(one, ast.Name)}
    return found


def test_every_line_names_a_test() -> None:
    """A line of a test that was renamed would keep nothing out, and its successor would slow make check down."""
    assert read_slow() - _functions() == frozenset()


def test_slow_tests_are_marked(request: pytest.FixtureRequest) -> None:
    """The mark and the list say the same: no test has the mark in its own file."""
    items = request.session.items
    marked = {name_of(one.nodeid) for one in items if one.get_closest_marker("slow") is not None}
    assert marked == {name_of(one.nodeid) for one in items} & read_slow()


@pytest.mark.parametrize(
    ("node_id", "name"),
    [
        ("tests/house/test_citations.py::stale_names[x::y]", "tests.house.test_citations::stale_names"),
        (
            "tests/model/test_table_machine.py::TestTable::runTest",
            "tests.model.test_table_machine.TestTable::runTest",
        ),
    ],
)
def test_names_are_those_of_the_durations(node_id: str, name: str) -> None:
    """pytest's id and JUnit's name of a test lead to one line."""
    assert name_of(node_id) == name


def test_one_long_case_or_many_short_ones_are_slow() -> None:
    """Cases of one function count together; a house test is kept in make check for longer."""
    many = {f"tests.unit.m::many[{n}]": 0.05 for n in range(11)}
    few = {f"tests.unit.m::few[{n}]": 0.05 for n in range(9)}
    house = {"tests.house.h::quick": 2.9, "tests.house.h::long": 3.0}
    assert pick_slow({**many, **few, **house, "tests.unit.m::one": 0.1}) == [
        "tests.house.h::long",
        "tests.unit.m::many",
        "tests.unit.m::one",
    ]
