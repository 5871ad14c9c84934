"""Batches that wait for tests: which stage they join, what they wait for, and what is said when they go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest

from dbt.adapters.tablestore.adapter_response import describe_commit
from dbt.adapters.tablestore.config.contract_and_docs import Contract
from dbt.adapters.tablestore.config.model_config import TableSettings
from dbt.adapters.tablestore.gate.microbatches import joined, lost_note, pick_waiting, span_of
from dbt.adapters.tablestore.gate.publish_coordinator import PublishCoordinator
from dbt.adapters.tablestore.messages import TerminalMessages
from dbt.adapters.tablestore.plan.build_plan import Action, BuildPlan
from dbt.adapters.tablestore.plan.engine_spec import ModelSettings
from dbt.adapters.tablestore.plan.run_context import BatchInterval, RunContext
from dbt.adapters.tablestore.relation import TablestoreRelation
from dbt.adapters.tablestore.write.model_job import ModelJob
from dbt.adapters.tablestore.write.replacement import must_replace
from tablestore_engine.api import Engine, OnSchemaChange, TableSpec, WriteMode, WriteSpec
from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.spi import ReadLog, Staged, TableRead, stage_properties
from tests.unit.adapter.test_publish_coordinator import NODES

ORDERS = Staged("demo.orders", "s", "run:1", 2, "model.p.orders", gates=("test.p.unique",), batches=("1/2",))
FIRST = "2026-01-01 00:00:00/2026-01-02 00:00:00"
NEXT = "2026-01-02 00:00:00/2026-01-03 00:00:00"


def test_a_batch_is_told_by_its_interval_in_utc() -> None:
    """As dbt's options take it; without a batch a node is one unit."""
    tokyo = timezone(timedelta(hours=9))
    batch = BatchInterval(datetime(2026, 1, 1, 9, tzinfo=tokyo), datetime(2026, 1, 2, tzinfo=UTC))
    assert span_of(batch) == FIRST
    assert span_of(None) is None


def test_the_stage_that_a_batch_joins() -> None:
    """That of this run, else the newest of earlier ones; never another model's, one that is out, or one that was
    planned on other rows.
    """
    older, newer = ORDERS, Staged(**{**vars(ORDERS), "name": "t"})
    found = (older, newer)
    assert pick_waiting(found, "model.p.orders", {older.key}, lambda _: True) == older
    assert pick_waiting(found, "model.p.orders", (), lambda _: True) == newer
    assert pick_waiting(found, "model.p.orders", (), lambda one: one == older) == older
    assert pick_waiting(found, "model.p.orders", (), lambda _: False) is None
    assert pick_waiting(found, "model.p.other", (), lambda _: True) is None
    for changed in ({"is_out": True}, {"batches": ()}):
        assert (
            pick_waiting([Staged(**{**vars(ORDERS), **changed})], "model.p.orders", (), lambda _: True)
            is None
        )


def test_joined_batches_wait_for_all_that_each_of_them_waits_for() -> None:
    """Gates, parents and intervals of both; a test that the project has no more is waited for no more."""
    read = TableRead("demo.other", "run:0")
    waiting = Staged(**{**vars(ORDERS), "gates": ("test.p.unique", "test.p.gone"), "parents": (read,)})
    new = Staged("demo.orders", "mine", "", gates=("test.p.relation",), batches=("2/3",))
    made = joined(new, waiting, NODES)
    assert (made.name, made.gates) == ("s", ("test.p.relation", "test.p.unique"))
    assert (made.parents, made.batches) == ((read,), ("1/2", "2/3"))


def test_lost_batches_are_named_with_the_way_to_run_them_again() -> None:
    """From the first start to the last end; other staged snapshots have no such line."""
    assert "--event-time-start '2026-01-01 00:00:00' --event-time-end '2026-01-03 00:00:00'" in lost_note(
        [NEXT, FIRST]
    )
    assert lost_note(()) == ""


class Day:
    """One dbt invocation with batches of demo.orders."""

    def __init__(self, engine: Engine, invocation: str) -> None:
        self.engine, self.invocation = engine, invocation
        self.coordinator = PublishCoordinator(lambda: engine)
        self.coordinator.start(invocation)

    def batch(self, span: str, *ids: int, policy: str = "on_tests", begins: bool = False) -> str | None:
        """Write one; the name of its stage."""
        plan = self.coordinator.plan_staged(
            node="model.p.orders",
            table="demo.orders",
            policy=policy,
            nodes=NODES,
            selected=(),
            batch=span,
            begins=begins,
        )
        self.coordinator.clear_unpublished("demo.orders", plan)
        spec = WriteSpec(
            table=TableSpec(primary_key=("id",)),
            stage=None if plan is None else plan.name,
            builds_on_stage=plan is not None,
            commit_user=self.invocation,
            commit_identifier=int(span[8:10]),
            properties={} if plan is None else stage_properties(plan),
        )
        response = describe_commit(self.engine.write("demo.orders", pa.table({"id": [*ids]}), spec))
        if plan is None:
            self.coordinator.forget("demo.orders")
            return None
        self.coordinator.add(plan, response)
        return plan.name


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """A warehouse with published orders."""
    made = Engine(str(tmp_path))
    made.create_database("demo")
    made.write("demo.orders", pa.table({"id": [0]}), WriteSpec(table=TableSpec(primary_key=("id",))))
    return made


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the coordinator warns of."""
    told: list[str] = []
    monkeypatch.setattr(TerminalMessages, "warning", lambda _self, text: told.append(text))
    return told


def test_batches_of_two_runs_wait_together(engine: Engine, warnings: list[str]) -> None:
    """Also when the second run's tests are not selected (policy auto); a fold between them changes nothing."""
    first = Day(engine, "aaaa")
    stage = first.batch(FIRST, 1)
    assert first.batch(NEXT, 2) == stage
    engine.table("demo.orders").compact(full=True)
    assert Day(engine, "bbbb").batch("2026-01-03 00:00:00/2026-01-04 00:00:00", 3, policy="auto") == stage
    (item,) = engine.gate.read_book("demo.orders").staged
    assert (item.gates, len(item.batches)) == (("test.p.relation", "test.p.unique"), 3)
    engine.gate.publish((item,))
    assert sorted(engine.table("demo.orders").scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 3]
    assert warnings == []


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (
            lambda engine: engine.write("demo.orders", pa.table({"id": [9]}), WriteSpec()),
            "replaced by this build",
        ),
        (lambda _: "always", "this run publishes at once"),
        (lambda _: "begins", "replaced by this build"),
    ],
)
def test_batches_that_cannot_wait_any_longer_are_named(
    engine: Engine, warnings: list[str], change: object, word: str
) -> None:
    """Other rows in the table, publish='always', a full refresh: the line says which batches to run again."""
    stage = Day(engine, "aaaa").batch(FIRST, 1)
    how = change(engine)  # type: ignore[operator]
    policy = "always" if how == "always" else "on_tests"
    assert Day(engine, "bbbb").batch(NEXT, 2, policy=policy, begins=how == "begins") != stage
    (line,) = warnings
    assert word in line
    assert "--event-time-start '2026-01-01 00:00:00' --event-time-end '2026-01-02 00:00:00'" in line


def test_a_run_plans_only_its_own_batches_again(engine: Engine) -> None:
    """For that its stage goes; with batches of an earlier run in it, it stays and the run is refused."""
    first = Day(engine, "aaaa")
    first.batch(FIRST, 1)
    second = Day(engine, "bbbb")
    second.batch(NEXT, 2)
    with pytest.raises(RetryError, match="TS1887") as refused:
        second.coordinator.begin_again("demo.orders")
    assert "--event-time-start '2026-01-01 00:00:00' --event-time-end '2026-01-03 00:00:00'" in str(
        refused.value
    )
    assert len(engine.staged("demo")) == 1
    first.coordinator.begin_again("demo.orders")
    assert engine.staged("demo") == ()


def test_a_table_that_is_made_anew_waits_for_tests_as_one_write_only(engine: Engine) -> None:
    """Batches of a table that takes a view's place, or another key: TS1888 before the first one."""
    table = TableSettings("incremental", strategy="microbatch")
    settings = ModelSettings("model.p.orders", table, Contract(), None, ())
    plan = BuildPlan(Action.RECREATE, "select 1", WriteMode.OVERWRITE_TABLE, OnSchemaChange.REPLACE)
    relation = TablestoreRelation.create(schema="demo", identifier="orders", type="table")
    work = (WriteSpec(), "select 1")
    batch = BatchInterval(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC))
    context = RunContext("run", existing=relation, batch=batch)
    job = ModelJob(relation, settings, plan, work, lambda: work, context, ReadLog())
    with pytest.raises(FixRequest, match="TS1888"):
        must_replace(engine, job, is_staged=True)
    assert must_replace(engine, job, is_staged=False)
