"""The table versions that statements have read, on which the verdict of a test is based."""

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
        self._constants: set[TableRead] = set()

    def note(self, read: TableRead, *, is_constant: bool = False) -> None:
        """A table was read, by its plain name or as a constant: at a version that the text names."""
        (self._constants if is_constant else self._seen).add(read)

    def add(self, other: ReadLog) -> None:
        """What another one has seen, too."""
        self._seen |= other._seen
        self._constants |= other._constants

    def reads(self) -> tuple[TableRead, ...]:
        """By plain names so far, sorted; a table that moved between two statements is there twice."""
        return _sorted(self._seen)

    def constants(self) -> tuple[TableRead, ...]:
        """At versions that the text names: the same rows whenever it runs."""
        return _sorted(self._constants)


def _sorted(reads: set[TableRead]) -> tuple[TableRead, ...]:
    return tuple(sorted(reads, key=lambda one: (one.table, one.version)))
