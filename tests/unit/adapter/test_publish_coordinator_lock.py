"""Threads of one run: nobody waits for a rebuild or a publication but who needs what it makes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from dbt.adapters.tablestore.adapter_response import describe_commit
from tablestore_engine.api import Engine, WriteSpec
from tablestore_engine.errors import EngineBug
from tablestore_engine.spi import OrderedLock, Outcome, Publication, Rank, Staged, Verdict
from tablestore_engine.warehouse.gate.gatekeeper import Gatekeeper

from .staging_run import ALL, NODES, Run, latest, staged

HANG_SECONDS = 30  # not a measure: by then it never ends


@pytest.mark.parametrize("rank", [rank for rank in Rank if rank is not Rank.PUBLISH_COORDINATOR])
def test_no_lock_is_held_when_the_desk_is_asked(engine: Engine, rank: Rank) -> None:
    """A call of the engine that came back here could wait for a thread that waits for the engine: refused at once."""
    run = Run(engine, "a")
    with OrderedLock("some lock of the engine", rank):
        with pytest.raises(EngineBug, match="'publish coordinator' is taken while"):
            run.coordinator.is_staged("demo.orders")
        with pytest.raises(EngineBug, match="'publish coordinator' is taken while"):
            run.coordinator.branches_for("test.p.unique", ["demo"])


class Other:
    """Another thread of the run, for the length of a test."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.results: list[object] = []
        self._thread = threading.Thread(target=lambda: self.results.append(work()), daemon=True)
        self._thread.start()

    def join(self) -> object:
        """Its result."""
        self._thread.join(HANG_SECONDS)
        assert not self._thread.is_alive(), "it waits for ever"
        return self.results[0]


def wait_for_waiter(run: Run) -> None:
    """Until a thread waits for what this one has in progress."""
    condition = run.coordinator._shared._changed._condition
    hung = threading.Event()
    for _ in range(HANG_SECONDS * 100):
        if condition._waiters:  # type: ignore[attr-defined]
            return
        hung.wait(0.01)
    raise AssertionError("nobody waits")


def overtaken(engine: Engine, limit: int = 100) -> Run:
    """A run whose `orders` has lost its claim: its last test plans it again."""
    Run(engine, "z").build("orders", policy="always")
    run = Run(engine, "a", limit=limit)
    run.build("orders", 2)
    engine.write("demo.orders", pa.table({"id": [77]}), WriteSpec())
    return run


def during_publication(monkeypatch: pytest.MonkeyPatch, hook: Callable[[tuple[Staged, ...]], None]) -> None:
    """Something that happens while a group is published."""
    real = Gatekeeper.publish

    def publish(gate: Any, group: tuple[Staged, ...]) -> tuple[Publication, ...]:
        hook(group)
        return real(gate, group)

    monkeypatch.setattr(Gatekeeper, "publish", publish)


@pytest.mark.parametrize("moment", ["rebuild", "recheck", "publication"])
def test_the_lock_is_free_while_one_thread_works(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Another one builds, tests and publishes what has nothing to do with that, before the first one goes on."""
    run, met = overtaken(engine), []

    def other() -> object:
        assert run.coordinator.is_staged("demo.orders")
        assert run.build("other", 1, "on_tests", ())
        reads = run.coordinator.branches_for("model.p.other", ["demo"])
        return sorted(reads), run.coordinator.finish_pending("demo.other"), latest(engine, "other")

    def meet(*_: object) -> None:
        if not met:
            met.append(None)
            met.append(Other(other).join())

    if moment == "rebuild":
        run.before_rebuild = meet
    elif moment == "recheck":
        run.after_check = meet
    else:
        during_publication(monkeypatch, meet)
    run.test("unique")
    assert met[1] == (["demo.orders", "demo.other"], False, None)
    assert latest(engine, "orders") == 3


def test_another_table_is_published_while_one_is_planned_again(engine: Engine) -> None:
    """The test of the other table does not wait, and its result is its own."""
    run, lines = overtaken(engine), []
    nodes = {**NODES, "test.p.own": {"resource_type": "test", "depends_on": {"nodes": ["model.p.other"]}}}
    plan = run.coordinator.plan_staged(
        node="model.p.other", table="demo.other", policy="auto", nodes=nodes, selected=("test.p.own",)
    )
    run.write("demo.other", 1, plan)

    def own() -> tuple[str, ...]:
        (item,) = engine.gate.read_book("demo.other").staged
        return run.coordinator.record(Outcome("test.p.own", Verdict.GREEN, (item.as_read,)), ["demo"])

    run.before_rebuild = lambda: lines.append(Other(own).join())
    assert [line.split()[0] for line in run.test("unique")] == ["demo.orders"]
    assert [line.split()[0] for line in lines[0]] == ["demo.other"]
    assert (latest(engine, "orders"), latest(engine, "other")) == (3, 1)


def test_what_is_being_published_is_not_published_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks for the same waits for the answer, and finds it out."""
    run, groups, others = Run(engine, "a"), [], []
    run.build("orders")

    def meet(group: tuple[Staged, ...]) -> None:
        groups.append([item.table for item in group])
        others.append(Other(lambda: run.coordinator.publish_asked(frozenset(), ["demo"])))
        wait_for_waiter(run)

    during_publication(monkeypatch, meet)
    assert len(run.test("unique")) == 1
    assert others[0].join() == ()
    assert groups == [["demo.orders"]]


def test_a_batch_that_changed_nothing_enters_no_stage_that_is_gone(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batches before it are published while it is noted: there is nothing left to publish of it."""
    run, others = Run(engine, "a"), []
    plan = run.coordinator.plan_staged(
        node="model.p.orders", table="demo.orders", policy="auto", nodes=NODES, selected=ALL
    )
    assert plan is not None
    run.write("demo.orders", 1, plan)
    response = describe_commit(None)
    response.staged = plan.name

    def meet(_: object) -> None:
        others.append(Other(lambda: run.coordinator.add(plan, response)))
        wait_for_waiter(run)

    during_publication(monkeypatch, meet)
    run.test("unique")
    others[0].join()
    assert not run.coordinator.is_staged("demo.orders")
    assert response.published is True
    assert latest(engine, "orders") == 1


@pytest.mark.parametrize("node", ["model.p.daily", "test.p.unique"])
def test_who_reads_what_is_built_again_waits_for_it(engine: Engine, node: str) -> None:
    """Else a child would be made from rows that are gone a moment later, and wait for ever."""
    run, order, others = overtaken(engine), [], []

    def read() -> None:
        order.append(dict(run.coordinator.branches_for(node, ["demo"])))

    def meet() -> None:
        others.append(Other(read))
        wait_for_waiter(run)
        order.append("built again")

    run.before_rebuild = meet
    run.test("unique")
    others[0].join()
    assert order[0] == "built again"
    assert len(order) == 2


def test_a_child_that_is_planned_meanwhile_is_made_from_what_is_there_then(engine: Engine) -> None:
    """Its parent is out behind the rebuild: it needs not wait any more."""
    run, others = overtaken(engine), []

    def meet() -> None:
        others.append(Other(lambda: run.build("daily", 2, "always", ())))
        wait_for_waiter(run)

    run.before_rebuild = meet
    run.test("unique")
    others[0].join()
    run.coordinator.publish_free("demo.daily")
    assert (latest(engine, "orders"), latest(engine, "daily")) == (3, 1)
    assert staged(engine) == []


def test_the_end_of_the_run_waits(engine: Engine) -> None:
    """What is published a moment later is not said to wait."""
    run, others = overtaken(engine), []

    def meet() -> None:
        others.append(Other(run.coordinator.take_held_back))
        wait_for_waiter(run)

    run.before_rebuild = meet
    run.test("unique")
    assert others[0].join() == ()


@pytest.mark.parametrize("moment", ["rebuild", "publication"])
def test_an_interruption_leaves_nothing_in_progress(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """The end of the run tells what stays, and the next one finds it."""
    run, number = overtaken(engine), count()

    def interrupt(*_: object) -> None:
        if next(number) == 0:
            raise KeyboardInterrupt

    if moment == "rebuild":
        run.before_rebuild = interrupt
    else:
        during_publication(monkeypatch, interrupt)
    with pytest.raises(KeyboardInterrupt):
        run.test("unique")
    assert run.coordinator._shared.state.leases == ()
    assert "1 of this run's tables wait" in run.coordinator.take_held_back()[-1]
    assert staged(engine) == ["demo.orders"]
    assert "demo.orders published" in run.test("unique")[0]
