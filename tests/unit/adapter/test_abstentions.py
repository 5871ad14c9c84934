"""Tests that read a table only at versions that they name: dbt takes them for gates until they have run."""

from __future__ import annotations

import pytest

from tablestore_engine.api import Engine
from tablestore_engine.spi import Verdict

from .staging_run import ALL, NODES, Run, latest, staged


@pytest.fixture
def run(engine: Engine) -> Run:
    """Snapshot 1 of orders is published, the next one is staged and waits for `unique`."""
    Run(engine, "a").build("orders", policy="always")
    made = Run(engine, "b")
    made.build("orders", 2)
    return made


@pytest.mark.parametrize("verdict", [Verdict.GREEN, Verdict.RED])
def test_a_model_with_no_other_test_does_not_wait_for_ever(
    run: Run, engine: Engine, verdict: Verdict, told: list[str]
) -> None:
    """It goes out when the last of them has run, as a model without tests does, and a line says why."""
    assert "demo.orders published" in run.test_at("unique", verdict)[0]
    assert latest(engine, "orders") == 2
    assert [line for line in told if "unique read demo.orders only at versions" in line]
    assert run.responses["orders"].published is True


def test_green_at_another_version_publishes_nothing_that_another_test_gates(engine: Engine) -> None:
    """orders waits for the test that reads it; the one that names versions is out of the count."""
    run = Run(engine, "a")
    run.build("orders", selected=tuple(NODES))
    assert run.test_at("relation", Verdict.GREEN) == ()
    assert latest(engine, "orders") is None
    assert run.test("unique", Verdict.RED) == ()
    assert (latest(engine, "orders"), staged(engine)) == (None, ["demo.orders"])
    assert run.test("unique")[0].startswith("demo.orders published")


def test_a_later_process_knows_who_abstained(engine: Engine) -> None:
    """on_tests: kept beside the staged rows, whichever command asks next."""
    Run(engine, "a").build("orders", 1, "on_tests", ALL)
    Run(engine, "b").test_at("relation", Verdict.RED)
    assert latest(engine, "orders") is None
    assert Run(engine, "c").test("unique")[0].startswith("demo.orders published")


def test_what_was_red_stays_red(run: Run, engine: Engine, told: list[str]) -> None:
    """The same test, told by a variable to read snapshot 1, does not take its verdict back."""
    run.test("unique", Verdict.RED)
    run.test_at("unique", Verdict.GREEN)
    assert (latest(engine, "orders"), staged(engine)) == (1, ["demo.orders"])
    assert told == []
