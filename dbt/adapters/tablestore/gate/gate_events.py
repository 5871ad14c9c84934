"""What happens to the staged snapshots of an invocation, besides publishing (gate/publish_decisions.py).

INVARIANT  pure: change() returns the new state and the actions of the executor.
INVARIANT  an event that comes late changes nothing: what it is about is looked up by its version.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from dbt.adapters.tablestore.gate.gate_state import GateState, GateStep, Key, Lease, Rebuild, Recheck
from tablestore_engine.spi import GateBook, Outcome, Staged

# what is to be done --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wait:
    """Until no other thread has these tables in progress, nor writes a batch of them, `and_batches`; then ask again."""

    tables: frozenset[str]
    and_batches: bool = False

    def is_over(self, holder: int, state: GateState) -> bool:
        """For the thread that waits."""
        busy = state.taken(holder) | (state.written(holder) if self.and_batches else frozenset())
        return not self.tables & busy


@dataclass(frozen=True)
class DropStaged:
    """`root`: the staged snapshot that must go; `item` is that, or was built from it."""

    item: Staged
    root: Staged


@dataclass(frozen=True)
class SayJoined:
    """Batches join what an earlier run has left: told once."""

    item: Staged


@dataclass(frozen=True)
class SayHeld:
    """What stays unpublished: told once."""

    items: tuple[Staged, ...]
    book: GateBook


# what has happened ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Started:
    """The invocation's staged branches have this name."""

    branch: str

    def change(self, state: GateState) -> GateStep:
        """The name of what is staged from now on."""
        return GateStep(replace(state, branch=self.branch))


@dataclass(frozen=True)
class Loaded:
    """`found`: staged snapshots of earlier processes in `databases`; what this process knows of them is newer."""

    databases: frozenset[str]
    found: tuple[Staged, ...]

    def change(self, state: GateState) -> GateStep:
        """Only the first one counts: what another thread has read meanwhile may be published by now."""
        new = self.databases - state.loaded
        known = {item.key for item in state.book.staged}
        book = state.book
        for item in self.found:
            if item.owner and item.key not in known and item.table.split(".", maxsplit=1)[0] in new:
                book = book.with_added(item)
        return GateStep(replace(state, book=book, loaded=state.loaded | new))


@dataclass(frozen=True)
class Continued:
    """`dbt retry`: what was staged under these names is this invocation's too."""

    names: frozenset[str]

    def change(self, state: GateState) -> GateStep:
        """Once, before the first statement."""
        if state.is_begun:
            return GateStep(state)
        adopted = frozenset(item.key for item in state.book.staged if item.name in self.names)
        return GateStep(replace(state, is_begun=True, adopted=adopted, mine=state.mine | adopted))


@dataclass(frozen=True)
class BatchBegan:
    """A thread plans a batch on what is staged and published now."""

    holder: int
    table: str

    def change(self, state: GateState) -> GateStep:
        """Behind what is in progress; until BatchEnded no other thread publishes the table, or builds it again."""
        if self.table in state.taken(self.holder):
            return GateStep(state, (Wait(frozenset({self.table})),))
        return GateStep(replace(state, batches=(*state.batches, (self.holder, self.table))))


@dataclass(frozen=True)
class BatchEnded:
    """It is in the staged snapshot, published, or has failed; the thread looks for what is free next."""

    holder: int
    table: str

    def change(self, state: GateState) -> GateStep:
        """A thread writes one batch at a time."""
        left = tuple(one for one in state.batches if one != (self.holder, self.table))
        return GateStep(replace(state, batches=left))


@dataclass(frozen=True)
class Joined:
    """A batch goes into a staged snapshot that waits."""

    item: Staged

    def change(self, state: GateState) -> GateStep:
        """Told when an earlier run has staged it."""
        key = self.item.key
        if key in state.joined or key in state.mine - state.adopted:
            return GateStep(state)
        return GateStep(replace(state, joined=state.joined | {key}), (SayJoined(self.item),))


@dataclass(frozen=True)
class Rebuildable:
    """From now on it is known how the table is staged once more."""

    table: str
    rebuild: Rebuild

    def change(self, state: GateState) -> GateStep:
        """The last way counts: it has all batches."""
        return GateStep(replace(state, rebuilds={**state.rebuilds, self.table: self.rebuild}))


@dataclass(frozen=True)
class Built:
    """A staged snapshot exists; reads of this invocation see it."""

    item: Staged

    def change(self, state: GateState) -> GateStep:
        """In the place of what had the same name."""
        return GateStep(
            replace(state, book=state.book.with_added(self.item), mine=state.mine | {self.item.key})
        )


@dataclass(frozen=True)
class Ran:
    """A test has run, and it is known how to run it once more."""

    test: str
    recheck: Recheck

    def change(self, state: GateState) -> GateStep:
        """Kept before its outcome is: a rebuild that is going on runs it again."""
        return GateStep(replace(state, rechecks={**state.rechecks, self.test: self.recheck}))


@dataclass(frozen=True)
class Said:
    """The outcome lies beside the staged snapshot."""

    key: Key
    outcome: Outcome

    def change(self, state: GateState) -> GateStep:
        """It counts for the version that the test has read: not for one that was staged meanwhile."""
        found = next((item for item in state.book.staged if item.key == self.key), None)
        if found is None:
            return GateStep(state)
        return GateStep(replace(state, book=state.book.with_added(found.with_outcome(self.outcome))))


@dataclass(frozen=True)
class Gone:
    """A staged snapshot was dropped, here or by another process."""

    item: Staged

    def change(self, state: GateState) -> GateStep:
        """A later staged snapshot of the same name stays."""
        same = (
            one for one in state.book.staged if (one.key, one.version) == (self.item.key, self.item.version)
        )
        return GateStep(replace(state, book=state.book.without(*same)))


# what a thread wants -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Take:
    """A thread has work at a table that nobody else may do meanwhile."""

    holder: int
    table: str

    def change(self, state: GateState) -> GateStep:
        """It has it from now on, or waits."""
        if self.table in state.taken(self.holder):
            return GateStep(state, (Wait(frozenset({self.table})),))
        return GateStep(state.with_lease(Lease(self.holder, also=frozenset({self.table}))))


@dataclass(frozen=True)
class Left:
    """A thread ends its work, after success or an error; it keeps the leases that it had `before`."""

    holder: int
    before: tuple[Lease, ...] = ()

    def change(self, state: GateState) -> GateStep:
        """Nothing else of it is in progress any more."""
        kept = tuple(one for one in state.leases if one.holder != self.holder or one in self.before)
        return GateStep(replace(state, leases=kept))


@dataclass(frozen=True)
class DropWaiting:
    """What waits for a table must go, but for the staged snapshot `keep`; what was built from it goes with it.

    `for_batch`: nor goes what other batches of this invocation are staged in.
    """

    holder: int
    table: str
    keep: str | None = None
    for_batch: bool = False

    def change(self, state: GateState) -> GateStep:
        """Waits for what others have in progress; who must not wait leaves that to them."""
        found = tuple(self._list(state))
        taken = state.taken(self.holder) & {one.item.table for one in found}
        if taken and not state.is_holder(self.holder):
            return GateStep(state, (Wait(taken),))
        found = tuple(one for one in found if one.item.table not in taken)
        lease = Lease(self.holder, tuple(one.item for one in found))
        return GateStep(state.with_lease(lease) if found else state, found)

    def _list(self, state: GateState) -> list[DropStaged]:
        found: list[DropStaged] = []
        book = state.book
        kept = (state.mine - state.adopted) | state.joined if self.for_batch else frozenset()
        for old in state.book.of_table(self.table):
            if old.name == self.keep or old.is_out or old.key in kept:
                continue
            for item in book.with_children(old):
                if item.key in state.mine - state.adopted and item.table != self.table:
                    continue
                found.append(DropStaged(item, old))
                book = book.without(item)
        return found


@dataclass(frozen=True)
class Ended:
    """The run ends: its unpublished staged snapshots are reported, after all other threads have published."""

    holder: int

    def change(self, state: GateState) -> GateStep:
        """Each staged snapshot once."""
        if taken := state.taken(self.holder):
            return GateStep(state, (Wait(taken),))
        held = tuple(item for item in state.book.staged if item.key in state.mine - state.told)
        told = state.told | _keys(held)
        return GateStep(replace(state, told=told), (SayHeld(held, state.book),) if held else ())


def _keys(items: Collection[Staged]) -> frozenset[Key]:
    return frozenset(item.key for item in items)
