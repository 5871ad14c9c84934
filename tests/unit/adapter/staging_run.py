"""Drives the publish coordinator as dbt does, over a real engine: no Spark, no dbt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from dbt.adapters.tablestore.adapter_response import TablestoreResponse, describe_commit
from dbt.adapters.tablestore.gate.publish_coordinator import PublishCoordinator
from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.spi import Outcome, Staged, TableRead, Verdict, stage_properties

NODES: Mapping[str, Mapping[str, Any]] = {
    "model.p.orders": {"resource_type": "model", "depends_on": {"nodes": []}},
    "model.p.daily": {"resource_type": "model", "depends_on": {"nodes": ["model.p.orders"]}},
    "model.p.other": {"resource_type": "model", "depends_on": {"nodes": []}},
    "test.p.unique": {"resource_type": "test", "depends_on": {"nodes": ["model.p.orders"]}},
    "test.p.positive": {"resource_type": "test", "depends_on": {"nodes": ["model.p.daily"]}},
    "test.p.relation": {
        "resource_type": "test",
        "depends_on": {"nodes": ["model.p.other", "model.p.orders"]},
    },
}
ALL = tuple(name for name in NODES if name != "test.p.relation")
SPEC = TableSpec(primary_key=("id",))


class Run:
    """One dbt invocation over the warehouse."""

    def __init__(self, engine: Engine, invocation: str, limit: int | None = None) -> None:
        """With a limit models and tests can run again; a test is red for an id above it."""
        self.engine, self.invocation, self.limit = engine, invocation, limit
        self.after_check: Callable[[], None] = lambda: None
        self.before_rebuild: Callable[[], None] = lambda: None
        self.coordinator = PublishCoordinator(lambda: engine)
        self.coordinator.start(invocation)
        self.responses: dict[str, TablestoreResponse] = {}

    def build(
        self,
        name: str,
        value: int = 1,
        policy: str = "auto",
        selected: tuple[str, ...] = ALL,
        reads: tuple[TableRead, ...] = (),
    ) -> bool:
        """Build a model as the writer does; tells whether it was staged."""
        table = f"demo.{name}"
        plan = self.coordinator.plan_staged(
            node=f"model.p.{name}", table=table, policy=policy, nodes=NODES, selected=selected, reads=reads
        )
        self.coordinator.finish_pending(table)
        self.coordinator.clear_unpublished(table, plan)
        self.write(table, value, plan)
        return plan is not None

    def write(self, table: str, value: int, plan: Staged | None, attempt: int = 0) -> None:
        """Stage or publish one row."""
        report = self.engine.write(
            table,
            pa.table({"id": [value]}),
            WriteSpec(
                table=SPEC,
                stage=None if plan is None else plan.name,
                commit_user=f"dbt-{self.invocation}",
                commit_identifier=1 + attempt,
                properties={} if plan is None else stage_properties(plan),
            ),
        )
        response = describe_commit(report)
        response.to_dict(omit_none=True)
        self.responses.setdefault(table.split(".")[1], response)
        if plan is None:
            self.coordinator.forget(table)
        elif self.limit is None:
            self.coordinator.add(plan, response)
        else:
            self.coordinator.add(plan, response, self.again(table, value, plan))

    def again(self, table: str, value: int, plan: Staged) -> Callable[[int], None]:
        """How to stage it once more."""

        def rebuild(number: int) -> None:
            self.before_rebuild()
            self.write(table, value, self.coordinator.plan_again(plan), number)

        return rebuild

    def test(self, test: str, verdict: Verdict = Verdict.GREEN) -> tuple[str, ...]:
        """A test reads what the coordinator gives it, and says something."""
        outcome = Outcome(f"test.p.{test}", verdict, self.reads(test))
        recheck = None if self.limit is None else lambda: self.check(test)
        return self.coordinator.record(outcome, ["demo"], recheck=recheck)

    def test_at(self, test: str, verdict: Verdict) -> tuple[str, ...]:
        """A test whose text names snapshot 1 of orders, ref('orders').at(1), and nothing else."""
        outcome = Outcome(f"test.p.{test}", verdict, (), (TableRead("demo.orders", "past:1", 1),))
        return self.coordinator.record(outcome, ["demo"])

    def reads(self, test: str) -> tuple[TableRead, ...]:
        """What it would read now."""
        branches = self.coordinator.branches_for(f"test.p.{test}", ["demo"])
        reads = []
        for node in NODES[f"test.p.{test}"]["depends_on"]["nodes"]:
            table = f"demo.{node.split('.')[-1]}"
            book = self.engine.gate.read_book(table)
            found = [one for one in book.staged if one.name == branches.get(table)]
            version = self.engine.gate.see(book).visible(table)
            reads.append(found[0].as_read if found else TableRead(table, version))
        return tuple(reads)

    def check(self, test: str) -> Outcome:
        """Run it for real on the staged rows of its first table."""
        reads = self.reads(test)
        store = self.engine.gate._warehouse.stores.get(Identifier.parse(reads[0].table))
        rows = store.on_staged(reads[0].stage).read() if reads[0].stage else store.read()
        is_red = max(rows["id"].to_pylist()) > (self.limit or 0)
        self.after_check()
        return Outcome(f"test.p.{test}", Verdict.RED if is_red else Verdict.GREEN, reads)


def latest(engine: Engine, name: str) -> int | None:
    """The snapshot that readers see."""
    found = engine.find_table(f"demo.{name}")
    return None if found is None else found.latest_snapshot_id()


def staged(engine: Engine) -> list[str]:
    """Tables with something staged."""
    return sorted(str(one.table) for one in engine.staged("demo"))
