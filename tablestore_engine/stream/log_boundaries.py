"""At which offsets of a log a reader may start, stop and be stored. Pure.

Words      boundary: log/followed_log.py. Base: an exact boundary at or before a place; with the table at its snapshot,
           and the messages from there on, the table at the place is known.
INVARIANT  a key has one bucket between two boundaries, so its messages lie in one partition there, in order: rescaling
           publishes what is pending first, and a boundary lies between.
INVARIANT  a place that was taken before the log was begun anew is behind nothing that is known: it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tablestore_engine.log.followed_log import LogBoundary, Place
from tablestore_engine.lsm.key_order import Index


@dataclass(frozen=True)
class LogStart:
    """`boundary`: whose place it is; messages of snapshots up to `after` are known to the reader and not told."""

    boundary: LogBoundary
    after: int

    @property
    def place(self) -> Place:
        return self.boundary.place


def is_at_or_behind(place: Place, boundary: Place) -> bool:
    return all(place.get(partition, 0) >= offset for partition, offset in boundary.items())


def farthest(place: Place, other: Place) -> dict[int, int]:
    """The larger offset of each partition."""
    return {one: max(place.get(one, 0), other.get(one, 0)) for one in sorted({*place, *other})}


def distance(place: Place, until: Place) -> int:
    """Offsets between the two."""
    return sum(max(0, end - place.get(partition, 0)) for partition, end in until.items())


class BoundaryList:
    """Of all boundaries those since the newest beginning; `boundaries` in the order in which they were set."""

    def __init__(self, boundaries: Sequence[LogBoundary]) -> None:
        starts = [number for number, one in enumerate(boundaries) if one.begins]
        self.since = tuple(boundaries[starts[-1] :]) if starts else tuple(boundaries)
        self.exact = tuple(one for one in self.since if one.is_exact)
        self.beginning = self.since[0].beginning if starts else ""

    @property
    def first_snapshot(self) -> int | None:
        """Of the oldest boundary that is left; None without any."""
        return self.since[0].snapshot_id if self.since else None

    @property
    def last_snapshot(self) -> int:
        """Up to which snapshot the log has everything."""
        return self.since[-1].snapshot_id if self.since else 0

    def snapshots_of(self, partitions: Index, offsets: Index) -> Index:
        """Of messages, by the boundaries they lie between; behind all of them the next snapshot. In a log that is not
        ordered the first that may count them: whatever the partition, one with a smaller number came earlier.
        """
        found = np.full(len(offsets), self.last_snapshot + 1, np.int64)
        ids = np.array([*(one.snapshot_id for one in self.since), self.last_snapshot + 1], np.int64)
        for partition in np.unique(partitions).tolist():
            mine = partitions == partition
            ends = np.array([one.place.get(partition, 0) for one in self.since], np.int64)
            found[mine] = ids[np.searchsorted(ends, offsets[mine], side="right")]
        return found

    def schemas_of(self, partitions: Index, offsets: Index, newest: int) -> Index:
        """Of messages the schema of the boundary behind them; `newest` where that says nothing, or there is none."""
        ids = {one.snapshot_id: one.schema_id for one in self.since if one.schema_id is not None}
        snapshots, places = np.unique(self.snapshots_of(partitions, offsets), return_inverse=True)
        said = np.array([ids.get(number, newest) for number in snapshots.tolist()], np.int64)
        return said[places]

    def find_base(self, place: Place, is_there: Callable[[int], bool]) -> LogBoundary | None:
        """The newest exact boundary at or before a place whose snapshot is there."""
        known = (one for one in reversed(self.exact) if is_at_or_behind(place, one.place))
        return next((one for one in known if is_there(one.snapshot_id)), None)

    def find_start(
        self, snapshot_id: int, *, is_ordered: bool, changes_between: Callable[[int, int], bool]
    ) -> LogStart | None:
        """Where a reader begins that has the table at this snapshot.

        `changes_between(a, b)`: whether a snapshot behind a, up to b, changed rows. An ordered log says of each message
        which snapshot it is of; in any other one a boundary of this very state is needed. None: there is none.
        """
        known = [one for one in self.exact if one.snapshot_id <= snapshot_id]
        if not known:
            return None
        boundary = known[-1]
        if not is_ordered and changes_between(boundary.snapshot_id, snapshot_id):
            return None
        return LogStart(boundary, snapshot_id)

    def find_stop(self, until: int, *, changes_between: Callable[[int, int], bool]) -> LogBoundary | None:
        """Behind which place everything up to a snapshot was told; None while the log does not have it all."""
        exact = self.exact
        same = [one for one in exact if one.snapshot_id == until]
        if same:
            return same[-1]
        before = [one for one in exact if one.snapshot_id < until]
        behind = [one for one in exact if one.snapshot_id > until]
        if behind:
            is_quiet = before and not changes_between(before[-1].snapshot_id, until)
            return before[-1] if is_quiet else behind[0]
        if before and not changes_between(before[-1].snapshot_id, until):
            return before[-1]
        return None

    def find_step(self, place: Place, until: Place, rows_max: int) -> Place | None:
        """How far to read next on the way to `until`: over as many boundaries as give `rows_max` rows, to the next one
        at least; None: it is reached. Of one step all is read before what lies behind: a key may have moved.
        """
        if not distance(place, until):
            return None
        ahead = [one.place for one in self.since if not is_at_or_behind(place, one.place)]
        steps = [*(one for one in ahead if is_at_or_behind(until, one)), until]
        near = [one for one in steps if distance(place, one) <= rows_max]
        return near[-1] if near else steps[0]
