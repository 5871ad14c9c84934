"""Ctrl-C reaches Python again after a library took it over.

Names      let_signals_interrupt()   after a library took SIGINT over
WHY        polars' handler for SIGINT sets SA_RESTART (its issue 21739): a main thread that waits for its workers, as
           dbt's does, then never hears the signal. Python's own handlers come without the flag.
"""

from __future__ import annotations

import signal


def let_signals_interrupt() -> None:
    """Waiting calls end at SIGINT; handlers stay whose they are. Cheap, from any thread, as often as one likes."""
    signal.siginterrupt(signal.SIGINT, True)
