"""A waiting main thread hears Ctrl-C, whatever library took the signal over."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

_WAITS = """
import os, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job begins with none
import polars
from tablestore_engine.runtime.interrupts import let_signals_interrupt
let_signals_interrupt()
waiting = threading.Event()

def press():
    waiting.wait()
    for _ in range(5):  # one that comes in the moment before the wait begins is heard at its end only
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(2)

threading.Thread(target=press, daemon=True).start()
try:
    waiting.set()
    threading.Event().wait({hang})
    print("never heard")
except KeyboardInterrupt:
    print("interrupted")
"""


def test_a_wait_ends_at_sigint_after_polars_is_imported() -> None:
    """polars installs a handler that restarts waiting calls; after ours they end as Python's do."""
    told = subprocess.run(
        [sys.executable, "-c", _WAITS.format(hang=3_600)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert told.stdout.strip() == "interrupted", told


_STOPS = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job begins with none
from tablestore_engine.runtime.interrupts import stopped_by_signals
with stopped_by_signals() as stop:
    assert not stop.is_set()
    os.kill(os.getpid(), {number})
    assert stop.is_set()
    print("asked", flush=True)
    os.kill(os.getpid(), {number})
    print("still there", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_asks_and_the_second_ends(number: int) -> None:
    """Work in hand may be finished behind the first; who cannot wait sends another."""
    told = subprocess.run(
        [sys.executable, "-c", _STOPS.format(number=int(number))],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert told.stdout.splitlines() == ["asked"], told
    assert told.returncode != 0
