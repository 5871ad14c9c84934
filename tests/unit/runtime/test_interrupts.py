"""A waiting main thread hears Ctrl-C, whatever library took the signal over."""

from __future__ import annotations

import subprocess
import sys

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
