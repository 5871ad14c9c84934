"""How far a table's log is behind its table: snapshots, rows, seconds.

CHANGE     `tablestore log show`: what the log lacks
INVARIANT  unknown is None, never 0: of a log whose progress cannot be told, of a table that was rolled back behind it,
           of changes that are a difference and known only when they are read.
"""

from __future__ import annotations

from dataclasses import dataclass

from tablestore_engine.log.sink import LogState
from tablestore_engine.store.changelog import ChangelogReader
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.table_traits import TableTraits


@dataclass(frozen=True)
class Pending:
    """`rows`: changed rows, None when their number cannot be told; `since_ms`: when the oldest of it was committed."""

    snapshots: int = 0
    rows: int | None = 0
    since_ms: int | None = None

    def seconds(self, now_ms: int) -> float:
        """For how long something has been pending; 0 when nothing is."""
        return 0.0 if self.since_ms is None else max(now_ms - self.since_ms, 0) / 1000


@dataclass(frozen=True)
class LogStatus:
    """`newest`: the table's newest snapshot; `pending` None when it is not known; `trouble`: what stops publication.

    >>> status = orders.log_status()
    >>> "no log" if status is None else status.pending
    'no log'
    """

    table: str
    newest: int | None
    state: LogState
    pending: Pending | None
    looked_ms: int
    trouble: str | None = None


def read_status(table: str, store: TableStore, state: LogState, now_ms: int) -> LogStatus:
    """Put together what both sides say."""
    newest = store.snapshots.find_latest_id()
    trouble = state.trouble or find_contradiction(state.reached, newest, is_early=state.early is not None)
    pending = None
    if state.reached is not None and (newest or 0) >= state.reached:
        pending = count_pending(store, state.reached, newest or 0)
        missing = state.reached + 1
        if trouble is None and pending.snapshots and store.snapshots.find(missing) is None:
            trouble = f"a gap: snapshot {missing}, the next one to publish, does not exist any more (TS1733)"
    return LogStatus(table, newest, state, pending, now_ms, trouble)


def find_contradiction(reached: int | None, newest: int | None, *, is_early: bool = False) -> str | None:
    """A log without progress, or one that is ahead of its table; rows of an early log do not say how far it is."""
    if reached is None and is_early:
        return "no marker says how far the table is published (TS1707): say it with `tablestore publish --reset N`"
    if reached is None:
        return "no marker says how far the table is published; `tablestore publish` looks at the rows"
    if reached > (newest or 0):
        return f"the log has snapshot {reached}, the table ends at {newest or 0}: it was rolled back behind it (TS1708)"
    return None


def count_pending(store: TableStore, reached: int, newest: int) -> Pending:
    """Of the snapshots behind `reached`; those that are gone count as snapshots, not as rows."""
    found = [one for one in map(store.snapshots.find, range(reached + 1, newest + 1)) if one is not None]
    start = TableTraits(store.schema).log_start_snapshot
    counts = [
        snapshot.total_record_count
        if snapshot.id == start
        else ChangelogReader(store.context).count(snapshot)
        for snapshot in found
        if start is None or snapshot.id >= start
    ]
    rows = None if None in counts else sum(count or 0 for count in counts)
    since = min((one.time_millis for one in found), default=None)
    return Pending(newest - reached, rows, since)
