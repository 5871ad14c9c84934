"""A waiting main thread hears Ctrl-C, whatever library took the signal over."""

from __future__ import annotations

import subprocess
import sys

_WAITS = """
import os, signal, threading
import polars
from tablestore_engine.runtime.interrupts import let_signals_interrupt
let_signals_interrupt()
waiting = threading.Event()
threading.Thread(target=lambda: (waiting.wait(), os.kill(os.getpid(), signal.SIGINT)), daemon=True).start()
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
        [sys.executable, "-c", _WAITS.format(hang=20)], capture_output=True, text=True, check=False
    )
    assert told.stdout.strip() == "interrupted", told
