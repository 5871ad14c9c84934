"""What one dbt invocation knows of its staged snapshots, and what its threads do with them at this moment.

CHANGE     which thread of a dbt run has the lease of a table
Steps      an event happens → event(state, …) → a new state, and what is to be done next, as data
INVARIANT  pure and frozen: no lock, no thread, no I/O. Who reads, writes or runs something does so between two events.
INVARIANT  a table belongs to one thread at a time (Lease): no other one publishes, rebuilds or drops what is staged.
INVARIANT  several threads may write batches of one table at once: meanwhile no other thread publishes it.
INVARIANT  a thread that has a lease never waits for another one, so no two threads wait for each other.
CRASH      nothing to keep: all that counts lies beside the staged snapshots, and the next process reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from tablestore_engine.spi import GateBook, Outcome, Staged


def branch_of(invocation: str) -> str:
    """By its id, so that two runs never share one."""
    return f"dbt_{invocation.replace('-', '')[:12]}"


def is_test_about(item: Staged, test: str, book: GateBook, mine: Collection[tuple[str, str]]) -> bool:
    """What the test gates, and what waits for other tables.

    Rows that another test refused stay out of it: what is built today must not be bound to them.
    """
    if any(red != test for red in item.red_gates):
        return False
    if item.red_gates and any(one.key in mine and test in one.gates for one in book.staged):
        return False
    return test in item.gates or not item.gates


Key = tuple[str, str]  # table and name of a staged snapshot
Rebuild = Callable[[int], None]  # stages a model once more; number of the attempt, from 1
Recheck = Callable[[], Outcome]  # runs a data test once more
GateAction = object  # for the executor: frozen data, which may carry callables of it that no event calls


@dataclass(frozen=True)
class Lease:
    """Staged snapshots in progress: published, built again or dropped by the thread `holder`.

    `also`: tables that must stay as they are meanwhile. `is_lost`: refused, since somebody else's rows came first; kept
    until it is decided whether they are planned again.
    """

    holder: int
    items: tuple[Staged, ...] = ()
    also: frozenset[str] = frozenset()
    is_lost: bool = False

    @property
    def tables(self) -> frozenset[str]:
        """That nobody else touches."""
        return self.also | {item.table for item in self.items}


@dataclass(frozen=True)
class GateStep:
    """What an event, which happened or which a thread wants to do, makes of a state."""

    state: GateState
    actions: tuple[GateAction, ...] = ()


@dataclass(frozen=True)
class RunGate:
    """What members of publish='all_or_nothing' wait for (gate/whole_run.py); without a name, for nothing."""

    name: str
    nodes: frozenset[str]


@dataclass(frozen=True)
class GateState:
    """`mine`: staged by this invocation or, `adopted`, by one that it continues; `joined`: of an earlier run, and has
    batches of this one; `told`: what the end of the run has named; `loaded`: databases of which all is known;
    `built`: nodes that this invocation has written without an error.
    """

    branch: str = "dbt"
    is_begun: bool = False
    book: GateBook = field(default_factory=GateBook)
    mine: frozenset[Key] = frozenset()
    adopted: frozenset[Key] = frozenset()
    joined: frozenset[Key] = frozenset()
    told: frozenset[Key] = frozenset()
    loaded: frozenset[str] = frozenset()
    rebuilds: Mapping[str, Rebuild] = field(default_factory=dict)
    rechecks: Mapping[str, Recheck] = field(default_factory=dict)
    attempts: Mapping[str, int] = field(default_factory=dict)
    leases: tuple[Lease, ...] = ()
    run_gate: RunGate | None = None
    built: frozenset[str] = frozenset()
    batches: tuple[tuple[int, str], ...] = ()  # thread and table, while it plans, writes and enters a batch

    # who does what -------------------------------------------------------------------------------

    def others(self, holder: int) -> tuple[Lease, ...]:
        """What other threads have in progress."""
        return tuple(one for one in self.leases if one.holder != holder)

    def taken(self, holder: int) -> frozenset[str]:
        """Tables that other threads have in progress."""
        return frozenset(table for one in self.others(holder) for table in one.tables)

    def written(self, holder: int) -> frozenset[str]:
        """Tables that other threads write batches of."""
        return frozenset(table for thread, table in self.batches if thread != holder)

    def is_holder(self, holder: int) -> bool:
        """Whether it has something in progress: then it must not wait."""
        return any(one.holder == holder for one in self.leases)

    def is_moving(self, holder: int, nodes: Collection[str]) -> bool:
        """Whether another thread publishes, rebuilds or drops what one of these nodes has staged."""
        return any(item.owner in nodes for one in self.others(holder) for item in one.items)

    def with_lease(self, lease: Lease) -> GateState:
        return replace(self, leases=(*self.leases, lease))

    def without_lease(self, *leases: Lease) -> GateState:
        return replace(self, leases=tuple(one for one in self.leases if one not in leases))

    # what is staged ------------------------------------------------------------------------------

    def own(self, table: str) -> tuple[Staged, ...]:
        """Of this invocation."""
        return tuple(item for item in self.book.of_table(table) if item.key in self.mine)

    def pending(self, table: str) -> tuple[Staged, ...]:
        """What is in the table, and not in its log."""
        return tuple(item for item in self.book.of_table(table) if item.is_out)

    def gated_by(self, test: str) -> tuple[Staged, ...]:
        """What waits for this test, or has."""
        return tuple(item for item in self.book.staged if test in item.gates)

    def parents_of(
        self, table: str, owners: Collection[str], read: Collection[tuple[str, str]]
    ) -> tuple[Staged, ...]:
        """What a build of `table` is made from: staged here by `owners`, or `read` by a name that is no ref."""
        return tuple(
            item
            for item in self.book.staged
            if item.key in self.mine and item.table != table
            if item.owner in owners or (item.table, item.version) in read
        )

    def left(self) -> frozenset[str]:
        """Tables of which earlier runs have left something staged."""
        return frozenset(
            item.table for item in self.book.staged if not item.is_out and item.key not in self.mine
        )

    def seen_by(self, node: str, rowless: Collection[str]) -> Mapping[str, str]:
        """table -> branch that reads of `node` should see. `rowless`: tables without published rows."""
        is_test = node.startswith("test.")
        return {
            item.table: item.name
            for item in self.book.staged
            if not item.is_out
            if self._is_own_of(item, node) or (is_test and self._is_left_for(item, node, rowless))
        }

    def _is_own_of(self, item: Staged, node: str) -> bool:
        """A node that is retried does not read what it had staged."""
        return item.key in self.mine and not (item.key in self.adopted and item.owner == node)

    def _is_left_for(self, item: Staged, test: str, rowless: Collection[str]) -> bool:
        """Of what earlier runs left: also what has no other rows yet."""
        return is_test_about(item, test, self.book, self.mine) or item.table in rowless
