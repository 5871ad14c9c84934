"""Snapshot files of one branch: find, read, claim; the two hints beside them.

Steps      latest: hint N → N+1: missing? → then N itself; else walk on, else list the folder. Where each look is a
           request of its own, N, N+1 and N+2 at once
INVARIANT  N is read after the answer that N+1 is missing, and expiry deletes the oldest file first: so N was the newest
           snapshot when that answer was given, and complete, without a look at the floor.
INVARIANT  a snapshot exists if and only if its file exists and no floor lies above it; hints are only hints, and are
           checked when read. A floor is there while expiry takes files away, or died doing it (expire).
INVARIANT  `claim` is one exclusive create: of many writers one wins, and it replaces no snapshot of this table.
INVARIANT  a snapshot that names another table's identity is not there. On stores without folders a late writer of a
           dropped table may leave one, above the newest or below the oldest snapshot: between them each number is
           taken. The writer that needs its number replaces it, on the condition that it is still what was read.
PAIMON     pypaimon 1.3 trusts LATEST blindly: it is written after every commit.
CRASH      between claim and hint: the next reader walks on from the old hint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from tablestore_engine.errors import NotFound
from tablestore_engine.fileio.base import FileIO, FileStatus
from tablestore_engine.format.layout import TableLayout, find_floor_id, find_id
from tablestore_engine.format.snapshot import Snapshot, decode_snapshot, encode_snapshot
from tablestore_engine.store.metadata.foreign_files import claim_over
from tablestore_engine.store.metadata.identity import TABLE_KEY, TableGuard, is_of_another

SNAPSHOT_PREFIX = "snapshot-"
_KNOWN_MAX = 16
_NO_WATERMARK = -(2**63)  # what Java writes for none


@dataclass(frozen=True)
class SnapshotStore:
    """The snapshots of one table and branch; without an `identity` all of the folder. `_decoded` knows files by their
    rows in the listing: a rollback may make the same name again with other content. `_known` are the last ones that
    were read, by number and uuid. `seen`: of one operation's look at the table, by number; None: each call reads.
    """

    fileio: FileIO
    layout: TableLayout
    identity: str | None = None
    seen: dict[int, Snapshot] | None = field(default=None, compare=False, repr=False)
    _decoded: dict[FileStatus, Snapshot] = field(default_factory=dict, compare=False, repr=False)
    _known: dict[tuple[int, str], Snapshot] = field(default_factory=dict, compare=False, repr=False)

    # ---- reading -------------------------------------------------------------------------------------------

    def find_latest_id(self) -> int | None:
        """The newest id, or None when nothing was committed."""
        found = self.find_latest()
        return None if found is None else found.id

    def check_table(self) -> None:
        """Raises RetryError TS1365 when another table, or none, has the place now."""
        TableGuard(self.fileio, self.layout.location, self.identity).check()

    def is_foreign(self, snapshot: Snapshot) -> bool:
        """Whether it names another table than this one."""
        said = (snapshot.properties or {}).get(TABLE_KEY)
        return is_of_another(self.fileio, self.layout.location, said, self.identity)

    def find_latest(self) -> Snapshot | None:
        """The newest snapshot, or None when nothing was committed."""
        return self.find_latest_from(self.read_latest_hint())

    def read_latest_hint(self) -> int | None:
        """What LATEST says; None when it says nothing."""
        return self._read_hint(self.layout.latest_hint)

    def find_latest_from(self, hint: int | None) -> Snapshot | None:
        """As find_latest, with a hint that was read already; None: without one."""
        if hint is not None:
            found = self._newest_from(hint)
            if found is not None:
                return found
        # one may be rolled back while we look, or be another table's
        newest_first = (self.find(number) for number in reversed(self.list_ids()))
        return next((snapshot for snapshot in newest_first if snapshot is not None), None)

    def _newest_from(self, at: int) -> Snapshot | None:
        """The snapshot before the first number that is missing behind `at`."""
        if self.fileio.folders is not None:
            return self.find_file(self._walk_from(at))
        while True:  # a look is a request, as is a read: all at once
            looks = [partial(self.find_file, number) for number in range(at, at + 3)]
            here, following, second = self.fileio.run_together(looks)
            if following is None:
                return here
            if second is None:
                return following
            at += 2

    def _walk_from(self, at: int) -> int:
        """The number before the first one that is missing behind `at`. The hint is nearly always right."""
        while self._exists(at + 1):
            at += 1
        return at

    def find_earliest_id(self) -> int | None:
        """The oldest id that is still there, or None."""
        at = self._read_hint(self.layout.earliest_hint)
        if at is not None:
            looks: list[Callable[[], Any]] = [
                partial(self._exists, at),
                self.find_floor,
                partial(self._is_first, at),
            ]
            is_there, floor, is_first = self.fileio.run_together(looks)
            if is_there and at >= floor and is_first:
                return at
        ids = self.list_ids()
        return ids[0] if ids else None

    def find(self, snapshot_id: int) -> Snapshot | None:
        """Snapshot N, or None when there is none (any more); what the operation has seen is not read again."""
        if snapshot_id < 1:
            return None
        if self.seen is not None and snapshot_id in self.seen:
            return self.seen[snapshot_id]
        looks: list[Callable[[], Any]] = [partial(self.find_file, snapshot_id), self.find_floor]
        found: Snapshot | None
        found, floor = self.fileio.run_together(looks)
        if found is None or snapshot_id < floor:
            return None
        if self.seen is not None:
            self.seen[snapshot_id] = found
        return found

    def find_file(self, snapshot_id: int) -> Snapshot | None:
        """What the file of snapshot N says, also below the floor: for who takes its files away."""
        try:
            path = self.layout.snapshot_path(snapshot_id)
            found = decode_snapshot(self.fileio.read(path), path)
        except NotFound:
            return None
        if self.is_foreign(found):
            return None
        if found.uuid is not None:
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
            self._known[found.id, found.uuid] = found
        return found

    def seeing(self, newest: Snapshot | None) -> SnapshotStore:
        """The same for an operation that saw `newest`: each snapshot is looked up once. Never for a claim."""
        return replace(self, seen={} if newest is None else {newest.id: newest})

    def find_known(self, snapshot_id: int, uuid: str | None) -> Snapshot | None:
        """What the snapshot of this number and uuid says, whether it is still there or not; None: read it."""
        known = None if uuid is None else self._known.get((snapshot_id, uuid))
        return self.find_file(snapshot_id) if known is None and snapshot_id > 0 else known

    def find_floor(self) -> int:
        """Snapshots below it do not count; 0 while nothing expires.

        A floor that is missing at some instant, and a file that is there then or later: the snapshot counted then.
        """
        return self.floor_in(self.fileio.list(self.layout.expire_dir))

    def floor_in(self, marks: Sequence[FileStatus]) -> int:
        """The same of a listing of `expire/`."""
        return max(
            (
                number
                for status in marks
                if (number := find_floor_id(status.name)) is not None and self.is_own_mark(status.path)
            ),
            default=0,
        )

    def is_own_mark(self, path: str) -> bool:
        """Whether a file of `expire/` is this table's: its content is the identity. An empty one is."""
        if self.fileio.folders is not None or self.identity is None:
            return True
        try:
            return self.fileio.read(path) in (b"", self.identity.encode())
        except NotFound:
            return False  # deleted meanwhile

    @property
    def own_mark(self) -> bytes:
        """The content of this table's files in `expire/`."""
        return b"" if self.identity is None else self.identity.encode()

    def get(self, snapshot_id: int) -> Snapshot:
        """Snapshot N. Raises NotFound TS1302."""
        found = self.find(snapshot_id)
        if found is None:
            ids = self.list_ids()
            known = f"snapshots {ids[0]} to {ids[-1]} exist" if ids else "nothing was committed yet"
            raise NotFound(
                "TS1302",
                f"snapshot {snapshot_id} of {self.layout.root} does not exist",
                why=known,
                fix="choose one of these, and tag what you need for longer",
            )
        return found

    def list_ids(self) -> tuple[int, ...]:
        """All ids, ascending."""
        return tuple(number for number, _ in self._listed())

    def list_file_ids(self) -> tuple[int, ...]:
        """Ids of all files, ascending, also of those below the floor."""
        return tuple(number for number, _ in self._files())

    def list_all(self, last: int | None = None) -> tuple[Snapshot, ...]:
        """All snapshots or the newest `last`, ascending, read together; those that vanish meanwhile are left out."""
        listed = [status for _, status in self._listed()]
        wanted = len(listed) if last is None else max(last, 0)
        found: list[Snapshot] = []
        while listed and len(found) < wanted:
            start = max(len(listed) - (wanted - len(found)), 0)
            read = self.fileio.run_together([partial(self._decode, status) for status in listed[start:]])
            found[:0] = [snapshot for snapshot in read if snapshot is not None]
            del listed[start:]
        return tuple(found)

    def list_files(self) -> tuple[FileStatus, ...]:
        """The same of all files, newest id first, also below the floor: of a branch that never expires."""
        return tuple(status for _, status in reversed(self._files()))

    def list_newest_first(self) -> tuple[FileStatus, ...]:
        """Listing of the files only, newest id first: for a search that stops early (see `find_listed`)."""
        return tuple(status for _, status in reversed(self._listed()))

    def find_listed(self, status: FileStatus) -> Snapshot | None:
        """The snapshot of one row of the listing; remembered as long as the file is the same."""
        return self._decode(status)

    def find_by_timestamp(self, time_millis: int) -> Snapshot | None:
        """The newest snapshot that was committed at or before that time, or None."""
        for status in self.list_newest_first():
            snapshot = self._decode(status)
            if snapshot is not None and snapshot.time_millis <= time_millis:
                return snapshot
        return None

    def get_by_watermark(self, watermark: int) -> Snapshot:
        """The first snapshot whose watermark is `watermark` (epoch ms) or later: all rows up to then are in it.

        Raises NotFound TS1224. Snapshots without a watermark count as none; a search by halves could meet them.
        """
        found = next((one for one in self.list_all() if _watermark(one) >= watermark), None)
        if found is None:
            newest = self.find_latest()
            reached = None if newest is None or _watermark(newest) == _NO_WATERMARK else newest.watermark
            raise NotFound(
                "TS1224",
                f"{self.layout.root} has no snapshot with the watermark {watermark} or a later one",
                why="its newest snapshot has no watermark"
                if reached is None
                else f"it has reached {reached}",
                fix="choose an earlier one ($snapshots lists them), or a snapshot, tag or time",
            )
        return found

    def get_by_timestamp(self, time_millis: int) -> Snapshot:
        """As find_by_timestamp. Raises NotFound TS1303."""
        found = self.find_by_timestamp(time_millis)
        if found is None:
            earliest = self.find_earliest_id()
            first = None if earliest is None else self.find(earliest)
            raise NotFound(
                "TS1303",
                f"{self.layout.root} has no snapshot at {time_millis} ms",
                why="nothing was committed yet"
                if first is None
                else f"the oldest one, {first.id}, was committed at {first.time_millis} ms",
                fix="choose a later time",
            )
        return found

    # ---- writing -------------------------------------------------------------------------------------------

    def make_folder(self, check: Callable[[], None]) -> None:
        """Tables of other engines have no snapshot folder before their first commit; `check`: is the table there?"""
        if self.fileio.folders is not None and not self.fileio.exists(self.layout.snapshot_dir):
            check()
            self.fileio.mkdirs(self.layout.snapshot_dir)

    def claim(self, snapshot: Snapshot, check: Callable[[], None] | None = None) -> bool:
        """Create `snapshot-<id>` exclusively; False when somebody was first. `check` as in FileIO."""
        path, data = self.layout.snapshot_path(snapshot.id), encode_snapshot(snapshot)
        if self.fileio.create_exclusive(path, data, check=check):
            return True
        return check is not None and claim_over(self.fileio, path, data, self._is_foreign_file, check)

    def delete_own(self, snapshot: Snapshot) -> None:
        """Remove a snapshot that must not be; another one of that number stays."""
        found = self.find_file(snapshot.id)
        if found is not None and found.uuid == snapshot.uuid:
            self.fileio.delete(self.layout.snapshot_path(snapshot.id))

    def write_hints(self, snapshot_id: int) -> None:
        """LATEST after a claim, EARLIEST with the first one.

        A hint that cannot be written costs a listing later; the commit has happened and must not fail for it.
        """
        hints = [self.layout.latest_hint, *([self.layout.earliest_hint] if snapshot_id == 1 else [])]
        with suppress(OSError):
            text = str(snapshot_id).encode()
            self.fileio.run_together([partial(self.fileio.replace, path, text) for path in hints])

    # --------------------------------------------------------------------------------------------------------

    def _exists(self, snapshot_id: int) -> bool:
        if self.fileio.folders is None:
            return self.find_file(snapshot_id) is not None
        return self.fileio.exists_file(self.layout.snapshot_path(snapshot_id))

    def _is_first(self, snapshot_id: int) -> bool:
        """Without folders a late expiry of a dropped table may have written the hint."""
        return self.fileio.folders is not None or not self._exists(snapshot_id - 1)

    def _is_foreign_file(self, data: bytes) -> bool:
        return self.is_foreign(decode_snapshot(data))

    def _listed(self) -> list[tuple[int, FileStatus]]:
        looks: list[Callable[[], Any]] = [self._files, self.find_floor]
        found, floor = self.fileio.run_together(looks)
        return [(number, status) for number, status in found if number >= floor]

    def _files(self) -> list[tuple[int, FileStatus]]:
        found = [
            (number, status)
            for status in self.fileio.list(self.layout.snapshot_dir)
            if (number := find_id(status.name, SNAPSHOT_PREFIX)) is not None
        ]
        found.sort(key=lambda one: one[0])
        if self.fileio.folders is None:
            ends = {status.path: status for _, status in (*found[:1], *found[-1:])}
            self.fileio.run_together([partial(self._decode, status) for status in ends.values()])
            while found and self._decode(found[-1][1]) is None:
                found.pop()
            while found and self._decode(found[0][1]) is None:
                found.pop(0)
        return found

    def _decode(self, status: FileStatus) -> Snapshot | None:
        if status not in self._decoded:
            try:
                found = decode_snapshot(self.fileio.read(status.path), status.path)
            except NotFound:
                return None
            if self.is_foreign(found):
                return None  # not kept: what replaces it may have the same time and size
            self._decoded[status] = found
        return self._decoded[status]

    def _read_hint(self, path: str) -> int | None:
        try:
            text = self.fileio.read(path).strip()
        except NotFound:
            return None
        return int(text) if text.isdigit() and len(text) < len(str(2**63)) else None


def _watermark(snapshot: Snapshot) -> int:
    return _NO_WATERMARK if snapshot.watermark is None else snapshot.watermark
