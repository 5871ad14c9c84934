"""Signals that end a command: the waiting main thread answers each, and the work in hand may end first.

INVARIANT  in a command, a main thread that waits for a lock runs the handlers of SIGINT and SIGTERM, whichever thread
           the kernel gave the signal to.
WHY        Python runs handlers in the main thread, between two instructions. The kernel may give the signal to another
           thread: one that starts a thread just then takes it. A wait of the main thread, as dbt's for its workers,
           then does not end. Nor does a wait that begins just after the signal.
           polars' handler for SIGINT sets SA_RESTART (its issue 21739), which has the same effect. Python's own
           handlers come without the flag.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

_WAKING = signal.SIGURG  # its default is to do nothing, also in programs that a command starts
_AGAIN_SECONDS, _AGAIN_SECONDS_MAX = 0.05, 1.0
_ENDING = {int(signal.SIGINT), int(signal.SIGTERM)}


class _Waker(threading.Thread):
    """Interrupts the main thread's wait after each signal of _ENDING, until Python's handlers have run there.

    It sends another signal. A second SIGINT would be a second Ctrl-C, which means "at once".
    """

    def __init__(self) -> None:
        super().__init__(name="signal waker", daemon=True)
        self.numbers, self.written = os.pipe()
        os.set_blocking(self.written, False)
        self.is_answered = True

    def answer(self, *_: object) -> None:
        """The handler of _WAKING. Python runs handlers by number, so those of _ENDING have run before."""
        self.is_answered = True

    def run(self) -> None:
        """Python writes the number of a signal once its handler is due."""
        while True:
            if not _ENDING.isdisjoint(os.read(self.numbers, 64)):
                self._wake()

    def close(self) -> None:
        os.close(self.numbers)
        os.close(self.written)

    def _wake(self) -> None:
        main, pause = threading.main_thread().ident, _AGAIN_SECONDS
        assert main is not None
        self.is_answered = False
        while not self.is_answered and signal.getsignal(_WAKING) == self.answer:
            signal.pthread_kill(main, _WAKING)
            time.sleep(pause)
            pause = min(2 * pause, _AGAIN_SECONDS_MAX)


_wakers: list[_Waker] = []  # at most one that is alive: a fork has none


def wake_at_signals() -> None:
    """From now on SIGINT and SIGTERM end waits of the main thread; as often as one likes.

    Nothing in another thread, and where the program itself has a wake-up file (asyncio) or a handler of SIGURG.
    """
    if threading.current_thread() is not threading.main_thread() or any(one.is_alive() for one in _wakers):
        return
    while _wakers:
        _leave_to_parent(_wakers.pop())
    if signal.getsignal(_WAKING) is not signal.SIG_DFL:
        return
    waker = _Waker()
    before = signal.set_wakeup_fd(waker.written, warn_on_full_buffer=False)
    if before != -1:
        signal.set_wakeup_fd(before)
        waker.close()
        return
    signal.signal(_WAKING, waker.answer)
    _wakers.append(waker)
    waker.start()


def _leave_to_parent(waker: _Waker) -> None:
    """The waker of a process whose fork this is: its pipe and its handler are here, its thread is not."""
    before = signal.set_wakeup_fd(-1)
    if before not in {-1, waker.written}:
        signal.set_wakeup_fd(before)
    if signal.getsignal(_WAKING) == waker.answer:
        signal.signal(_WAKING, signal.SIG_DFL)
    waker.close()


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
    wake_at_signals()
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

    wake_at_signals()
    for number in before:
        signal.signal(number, handle)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
