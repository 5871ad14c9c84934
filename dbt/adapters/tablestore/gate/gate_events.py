"""What happens to the staged snapshots of an invocation, besides publishing (gate/publish_decisions.py).

INVARIANT  pure: an event is a function of the state; it gives the new state and the actions of the executor.
INVARIANT  an event that comes late changes nothing: what it is about is looked up by its version.
"""

from __future__ import annotations

from collections.abc import Iterator
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
class SayHeld:
    """What stays unpublished: reported once."""

    items: tuple[Staged, ...]
    book: GateBook


# what has happened ---------------------------------------------------------------------------------


def started(state: GateState, branch: str) -> GateStep:
    """The invocation's staged branches have this name from now on."""
    return GateStep(replace(state, branch=branch))


def loaded(state: GateState, databases: frozenset[str], found: tuple[Staged, ...]) -> GateStep:
    """`found`: staged snapshots of earlier processes in `databases`; what this process knows of them is newer.

    Only the first time counts: what another thread has read meanwhile may be published by now.
    """
    new = databases - state.loaded
    known = {item.key for item in state.book.staged}
    book = state.book
    for item in found:
        if item.owner and item.key not in known and item.table.split(".", maxsplit=1)[0] in new:
            book = book.with_added(item)
    return GateStep(replace(state, book=book, loaded=state.loaded | new))


def continued(state: GateState, names: frozenset[str]) -> GateStep:
    """`dbt retry`: what was staged under these names is this invocation's too. Once, before the first statement."""
    if state.is_begun:
        return GateStep(state)
    adopted = frozenset(item.key for item in state.book.staged if item.name in names)
    return GateStep(replace(state, is_begun=True, adopted=adopted, mine=state.mine | adopted))


def batch_began(state: GateState, holder: int, table: str) -> GateStep:
    """A thread plans a batch on what is staged and published now, behind what is in progress.

    Until batch_ended no other thread publishes the table, or builds it again.
    """
    if table in state.taken(holder):
        return GateStep(state, (Wait(frozenset({table})),))
    return GateStep(replace(state, batches=(*state.batches, (holder, table))))


def batch_ended(state: GateState, holder: int, table: str) -> GateStep:
    """It is in the staged snapshot, published, or has failed; the thread, which writes one batch at a time, looks for
    what is free next.
    """
    return GateStep(replace(state, batches=tuple(one for one in state.batches if one != (holder, table))))


def joined(state: GateState, item: Staged) -> GateStep:
    """A batch goes into a staged snapshot that waits. The action: to say so, once, of what an earlier run has left."""
    if item.key in state.joined or item.key in state.mine - state.adopted:
        return GateStep(state)
    return GateStep(replace(state, joined=state.joined | {item.key}), (item,))


def rebuildable(state: GateState, table: str, rebuild: Rebuild) -> GateStep:
    """From now on it is known how the table is staged once more. The last way counts: it has all batches."""
    return GateStep(replace(state, rebuilds={**state.rebuilds, table: rebuild}))


def built(state: GateState, item: Staged) -> GateStep:
    """A staged snapshot exists, in the place of what had the same name; reads of this invocation see it."""
    return GateStep(replace(state, book=state.book.with_added(item), mine=state.mine | {item.key}))


def ran(state: GateState, test: str, recheck: Recheck) -> GateStep:
    """A test has run, and it is known how to run it once more.

    Kept before its outcome is: a rebuild that is going on runs it again.
    """
    return GateStep(replace(state, rechecks={**state.rechecks, test: recheck}))


def said(state: GateState, key: Key, outcome: Outcome) -> GateStep:
    """The outcome lies beside the staged snapshot.

    It counts for the version that the test has read: not for one that was staged meanwhile.
    """
    found = next((item for item in state.book.staged if item.key == key), None)
    if found is None:
        return GateStep(state)
    return GateStep(replace(state, book=state.book.with_added(found.with_outcome(outcome))))


def gone(state: GateState, item: Staged) -> GateStep:
    """A staged snapshot was dropped, here or by another process; a later one of the same name stays."""
    same = (one for one in state.book.staged if (one.key, one.version) == (item.key, item.version))
    return GateStep(replace(state, book=state.book.without(*same)))


# what a thread wants -------------------------------------------------------------------------------


def take(state: GateState, holder: int, table: str) -> GateStep:
    """A thread has work at a table that nobody else may do meanwhile: it has it from now on, or waits."""
    if table in state.taken(holder):
        return GateStep(state, (Wait(frozenset({table})),))
    return GateStep(state.with_lease(Lease(holder, also=frozenset({table}))))


def left(state: GateState, holder: int, before: tuple[Lease, ...] = ()) -> GateStep:
    """A thread ends its work, after success or an error; it keeps the leases that it had `before`."""
    kept = tuple(one for one in state.leases if one.holder != holder or one in before)
    return GateStep(replace(state, leases=kept))


def drop_waiting(
    state: GateState, holder: int, table: str, keep: str | None = None, *, for_batch: bool = False
) -> GateStep:
    """What waits for a table must go, but for the staged snapshot `keep`; what was built from it goes with it.

    `for_batch`: nor goes what other batches of this invocation are staged in. Waits for what others have in progress;
    who must not wait leaves that to them.
    """
    found = tuple(_to_drop(state, table, keep, for_batch=for_batch))
    taken = state.taken(holder) & {one.item.table for one in found}
    if taken and not state.is_holder(holder):
        return GateStep(state, (Wait(taken),))
    found = tuple(one for one in found if one.item.table not in taken)
    lease = Lease(holder, tuple(one.item for one in found))
    return GateStep(state.with_lease(lease) if found else state, found)


def _to_drop(state: GateState, table: str, keep: str | None, *, for_batch: bool) -> Iterator[DropStaged]:
    book, own = state.book, state.mine - state.adopted
    kept = own | state.joined if for_batch else frozenset()
    for old in state.book.of_table(table):
        if old.name == keep or old.is_out or old.key in kept:
            continue
        for item in book.with_children(old):
            if item.key not in own or item.table == table:
                yield DropStaged(item, old)
                book = book.without(item)


def ended(state: GateState, holder: int) -> GateStep:
    """The run ends: after all other threads have published, what stays staged is reported once."""
    if taken := state.taken(holder):
        return GateStep(state, (Wait(taken),))
    held = tuple(item for item in state.book.staged if item.key in state.mine - state.told)
    told = state.told | {item.key for item in held}
    return GateStep(replace(state, told=told), (SayHeld(held, state.book),) if held else ())
