"""The tables of docs/engines.md have no cell that nobody has run or explained."""

from __future__ import annotations

import json

import pytest

from docs.engine_tables import ABSENT, ENGINES, KINDS, OPERATIONS, Cells, engine_lines
from docs.generate import ROOT
from integration_tests.interop.engine_matrix import OF_ENGINES, TESTS
from integration_tests.interop.our_tables import OURS


@pytest.fixture
def cells() -> dict[str, dict[str, dict[str, str]]]:
    """The recorded ones."""
    found: dict[str, dict[str, dict[str, str]]] = json.loads((ROOT / "docs/engines.json").read_text())
    return found


def test_kinds_and_engines_are_those_of_the_suite() -> None:
    """A kind of table, or an engine, that the suite gets has a row or a column."""
    assert set(KINDS) == set(OURS)
    named = {engine for engine, _ in TESTS.values() if engine} | {"pypaimon", "rust"}
    named |= {engine for _, engines in OF_ENGINES.values() for engine in engines}
    assert named == set(ENGINES)
    assert {engine for engine, _ in ABSENT} <= set(ENGINES)


def test_each_operation_has_a_table_with_all_cells(cells: Cells) -> None:
    """As many rows as kinds, as many columns as engines; letters have their notes."""
    lines = engine_lines(cells)
    rows = [line.split(" | ") for line in lines if line.startswith("| ") and not line.startswith("| table")]
    assert len(rows) == len(OPERATIONS) * len(KINDS)
    assert {len(row) for row in rows} == {len(ENGINES) + 1}


@pytest.mark.parametrize("wrong", [None, "wrong", "", "refused", "cannot: ", "not run here"], ids=repr)
def test_a_cell_that_says_nothing_fails_the_page(
    cells: dict[str, dict[str, dict[str, str]]], wrong: str | None
) -> None:
    """Missing, wrong, or without a reason."""
    if wrong is None:
        del cells["duckdb"]["folding"]["past"]
    else:
        cells["duckdb"]["folding"]["past"] = wrong
    with pytest.raises(ValueError, match="cell"):
        engine_lines(cells)


def test_a_cell_is_recorded_or_absent_not_both(cells: dict[str, dict[str, dict[str, str]]]) -> None:
    """Else a reason would hide a result."""
    cells["duckdb"]["folding"]["stream"] = "OK"
    with pytest.raises(ValueError, match="both"):
        engine_lines(cells)


def test_an_engine_that_the_page_does_not_know_fails_it(
    cells: dict[str, dict[str, dict[str, str]]],
) -> None:
    """So does a kind of table."""
    with pytest.raises(ValueError, match="'presto'"):
        engine_lines({**cells, "presto": {}})
    cells["duckdb"]["new_kind"] = {"batch": "OK"}
    with pytest.raises(ValueError, match="'new_kind'"):
        engine_lines(cells)
