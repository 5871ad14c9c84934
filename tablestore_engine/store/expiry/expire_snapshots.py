"""Snapshot expiry: old snapshots stop to count, then the files go that nothing else needs.

    expire/floor-<N>-<uuid>   snapshots below N do not count, for any reader, from the moment it is there

CHANGE     how snapshots expire
Steps      look     1 rules and holds → range [first, end)   2 the files that the range alone names
           hide     3 the floor   4 holds, tags, branches once more: who came before the floor is seen here, who comes
                    behind it finds no snapshot, then Iceberg metadata without the range   5 EARLIEST, the floor of
                    other engines
           delete   6 data files, changelog files   7 manifests, lists, index files, statistics   8 snapshot files, the
                    oldest first   9 the floor
INVARIANT  a snapshot that counts is complete: a reader never sees one whose files are going.
INVARIANT  nothing is deleted that a snapshot, tag, branch, staged snapshot or consumer needs, or that the log has not
           published; what cannot be read counts as needed, and the expiry fails before step 3.
INVARIANT  a clone has own names for its files (FileIO promise 7): none of ours is one of its.
CRASH      before 3: nothing happened. Behind it: the floor hides what is half gone, and the next expiry begins at the
           oldest file that is there and ends it. Metadata goes behind data, so that it can be found until then.
Beside it  another expiry: both delete the same; the higher floor counts. A commit: it needs the newest snapshot only,
           which stays. A rollback puts `keep-<N>` in the folder, and looks whether N still counts: one of us sees
           the other. A table that is dropped and made anew: the guard stops us before each snapshot file.
PAIMON     format.md#expiry: the range, the order of deletion, the re-added file of an upgrade.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from tablestore_engine.errors import FixRequest, NotFound, TablestoreError, Unsupported
from tablestore_engine.format.layout import find_floor_id
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.expiry.expiry_holds import (
    find_holds,
    find_kept,
    has_own_changelog,
    list_idle_consumers,
)
from tablestore_engine.store.expiry.expiry_rules import Choice, Hold, NextLook, pick_expired
from tablestore_engine.store.expiry.referenced_files import (
    Files,
    NamedFiles,
    changelog_files,
    dropped_data,
    metadata_files,
)
from tablestore_engine.store.iceberg_metadata.iceberg_sync import sync_iceberg
from tablestore_engine.store.retention import Retention
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.table_traits import TableTraits

_TIMES_AT_ONCE = 16
_DELETED_AT_ONCE = 10_000
_OTHERS = "another expiry or a rollback is at work"


@dataclass(frozen=True)
class DroppedStage:
    """One staged snapshot past its retention; `line` has the reason, for people."""

    table: str
    name: str
    line: str


@dataclass(frozen=True)
class ExpireReport:
    """Snapshots first <= id < end went (dry run: would go), with so many files; `bytes` of those whose size is known.

    `reason`: why the snapshot `end` stays. `again`: as of Choice. `staged`: staged snapshots that went before them;
    `tags`: tags whose time was over.

    >>> orders.expire(keep=1, dry_run=True).snapshots
    0
    """

    first: int
    end: int
    files: int
    bytes: int
    reason: str
    again: NextLook | None = field(default=None, compare=False)
    staged: tuple[DroppedStage, ...] = ()
    tags: tuple[str, ...] = ()

    @property
    def snapshots(self) -> int:
        return self.end - self.first


@dataclass(frozen=True)
class _Plan:
    """`stays`: the snapshot `end`, as it was planned with; `goes`: ids of snapshot files."""

    stays: Snapshot
    goes: tuple[int, ...]
    files: NamedFiles

    @property
    def end(self) -> int:
        return self.stays.id


def expire_snapshots(
    context: TableContext, rules: Retention, *, log: Hold | None = None, dry_run: bool = False
) -> ExpireReport:
    """Expire by these rules. REQUIRES `log` of a table with a log: the newest snapshot that the log has.

    Raises FixRequest TS1392 without it, Unsupported TS1393, FixData TS1391, RetryError TS1365, what a damaged manifest
    raises; then nothing was deleted.
    """
    if log is None and TableTraits(context.latest_schema()).has_log:
        raise FixRequest(
            "TS1392",
            f"snapshots of {context.layout.location} cannot expire",
            why="it has a log, and what the log has not published yet would be lost: how far it is was not asked",
            fix="expire it with Table.expire or `tablestore expire`, which ask the log",
        )
    if not dry_run:
        for name in list_idle_consumers(context, rules.consumer_idle_ms):
            context.consumers.delete(name)
    choice, floor = _choose(context, rules, () if log is None else (log,))
    if choice.is_nothing:
        if not dry_run and floor:
            _remove_floors(context, choice.first)  # of an expiry that died in its last step
        return replace(_nothing(choice.first, choice.reason), again=choice.again)
    if has_own_changelog(context):
        raise Unsupported(
            "TS1393",
            f"snapshots of {context.layout.location} cannot expire here",
            why="its changelog outlives its snapshots (changelog.*-retained), and only its own engine can do that",
            fix="expire it with the engine that keeps its changelog",
        )
    plan = _plan(context, choice)
    if plan is None:
        return _nothing(choice.first, _OTHERS)
    report = ExpireReport(choice.first, choice.end, plan.files.count, plan.files.size_bytes, choice.reason)
    if dry_run:
        return report
    return _run(context, plan, report, rules.consumer_idle_ms)


def find_horizon(context: TableContext, rules: Retention) -> Choice:
    """What the next expiry would take by these rules; how far the log of the table is is not asked."""
    return _choose(context, rules, ())[0]


def _nothing(at: int, reason: str) -> ExpireReport:
    return ExpireReport(at, at, 0, 0, reason)


# look -----------------------------------------------------------------------------------------------------------


def _choose(context: TableContext, rules: Retention, known: tuple[Hold, ...]) -> tuple[Choice, int]:
    """The range, from the oldest file on: what an earlier expiry left belongs to it; and the floor that is there.

    Mostly two small reads.
    """
    snapshots = context.snapshots
    seen = context.seen
    looks: list[Callable[[], Any]] = [
        snapshots.find_latest_id if seen is None else lambda: _id_of(seen.snapshot),
        snapshots.find_earliest_id,
        snapshots.find_floor,
    ]
    latest, earliest, floor = context.fileio.run_together(looks)
    if latest is None or earliest is None:
        return Choice(0, 0, "there is no snapshot"), floor

    time_of = _Times(context, latest).get

    def pick(holds: tuple[Hold, ...]) -> Choice:
        return pick_expired(earliest, latest, time_of, rules, holds, now_ms=context.runtime.now_ms())

    choice = pick(known)
    if not choice.is_nothing:
        choice = pick((*known, *find_holds(context, idle_ms=rules.consumer_idle_ms)))
    if floor <= earliest and floor:
        return replace(choice, first=snapshots.list_file_ids()[0]), floor
    return choice, floor


@dataclass
class _Times:
    """When snapshots were committed, read in the order of their numbers: each turn reads twice as many at once."""

    context: TableContext
    latest: int
    known: dict[int, int | None] = field(default_factory=dict)

    def get(self, number: int) -> int | None:
        """Epoch milliseconds; None when it is gone."""
        if number not in self.known:
            count = min(max(len(self.known), 1), _TIMES_AT_ONCE)
            numbers = range(number, max(min(number + count, self.latest + 1), number + 1))
            looks = [partial(self.context.snapshots.find, one) for one in numbers]
            for one, found in zip(numbers, self.context.fileio.run_together(looks), strict=True):
                self.known[one] = None if found is None else found.time_millis
        return self.known[number]


def _id_of(snapshot: Snapshot | None) -> int | None:
    return None if snapshot is None else snapshot.id


def _plan(context: TableContext, choice: Choice) -> _Plan | None:
    """The files that go with the range; None when somebody else changes the same snapshots."""
    floor = context.snapshots.find_floor()
    looks = [partial(context.snapshots.find_file, number) for number in range(choice.first, choice.end + 1)]
    found = context.fileio.run_together(looks)
    there = [snapshot for snapshot in found if snapshot is not None]
    if not there or any(one is None and at >= floor for at, one in enumerate(found, choice.first)):
        return None
    *goes, stays = there
    try:
        named = NamedFiles(
            data=dropped_data(context, there[1:], floor=floor),
            changelog=_joined(context, goes, lambda one: changelog_files(context, one, floor=floor)),
            metadata=_joined(context, goes, lambda one: metadata_files(context, one, floor=floor)),
        )
    except NotFound:
        if context.snapshots.find_floor() != floor:
            return None  # another expiry takes them away while we look
        raise
    needed = {*metadata_files(context, stays), *find_kept(context, stays.id)}
    return _Plan(stays, tuple(one.id for one in goes), named.all_but(needed))


def _joined(
    context: TableContext, snapshots: Iterable[Snapshot], files_of: Callable[[Snapshot], Files]
) -> Files:
    parts = context.fileio.run_together([partial(files_of, one) for one in snapshots])
    return {name: file for part in parts for name, file in part.items()}


# hide and delete ------------------------------------------------------------------------------------------------


def _run(context: TableContext, plan: _Plan, report: ExpireReport, idle_ms: int | None) -> ExpireReport:
    fileio, layout = context.fileio, context.layout
    floor = layout.floor_path(plan.end, context.runtime.new_uuid())
    context.guard.check()
    fileio.mkdirs(layout.expire_dir)
    fileio.create_exclusive(floor, context.snapshots.own_mark, check=context.guard.check)
    try:
        refusal = _find_refusal(context, plan, idle_ms)
        files = plan.files.all_but(find_kept(context, plan.end))
        if refusal is None:
            sync_iceberg(context)
    except (TablestoreError, OSError):
        with suppress(OSError):  # the error to tell is the first one
            fileio.delete(floor)
        raise
    if refusal is not None:
        fileio.delete(floor)
        return _nothing(report.first, refusal)
    _move_earliest(context, plan.end)
    context.runtime.crash_point("expire.hidden")
    delete_files(context, files.data, files.changelog)
    context.runtime.crash_point("expire.data")
    delete_files(context, files.metadata)
    context.runtime.crash_point("expire.metadata")
    for number in plan.goes:
        context.guard.check()
        fileio.delete(layout.snapshot_path(number))
    _move_earliest(
        context, plan.end
    )  # durable, and with it that the files of this folder are gone, before the floor goes
    context.runtime.crash_point("expire.snapshots")
    _remove_floors(context, plan.end)
    return replace(report, files=files.count, bytes=files.size_bytes)


def _find_refusal(context: TableContext, plan: _Plan, idle_ms: int | None) -> str | None:
    """Behind the floor: who came before it has left word by now; everybody else has seen it."""
    if context.snapshots.find_floor() > plan.end or context.snapshots.find_file(plan.end) != plan.stays:
        return _OTHERS
    found = [hold for hold in find_holds(context, idle_ms=idle_ms) if hold.first < plan.end]
    return found[0].who if found else None


def _move_earliest(context: TableContext, end: int) -> None:
    """For engines that know no floor. A hint, which another expiry may have moved further."""
    if (context.snapshots.find_earliest_id() or 0) <= end:
        context.fileio.replace(context.layout.earliest_hint, str(end).encode())


def delete_files(context: TableContext, *files: Files) -> None:
    """In this order. REQUIRES that nothing that counts needs them."""
    with context.runtime.progress.begin(f"{context.layout.name}: deleting files", "files") as meter:
        meter.expect(sum(map(len, files)))
        for part in files:
            paths = [file.path for file in part.values()]
            for first in range(0, len(paths), _DELETED_AT_ONCE):
                some = paths[first : first + _DELETED_AT_ONCE]
                context.fileio.delete_many(some)
                meter.advance(len(some))


def _remove_floors(context: TableContext, end: int) -> None:
    """Floors that hide nothing any more. REQUIRES that no snapshot file below `end` is left."""
    floors = [
        one.path
        for one in context.fileio.list(context.layout.expire_dir)
        if (found := find_floor_id(one.name)) is not None and found <= end
    ]
    context.fileio.delete_many(floors)
