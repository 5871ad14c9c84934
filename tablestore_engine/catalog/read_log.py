"""What statements have read by plain names: the ground on which a test's verdict stands.

Names      TableRead   rows of a table that a query saw: which commit, staged or not
           ReadLog     what one or several statements have read
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TableRead:
    """`snapshot` is the id it had when it was read; `stage` names the staged snapshot, None for published rows."""

    table: str
    version: str
    snapshot: int = 0
    stage: str | None = None


class ReadLog:
    """Filled by the statements that it is handed to, one after the other."""

    def __init__(self) -> None:
        self._seen: set[TableRead] = set()

    def note(self, read: TableRead) -> None:
        """A table was read by its plain name."""
        self._seen.add(read)

    def add(self, other: ReadLog) -> None:
        """What another one has seen, too."""
        self._seen |= other._seen

    def reads(self) -> tuple[TableRead, ...]:
        """Everything so far, sorted; a table that moved between two statements is there twice."""
        return tuple(sorted(self._seen, key=lambda one: (one.table, one.version)))
