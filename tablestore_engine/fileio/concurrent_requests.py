"""Requests of one caller to an object store, side by side.

CHANGE     how many requests to an object store run at once
INVARIANT  a caller has `TOGETHER` requests at once, those of calls within its calls among them.
INVARIANT  nothing begins after a failure; the first one is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
TOGETHER = 16  # more make a store ask for pauses
_allowed = ContextVar("requests of this thread and of those it starts", default=TOGETHER)


def run_together(calls: Sequence[Callable[[], T]]) -> Sequence[T]:
    """Results in the order of the calls, each in a thread: it mostly waits for the store."""
    allowed = _allowed.get()
    threads = min(len(calls), allowed)
    if threads < 2:
        return [call() for call in calls]
    with ThreadPoolExecutor(threads, initializer=_allowed.set, initargs=(allowed // threads,)) as pool:
        running = [pool.submit(call) for call in calls]
        for one in wait(running, return_when=FIRST_EXCEPTION).not_done:
            one.cancel()
    failed = (one.exception() for one in running if not one.cancelled())
    for error in failed:
        if error is not None:
            raise error
    return [one.result() for one in running]
