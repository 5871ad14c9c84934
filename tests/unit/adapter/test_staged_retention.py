"""What a dbt run does with staged snapshots that are past their retention; no Spark, no dbt."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dbt.adapters.tablestore.gate import publish_coordinator
from dbt.adapters.tablestore.gate.gate_state import branch_of
from tablestore_engine.api import Engine
from tablestore_engine.errors import FixData
from tablestore_engine.runtime.outside_world import SYSTEM
from tablestore_engine.spi import Verdict
from tablestore_engine.warehouse.gate.gatekeeper import Gatekeeper

from .staging_run import Run, latest, staged

DAY = 86_400_000


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Warnings of the drop."""
    said: list[str] = []
    monkeypatch.setattr(publish_coordinator.logger, "warning", said.append)
    return said


@pytest.fixture
def week_old(tmp_path: Path) -> Engine:
    """Eight days ago a run staged orders, whose test failed, and daily, which was built from them."""
    old = Engine(str(tmp_path), runtime=replace(SYSTEM, now_ms=lambda: SYSTEM.now_ms() - 8 * DAY))
    run = Run(old, "old")
    run.build("orders")
    run.build("daily")
    run.test("unique", Verdict.RED)
    engine = Engine(str(tmp_path))
    assert staged(engine) == ["demo.daily", "demo.orders"]
    return engine


def test_a_run_drops_what_is_too_old_and_says_so(week_old: Engine, lines: list[str]) -> None:
    """With age and failed test; what was built from it says that. The run itself builds and publishes."""
    run = Run(week_old, "new")
    run.build("other")
    assert len(lines) == 2
    assert lines[0].startswith(
        "demo.daily: staged snapshot dbt_old (snapshot 1) is dropped with dbt_old of demo.orders"
    )
    assert "it was written 8 d ago, tablestore.staged-retention is 7 d; failed tests: unique" in lines[1]
    assert staged(week_old) == []
    run.build("orders", 2)
    run.test("unique")
    assert latest(week_old, "orders") == 1


def test_a_command_of_tests_drops_it_too_and_reads_published_rows(week_old: Engine, lines: list[str]) -> None:
    """Before the first test: none runs on rows that are dropped a moment later."""
    run = Run(week_old, "new")
    assert dict(run.coordinator.branches_for("test.p.unique", ["demo"])) == {}
    assert len(lines) == 2


def test_dbt_retry_spares_what_it_continues(week_old: Engine, lines: list[str]) -> None:
    """The failed run is continued on purpose, however old it is."""
    run = Run(week_old, "new")
    run.coordinator.adopt(lambda: ["old"], lambda: ["demo"])
    assert staged(week_old) == ["demo.daily", "demo.orders"]
    assert lines == []
    assert branch_of("old") == "dbt_old"


def test_asking_for_a_publication_drops_nothing(week_old: Engine, lines: list[str]) -> None:
    """`run-operation tablestore_publish` is about what is there."""
    Run(week_old, "new").coordinator.publish_asked(frozenset(), ["demo"])
    assert staged(week_old) == ["demo.daily", "demo.orders"]
    assert lines == []


def test_a_run_goes_on_when_the_drop_fails(
    week_old: Engine, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another table of the warehouse is damaged: its retention waits, the build does not."""

    def fail(_: Gatekeeper) -> tuple[str, ...]:
        raise FixData("TS1000", "it is damaged", why="of a test", fix="none")

    monkeypatch.setattr(Gatekeeper, "databases", fail)
    assert not Run(week_old, "new").build("other", selected=())
    assert len(lines) == 1
    assert "were not dropped" in lines[0]
    assert "TS1000" in lines[0]
