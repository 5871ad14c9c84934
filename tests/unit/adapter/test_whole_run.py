"""publish='all_or_nothing' over a real engine: which nodes belong together, when they go out, what a retry does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from dbt.adapters.tablestore.gate.gate_state import GateState, RunGate
from dbt.adapters.tablestore.gate.whole_run import bound_gates, members
from tablestore_engine.api import Engine, FixRequest, WriteSpec
from tablestore_engine.spi import Verdict
from tests.unit.adapter import staging_run
from tests.unit.adapter.staging_run import NODES, SPEC, Run, latest, staged

WHOLE = {"publish": "all_or_nothing", "materialized": "table"}
MODELS = tuple(name for name in NODES if name.startswith("model."))


@pytest.fixture(autouse=True)
def _configured(monkeypatch: pytest.MonkeyPatch) -> None:
    """The three models of the run's graph are published together."""
    nodes = {name: {**node, "config": WHOLE if name in MODELS else {}} for name, node in NODES.items()}
    monkeypatch.setattr(staging_run, "NODES", nodes)


def build(run: Run, name: str, selected: tuple[str, ...] = MODELS, value: int = 1) -> tuple[str, ...]:
    """As the writer does; what went out behind it."""
    assert run.build(name, value, "all_or_nothing", selected)
    lines = run.coordinator.publish_free(f"demo.{name}", f"model.p.{name}")
    return tuple(line.split()[0] for line in lines)


@pytest.mark.parametrize(
    ("config", "is_member"),
    [
        (WHOLE, True),
        ({"materialized": "snapshot", "meta": {"tablestore": {"publish": "all_or_nothing"}}}, True),
        ({"materialized": "view", "publish": "all_or_nothing"}, False),
        ({"materialized": "table", "publish": "auto"}, False),
        ({"materialized": "table"}, False),
    ],
)
def test_members_are_selected_tables_that_say_so(config: Mapping[str, Any], is_member: bool) -> None:
    """In the config or in meta; what the run does not select, or the graph does not know, is none."""
    nodes = {"model.p.a": {"config": config}, "model.p.b": {"config": WHOLE}}
    assert members(nodes, ["model.p.a", "model.p.gone"]) == ({"model.p.a"} if is_member else set())


def test_without_data_tests_the_last_build_lets_all_go(engine: Engine) -> None:
    """dbt run: readers see none of them before."""
    run = Run(engine, "a")
    assert build(run, "orders") == ()
    assert build(run, "daily") == ()
    assert (latest(engine, "orders"), staged(engine)) == (None, ["demo.daily", "demo.orders"])
    assert sorted(build(run, "other")) == ["demo.daily", "demo.orders", "demo.other"]
    assert staged(engine) == []


def test_a_red_test_holds_all_back(engine: Engine) -> None:
    """Also those that it has not read; when it is green, all go."""
    run = Run(engine, "a")
    for name in ("orders", "daily", "other"):
        assert build(run, name, (*MODELS, "test.p.unique")) == ()
    run.test("unique", Verdict.RED)
    assert staged(engine) == ["demo.daily", "demo.orders", "demo.other"]
    run.test("unique")
    assert [latest(engine, name) for name in ("orders", "daily", "other")] == [1, 1, 1]


def test_a_model_that_is_not_built_holds_all_back(engine: Engine) -> None:
    """And the end of the run names it."""
    run = Run(engine, "aaaa")
    build(run, "orders")
    build(run, "daily")
    held = run.coordinator.take_held_back()
    assert "waiting for all_or_nothing (not built: other)" in held[0]
    assert latest(engine, "orders") is None


def test_a_retry_builds_the_rest_under_the_same_gate(engine: Engine) -> None:
    """Its selection is what had failed; what the first run has staged goes out with it."""
    first = Run(engine, "a")
    build(first, "orders")
    build(first, "daily")
    retry = Run(engine, "b")
    retry.coordinator.adopt(lambda: ["a"], lambda: ["demo"])
    assert sorted(build(retry, "other", ("model.p.other",))) == ["demo.daily", "demo.orders", "demo.other"]
    assert staged(engine) == []


def test_a_model_without_changes_is_built(engine: Engine) -> None:
    """The others do not wait for rows of it."""
    run = Run(engine, "a")
    build(run, "orders")
    build(run, "daily")
    run.coordinator.forget("demo.other", is_unchanged=True)
    lines = run.coordinator.publish_free("demo.other", "model.p.other")
    assert [line.split()[0] for line in lines] == ["demo.orders", "demo.daily"]


def test_one_model_alone_waits_for_its_tests_only(engine: Engine) -> None:
    """A run that selects no other member publishes it as `auto` does."""
    only = ("model.p.other",)
    run = Run(engine, "a")
    assert not run.build("other", 1, "all_or_nothing", only)
    assert latest(engine, "other") == 1


def test_a_group_that_was_cut_in_two_is_finished_by_another_process(engine: Engine) -> None:
    """Killed behind the first claim: the outcome beside the rest names what is out, so that the rest may go."""
    run = Run(engine, "a")
    for name in ("orders", "daily", "other"):
        build(run, name, (*MODELS, "test.p.unique"))
    run.test("unique", Verdict.RED)
    book = engine.gate.read_book("demo")
    engine.gate.publish(tuple(one for one in book.staged if one.table == "demo.orders"))
    Run(engine, "b").coordinator.publish_asked(frozenset(), ["demo"])
    assert [latest(engine, name) for name in ("orders", "daily", "other")] == [1, 1, 1]


def test_a_lost_claim_builds_all_of_them_again(engine: Engine) -> None:
    """Another process commits to one member: each is staged on what is there now, and all go out."""
    Run(engine, "z").build("orders", 9, "always")
    run = Run(engine, "a", limit=100)
    build(run, "orders", value=2)
    build(run, "daily", value=2)
    engine.write("demo.orders", pa.table({"id": [10]}), WriteSpec(table=SPEC))
    assert sorted(build(run, "other", value=2)) == ["demo.daily", "demo.orders", "demo.other"]
    assert sorted(engine.table("demo.orders").scan().to_arrow()["id"].to_pylist()) == [2, 9, 10]
    assert staged(engine) == []


def test_batches_of_which_nobody_knows_the_last_are_refused() -> None:
    """TS1819 unless a data test runs behind them."""
    state = GateState(run_gate=RunGate("run.dbt_a.all_or_nothing", frozenset(MODELS)))
    with pytest.raises(FixRequest, match="TS1819"):
        bound_gates(state, "model.p.orders", is_batch=True, gates=())
    assert bound_gates(state, "model.p.orders", is_batch=True, gates=("test.p.unique",)) == (
        "test.p.unique",
        "run.dbt_a.all_or_nothing",
    )
