"""docs/interop.md counts what ran: no wrong cell, a row for each feature, and a reason for each refusal."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from docs.interop_table import DIRECTIONS, ENGINES, count_words, render_interop
from integration_tests.interop.matrix.features import FEATURES
from integration_tests.interop.matrix.record import RECORD

RIGHT, REFUSED = "right", "refused: no such thing"


@pytest.fixture
def record() -> dict[str, Any]:
    """The recorded tables."""
    found: dict[str, Any] = json.loads(RECORD.read_text("utf-8"))
    return found


def _table(outcome: str) -> dict[str, Any]:
    outcomes = {engine: dict.fromkeys(DIRECTIONS, outcome) for engine in ENGINES}
    return {"commit": "c", "mark": "m", "features": ["a"], "outcomes": outcomes}


def _row(*outcomes: str) -> str:
    tables = {str(seed): _table(outcome) for seed, outcome in enumerate(outcomes)}
    page = render_interop({"versions": {}, "tables": tables}, ["a"])
    return next(line for line in page.splitlines() if line.startswith("| a |"))


def test_no_recorded_table_is_wrong(record: dict[str, Any]) -> None:
    """A wrong one is mended, or is the known fault of another engine, before it is recorded."""
    counts = count_words(record)
    assert set(counts) <= {"right", "refused", "fault"}, counts


def test_recorded_features_are_those_of_the_generator(record: dict[str, Any]) -> None:
    """A feature that is renamed there would lose its row."""
    assert {one for table in record["tables"].values() for one in table["features"]} <= set(FEATURES)


@pytest.mark.parametrize(
    ("outcomes", "cell"),
    [
        ((RIGHT, RIGHT, REFUSED), "2"),
        ((REFUSED,), "- a"),
        ((RIGHT, "fault: x"), "1 a"),
        (("fault: x", REFUSED), "- b a"),
        ((RIGHT, "wrong: y"), "1, 1 wrong"),
        ((), "."),
    ],
)
def test_cell_is_the_count_of_right_tables_or_the_reason(outcomes: tuple[str, ...], cell: str) -> None:
    """A wrong table is shown whatever else is right; a fault is named beside the number."""
    assert _row(*outcomes) == f"| a | {' | '.join([cell] * len(ENGINES))} |"


def test_page_has_each_feature_in_each_direction(record: dict[str, Any]) -> None:
    """And each reason once."""
    lines = render_interop(copy.deepcopy(record)).splitlines()
    for feature in FEATURES:
        assert sum(line.startswith(f"| {feature} |") for line in lines) == len(DIRECTIONS)
    notes = lines[lines.index("## Notes") :]
    reasons = [line.partition(": ")[2] for line in notes if line.startswith("- ")]
    assert len(reasons) == len(set(reasons))
