"""What a thread publishes next, builds again, or waits for. The rule itself: warehouse/gate/gate_rule.py of the engine.

CHANGE     whether a thread of a dbt run publishes, builds again or waits
Steps      Next → Publish a group → published → Next → … → Replan what was lost → rechecks → Next → … → nothing is left
INVARIANT  pure: a decision stands on the book that the world was read for; when the book has changed, LookAgain.
INVARIANT  one thread publishes a staged snapshot, all of its group with it, while no other one moves what the group was
           built from or what its tests have read.
INVARIANT  who turns away, because others are at work, either waits for them, or they look again behind their own work.
CRASH      `left` ends what a thread has begun; what it did lies beside the staged snapshots.
CHANGE     a dbt run after a lost claim
Again      lost tables with all that was staged from them, parents first → each is built and staged again →
           their tests that had run are run again → the gate decides again
WHY        dbt runs each node once; but the model's SQL is compiled and its tests are statements, and both mean
           the same on a new base. The one exception is a table that did not exist when the SQL was compiled
           (is_incremental() was false): that model is not built again here, its test fails and says what to type.
INVARIANT  at most ATTEMPTS_MAX times per table and invocation: a busy table must not keep a run for ever.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from dbt.adapters.tablestore.gate.gate_events import Wait
from dbt.adapters.tablestore.gate.gate_state import GateState, GateStep, Lease, Rebuild, Recheck
from tablestore_engine.spi import (
    PENDING,
    PUBLISHED,
    GateBook,
    Outcome,
    Publication,
    Staged,
    World,
    bound_group,
    find_obstacle,
    order_group,
    pick_group,
)

ATTEMPTS_MAX = 3


def pick_again(state: GateState, lost: tuple[Staged, ...]) -> tuple[Staged, ...]:
    """What has to be built again, parents first; () when this invocation cannot, or has tried enough."""
    wanted = {one.key: one for item in lost for one in state.book.with_children(item)}
    known = all(
        item.table in state.rebuilds and state.attempts.get(item.table, 0) < ATTEMPTS_MAX
        for item in wanted.values()
    )
    return order_group(tuple(wanted.values())) if known else ()


def again_line(item: Staged, number: int) -> str:
    """Why a model is built once more in the same run."""
    return (
        f"{item.table}: another writer committed meanwhile; it is planned and tested again on the new rows "
        f"({number} of at most {ATTEMPTS_MAX})"
    )


# what is to be done --------------------------------------------------------------------------------


@dataclass(frozen=True)
class LookAgain:
    """The book has changed since the world was read: read it again, and ask again."""


@dataclass(frozen=True)
class Publish:
    """The items of the lease, in their order."""

    lease: Lease


@dataclass(frozen=True)
class Replan:
    """Build the items of the lease again, in their order; `builds`: how each is built, and which attempt it is."""

    lease: Lease
    builds: tuple[tuple[Staged, Rebuild, int], ...]


@dataclass(frozen=True)
class StartOver:
    """What was lost belongs to others now, or gets a batch: Wait, then publish again without what is known of it."""

    tables: frozenset[str]


# who asks ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ask:
    """Behind a `test`, or behind the build of a `table`: then nothing but its own group goes out.

    `wanted`: tables that the user lets go.
    """

    holder: int
    test: str = ""
    table: str = ""
    wanted: frozenset[str] = frozenset()

    def own(self, state: GateState) -> tuple[Staged, ...]:
        """What the caller's result is about."""
        found = (*state.gated_by(self.test), *state.own(self.table))
        found += tuple(item for item in state.book.staged if item.table in self.wanted)
        return tuple(item for item in found if not item.is_out)

    def beyond(self, state: GateState) -> frozenset[str]:
        """Tables that are none of the caller's business."""
        if not self.table:
            return frozenset()
        bound = _tables(one for item in self.own(state) for one in bound_group(item, state.book))
        return _tables(state.book.staged) - bound


@dataclass(frozen=True)
class Next:
    """What now? `world` was read for `book`; `results`: of what was published since all began, or was built again."""

    ask: Ask
    book: GateBook
    world: World
    results: tuple[Publication, ...] = ()

    def change(self, state: GateState) -> GateStep:
        """Groups first, then what was lost, then what others are at.

        What was built again, or follows what is out, stays in progress until it is out, or cannot go: a branch that
        others begin to read in between would be gone a moment later.
        """
        holder = self.ask.holder
        if state.book != self.book:
            return GateStep(state, (LookAgain(),))
        if group := self._pick(state):
            lease = Lease(holder, group)
            return GateStep(state.with_lease(lease), (Publish(lease),))
        mine = tuple(one for one in state.leases if one.holder == holder)
        lost = tuple(item for one in mine if one.is_lost for item in one.items)
        state = state.without_lease(*mine)
        again = pick_again(state, lost)
        if again:
            return _replan(state, holder, again)
        awaited = self._awaited(state)
        return GateStep(state, (Wait(awaited),) if awaited else ())

    def _refused(self) -> frozenset[str]:
        return _tables(one.staged for one in self.results if one.state != PUBLISHED)

    def _pick(self, state: GateState) -> tuple[Staged, ...]:
        """The next free group that nobody else is at. Who writes a batch of it publishes it behind the batch."""
        taken = state.taken(self.ask.holder)
        refused = self._refused() | taken | state.written(self.ask.holder) | self.ask.beyond(state)
        while group := pick_group(state.book, self.world, asked=self.ask.wanted, refused=refused):
            if not _needs(group) & taken:
                return group
            refused |= _tables(group)
        return ()

    def _awaited(self, state: GateState) -> frozenset[str]:
        """Tables in progress elsewhere that keep what the caller asks for, be they published in the end or not."""
        taken, refused = state.taken(self.ask.holder), self._refused()
        if not taken:
            return frozenset()
        moving = [item for one in state.others(self.ask.holder) for item in one.items]
        current = {**self.world.current, **{item.table: item.version for item in moving}}
        hoped = World(current, self.world.past | {(item.table, item.version) for item in moving})
        own = self.ask.own(state)
        awaited = _tables(own) & _tables(
            moving
        )  # somebody is at it, whatever was committed since he decided so
        for item in own:
            group = bound_group(item, state.book)
            is_free = any(
                find_obstacle(group, state.book, world, self.ask.wanted) is None
                for world in (self.world, hoped)
            )
            if is_free and not _tables(group) & refused:
                awaited |= (_tables(group) | _needs(group)) & taken
        return awaited


def _replan(state: GateState, holder: int, again: tuple[Staged, ...]) -> GateStep:
    """From now on nobody else touches these, nor what they are built from."""
    lease = Lease(holder, again, also=_needs(again))
    if busy := lease.tables & (state.taken(holder) | state.written(holder)):
        return GateStep(state, (StartOver(busy),))
    numbers = {item.table: state.attempts.get(item.table, 0) + 1 for item in again}
    builds = tuple((item, state.rebuilds[item.table], numbers[item.table]) for item in again)
    state = replace(state.with_lease(lease), attempts={**state.attempts, **numbers})
    return GateStep(state, (Replan(lease, builds),))


def _tables(items: Iterable[Staged]) -> frozenset[str]:
    return frozenset(item.table for item in items)


def _needs(group: Collection[Staged]) -> frozenset[str]:
    """Tables that a group was built from, or that its tests have read."""
    parents = {read.table for item in group for read in item.parents}
    return frozenset(parents | {read.table for item in group for _, read in item.bound_reads})


# what has happened ---------------------------------------------------------------------------------


def concludes(state: GateState, holder: int, outcome: Outcome) -> GateStep:
    """A test outcome completes some gates: it is recorded next, then their staged snapshots are published.

    In progress from now on, so that nobody begins to read a branch that is about to go; until Next decides.
    """
    taken = state.taken(holder)
    free = tuple(
        item
        for item in state.gated_by(outcome.test)
        if item.with_outcome(outcome).is_green and not item.is_out and item.table not in taken
    )
    return GateStep(state.with_lease(Lease(holder, free)) if free else state)


def published(state: GateState, lease: Lease, results: tuple[Publication, ...]) -> GateStep:
    """What became of a group: what is out waits for its log only; what was overtaken stays in progress, until it is
    planned again.
    """
    out = [one.staged for one in results if one.report is not None]
    book, mine = state.book.without(*out), state.mine
    for one in results:
        if one.state == PUBLISHED:
            mine -= {one.staged.key}
        elif one.state == PENDING:  # read again: it is out now, and its branch is still there
            book = book.with_added(replace(one.staged, is_out=True))
    lost = tuple(one.staged for one in results if one.is_overtaken)
    state = replace(state, book=book, mine=mine).without_lease(lease)
    follows = _followers(state, lease.holder, out)
    state = state.with_lease(Lease(lease.holder, follows)) if follows else state
    return GateStep(state.with_lease(Lease(lease.holder, lost, is_lost=True)) if lost else state)


def _followers(state: GateState, holder: int, out: Collection[Staged]) -> tuple[Staged, ...]:
    """What was built from these and goes out next: no batch may join it any more, and nobody begins to read it."""
    gone, taken = {item.key for item in out}, state.taken(holder)
    below = {one.key: one for item in out for one in state.book.with_children(item)}
    return tuple(
        one
        for one in below.values()
        if one.key not in gone and one.is_green and not one.is_out and one.table not in taken
    )


def rechecks(
    state: GateState, lease: Lease, done: frozenset[str] = frozenset()
) -> tuple[tuple[str, Recheck], ...]:
    """All of a lease is built again: every test of these tables that has run, once more, also if it ended meanwhile.

    `done`: tests that have read what is staged now.
    """
    again = {item.table for item in lease.items}
    gates = {gate for item in state.book.staged if item.table in again for gate in item.gates}
    return tuple((test, state.rechecks[test]) for test in sorted((gates & set(state.rechecks)) - done))
