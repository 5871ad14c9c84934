"""Microbatches in a dbt run of several threads: none is lost, and nobody publishes what another one is writing.

WHY        batches of one table are written at once into one staged snapshot, or at once into the table when nothing
           is left to wait for: between two batches the parent may have been published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dbt.adapters.tablestore.gate import gate_events as events
from dbt.adapters.tablestore.gate.gate_events import Wait
from dbt.adapters.tablestore.gate.gate_state import GateStep, Lease
from dbt.adapters.tablestore.gate.publish_decisions import Ask
from tablestore_engine.spi import Publication, Staged
from tests.doses import examples

from .test_gate_thread_laws import Play, Steps


@dataclass
class BatchPlay(Play):
    """`disk`: what lies in the staged branch of a table; `rows`: batches that readers see."""

    disk: dict[str, Staged] = field(default_factory=dict)
    rows: dict[str, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.nodes: dict[str, list[str]] = {}
        for name in sorted(self.above):
            count = self.chance.choice([0, 2, 3, 4])
            self.nodes[name] = [f"{name}#{number}" for number in range(count)] or [name]
            self.rows[name] = set()
        self.left = [*(node for nodes in self.nodes.values() for node in nodes), *self.tests]

    def is_ready(self, node: str) -> bool:
        """All batches of all parents have ended."""
        before = self.above.get(node.split("#", maxsplit=1)[0]) or self.tests.get(node, ())
        return {one for table in before for one in self.nodes[table]} <= self.ended

    def build(self, holder: int, table: str) -> Steps:
        """A batch, or a whole model."""
        return self.batch(holder, *table.split("#")) if "#" in table else super().build(holder, table)

    def demand(
        self, holder: int, event: Callable[..., GateStep], *about: object, **named: object
    ) -> Iterator[bool]:
        """Until nobody is in the way; nothing has to be done behind it."""
        while actions := self.apply(event, *about, **named):
            (wait,) = actions
            assert isinstance(wait, Wait), "a batch of this run would be dropped"
            assert not self.state.is_holder(holder)
            while not wait.is_over(holder, self.state):
                yield True

    def batch(self, holder: int, table: str, number: str) -> Steps:
        """One interval: into what waits, or at once when nothing has to."""
        yield from self.demand(holder, events.batch_began, holder, table)
        nodes = {table, *self.ancestors(table)}
        while self.state.is_moving(holder, nodes) or table in self.state.taken(holder):
            yield True
        made = self.stage(table)
        if waiting := self.state.own(table):
            made = replace(made, parents=tuple({*made.parents, *waiting[0].parents}))
        yield from self.compute()
        if not made.gates and not made.parents:
            self.rows[table].add(number)
            self.moved.add(table)
            self.show(table, self.new())
            yield from self.compute()
            yield from self.demand(holder, events.drop_waiting, holder, table, for_batch=True)
        else:
            yield from self.write(holder, made, number)
        self.apply(events.batch_ended, holder, table)
        yield from self.publish(Ask(holder, table=table))

    def compute(self) -> Steps:
        """A query takes its time: others get far meanwhile."""
        for _ in range(self.chance.randint(1, 20)):
            yield False

    def write(self, holder: int, made: Staged, number: str) -> Steps:
        """Into the branch, which others write to at once; then into the book."""
        before = self.disk.get(made.table, made)
        item = replace(
            made,
            version=self.new(),
            parents=tuple({*made.parents, *before.parents}),
            batches=tuple({*before.batches, number}),
        )
        self.bases[item.version] = self.bases[before.version]
        self.disk[made.table] = item
        yield False
        self.apply(events.rebuildable, made.table, lambda _: None)
        yield from self.demand(holder, events.take, holder, made.table)
        yield False
        self.apply(events.built, self.disk[made.table])
        self.apply(events.left, holder)

    def claim(self, lease: Lease, made: list[Publication]) -> Steps:
        """Nobody has written into what goes out since it was entered."""
        for item in lease.items:
            assert item.version == self.disk.get(item.table, item).version, "it is being written: TS1389"
        yield from super().claim(lease, made)
        for one in made:
            if one.report is not None:
                self.rows[one.staged.table] |= set(one.staged.batches)
                self.disk.pop(one.staged.table, None)

    def stage(self, table: str) -> Staged:
        """Built again: with all batches."""
        made = super().stage(table)
        known = self.disk.get(table)
        if known is None or not any(table in tables for tables in self.rebuilt.values()):
            return made
        self.disk[table] = replace(made, batches=known.batches)
        return self.disk[table]

    def check_rows(self) -> None:
        """Each batch is out, or waits."""
        for table, nodes in self.nodes.items():
            waiting = {one for item in self.state.own(table) for one in item.batches}
            assert self.rows[table] | waiting >= {node.split("#")[1] for node in nodes if "#" in node}
        assert self.state.batches == ()


@settings(max_examples=examples(90, 400), phases=[Phase.generate])
@given(seed=st.integers(0, 2**32), has_trouble=st.booleans())
def test_no_batch_is_lost(seed: int, has_trouble: bool) -> None:
    """Be its parent published before, between or behind the batches; and all that is free goes out."""
    play = BatchPlay(Random(seed), has_trouble=has_trouble)
    play.run()
    play.check_rows()
    play.check_end()
