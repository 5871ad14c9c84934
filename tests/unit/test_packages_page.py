"""docs/packages.md: written from its record, every failure with its reason."""

from __future__ import annotations

import json

from integration_tests.packages.page import PAGE, RECORD, UNEXPLAINED, render, summarise
from integration_tests.packages.projects import PROJECTS, ForeignProject

FOUND = {
    "version": "1.0",
    "commands": [{"command": "build", "status": 1}, {"command": "broken", "status": 2}],
    "nodes": {
        "model.p.fine": ["success", None],
        "test.p.warned.abc": ["warn", None],
        "test.p.known.abc": ["fail", "Got 1"],
        "model.p.strange": ["error", "x"],
    },
}
PROJECT = ForeignProject("p", "p", ".", ("build",), impossible={"known": "Spark cannot"})


def test_a_failure_without_a_reason_says_so() -> None:
    """What is not explained is not hidden."""
    found = summarise(PROJECT, FOUND)
    assert found["failed"] == {"test.p.known.abc": "Spark cannot", "model.p.strange": UNEXPLAINED}
    assert (found["nodes"], found["broken"]) == (4, ["broken"])
    page = render({"p": found})
    assert "| p | 1.0 | 2 | 4 |" in page
    assert "| p | `test.known` | Spark cannot |" in page
    assert f"| p | `model.strange` | {UNEXPLAINED} |" in page


def test_the_page_is_that_of_its_record() -> None:
    """And every failure in it has a reason."""
    record = json.loads(RECORD.read_text("utf-8"))
    assert PAGE.read_text("utf-8") == render(record)
    assert not [name for name, found in record.items() if UNEXPLAINED in found["failed"].values()]
    assert set(record) <= {one.name for one in PROJECTS}
