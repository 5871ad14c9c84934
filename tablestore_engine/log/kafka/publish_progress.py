"""A line now and then while publishing takes long: rows a second, done of all, time left; or a meter of the caller.

INVARIANT  says nothing of work that is over within 2 s; asks the clock once for a slice of rows, not for each row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tablestore_engine.runtime.progress import NO_PROGRESS, Meter, WorkProgress

_FIRST_MS, _EVERY_MS = 2_000, 10_000


def silent(_: str) -> None:
    """Nobody listens."""


@dataclass
class PublishProgress:
    """`table` for people; `now_ms` and `say` are the outside world's."""

    table: str
    now_ms: Callable[[], int]
    say: Callable[[str], None] = silent
    shown: WorkProgress = NO_PROGRESS
    _meter: Meter | None = None
    _begun_ms: int | None = None
    _next_ms: int = 0
    _snapshot_ms: int = 0
    _snapshot: int = 0
    _latest: int = 0
    _count: Callable[[], int | None] = lambda: None
    _total: int | None = None
    _done: int = 0

    def begin(self, snapshot_id: int, latest_id: int, count: Callable[[], int | None]) -> None:
        """The rows that come now are of this snapshot; how many it has is asked with its first line."""
        self.end()
        self._snapshot_ms = self.now_ms()
        self._snapshot, self._latest, self._count = snapshot_id, latest_id, count
        self._total, self._done = None, 0
        if self._begun_ms is None:
            self._begun_ms = self._snapshot_ms
            self._next_ms = self._begun_ms + _FIRST_MS

    def sent(self, rows: int) -> None:
        self._done += rows
        if self._meter is not None:
            self._meter.advance(rows)
            return
        now = self.now_ms()
        if self._begun_ms is not None and now >= self._next_ms and not self.shown.wants_lines:
            self._next_ms = now + _EVERY_MS
            self._open_meter()
            return
        if self._begun_ms is not None and now >= self._next_ms:
            self._next_ms = now + _EVERY_MS
            self._total = self._count() if self._total is None else self._total
            self.say(
                progress_line(
                    self.table, self._snapshot, self._latest, self._done, self._total, now - self._snapshot_ms
                )
            )

    def end(self) -> None:
        """No more rows of the snapshot come now."""
        if self._meter is not None:
            self._meter.__exit__(None, None, None)
            self._meter = None

    def _open_meter(self) -> None:
        if self.shown.is_shown:
            behind = f" of {self._latest}" if self._latest > self._snapshot else ""
            self._meter = self.shown.begin(
                f"{self.table}: publishing snapshot {self._snapshot}{behind}", "rows"
            )
            self._meter.expect(self._count() or 0)
            self._meter.advance(self._done)


def progress_line(
    table: str, snapshot_id: int, latest_id: int, done: int, total: int | None, elapsed_ms: int
) -> str:
    """`demo.orders: publishing snapshot 7 of 9: 1,200,000 of 4,000,000 rows, 210,000 rows/s, 14 s left`."""
    rate = done * 1000 / max(elapsed_ms, 1)
    of_all = "" if total is None else f" of {max(total, done):,}"
    left = ""
    if total is not None and done:
        left = f", {round(max(total - done, 0) / rate)} s left"
    behind = f" of {latest_id}" if latest_id > snapshot_id else ""
    return f"{table}: publishing snapshot {snapshot_id}{behind}: {done:,}{of_all} rows, {round(rate):,} rows/s{left}"
