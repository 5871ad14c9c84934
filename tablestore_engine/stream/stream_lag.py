"""How far a reader lags behind a table that it follows: snapshots, changed rows, time. By metadata alone.

CHANGE     how far a table lags behind its sources
"""

from __future__ import annotations

from dataclasses import dataclass

from tablestore_engine.store.table_store import TableStore
from tablestore_engine.stream.changes_input import count_changed_rows, plan_changes


@dataclass(frozen=True)
class StreamLag:
    """`at`: the newest snapshot that the reader has taken; `newest`: of the table.

    `rows`: changed rows between the two, None where metadata does not say. `oldest_ms`: commit time of the oldest
    snapshot that was not taken, None without one.
    """

    at: int
    newest: int
    rows: int | None
    oldest_ms: int | None

    @property
    def snapshots(self) -> int:
        return self.newest - self.at

    def seconds(self, now_ms: int) -> float:
        """For how long the oldest of them has been committed."""
        return 0.0 if self.oldest_ms is None else max(0, now_ms - self.oldest_ms) / 1000


def measure_lag(followed: TableStore, position: str) -> StreamLag:
    """Of a reader with this position in the table. Raises FixRequest TS1474, NotFound TS1302."""
    found = plan_changes(followed, position)
    rows = count_changed_rows(followed, found)
    since, until = found.between.since or 0, found.between.until or 0
    oldest_ms = followed.snapshots.get(since + 1).time_millis if until > since else None
    return StreamLag(since, until, rows, oldest_ms)
