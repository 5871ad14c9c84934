"""A reader that follows a table: an iterator of record batches, which can be stopped, stored and gone on with.

Steps      position → source.read_next → chunks → batches, the position moved with each → nothing there: wait, again
Bounds     `until` N: it ends behind snapshot N, for which it waits if need be; without: it ends when it is stopped
INVARIANT  when a batch is handed out, `position` lies exactly behind it: who goes on there, in whatever process, gets
           each row behind it once.
INVARIANT  an error ends no reader: the next call goes on behind the last batch, and fails again if the error stands.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from tablestore_engine.errors import FixRequest
from tablestore_engine.stream.position import Position, encode_position

if TYPE_CHECKING:
    from tablestore_engine.stream.change_source import ChangeSource
    from tablestore_engine.stream.consumer_progress import ConsumerProgress


@dataclass(frozen=True)
class Pace:
    """`wait(seconds)` returns early, and True, once `stop` is set; a test gives another one."""

    interval_s: float = 1.0
    stop: threading.Event = field(default_factory=threading.Event)
    wait: Callable[[float], bool] | None = None

    def is_stopped_after_wait(self) -> bool:
        return (self.wait or self.stop.wait)(self.interval_s)


class TableStream:
    """One reader; one thread iterates, any thread may stop it.

    >>> with orders.stream(until="now") as stream:
    ...     rows = sum(batch.num_rows for batch in stream)
    >>> rows
    3
    """

    def __init__(
        self,
        source: ChangeSource,
        position: Position,
        *,
        pace: Pace,
        until: int | None = None,
        batch_rows: int | None = None,
        progress: ConsumerProgress | None = None,
    ) -> None:
        self._source, self._at, self._pace = source, _Place(position), pace
        self._until, self._batch_rows, self._progress = until, batch_rows, progress
        self._running: Iterator[pa.RecordBatch] | None = None

    @property
    def position(self) -> str:
        """Behind the last batch that was handed out, as JSON text: what `position=` of another reader takes."""
        return encode_position(self._at.position)

    @property
    def snapshot_id(self) -> int:
        return self._at.position.snapshot

    def commit(self, *, backward: bool = False) -> None:
        """Keep the position as the progress of the reader's consumer id, whose file holds expiry back there.

        Raises FixRequest TS1351 without a consumer id, TS1352 when the consumer is further (unless `backward`),
        NotFound TS1337 when the snapshot expired before it was held.
        """
        if self._progress is None:
            raise FixRequest(
                "TS1351",
                "there is no consumer whose progress could be kept",
                why="the reader was started without a consumer id",
                fix="begin it with consumer_id='…', or store its `position` yourself",
            )
        self._progress.commit(self._at.position, backward=backward)

    def stop(self) -> None:
        """End the iteration behind the current batch, at once where it waits; from any thread."""
        self._pace.stop.set()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pa.RecordBatch:
        if self._running is None:
            self._running = _batches(self._source, self._at, self._pace, self._until, self._batch_rows)
        try:
            return next(self._running)
        except BaseException:
            self._running = None  # begun anew at the position by the next call
            self._source.close()
            raise

    def close(self) -> None:
        """Give up what is held; who iterates on takes it again."""
        self._running = None
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass
class _Place:
    """Where a reader is; apart from it, so that nothing holds a circle: who forgets a reader frees its connection."""

    position: Position


def _batches(
    source: ChangeSource, at: _Place, pace: Pace, until: int | None, batch_rows: int | None
) -> Iterator[pa.RecordBatch]:
    while not (pace.stop.is_set() or source.is_over(at.position, until)):
        chunks = source.read_next(at.position, until)
        if chunks is None:
            if pace.is_stopped_after_wait():
                return
            continue
        for chunk in chunks:
            given, batches = 0, chunk.rows.to_batches(max_chunksize=batch_rows)
            for number, batch in enumerate(batches, start=1):
                if pace.stop.is_set():
                    return
                given += batch.num_rows
                at.position = chunk.behind if number == len(batches) else chunk.cut(given)
                yield batch
            at.position = chunk.behind
