"""Ctrl-C and SIGTERM end a dbt run: its Spark jobs are cancelled at once, nothing half-made stays.

Steps      signal → the main thread leaves its wait → dbt cancels connections → the engine stops each thread's work
           → threads end → dbt reports; what does not end in time is left behind with the process
INVARIANT  leaving a thread behind loses nothing: a commit is one exclusive create, whatever else is unreferenced.
INVARIANT  only an interrupted run leaves threads behind; --fail-fast waits for them.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Collection
from types import FrameType
from typing import NoReturn

from tablestore_engine.api import Engine
from tablestore_engine.spi import wake_at_signals

# Threads end when Spark has given up their jobs, and remove what they were making: in a fraction of a second, on a
# machine under load in several. Less than the 10 s after which `docker stop` kills.
_GRACE_SECONDS = 8.0


def stop_threads(engine: Engine, idents: Collection[int]) -> None:
    """End the work of these threads; raises the interruption again when it does not end in time."""
    for thread in threading.enumerate():
        if thread.ident in idents:
            engine.stop(thread)
    interruption = sys.exception()
    if isinstance(interruption, KeyboardInterrupt | SystemExit) and not engine.wait_stopped(_GRACE_SECONDS):
        raise interruption


def end_on_signals() -> None:
    """Ctrl-C ends dbt's wait for its threads, and so does SIGTERM unless the program handles it itself. Nothing but in
    the main thread.
    """
    wake_at_signals()
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _end)


def _end(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 - as signal.signal wants it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one ends the process at once
    raise KeyboardInterrupt
