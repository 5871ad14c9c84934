"""Where a commit is claimed: what its loop needs of a place, and the main branch as such a place.

Steps      claim: schema, when the commit brings one → snapshot, in the folder of this very table, on this very base
INVARIANT  a claim lands only in the table that it was planned for (`identity`) and never makes a table's folder.
           Without folders it may land in another one, where it counts for nobody and is no success (decision 0064).
INVARIANT  a snapshot never stays behind a gap: a rollback deletes first and looks for newcomers then, a claim creates
           first and looks for its base then; whichever comes second sees the other, and takes the snapshot away.
           What remains: a writer killed between its two steps, in the instant of a rollback.
INVARIANT  LATEST never names a snapshot before it is known to be in line.
INVARIANT  a number is claimed once in a line of snapshots: one that has expired is free on disk, and its base is gone.
           A writer that slept through it (its base was the newest when it planned) plans again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from tablestore_engine.errors import NotFound, TablestoreError
from tablestore_engine.fileio.base import FileStatus
from tablestore_engine.format.layout import MAIN_BRANCH
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.store.commit.commit_queue import CommitQueue
from tablestore_engine.store.commit.commit_report import CommitIdentity
from tablestore_engine.store.commit.orphan_notice import Sweeps
from tablestore_engine.store.metadata.commit_history import base_of, find_pair, follows, goes_back_to
from tablestore_engine.store.metadata.identity import TableGuard
from tablestore_engine.store.metadata.schemas import SchemaStore
from tablestore_engine.store.metadata.snapshots import SnapshotStore

_COVERS_MAX = 5


class OvertakenError(Exception):
    """The base of the claim is gone; nothing was claimed."""


class NumberTakenError(Exception):
    """The number of the new schema is another schema's; no snapshot was claimed."""


class StageExistsError(Exception):
    """Another writer has begun the stage that the rows belong into; nothing was claimed."""


@dataclass(frozen=True)
class Committed:
    """`staged`: the name under which it waits; None when it is a snapshot of the table."""

    snapshot: Snapshot
    staged: str | None = None


class Destination(Protocol):
    def find_committed(
        self, identity: CommitIdentity, base: Snapshot | None, after: int | None
    ) -> Committed | None:
        """What this identity committed before; `after`: older snapshots were searched already."""

    def claim(self, snapshot: Snapshot, schema: TableSchema | None) -> bool:
        """Create the snapshot exclusively, its new schema (if any) right before; False when somebody was first.

        Raises OvertakenError, NumberTakenError, StageExistsError, RetryError TS1365, TS1328.
        """

    def find_claimed(self, snapshot_id: int) -> Snapshot | None:
        """What lies at the claimed place now."""

    def settle(self, snapshot: Snapshot) -> str | None:
        """Hints after a won claim; the name for the report's `staged`."""


@dataclass(frozen=True)
class MainDestination:
    """The branch that a table handle was opened on. `newest_schema_id`: the highest number of a schema file, as the
    operation saw it; None: it has not looked. `queue`: of the commit that claims.
    """

    snapshots: SnapshotStore
    schemas: SchemaStore
    guard: TableGuard
    sweeps: Sweeps
    runtime: Runtime
    newest_schema_id: int | None = None
    queue: CommitQueue | None = None

    def find_committed(
        self, identity: CommitIdentity, base: Snapshot | None, after: int | None
    ) -> Committed | None:
        """The snapshot of that very pair; an identity that was made for this call has none from before it."""
        if base is None or (identity.is_new and after is None):
            return None
        found = find_pair(self.snapshots, base, identity.user, identity.identifier, after=after)
        return None if found is None else Committed(found)

    def claim(self, snapshot: Snapshot, schema: TableSchema | None) -> bool:
        """Schema first: a snapshot never names a schema that does not exist."""
        if snapshot.id == 1:  # else its base lies in the folder
            self.snapshots.make_folder(self.guard.check)
        if schema is not None:
            if not self.schemas.claim_or_find(schema, self.guard.check):
                raise NumberTakenError
            self.runtime.crash_point("commit.schema")
        if not self.snapshots.claim(snapshot, self._check_place(snapshot)):
            return False
        self.runtime.crash_point("commit.claimed")
        # LATEST is written after both. Written at the same time, it could name this snapshot first: the check would
        # begin its search at an expired number, and find no newer snapshot
        looks: list[Callable[[], Any]] = [self.check_behind, partial(self._is_in_line, snapshot)]
        _, is_in_line = self.guard.fileio.run_together(looks)
        if not is_in_line:
            self._take_back(snapshot)
        return bool(is_in_line)

    def _hint(self, snapshot: Snapshot) -> None:
        """LATEST, in the folder of this table: best effort."""
        with suppress(OSError, TablestoreError):
            hints: list[Callable[[], None]] = [
                self.guard.check,
                partial(self.snapshots.write_hints, snapshot.id),
            ]
            self.guard.fileio.run_together(hints)

    def check_behind(self) -> None:
        """After a claim: without folders it may have landed in another table. Raises RetryError TS1365.

        The snapshot stays: nobody reads it there, and the writer that needs its number replaces it.
        """
        if self.snapshots.fileio.folders is None:
            self.guard.check()

    def find_claimed(self, snapshot_id: int) -> Snapshot | None:
        return self.snapshots.find(snapshot_id)

    def settle(self, snapshot: Snapshot) -> str | None:
        """LATEST, and what other engines see as schema. The commit stands."""
        self._hint(snapshot)
        with suppress(OSError, TablestoreError):
            # of the operation's begin, where it has looked: what came since is covered by the next commit
            newest = self.schemas.get_newest_id() if self.newest_schema_id is None else self.newest_schema_id
            if newest != snapshot.schema_id:  # else none lies above it: nothing to look at
                self.cover_schemas()
        self.runtime.crash_point("commit.done")
        return None

    def cover_schemas(self) -> None:
        """For engines that take the newest schema file: no file that counts for nothing stays on top."""
        for _ in range(_COVERS_MAX):  # again, since the schema may have changed meanwhile
            newest = self.snapshots.find_latest()
            current = self.schemas.find_current(None if newest is None else newest.schema_id)
            if current is None or not self.schemas.cover(current, self.runtime.new_uuid(), self.guard.check):
                return

    def _check_place(self, snapshot: Snapshot) -> Callable[[], None]:
        def check() -> None:
            planned_on = self.snapshots.find_known(snapshot.id - 1, base_of(snapshot))
            marks: list[FileStatus] = []  # of `expire/`: of floors, orphan files and turns
            looks: list[Callable[[], Any]] = [
                self.guard.check,
                partial(self._find_base, snapshot),
                partial(self._find_lost, snapshot, planned_on, marks.extend),
            ]
            _, base, lost = self.guard.fileio.run_together(looks)
            if base is not None and base.id < self._floor(marks):
                base = None
            if not self._is_next(snapshot, base) or (self.queue is not None and self.queue.must_wait):
                raise OvertakenError
            if isinstance(lost, NotFound):
                raise lost
            if lost is not None:
                raise self.sweeps.too_late(lost)

        return check

    def _floor(self, marks: Sequence[FileStatus]) -> int:
        """`marks`: of the table; a branch has its own floors."""
        layout = self.snapshots.layout
        return self.snapshots.floor_in(marks) if layout.branch == MAIN_BRANCH else self.snapshots.find_floor()

    def _find_base(self, snapshot: Snapshot) -> Snapshot | None:
        return None if snapshot.id == 1 else self.snapshots.find_file(snapshot.id - 1)

    def _find_lost(
        self, snapshot: Snapshot, base: Snapshot | None, note: Callable[[Sequence[FileStatus]], None]
    ) -> str | NotFound | None:
        """As Sweeps; the error where metadata of the base is missing, which is only one while the base is there.

        `note` gets the listing of `expire/`.
        """

        def see(marks: Sequence[FileStatus]) -> None:
            note(marks)
            if self.queue is not None:
                self.queue.see(marks)

        try:
            return self.sweeps.find_lost(snapshot, base, see)
        except NotFound as missing:
            return missing

    def _is_next(self, snapshot: Snapshot, base: Snapshot | None) -> bool:
        """Whether `base`, which is there now, is what this one was planned on. When that has expired, this number was
        somebody's before: it is free again, and must never be taken.
        """
        if snapshot.id == 1:
            return not self.snapshots.list_ids()
        return base is not None and follows(snapshot, base)

    def _is_in_line(self, snapshot: Snapshot) -> bool:
        """Whether it is on its base, or its base has expired behind the claim: then the newest one goes back to it."""
        base = self.snapshots.find_file(
            snapshot.id - 1
        )  # files go oldest first: while it is there, so is ours
        if base is not None:
            return follows(snapshot, base)
        if any(number < snapshot.id for number in self.snapshots.list_ids()):
            return False  # its base was taken back
        newest = self.snapshots.find_latest()
        return newest is not None and goes_back_to(self.snapshots, newest, snapshot)

    def _take_back(self, snapshot: Snapshot) -> None:
        """It is out of line: nobody may build on it, and LATEST must not name it."""
        self.snapshots.delete_own(snapshot)
        newest = self.snapshots.find_latest()
        if newest is not None:
            self._hint(newest)
