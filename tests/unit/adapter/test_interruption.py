"""What an interrupted run waits for; the signals themselves are in integration_tests/adapter/test_interrupts.py."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any, cast

import pytest

from dbt.adapters.tablestore.interruption import end_on_signals, stop_threads
from tablestore_engine.api import Engine


class Busy:
    """An engine whose threads end in time, or never: the real one has no work that nothing stops."""

    def __init__(self, *, ends: bool) -> None:
        self.ends = ends
        self.stopped: list[threading.Thread] = []
        self.waits = 0

    def stop(self, thread: threading.Thread) -> None:
        """Remembered."""
        self.stopped.append(thread)

    def wait_stopped(self, seconds: float) -> bool:
        """Counted."""
        assert seconds > 0
        self.waits += 1
        return self.ends


def _interrupt(busy: Busy) -> None:
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        stop_threads(cast("Engine", busy), {threading.get_ident()})


def test_an_interrupted_run_leaves_behind_only_what_does_not_end() -> None:
    """Threads that end let dbt report; one that does not raises the interruption again, so that the process ends."""
    ended, stuck = Busy(ends=True), Busy(ends=False)
    _interrupt(ended)
    with pytest.raises(KeyboardInterrupt):
        _interrupt(stuck)
    assert [one.stopped for one in (ended, stuck)] == [[threading.current_thread()]] * 2


def test_fail_fast_waits_for_its_threads() -> None:
    """Without an interruption nobody is left behind: the work is stopped, and dbt waits for its threads itself."""
    stuck = Busy(ends=False)
    stop_threads(cast("Engine", stuck), {threading.get_ident()})
    assert (len(stuck.stopped), stuck.waits) == (1, 0)


def test_sigterm_takes_the_way_of_ctrl_c_once() -> None:
    """The first raises KeyboardInterrupt and leaves the second to the system; another program's handler stays."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        end_on_signals()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        theirs: Any = lambda *_: None  # noqa: E731 - one handler, compared below
        signal.signal(signal.SIGTERM, theirs)
        end_on_signals()
        assert signal.getsignal(signal.SIGTERM) is theirs
    finally:
        signal.signal(signal.SIGTERM, before)
