"""publish='all_or_nothing' in a dbt run of several threads: its members go out in one group, or none of them does.

WHY        the last member may be built, tested or found unchanged by any thread, while another one builds a member
           again after a lost claim: the gate of the run must open once, for the rows that are staged then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dbt.adapters.tablestore.gate import gate_events as events
from dbt.adapters.tablestore.gate.gate_state import GateStep, Lease
from dbt.adapters.tablestore.gate.publish_decisions import Ask, concludes
from dbt.adapters.tablestore.gate.whole_run import bound, bound_gates, node_built, run_outcome
from tablestore_engine.spi import PUBLISHED, Publication, Staged
from tests.doses import examples

from .test_gate_thread_laws import Play, Steps


@dataclass
class WholePlay(Play):
    """`members`: published together; `failing` are not built, `same` have nothing to change; `out`: what went out."""

    members: set[str] = field(default_factory=set)
    failing: set[str] = field(default_factory=set)
    same: set[str] = field(default_factory=set)
    out: list[set[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        names = sorted(self.above)
        self.members = set(self.chance.sample(names, self.chance.randint(2, len(names))))
        self.failing = {name for name in names if self.chance.random() < 0.05}
        self.same = {name for name in names if self.chance.random() < 0.15} - self.failing
        self.apply(events.started, "dbt_run")

    def apply(self, event: Callable[..., GateStep], *about: Any, **named: object) -> tuple[object, ...]:
        """What is built once more is told to those that wait for it."""
        actions = super().apply(event, *about, **named)
        if event is events.built and about[0].table in self.members:
            outcome = run_outcome(self.state)
            if outcome is not None:
                self.keep(outcome)
        return actions

    def stage(self, table: str) -> Staged:
        """With the gate of the run."""
        made = super().stage(table)
        if table not in self.members:
            return made
        self.apply(bound, frozenset(self.members))
        return replace(made, gates=bound_gates(self.state, table, is_batch=False, gates=made.gates))

    def build(self, holder: int, table: str) -> Steps:
        """A model that may fail, or have nothing to change."""
        yield from self.settle(holder, {table, *self.ancestors(table)})
        if table in self.failing:
            return
        if table not in self.same:
            item = self.stage(table)
            yield False
            self.apply(events.rebuildable, table, lambda _: None)
            assert self.apply(events.drop_waiting, holder, table, "s") == ()
            self.apply(events.built, item)
            yield False
        elif table in self.members:
            self.apply(bound, frozenset(self.members))
        yield from self.finish(holder, table)

    def finish(self, holder: int, table: str) -> Iterator[bool]:
        """As the coordinator behind a node's write."""
        self.apply(node_built, table)
        yield False
        if outcome := run_outcome(self.state):
            yield False
            self.apply(concludes, holder, outcome)
            yield False
            self.keep(outcome)
            yield from self.publish(Ask(holder, test=outcome.test))
        yield from self.publish(Ask(holder, table=table))

    def claim(self, lease: Lease, made: list[Publication]) -> Steps:
        """Members go in one group, when all of them are built."""
        tables = {item.table for item in lease.items if not item.is_out}
        if tables & self.members:
            assert tables & self.members == self.members - self.same
            assert not self.members & self.failing
            assert self.members <= self.state.built
        yield from super().claim(lease, made)
        if any(one.state == PUBLISHED or one.report is not None for one in made):
            self.out.append(tables)

    def check_whole(self) -> None:
        """All or none; and all, when no test of theirs and nothing they were built from said no."""
        seen = self.members & {table for tables in self.out for table in tables}
        assert seen in (set(), self.members - self.same)
        waiting = [item for item in self.state.book.staged if not item.is_out]
        is_red = any(item.red_gates for item in waiting)
        if not self.has_trouble and not is_red and not self.members & self.failing:
            left = {item.table for item in waiting} & self.members
            assert (
                not left
                or any(item.missing_gates for item in waiting)
                or self.moved
                or self.is_stale(waiting)
            )

    def is_stale(self, waiting: list[Staged]) -> bool:
        """A test read rows that readers do not see any more, or it was built from such."""
        now = {**self.current, **{item.table: item.version for item in waiting}}
        return any(now.get(read.table) != read.version for item in waiting for _, read in item.bound_reads)


@settings(max_examples=examples(120, 400), phases=[Phase.generate])
@given(seed=st.integers(0, 2**32), has_trouble=st.booleans())
def test_members_go_out_together_or_not_at_all(seed: int, has_trouble: bool) -> None:
    """Over random graphs, red tests, failing and unchanged models, lost claims, and interruptions at any group."""
    play = WholePlay(Random(seed), has_trouble)
    play.run()
    play.check_whole()
    play.check_end()


def test_runs_in_which_all_go_out_are_among_them() -> None:
    """The law would hold of a gate that never opens."""
    opened = 0
    for seed in range(100):
        play = WholePlay(Random(seed), has_trouble=False)
        play.run()
        opened += any(tables & play.members for tables in play.out)
    assert opened > 10
