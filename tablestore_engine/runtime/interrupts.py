"""Signals that end a command: heard although a library took them over, and answered when the work in hand is done.

WHY        polars' handler for SIGINT sets SA_RESTART (its issue 21739): a main thread that waits for its workers, as
           dbt's does, then never hears the signal. Python's own handlers come without the flag.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn


def let_signals_interrupt() -> None:
    """Waiting calls end at SIGINT; handlers stay whose they are. Cheap, from any thread, as often as one likes."""
    signal.siginterrupt(signal.SIGINT, True)


class Terminated(KeyboardInterrupt):
    """SIGTERM, answered as Ctrl-C is."""


def _terminate(number: int, _: object) -> NoReturn:
    signal.signal(number, signal.SIG_DFL)  # a second one ends the process at once
    raise Terminated


@contextmanager
def interrupted_by_sigterm() -> Iterator[None]:
    """SIGTERM raises Terminated in the main thread, so that scratch and stages are removed; not where the program
    handles it itself.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """An event that the first SIGTERM or Ctrl-C sets; a second one does what it did before. From the main thread."""
    stop = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def handle(number: int, _: object) -> None:
        stop.set()
        signal.signal(number, before[signal.Signals(number)] or signal.SIG_DFL)

    for number in before:
        signal.signal(number, handle)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
