"""What we say in dbt's log lines and errors: one place that makes it fit for the terminal.

INVARIANT  debug lines, which repeat the user's own SQL, are not touched.
"""

from __future__ import annotations

import sys
from typing import Any

from dbt.adapters.events.logging import AdapterLogger

from tablestore_engine.spi import OrderedLock, Rank
from tablestore_engine.spi import shown as shown_in


class TerminalMessages(AdapterLogger):
    """`info` and `warning` without control characters, and in characters that the terminal's encoding has."""

    def info(self, msg: Any, *args: Any) -> None:  # noqa: ANN401 - dbt's signature
        """A line that every run shows."""
        super().info(shown(str(msg)), *args)

    def warning(self, msg: Any, *args: Any) -> None:  # noqa: ANN401 - dbt's signature
        """A line that is counted as a warning."""
        super().warning(shown(str(msg)), *args)


logger = TerminalMessages("Tablestore")


class WarnedOnce:
    """What was warned of in one invocation."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._lock = OrderedLock("warnings of an invocation", Rank.PROCESS)

    def warn(self, about: str, text: str) -> None:
        """Unless something `about` the same was warned of before."""
        with self._lock:
            is_new = about not in self._seen
            self._seen.add(about)
        if is_new:
            logger.warning(text)


def shown(text: str) -> str:
    """The text for dbt's standard output."""
    return shown_in(text, getattr(sys.stdout, "encoding", None))
