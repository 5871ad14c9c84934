"""Publishes what is free, builds again what was overtaken, and says what became of it: performs publish_decisions.py.

CHANGE     how a dbt run publishes a group of tables
Steps      read what readers see → Next → publish a group, build and test again, or wait → Next → … → report
INVARIANT  no lock is held meanwhile; what is in progress stands in the state, so that other threads leave it alone.
INVARIANT  a publication that failed is an error of the test that asked for it: no run ends well with pending work.
CRASH      branches and outcomes stay, also between two claims or before a log: the next test or build resumes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from dbt.adapters.tablestore.gate import gate_events as events
from dbt.adapters.tablestore.gate.gate_events import Wait
from dbt.adapters.tablestore.gate.gate_messages import abstention, failed, red_again
from dbt.adapters.tablestore.gate.gate_state import GateAction, Lease
from dbt.adapters.tablestore.gate.publish_decisions import (
    Ask,
    Next,
    Publish,
    Replan,
    StartOver,
    again_line,
    published,
    rechecks,
)
from dbt.adapters.tablestore.gate.shared_state import SharedGateState, me
from dbt.adapters.tablestore.messages import logger
from tablestore_engine.api import Engine, NotFound, TablestoreError
from tablestore_engine.spi import (
    PUBLISHED,
    REFUSED,
    Gatekeeper,
    Outcome,
    Publication,
    World,
    needs_world,
    short_name,
)


class GroupPublisher:
    """Of one invocation; any of its threads may call it."""

    def __init__(self, engine: Callable[[], Engine], shared: SharedGateState) -> None:
        self._engine = engine
        self._shared = shared

    def publish(self, ask: Ask, gate: Gatekeeper | None = None) -> tuple[str, ...]:
        """All that is free. Lines for the log. Raises RetryError TS1876 when something could not be published.

        `gate`: has looked at tables a moment ago; the first round goes by that.
        """
        done: list[Publication] = []  # of earlier rounds
        results: tuple[Publication, ...] = ()  # of this one: a round ends when something is built again
        with self._shared.work():
            gate = gate or self._gate()
            while action := self._decide(ask, results, gate):
                match action:
                    case Publish():
                        results += self._publish(action, gate)
                    case Wait():
                        self._shared.wait(action)
                    case StartOver():
                        done += _in_table(results)
                        results = ()
                        self._shared.wait(Wait(action.tables, and_batches=True))
                    case Replan():
                        done += _in_table(results)
                        results = ()
                        if (refused := self._replan(action)) is not None:
                            return report([*done, *refused])
                gate = self._gate()  # what was done or waited for has changed what is there
        return report([*done, *results])

    def _gate(self) -> Gatekeeper:
        return self._engine().gate.looking_once()

    def _decide(self, ask: Ask, results: tuple[Publication, ...], gate: Gatekeeper) -> GateAction | None:
        """On what readers see now."""
        book = self._shared.state.book
        world = gate.see(book) if needs_world(book, ask.wanted) else World()
        return next(iter(self._shared.apply(Next(ask, book, world, results).change)), None)

    def _publish(self, action: Publish, gate: Gatekeeper) -> tuple[Publication, ...]:
        results = gate.publish(action.lease.items)
        self._shared.conclude(results, published, action.lease, results)
        return results

    def publish_pending(self, table: str) -> bool:
        """What is in a table, and not in its log. Whether there was something. Raises RetryError TS1876."""
        waiting = self._shared.state.pending(table)
        for item in waiting:
            results = self._engine().gate.publish((item,))
            self._shared.conclude(results, published, Lease(me(), (item,)), results)
            report(results)
        return bool(waiting)

    # building again ------------------------------------------------------------------------------

    def _replan(self, action: Replan) -> tuple[Publication, ...] | None:
        """None when all is staged on the new rows; else what stays, and why."""
        try:
            self._build_again(action)
        except TablestoreError as error:
            refused = tuple(Publication(item, REFUSED, error=error) for item in action.lease.items)
            self._shared.conclude(refused, events.left, action.lease.holder)
            return refused
        return None

    def _build_again(self, action: Replan) -> None:
        """Raises RetryError TS1878 when a test that was green is red on the new rows."""
        for item, rebuild, number in action.builds:
            logger.info(again_line(item, number))
            rebuild(number)
        book = self._shared.state.book
        new = {one.table: one for item in action.lease.items for one in book.of_table(item.table)}
        red, done = list[str](), frozenset[str]()
        while tests := rechecks(self._shared.state, action.lease, done):
            for outcome in tuple(recheck() for _, recheck in tests):
                self.keep(outcome)
                if outcome.holds_back([one for one in new.values() if outcome.test in one.gates]):
                    red.append(short_name(outcome.test))
            if red:
                raise red_again(new, red)
            done |= {test for test, _ in tests}

    def keep(self, outcome: Outcome, elsewhere: Collection[str] = (), gate: Gatekeeper | None = None) -> bool:
        """Beside every staged snapshot that asks for it; whether there is one."""
        gate = gate or self._gate()
        asked = self._shared.state.gated_by(outcome.test)
        for item in asked:
            if item.table in elsewhere or item.is_out:
                continue
            try:
                gate.record(item, outcome)
            except NotFound:  # another process has published or dropped it meanwhile
                logger.debug(f"staged snapshot {item.name} of {item.table} is gone")
                self._shared.apply(events.gone, item)
                continue
            self._shared.apply(events.said, item.key, outcome)
            if item.takes(outcome) and outcome.abstains_from(item):
                logger.info(abstention(item, outcome))
        return bool(asked)


def _in_table(results: Iterable[Publication]) -> list[Publication]:
    """What is in its table; the rest is asked for again."""
    return [one for one in results if one.report is not None]


def report(done: Collection[Publication]) -> tuple[str, ...]:
    """Lines for the log; raises when something failed."""
    lines = tuple(one.line() for one in done)
    if all(one.state == PUBLISHED for one in done):
        return lines
    for line in lines:
        logger.warning(line)
    raise failed(done)
