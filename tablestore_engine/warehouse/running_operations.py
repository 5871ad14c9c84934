"""The running operations of the threads of this process on one warehouse, so that another thread can stop them.

Steps      stop: mark the thread → until its operation ends, cancel the jobs that carry its tag, again and again; a
           call to the JVM that goes on meanwhile is no job but a plan in the making: close its connection
INVARIANT  a stopped thread starts nothing more: what it asks for next is refused too.
INVARIANT  a job that is submitted after stop() is cancelled like one that ran already: no gap between the two.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from weakref import WeakSet

from tablestore_engine.errors import OutcomeUnknown, Stopped
from tablestore_engine.runtime.locks import OrderedLock, Rank

_AGAIN_SECONDS = 0.1
_JOB_ROUNDS = 7  # so often jobs are cancelled before the call itself is given up
_NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Operation:
    """One statement or write; `tag` marks its Spark jobs, `ended` is set when it is over.

    `close_calls`: how to end a call to the JVM that no job runs for; filled in once the thread has a connection.
    `starts_spark` is set while it waits for the JVM, which takes seconds, cannot be cancelled, and has nothing to undo.
    """

    tag: str = field(default_factory=lambda: f"tablestore-{next(_NUMBERS)}")
    ended: threading.Event = field(default_factory=threading.Event)
    close_calls: list[Callable[[], object]] = field(default_factory=list)
    starts_spark: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def starting_spark(self) -> Iterator[None]:
        """Nobody waits for an operation in this state."""
        self.starts_spark.set()
        try:
            yield
        finally:
            self.starts_spark.clear()


class Operations:
    """The running operations of one warehouse, one per thread."""

    def __init__(self, cancel_jobs: Callable[[str], None]) -> None:
        self._cancel_jobs = cancel_jobs
        self._lock = OrderedLock("running operations", Rank.PROCESS)
        self._running: dict[threading.Thread, Operation] = {}
        self._stopped: WeakSet[threading.Thread] = WeakSet()

    @contextmanager
    def running(self) -> Iterator[Operation]:
        """The operation of this thread; one inside another is part of it. Raises Stopped TS1091."""
        self.check()
        thread = threading.current_thread()
        with self._lock:
            outer = self._running.get(thread)
            operation = outer or Operation()
            self._running[thread] = operation
        try:
            yield operation
        except (Stopped, OutcomeUnknown):
            raise
        except Exception:
            self.check()  # what a closed connection leaves is no error of the statement
            raise
        finally:
            if outer is None:
                with self._lock:
                    del self._running[thread]
                operation.ended.set()

    def check(self) -> None:
        """Raises Stopped TS1091 in a thread that was stopped."""
        with self._lock:
            stopped = threading.current_thread() in self._stopped
        if stopped:
            raise Stopped(
                "TS1091",
                "the work was stopped",
                why="the program was interrupted; nothing of this statement was committed",
                fix="run it again",
            )

    def stop(self, thread: threading.Thread) -> None:
        """Refuse what the thread asks for next, cancel what it does now; returns at once."""
        with self._lock:
            self._stopped.add(thread)
            operation = self._running.get(thread)
        if operation is not None:
            threading.Thread(target=self._cancel, args=(operation,), daemon=True).start()

    def wait_ended(self, seconds: float) -> bool:
        """Whether all operations of stopped threads are over, at the latest after `seconds`.

        One that waits for Spark to start is not waited for: False at once, when all others are over.
        """
        with self._lock:
            stopped = [one for thread, one in self._running.items() if thread in self._stopped]
        waiting = [one for one in stopped if not one.starts_spark.is_set()]
        end = time.monotonic() + seconds
        are_over = all(one.ended.wait(max(0.0, end - time.monotonic())) for one in waiting)
        return are_over and len(waiting) == len(stopped)

    def _cancel(self, operation: Operation) -> None:
        for number in itertools.count(1):
            self._cancel_jobs(operation.tag)
            if operation.ended.wait(_AGAIN_SECONDS):
                return
            if number >= _JOB_ROUNDS:
                for close in operation.close_calls:
                    close()
