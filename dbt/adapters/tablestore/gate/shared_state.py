"""The one gate state of an invocation's threads, and what dbt hears of each model.

INVARIANT  the lock is held while the state is read or replaced and responses are marked, and over nothing else: no
           rebuild, test, publication or other I/O. So who waits for the lock waits for microseconds.
INVARIANT  it is the outermost lock (Rank.PUBLISH_COORDINATOR): who waits for another thread's work holds no other lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Concatenate, ParamSpec

from dbt.adapters.tablestore.adapter_response import TablestoreResponse
from dbt.adapters.tablestore.gate import gate_events as events
from dbt.adapters.tablestore.gate.gate_events import Wait
from dbt.adapters.tablestore.gate.gate_state import GateAction, GateState, GateStep
from tablestore_engine.spi import OrderedCondition, Publication, Rank, Staged

P = ParamSpec("P")
GateEvent = Callable[Concatenate[GateState, P], GateStep]


class SharedGateState:
    """Replaced event by event."""

    def __init__(self) -> None:
        self._state = GateState()
        self._responses: dict[str, TablestoreResponse] = {}
        self._changed = OrderedCondition("publish coordinator", Rank.PUBLISH_COORDINATOR)

    @property
    def state(self) -> GateState:
        with self._changed:
            return self._state

    def apply(self, event: GateEvent[P], *about: P.args, **named: P.kwargs) -> tuple[GateAction, ...]:
        """What is to be done next."""
        with self._changed:
            step = event(self._state, *about, **named)
            self._state = step.state
            self._changed.notify_all()
            return step.actions

    def demand(self, event: GateEvent[P], *about: P.args, **named: P.kwargs) -> tuple[GateAction, ...]:
        """The same for an event that others' work can hold up: waits for them, and asks again."""
        while True:
            actions = self.apply(event, *about, **named)
            waits = [one for one in actions if isinstance(one, Wait)]
            if not waits:
                return actions
            self.wait(waits[0])

    def wait(self, wanted: Wait) -> None:
        holder = me()
        with self._changed:
            self._changed.wait_for(lambda: wanted.is_over(holder, self._state))

    def settled(self, nodes: Callable[[], Iterable[str]], table: str = "") -> GateState:
        """The state in which no other thread moves what these nodes have staged, or the table.

        For who reads them. A thread that has work of its own in progress does not wait.
        """
        holder = me()
        state = self.state
        if state.is_holder(holder) or not state.others(holder):
            return state
        asked = frozenset(nodes())

        def is_settled() -> bool:
            return not self._state.is_moving(holder, asked) and table not in self._state.taken(holder)

        with self._changed:
            self._changed.wait_for(is_settled)
            return self._state

    @contextmanager
    def work(self) -> Iterator[int]:
        """The leases that this thread takes inside end with the block, also after an error or an interruption."""
        holder = me()
        before = tuple(one for one in self.state.leases if one.holder == holder)
        try:
            yield holder
        finally:
            self.apply(events.left, holder, before)

    # what dbt hears ------------------------------------------------------------------------------

    def conclude(
        self, done: Iterable[Publication], event: GateEvent[P], *about: P.args, **named: P.kwargs
    ) -> None:
        """Mark the responses of published staged snapshots and replace the state, in one step."""
        with self._changed:
            for one in done:
                response = self._responses.get(one.staged.table)
                if response is not None:
                    response.mark_publication(one)
            self.apply(event, *about, **named)

    def built(self, item: Staged, response: TablestoreResponse, *, is_batch: bool, reason: str) -> None:
        """A model is staged, and its rows wait; each batch has an answer of its own."""
        with self._changed:
            if is_batch:
                self._responses[item.table] = response
            self._responses.setdefault(item.table, response).follow(response)
            self._responses[item.table].mark(published=False, reason=reason)
            self.apply(events.built, item)

    def unchanged(self, table: str, response: TablestoreResponse) -> None:
        """A model was built again, and nothing is left to change."""
        with self._changed:
            self._responses[table].follow(response)

    def hold(self, table: str, reason: str) -> None:
        with self._changed:
            if table in self._responses:
                self._responses[table].mark(published=False, reason=reason)


def me() -> int:
    """The thread, as a holder of leases."""
    return threading.get_ident()
