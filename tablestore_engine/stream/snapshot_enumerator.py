"""Enumerate the snapshots of a table for a stream: the next one, none yet, or an error.

CHANGE     which snapshot a stream reads next, and when it cannot
Errors     TS1335 the position is of another table · TS1336 the table is gone · TS1337 its snapshot has expired ·
           TS1338 the table was rolled back behind it
INVARIANT  no number is passed over, and none is taken for another snapshot that once had it: a gap is an error.
How        what a snapshot says of its base (commit_history) is compared with the one that was seen; where it says
           nothing, the one that has that number now
"""

from __future__ import annotations

from dataclasses import dataclass

from tablestore_engine.errors import (
    FileMissing,
    FixRequest,
    NotFound,
)
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.metadata.commit_history import base_of
from tablestore_engine.store.metadata.identity import find_identity
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.stream.position import Position


@dataclass(frozen=True)
class SnapshotEnumerator:
    context: TableContext

    def next_snapshot(self, position: Position) -> Snapshot | None:
        """The snapshot of the position's number; None when it is to be committed yet. Raises TS1335 to TS1338."""
        self.check_table(position)
        while True:
            found = self.context.snapshots.find(position.snapshot)
            if found is not None:
                self._check_followed(position, found)
                return found
            latest = self.context.snapshots.find_latest_id() or 0
            if latest < position.snapshot:
                self._check_waiting(position, latest)
                return None
            if self.context.snapshots.find(position.snapshot) is None:
                raise self._expired(position)

    def check_table(self, position: Position) -> None:
        """Raises FixRequest TS1335, NotFound TS1336."""
        guard = self.context.guard
        if position.table != guard.identity:
            raise FixRequest(
                "TS1335",
                f"the position is not of the table at {guard.location}",
                why=f"it was taken from the table {position.table[:12]}, this is {(guard.identity or 'none')[:12]}; "
                "a table that is dropped and created again is another one",
                fix="give it to the table that it was taken from, or start again with a mode",
            )
        there = find_identity(guard.fileio, guard.location)
        if there != guard.identity:
            raise NotFound(
                "TS1336",
                f"the table at {guard.location} was dropped while it was followed",
                why="nothing of that name is there now"
                if there is None
                else "another table of that name is there now",
                fix="end this reader; a new one begins with the new table",
            )

    def check_base(self, position: Position) -> None:
        """Of a position in a log: whether the snapshot that it stands on is the table's; it may have expired.

        Raises FixRequest TS1335, TS1338, NotFound TS1336.
        """
        self.check_table(position)
        latest, seen = self.context.snapshots.find_latest_id() or 0, position.seen
        if latest < position.snapshot:
            raise self.rolled_back(position, f"the newest snapshot is {latest or 'none'}")
        found = None if seen is None else self.context.snapshots.find(seen.snapshot)
        if seen is not None and found is not None and found.unique != seen.unique:
            raise self.rolled_back(position, f"snapshot {seen.snapshot} is another one now")

    def explain_base(self, position: Position, error: NotFound) -> NotFound:
        """As explain, of a position in a log: its base went away while it was looked into."""
        if not isinstance(error, FileMissing) or self.context.snapshots.find(position.snapshot) is not None:
            return error
        return self.expired_base(position.snapshot)

    def expired_base(self, snapshot_id: int) -> NotFound:
        """TS1337."""
        first = self.context.snapshots.find_earliest_id()
        return NotFound(
            "TS1337",
            f"snapshot {snapshot_id} of {self.context.guard.location} has expired, and a reader of its log needs it",
            why="the log says the newest row of a key, and the row before it is the table's; the oldest snapshot that "
            f"is there is {first}",
            fix="start again with latest-full (all rows first); keep snapshots for longer, or read with a consumer id "
            "and commit its progress, which keeps them",
        )

    def explain(self, position: Position, error: NotFound) -> NotFound | FixRequest:
        """Why a file was missing: the snapshot went away meanwhile, else the error as it is."""
        try:
            self.next_snapshot(position)
        except (NotFound, FixRequest) as known:
            return known
        return error

    def _check_followed(self, position: Position, found: Snapshot) -> None:
        """Whether this is the snapshot that the position stands in, or follows the one that it stands behind."""
        seen = position.seen
        if seen is None:
            return
        said = found.unique if seen.snapshot == found.id else base_of(found)
        if said is None:  # another engine's snapshot: the one before it tells, as long as it is there
            there = self.context.snapshots.find(seen.snapshot)
            said = seen.unique if there is None else there.unique
        if said != seen.unique:
            raise self.rolled_back(position, f"snapshot {seen.snapshot} is another one now")

    def _check_waiting(self, position: Position, latest: int) -> None:
        if latest < position.snapshot - 1 or position.is_within:
            raise self.rolled_back(position, f"the newest snapshot is {latest or 'none'}")
        seen = position.seen
        there = None if seen is None else self.context.snapshots.find(seen.snapshot)
        if seen is not None and there is not None and there.unique != seen.unique:
            raise self.rolled_back(position, f"snapshot {seen.snapshot} is another one now")

    def rolled_back(self, position: Position, why: str) -> FixRequest:
        """TS1338."""
        return FixRequest(
            "TS1338",
            f"{self.context.guard.location} was rolled back past its reader, which is at snapshot {position.snapshot}",
            why=f"{why}: what the reader has read is not the table's history any more",
            fix="take back what was read after the snapshot that the table was rolled back to, "
            "or start again with latest-full",
        )

    def _expired(self, position: Position) -> NotFound:
        first = self.context.snapshots.find_earliest_id()
        return NotFound(
            "TS1337",
            f"snapshot {position.snapshot} of {self.context.guard.location} has expired before it was read",
            why=f"the oldest snapshot that is there is {first}: going on there would leave a gap",
            fix="start again with latest-full (all rows first); keep snapshots for longer, or read with a consumer id "
            "and commit its progress, which keeps them",
        )
