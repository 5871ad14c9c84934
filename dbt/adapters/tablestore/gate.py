"""Which staged snapshots may be published: the decisions of test-gated publishing, without any I/O.

Names      Verdict        what one test said
           Staged         one staged snapshot: whose, where, which tests and which staged parents it waits for
           GateBook       all staged snapshots that an invocation knows; every change gives a new book
           pick_publishable()  what may be published now, parents first
           explain()      why one of them is still held back, in words
Steps      stage -> record verdicts -> publish when all gates are green and all parents are published
INVARIANT  a staged snapshot is never published while a gate is missing or red, or a parent waits.
INVARIANT  a red verdict stays until the same test is run again or the model is built again.
EXAMPLE    orders waits for [unique, relationships]; daily is built from staged orders, so it also waits
           for orders. unique green, relationships red: neither is published.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum


class Verdict(StrEnum):
    """Outcome of a gating test."""

    GREEN = "green"
    RED = "red"
    ERROR = "error"


@dataclass(frozen=True)
class Staged:
    """A snapshot that nobody sees yet. `policy` manual is never published by tests."""

    node: str
    table: str
    name: str
    policy: str
    gates: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    verdicts: tuple[tuple[str, str], ...] = ()

    @property
    def is_green(self) -> bool:
        """All gates ran and none is red."""
        return not self.red_gates and not self.missing_gates

    @property
    def red_gates(self) -> tuple[str, ...]:
        """Gates that said no."""
        return tuple(gate for gate, verdict in self.verdicts if verdict != Verdict.GREEN)

    @property
    def missing_gates(self) -> tuple[str, ...]:
        """Gates that have not run."""
        seen = dict(self.verdicts)
        return tuple(gate for gate in self.gates if gate not in seen)

    def with_verdict(self, gate: str, verdict: Verdict) -> Staged:
        """The same with one more, or newer, outcome."""
        seen = {**dict(self.verdicts), gate: str(verdict)}
        return replace(self, verdicts=tuple(sorted(seen.items())))


@dataclass(frozen=True)
class GateBook:
    """Staged snapshots by node."""

    staged: tuple[Staged, ...] = field(default=())

    def find(self, node: str) -> Staged | None:
        """The staged snapshot of a node."""
        return next((item for item in self.staged if item.node == node), None)

    def with_staged(self, item: Staged) -> GateBook:
        """A newer build of a node replaces the older one, and all that was built from the older one."""
        stale = {item.node}
        while more := {o.node for o in self.staged if stale & set(o.parents)} - stale:
            stale |= more
        return GateBook((*(other for other in self.staged if other.node not in stale), item))

    def with_changed(self, item: Staged) -> GateBook:
        """The same staged snapshot with other verdicts."""
        return GateBook(tuple(item if other.node == item.node else other for other in self.staged))

    def without(self, node: str) -> GateBook:
        """After publishing or dropping; children of the node no longer wait for it."""
        return GateBook(
            tuple(
                replace(item, parents=tuple(parent for parent in item.parents if parent != node))
                for item in self.staged
                if item.node != node
            )
        )

    def with_verdict(self, test: str, verdict: Verdict) -> GateBook:
        """Record the outcome of a test at every snapshot that waits for it."""
        return GateBook(
            tuple(item.with_verdict(test, verdict) if test in item.gates else item for item in self.staged)
        )


def pick_publishable(book: GateBook, asked: frozenset[str] = frozenset()) -> tuple[Staged, ...]:
    """Snapshots that may go out now, each before its children; `asked` are manual ones to be let go."""
    order: list[Staged] = []
    open_items = [
        item for item in book.staged if item.is_green and (item.policy != "manual" or item.node in asked)
    ]
    gone: set[str] = set()
    while ready := [item for item in open_items if set(item.parents) <= gone]:
        order.extend(ready)
        gone.update(item.node for item in ready)
        open_items = [item for item in open_items if item.node not in gone]
    return tuple(order)


def explain(item: Staged, book: GateBook) -> str:
    """Why it is held back, for the user."""
    if item.red_gates:
        return f"red: {', '.join(_short(gate) for gate in item.red_gates)}"
    if item.missing_gates:
        return f"waiting for {', '.join(_short(gate) for gate in item.missing_gates)}"
    waiting = [parent for parent in item.parents if book.find(parent) is not None]
    if waiting:
        return f"built from {', '.join(_short(parent) for parent in waiting)}, not published either"
    return "publish is manual: dbt run-operation tablestore_publish"


def _short(unique_id: str) -> str:
    """`test.shop.unique_orders_id.ab12` -> `unique_orders_id`."""
    parts = unique_id.split(".")
    return parts[2] if len(parts) > 2 else unique_id


def combine_verdict(row: tuple[int, bool, bool] | None, severity: str, *, warn_is_error: bool) -> Verdict:
    """The outcome of a data test from its row (failures, should_warn, should_error); None means it raised."""
    if row is None:
        return Verdict.ERROR
    _, should_warn, should_error = row
    if severity.lower() == "error" and should_error:
        return Verdict.RED
    return Verdict.RED if should_warn and warn_is_error else Verdict.GREEN
