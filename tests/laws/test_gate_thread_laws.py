"""Threads of one dbt run over random graphs: whichever goes on next, staged snapshots go out once, whole and green.

Names      Play   one run: models and tests in dbt's order, by three threads that are interrupted between any two steps
WHY        the state is pure, so that a thread is a generator here: a seed chooses who goes on, and every failure is
           found again. A test is a random function of the versions it reads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dbt.adapters.tablestore.gate import gate_events as events
from dbt.adapters.tablestore.gate.gate_events import Wait
from dbt.adapters.tablestore.gate.gate_state import GateState, GateStep, Lease
from dbt.adapters.tablestore.gate.publish_decisions import (
    ATTEMPTS_MAX,
    Ask,
    LookAgain,
    Next,
    Publish,
    Replan,
    StartOver,
    concludes,
    published,
    rechecks,
)
from tablestore_engine.api import WriteReport
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.errors import LogNotReady, PublishPending, StagedSnapshotOvertaken
from tablestore_engine.spi import (
    PENDING,
    PUBLISHED,
    REFUSED,
    Outcome,
    Publication,
    Staged,
    TableRead,
    Verdict,
    World,
    bound_group,
    pick_group,
)
from tests.doses import examples

TABLES, THREADS, STEPS_MAX = 6, 3, 20_000
Steps = Iterator[bool]  # True: nothing can be done before another thread has gone on


@dataclass
class Play:
    """`has_trouble`: other processes commit, logs fail, threads are interrupted.

    `unseen`: a table that a test reads besides, of which dbt's graph does not know. `truth`: what tests really said.
    """

    chance: Random
    has_trouble: bool
    state: GateState = field(default_factory=GateState)
    number: int = 0
    current: dict[str, str] = field(default_factory=dict)
    past: set[tuple[str, str]] = field(default_factory=set)
    bases: dict[str, str | None] = field(default_factory=dict)
    truth: dict[tuple[str, str, str], str] = field(default_factory=dict)
    publishing: dict[int, tuple[Staged, ...]] = field(default_factory=dict)
    decided: dict[int, dict[str, str]] = field(
        default_factory=dict
    )  # what readers saw at the decision to publish
    rebuilt: dict[int, set[str]] = field(default_factory=dict)
    moved: set[str] = field(default_factory=set)  # tables that nodes commit to without a look at the gate

    def __post_init__(self) -> None:
        chance, names = self.chance, [f"d.t{number}" for number in range(TABLES)]
        self.above = {
            name: [one for one in names[:number] if chance.random() < 0.4]
            for number, name in enumerate(names)
        }
        self.tests = {
            f"test.{number}": sorted(chance.sample(names, chance.randint(1, 3)))
            for number in range(chance.randint(1, 6))
        }
        self.unseen = {test: chance.choice(names) for test in self.tests if chance.random() < 0.4}
        for name in names:
            if chance.random() < 0.7:
                self.show(name, self.new())
        self.left = [*names, *self.tests]
        self.ended: set[str] = set()

    # the run -------------------------------------------------------------------------------------

    def run(self) -> None:
        """Until all nodes have ended; who goes on is chance."""
        threads: dict[int, tuple[str, Steps]] = {}
        idle = 0
        for _ in range(STEPS_MAX):
            for holder in range(THREADS):
                ready = [node for node in self.left if self.is_ready(node)]
                if holder not in threads and ready:
                    node = self.chance.choice(ready)
                    self.left.remove(node)
                    threads[holder] = node, self.start(holder, node)
            if not threads:
                break
            if self.has_trouble and self.chance.random() < 0.06:
                self.show(f"d.t{self.chance.randrange(TABLES)}", self.new())
            holder = self.chance.choice(sorted(threads))
            node, steps = threads[holder]
            try:
                idle = idle + 1 if next(steps) else 0
            except (StopIteration, KeyboardInterrupt):
                self.ended.add(node)
                del threads[holder]
                idle = 0
            assert idle < 100 * THREADS, "all threads wait for each other"
        assert not threads
        assert not self.left

    def is_ready(self, node: str) -> bool:
        """In dbt's order: a model behind its parents, a test behind what it reads."""
        return set(self.above.get(node) or self.tests.get(node, ())) <= self.ended

    def start(self, holder: int, node: str) -> Steps:
        """What a thread does for a node; nothing of it is in progress behind that."""
        steps = self.test(holder, node) if node in self.tests else self.build(holder, node)
        try:
            yield from steps
        finally:
            self.apply(events.left, holder)
            self.rebuilt.pop(holder, None)
            self.publishing.pop(holder, None)

    def apply(self, event: Callable[..., GateStep], *about: object, **named: object) -> tuple[object, ...]:
        """One moment under the lock."""
        step = event(self.state, *about, **named)
        self.state = step.state
        return step.actions

    # what nodes do -------------------------------------------------------------------------------

    def new(self) -> str:
        """A version that was never there."""
        self.number += 1
        return f"v:{self.number}"

    def show(self, table: str, version: str) -> None:
        """Readers see it from now on."""
        self.current[table] = version
        self.past.add((table, version))

    def stage(self, table: str) -> Staged:
        """From what its parents have staged now."""
        version = self.new()
        gates = tuple(sorted(test for test, tables in self.tests.items() if table in tables))
        parents = tuple(one.as_read for one in self.state.parents_of(table, self.ancestors(table), ()))
        self.bases[version] = self.current.get(table)
        return Staged(table, "s", version, owner=table, gates=gates, parents=parents)

    def ancestors(self, table: str) -> set[str]:
        """At any depth."""
        return {one for parent in self.above[table] for one in (parent, *self.ancestors(parent))}

    def settle(self, holder: int, nodes: set[str]) -> Steps:
        """Wait for what others move of these."""
        while not self.state.is_holder(holder) and self.state.is_moving(holder, nodes):
            yield True

    def build(self, holder: int, table: str) -> Steps:
        """A model."""
        yield from self.settle(holder, {table, *self.ancestors(table)})
        item = self.stage(table)
        yield False
        self.apply(events.rebuildable, table, lambda _: None)
        assert self.apply(events.drop_waiting, holder, table, "s") == ()
        self.apply(events.built, item)
        yield from self.publish(Ask(holder, table=table))

    def read(self, test: str) -> tuple[TableRead, ...]:
        """What the test sees now."""
        staged = {item.table: item.version for item in self.state.book.staged if not item.is_out}
        seen = {**self.current, **staged}
        tables = {*self.tests[test], *filter(None, [self.unseen.get(test)])}
        return tuple(TableRead(table, seen[table]) for table in sorted(tables) if table in seen)

    def say(self, test: str, reads: tuple[TableRead, ...]) -> Outcome:
        """Green nine times of ten, and always the same of the same rows."""
        digest = hashlib.sha256(f"{test} {reads}".encode()).digest()[0]
        return Outcome(test, Verdict.GREEN if digest % 10 else Verdict.RED, reads)

    def keep(self, outcome: Outcome) -> None:
        """Beside all that ask for it."""
        self.truth |= {(outcome.test, one.table, one.version): outcome.verdict for one in outcome.reads}
        for item in self.state.gated_by(outcome.test):
            if not item.is_out:
                self.apply(events.said, item.key, outcome)

    def test(self, holder: int, test: str) -> Steps:
        """A data test, and what it lets go."""
        yield from self.settle(holder, set(self.tests[test]))
        reads = self.read(test)
        yield False
        self.apply(events.ran, test, lambda: self.say(test, self.read(test)))
        yield from self.settle(holder, set(self.tests[test]))
        outcome = self.say(test, reads)
        self.apply(concludes, holder, outcome)
        yield False
        self.keep(outcome)
        yield False
        yield from self.publish(Ask(holder, test=test))

    # the executor --------------------------------------------------------------------------------

    def world(self) -> World:
        """What readers see."""
        return World(dict(self.current), frozenset(self.past))

    def publish(self, ask: Ask) -> Steps:
        """As GroupPublisher does, with a step between any two moments."""
        results: tuple[Publication, ...] = ()
        while True:
            book = self.state.book
            yield False
            world = self.world()
            yield False
            actions = self.apply(Next(ask, book, world, results).change)
            if not actions:
                self.check_answer(ask, {one.staged.table for one in results if one.state != PUBLISHED})
                return
            (action,) = actions
            match action:
                case LookAgain():
                    pass
                case Wait() | StartOver():
                    assert not self.state.is_holder(ask.holder)
                    results = () if isinstance(action, StartOver) else results
                    wanted = Wait(action.tables, and_batches=isinstance(action, StartOver))
                    while not wanted.is_over(ask.holder, self.state):
                        yield True
                case Publish():
                    made: list[Publication] = []
                    self.decided[ask.holder] = dict(world.current)
                    yield from self.claim(action.lease, made)
                    results += tuple(made)
                    self.apply(published, action.lease, tuple(made))
                    del self.publishing[ask.holder]
                case Replan():
                    results = ()
                    if (yield from self.replan(action)):
                        return
                case _:
                    raise AssertionError(action)

    def claim(self, lease: Lease, made: list[Publication]) -> Steps:
        """All of a group, or nothing of it."""
        self.check_group(lease)
        self.publishing[lease.holder] = lease.items
        yield False
        if self.has_trouble and self.chance.random() < 0.05:
            raise KeyboardInterrupt
        refused = None
        if any(
            self.bases[one.version] != self.current.get(one.table) for one in lease.items if not one.is_out
        ):
            refused = StagedSnapshotOvertaken("TS1075", "", why="", fix="")
        elif self.has_trouble and self.chance.random() < 0.05:
            refused = LogNotReady("TS1082", "", why="", fix="")
        if refused is not None:
            made += [Publication(item, REFUSED, error=refused) for item in lease.items]
            return
        for item in lease.items:  # one claim behind the other; nobody commits between them: see stage_rebase
            if not item.is_out:
                self.check_item(item, self.decided[lease.holder])
                self.show(item.table, item.version)
        for item in lease.items:
            yield False
            report = WriteReport(Identifier.parse(item.table), 1)
            error = None
            if self.has_trouble and self.chance.random() < 0.1:
                error = PublishPending("TS1799", "", why="", fix="")
            made.append(Publication(item, PENDING if error else PUBLISHED, report, error))

    def replan(self, action: Replan) -> Iterator[bool]:
        """Build and test again; whether the thread gives up."""
        self.check_alone(action.lease)
        parents = {parent.table for item in action.lease.items for parent in item.parents}
        self.rebuilt[action.lease.holder] = parents | {item.table for item in action.lease.items}
        for item, _, number in action.builds:
            assert number <= ATTEMPTS_MAX
            yield False
            fresh = self.stage(item.table)
            yield False
            if self.chance.random() < 0.1:  # as batches do
                self.apply(events.gone, item)
                yield False
            self.apply(events.built, fresh)
        done: frozenset[str] = frozenset()
        while todo := rechecks(self.state, action.lease, done):
            for test, recheck in todo:
                yield False
                outcome = recheck()
                yield False
                self.keep(outcome)
                done |= {test}
                if outcome.verdict != Verdict.GREEN:
                    return True
        del self.rebuilt[action.lease.holder]
        return False

    # laws ----------------------------------------------------------------------------------------

    def check_group(self, lease: Lease) -> None:
        """Rule 3, and one thread at a time."""
        book = self.state.book
        for item in lease.items:
            assert {one.key for one in bound_group(item, book)} == {one.key for one in lease.items}
            assert item in book.staged
        self.check_alone(lease)
        for holder, tables in self.rebuilt.items():
            assert holder == lease.holder or not lease.tables & tables
        reads = {read.table for item in lease.items for _, read in item.bound_reads}
        reads |= {read.table for item in lease.items for read in item.parents}
        assert not reads & self.state.taken(lease.holder), "what it stands on is moved by another thread"

    def check_alone(self, lease: Lease) -> None:
        """No other thread has anything of it, nor writes a batch of it."""
        assert not lease.tables & self.state.taken(lease.holder)
        assert not {one.table for one in lease.items} & self.state.written(lease.holder)

    def check_answer(self, ask: Ask, refused: set[str]) -> None:
        """Who asked for something knows what became of it: nobody is publishing it, unless he was refused himself."""
        publishing = {item.key for items in self.publishing.values() for item in items}
        for item in ask.own(self.state):
            is_refused = any(one.table in refused for one in bound_group(item, self.state.book))
            assert is_refused or item.key not in publishing

    def check_item(self, item: Staged, decided: dict[str, str]) -> None:
        """Once, green, and behind its parents. What goes out between decision and claim goes out behind it: readers
        could have seen the item first.
        """
        assert (item.table, item.version) not in self.past, "published twice"
        (now,) = (one for one in self.state.book.staged if one.key == item.key)
        assert now.version == item.version
        for gate in item.gates:
            assert now.counted[gate].verdict == Verdict.GREEN
            assert self.truth[gate, item.table, item.version] == Verdict.GREEN
        for parent in item.parents:
            assert (parent.table, parent.version) in self.past
        if not self.has_trouble:
            leaving = {one.table: one.version for one in bound_group(item, self.state.book)}
            for _, read in item.bound_reads:
                now_there = leaving.get(read.table, self.current.get(read.table))
                assert read.version in (now_there, decided.get(read.table)) or read.table in self.moved

    def check_end(self) -> None:
        """Nothing is in progress, the end of the run waits for nobody, and nothing that is free was left."""
        assert self.state.leases == ()
        assert not any(isinstance(one, Wait) for one in self.apply(events.ended, -1))
        if not self.has_trouble:
            assert pick_group(self.state.book, self.world()) == ()


@settings(max_examples=examples(120, 400), phases=[Phase.generate])
@given(seed=st.integers(0, 2**32))
def test_threads_publish_all_that_is_free_once_and_whole(seed: int) -> None:
    """Also what one thread had to leave to another one; readers see what the green tests read."""
    play = Play(Random(seed), has_trouble=False)
    play.run()
    play.check_end()


@settings(max_examples=examples(120, 400), phases=[Phase.generate])
@given(seed=st.integers(0, 2**32))
def test_threads_leave_nothing_in_progress_after_trouble(seed: int) -> None:
    """Over commits by others with what is planned again, logs that fail, and interruptions at any group."""
    play = Play(Random(seed), has_trouble=True)
    play.run()
    play.check_end()
