"""The one order in which this process takes its locks, so that two threads can never wait for each other.

CHANGE     the order of locks
INVARIANT  ranks rise along every chain of held locks, checked at each acquire: a wrong order is an EngineBug in the
           first test that takes it, not a hang in the one run where two threads meet.
INVARIANT  threading.Lock and RLock are made nowhere else, neither in the engine nor in the adapter
           (tests/house/test_locks.py).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import IntEnum
from typing import Self

from tablestore_engine.errors import EngineBug


class Rank(IntEnum):
    """Outermost first. A lock of one rank may be held while one of a higher rank is taken, never the reverse."""

    PUBLISH_COORDINATOR = (
        2  # the adapter's gate state: while it is read or replaced; who holds another may not wait
    )
    ENGINES = 4  # the adapter's engines by profile: while one is made
    PAGE = 8  # tablestore ui: one difference, one question to the brokers at a time
    ENGINE_SPARK = 10  # one engine's first use of Spark
    SESSION_START = 12  # the process's one session: starting the JVM takes seconds
    SOURCE = 14  # format("tablestore") in a session: Spark starts a Python process for it
    PUBLISHER = 20  # one table's producer: the time of its transactions
    SESSION_NAMES = (
        30  # what Spark's catalog holds for us: the time of an analysis; calls the warehouse for look-ups
    )
    PROFILE = 36  # a command's one read of its dbt profile, which loads dbt
    WAREHOUSE = 40  # dictionaries of open stores and publishers: no call leaves it
    PROCESS = 50  # dictionaries of a module or a cache; no call leaves it


_HELD = threading.local()


class OrderedLock:
    """Used with `with`; the same thread may take it again."""

    def __init__(self, name: str, rank: Rank) -> None:
        self.name = name
        self.rank = rank
        self._lock = threading.RLock()

    def __enter__(self) -> Self:
        held: list[OrderedLock] = _held()
        if held and self not in held and held[-1].rank >= self.rank:
            raise EngineBug(
                "TS1990",
                f"lock {self.name!r} is taken while {held[-1].name!r} is held",
                why="locks are taken in the order of runtime/locks.py; in another order two threads can wait for ever",
                fix="report this with the stack: the call belongs before or after the held lock",
            )
        self._lock.acquire()
        held.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _held().pop()
        self._lock.release()


class OrderedCondition(OrderedLock):
    """A ranked condition variable: a thread that waits releases the lock, so that others can change the state."""

    def __init__(self, name: str, rank: Rank) -> None:
        super().__init__(name, rank)
        self._condition = threading.Condition(self._lock)

    def notify_all(self) -> None:
        """Something has changed; the caller holds the lock."""
        self._condition.notify_all()

    def wait_for(self, is_true: Callable[[], bool]) -> None:
        """Until it is; the caller holds the lock, and has it again behind this."""
        self._condition.wait_for(is_true)


def _held() -> list[OrderedLock]:
    """The locks of this thread, in the order taken."""
    held: list[OrderedLock] | None = getattr(_HELD, "locks", None)
    if held is None:
        held = _HELD.locks = []
    return held
