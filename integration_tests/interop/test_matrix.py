"""Random tables through all engines (integration_tests/interop/matrix): a few by day, 300 new ones each night."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.matrix.__main__ import started
from integration_tests.interop.matrix.case import Case, CaseRun, Engines
from integration_tests.interop.matrix.outcomes import RIGHT, outcome_of
from integration_tests.interop.matrix.played import Table
from integration_tests.interop.ours import Ours
from integration_tests.interop.peers import ProcessPeer
from integration_tests.interop.rows import assert_same
from integration_tests.run import FIXED_SEED, SEED_VARIABLE
from tests.doses import cases, examples

BY_DAY = (42, 62)  # sums whose columns change; tags, expiry and a branch
BY_NIGHT = 300


def _wrong(seed: int, engines: Engines, folder: Path) -> list[str]:
    outcomes = CaseRun(Case(seed), engines, folder).run()
    return [
        f"table {seed}, {engine}, {direction}: {outcome}"
        for engine, cells in outcomes.items()
        for direction, outcome in cells.items()
        if outcome.startswith("wrong")
    ]


@pytest.mark.parametrize("seed", cases(BY_DAY, 1))
def test_tables_are_right_in_every_direction(
    java: JavaPaimon, pypaimon: ProcessPeer, rust: ProcessPeer, tmp_path: Path, seed: int
) -> None:
    """Java, pypaimon and Rust read ours, we read theirs, both write in turns: rows are those of the model."""
    engines = Engines(java, {"pypaimon": pypaimon, "rust": rust})
    assert _wrong(seed, engines, tmp_path) == []


@pytest.mark.nightly
def test_tables_of_the_day_are_right(tmp_path: Path) -> None:
    """With all engines; each day has tables of its own. `--seeds N` of the command runs one again."""
    first = int(os.environ.get(SEED_VARIABLE, FIXED_SEED)) * 1000
    with started(tmp_path) as engines:
        wrong = [
            one
            for seed in range(first, first + examples(1, BY_NIGHT))
            for one in _wrong(seed, engines, tmp_path / "tables")
        ]
    assert wrong == []


def test_a_row_too_few_a_value_that_differs_and_an_unknown_error_are_wrong(tmp_path: Path) -> None:
    """No outcome hides a difference: the readers' rows are compared whole, and errors are refusals by name only."""
    case, table = Case(2), Table(Case(2).draft, tmp_path / "t.db" / "t")
    us = Ours()
    us.create(table.location, table.schema)
    for step in case.inserts[:2]:
        table.insert(step, _Silent())
    assert outcome_of(lambda: table.check(us)).startswith("wrong: ours, newest: expected")
    rows = table.oracle.rows()
    assert outcome_of(lambda: assert_same(rows, rows[1:], "x")).startswith("wrong")
    assert outcome_of(lambda: assert_same(rows, [*rows[1:], (*rows[0][:-1], object())], "x")).startswith(
        "wrong"
    )
    assert outcome_of(lambda: assert_same(rows, rows, "x")) == RIGHT
    assert outcome_of(lambda: int("x")).startswith("wrong: ValueError")


class _Silent:
    """An engine that says it has inserted, and has not."""

    def insert(self, *_: object) -> None:
        """Nothing."""
