"""The staging desk against a small engine: what reaches it, in which order, and what a second process sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dbt.adapters.tablestore.gate import Verdict
from dbt.adapters.tablestore.staging import StagingDesk, staged_properties
from tablestore_engine.api import StagedInfo, WriteReport
from tablestore_engine.errors import NotFound, RetryError

NODES: Mapping[str, Mapping[str, Any]] = {
    "model.p.orders": {"resource_type": "model", "depends_on": {"nodes": []}},
    "model.p.daily": {"resource_type": "model", "depends_on": {"nodes": ["model.p.orders"]}},
    "test.p.unique": {"resource_type": "test", "depends_on": {"nodes": ["model.p.orders"]}},
    "test.p.positive": {"resource_type": "test", "depends_on": {"nodes": ["model.p.daily"]}},
}
ALL = tuple(NODES)


class FakeEngine:
    """Staged branches in a dict; a stand-in because what is proved is the order of calls, not the files."""

    def __init__(self) -> None:
        self.branches: dict[tuple[str, str], dict[str, str]] = {}
        self.infos: list[StagedInfo] = []
        self.published: list[str] = []
        self.fails: dict[str, Exception] = {}
        self.latest: dict[str, int] = {}

    def table(self, name: str) -> FakeTable:
        """The table of that name."""
        return FakeTable(self, name)

    def find_table(self, name: str) -> FakeTable:
        """As table()."""
        return FakeTable(self, name)

    def staged(self, database: str) -> list[StagedInfo]:
        """All that wait."""
        return [info for info in self.infos if info.table.startswith(database)]  # type: ignore[attr-defined]


class FakeTable:
    """One table of it."""

    def __init__(self, engine: FakeEngine, name: str) -> None:
        self.engine, self.name = engine, name

    def latest_snapshot_id(self) -> int | None:
        """None for a table that was never published."""
        return self.engine.latest.get(self.name)

    def record_outcome(self, branch: str, test: str, outcome: str) -> None:
        """Keep an outcome."""
        self.engine.branches.setdefault((self.name, branch), {})[test] = outcome

    def publish_staged(self, branch: str) -> WriteReport:
        """Publish, or fail as told."""
        if self.name in self.engine.fails:
            raise self.engine.fails[self.name]
        self.engine.published.append(self.name)
        return WriteReport(table=self.name, snapshot_id=7)  # type: ignore[arg-type]

    def drop_staged(self, branch: str) -> None:
        """Drop, or complain."""
        if (self.name, branch) not in self.engine.branches:
            raise NotFound("TS1399", "gone", why="-", fix="-")
        del self.engine.branches[(self.name, branch)]


def desk_of(engine: FakeEngine, invocation: str = "aaaa-bbbb-cccc-dddd") -> StagingDesk:
    """A desk as an adapter opens it."""
    desk = StagingDesk(lambda: engine)  # type: ignore[arg-type, return-value]
    desk.start(invocation)
    return desk


def stage(desk: StagingDesk, node: str, policy: str = "auto", selected: tuple[str, ...] = ALL) -> bool:
    """Build a node as the writer does; tells whether it was staged."""
    table = f"demo.{node.rsplit('.', maxsplit=1)[-1]}"
    item = desk.plan_staged(node=node, table=table, policy=policy, nodes=NODES, selected=selected)
    if item is not None:
        desk.add(item)
    return item is not None


def test_auto_is_gated_only_by_tests_of_this_invocation() -> None:
    """dbt build with the test selected stages; dbt run, or a build without it, publishes at once."""
    assert stage(desk_of(FakeEngine()), "model.p.orders")
    assert not stage(desk_of(FakeEngine()), "model.p.orders", selected=("model.p.orders",))


def test_policies() -> None:
    """always never stages on its own tests, on_tests stages without them running, manual stages always."""
    only = ("model.p.orders",)
    assert not stage(desk_of(FakeEngine()), "model.p.orders", "always")
    assert stage(desk_of(FakeEngine()), "model.p.orders", "on_tests", only)
    assert stage(desk_of(FakeEngine()), "model.p.orders", "manual", only)


def test_children_of_staged_models_are_staged_too() -> None:
    """Rows made from unaudited rows do not go out first, whatever the child's policy."""
    engine = FakeEngine()
    desk = desk_of(engine)
    assert stage(desk, "model.p.orders")
    assert stage(desk, "model.p.daily", "always", ("model.p.daily",))
    lines = desk.record("test.p.unique", Verdict.GREEN, ["demo"])
    assert engine.published == ["demo.orders", "demo.daily"]
    assert len(lines) == 2


def test_red_publishes_nothing_and_says_so_once() -> None:
    """The line names the test; asking twice does not repeat it."""
    engine = FakeEngine()
    desk = desk_of(engine)
    stage(desk, "model.p.orders")
    desk.record("test.p.unique", Verdict.RED, ["demo"])
    assert engine.published == []
    assert desk.take_held_back() == (
        "demo.orders NOT published: red: unique; its rows: select * from `demo__at_branch_dbt_aaaabbbbcccc`.`orders`",
    )
    assert desk.take_held_back() == ()


def test_reads_of_the_invocation_see_its_staged_rows() -> None:
    """Until published; tests of another process see them by their gates."""
    engine = FakeEngine()
    desk = desk_of(engine)
    stage(desk, "model.p.orders")
    assert desk.branches_for("model.p.daily", ["demo"]) == {"demo.orders": "dbt_aaaabbbbcccc"}
    desk.record("test.p.unique", Verdict.GREEN, ["demo"])
    assert desk.branches_for("model.p.daily", ["demo"]) == {}


def pending(engine: FakeEngine, outcomes: Mapping[str, str] | None = None) -> None:
    """A snapshot of orders that another process staged."""
    first = desk_of(engine)
    item = first.plan_staged(
        node="model.p.orders", table="demo.orders", policy="on_tests", nodes=NODES, selected=()
    )
    assert item is not None
    info = StagedInfo("demo.orders", item.name, 3, 2, outcomes or {}, staged_properties(item))  # type: ignore[arg-type]
    engine.infos.append(info)
    engine.branches[("demo.orders", item.name)] = {}


def test_a_later_process_tests_and_publishes() -> None:
    """dbt run, then dbt test: the second one reads the staged rows, keeps the outcome, publishes."""
    engine = FakeEngine()
    engine.latest = {"demo.orders": 1}
    pending(engine)
    second = desk_of(engine, "eeee")
    assert second.branches_for("test.p.unique", ["demo"]) == {"demo.orders": "dbt_aaaabbbbcccc"}
    assert second.branches_for("test.p.positive", ["demo"]) == {}
    second.record("test.p.unique", Verdict.GREEN, ["demo"])
    assert engine.published == ["demo.orders"]
    assert engine.branches[("demo.orders", "dbt_aaaabbbbcccc")] == {"test.p.unique": "green"}


def test_a_test_never_reads_a_table_that_is_not_there_yet() -> None:
    """Every test of a later process reads the staged rows of a table that was never published, gate or not."""
    engine = FakeEngine()
    pending(engine)
    desk = desk_of(engine, "eeee")
    assert desk.branches_for("test.p.positive", ["demo"]) == {"demo.orders": "dbt_aaaabbbbcccc"}


def test_a_snapshot_reads_published_rows_only() -> None:
    """dbt snapshots are never staged: what they read is public at once."""
    desk = desk_of(FakeEngine())
    stage(desk, "model.p.orders")
    assert desk.branches_for("snapshot.p.history", ["demo"]) == {}
    assert desk.branches_for("model.p.daily", ["demo"]) == {"demo.orders": "dbt_aaaabbbbcccc"}


def test_models_of_a_later_process_start_from_the_published_rows() -> None:
    """A rejected snapshot is never the base of the next build."""
    engine = FakeEngine()
    pending(engine, {"test.p.unique": "red"})
    assert desk_of(engine, "eeee").branches_for("model.p.orders", ["demo"]) == {}


def test_a_new_build_drops_the_rejected_branch() -> None:
    """Whether the new build is published at once or staged again."""
    for policy, selected in (("always", ()), ("auto", ALL)):
        engine = FakeEngine()
        pending(engine, {"test.p.unique": "red"})
        desk = desk_of(engine, "eeee")
        if not stage(desk, "model.p.orders", policy, selected):
            desk.forget("model.p.orders", "demo")
        else:
            desk.record("test.p.unique", Verdict.RED, ["demo"])
        assert ("demo.orders", "dbt_aaaabbbbcccc") not in engine.branches


def test_a_lost_claim_keeps_the_children_back() -> None:
    """Somebody else committed meanwhile: neither the model nor what was built from it is published."""
    engine = FakeEngine()
    engine.fails["demo.orders"] = RetryError("TS1398", "claim lost", why="-", fix="run it again")
    desk = desk_of(engine)
    stage(desk, "model.p.orders")
    stage(desk, "model.p.daily", "always", ())
    lines = desk.record("test.p.unique", Verdict.GREEN, ["demo"])
    assert engine.published == []
    assert "claim lost" in lines[0]


def test_manual_is_published_by_the_operation() -> None:
    """Without names all green ones go."""
    engine = FakeEngine()
    desk = desk_of(engine)
    item = desk.plan_staged(node="model.p.x", table="demo.x", policy="manual", nodes=NODES, selected=())
    assert item is not None
    desk.add(item)
    desk.publish_asked(frozenset(), ["demo"])
    assert engine.published == ["demo.x"]


@pytest.mark.parametrize(("latest", "kept"), [({}, False), ({"demo.orders": 1}, True)])
def test_rejected_rows_of_a_table_nobody_saw_go_before_the_next_build(
    latest: dict[str, int], kept: bool
) -> None:
    """A published table keeps its rejected branch until the new one is there."""
    engine = FakeEngine()
    engine.latest = latest
    pending(engine)
    desk = desk_of(engine, "eeee")
    desk.plan_staged(node="model.p.orders", table="demo.orders", policy="auto", nodes=NODES, selected=ALL)
    desk.clear_unpublished("model.p.orders")
    assert (("demo.orders", "dbt_aaaabbbbcccc") in engine.branches) is kept
