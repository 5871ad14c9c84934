"""Rollback: an earlier snapshot becomes the newest again, as Paimon does it.

Names      roll_back   delete all later snapshots, newest first, and the tags that name them
Steps      nobody expires the target any more → LATEST := target → snapshots newest → target + 1 → newcomers that were
           planned on one of them → later tags → what other engines see as schema
INVARIANT  readers see a table at each step: ids stay without gaps, since the newest goes first.
INVARIANT  files of deleted snapshots stay for orphan cleaning; schema files stay, their numbers are never used again;
           the table's schema is that of the target again.
INVARIANT  a writer beside it loses nothing but its claim: one that planned on a deleted snapshot plans again (see
           destination). One that committed on the target meanwhile stays.
INVARIANT  `keep-<N>` is written first and then looked whether N counts; an expiry hides first and then looks for it:
           one of both sees the other (expire).
CRASH      anywhere: the table is at some snapshot between; running it again goes on, and until then nothing from the
           target on expires.
DANGER     snapshots that are in the log cannot be taken back: refused.
"""

from __future__ import annotations

from collections.abc import Callable

from tablestore_engine.errors import FixRequest, NotFound
from tablestore_engine.format.layout import KEEP_PREFIX, find_id
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.branch_stores import Parts
from tablestore_engine.store.commit.snapshot_claim import MainDestination
from tablestore_engine.store.metadata.commit_history import follows
from tablestore_engine.store.metadata.tags import TagStore
from tablestore_engine.store.table_traits import TableTraits


def roll_back(parts: Parts, snapshot_id: int, *, confirm: Callable[[], bool] | None = None) -> int:
    """Make `snapshot_id` the newest; the number of deleted snapshots.

    Raises NotFound TS1302; RetryError TS1365; FixRequest TS1322 on tables with a log unless `confirm` says that it
    may be.
    """
    target = parts.snapshots.get(snapshot_id)
    later = [number for number in parts.snapshots.list_ids() if number > snapshot_id]
    if not later:
        _forget_kept(parts)
        return 0
    has_log = TableTraits(parts.latest_schema()).has_log
    if has_log and not (confirm is not None and confirm()):
        raise FixRequest(
            "TS1322",
            f"{parts.layout.location} cannot be rolled back to snapshot {snapshot_id}",
            why="its later snapshots are in the log, whose readers would keep rows that the table no longer has",
            fix=f"restore instead (`tablestore restore … --to {snapshot_id}`): the old rows become a new snapshot, "
            "and the log gets the difference",
        )
    parts.guard.check()
    keep = parts.layout.keep_path(snapshot_id)
    parts.fileio.replace(keep, b"")
    parts.runtime.crash_point("rollback.kept")
    try:
        parts.snapshots.get(snapshot_id)
    except NotFound:
        parts.fileio.delete(keep)
        raise
    parts.snapshots.write_hints(snapshot_id)
    for number in reversed(later):
        parts.guard.check()
        parts.fileio.delete(parts.layout.snapshot_path(number))
    _delete_strays(parts, target)
    _delete_tags_behind(parts, snapshot_id)
    MainDestination(parts.snapshots, parts.schemas, parts.guard, parts.sweeps, parts.runtime).cover_schemas()
    _forget_kept(parts)
    return len(later)


def _delete_tags_behind(parts: Parts, snapshot_id: int) -> None:
    tags = TagStore(parts.fileio, parts.layout, parts.snapshots)
    for name, number in tags.list_all().items():
        if number > snapshot_id:
            tags.delete(name)


def _forget_kept(parts: Parts) -> None:
    """Of this rollback, and of earlier ones that died."""
    for one in parts.fileio.list(parts.layout.expire_dir):
        if find_id(one.name, KEEP_PREFIX) is not None:
            parts.fileio.delete(one.path)


def _delete_strays(parts: Parts, target: Snapshot) -> None:
    """Snapshots behind the target that do not go back to it: claimed meanwhile by writers that had not seen us."""
    while True:
        before, strays = target, []
        for number in parts.snapshots.list_ids():
            found = parts.snapshots.find(number) if number > target.id else None
            if found is None:
                continue
            if number == before.id + 1 and follows(found, before):
                before = found
            else:
                strays.append(found)
        if not strays:
            return
        for stray in reversed(strays):
            parts.snapshots.delete_own(stray)
