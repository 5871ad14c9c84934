"""What a busy machine or a broker that has just come back cannot answer yet is asked again.

INVARIANT  only what an error of ours calls worth another try, before anything was found.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tablestore_engine.errors import OutcomeUnknown, RetryError

_TRIES = 20
_PAUSE_SECONDS = 0.5


def patiently(act: Callable[[], object]) -> None:
    """Raises what it raises the last time."""
    for number in range(_TRIES):
        try:
            act()
        except (RetryError, OutcomeUnknown):
            if number == _TRIES - 1:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return
