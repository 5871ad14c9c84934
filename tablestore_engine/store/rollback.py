"""Rollback: an earlier snapshot becomes the newest again, as Paimon does it.

Steps      nobody expires the target any more → LATEST := target → snapshots newest → target + 1 → newcomers that were
           planned on one of them → later tags → what other engines see as schema → Iceberg metadata
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

from tablestore_engine.errors import FixRequest, NotFound
from tablestore_engine.format.layout import KEEP_PREFIX, find_id
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.commit.snapshot_claim import MainDestination
from tablestore_engine.store.iceberg_metadata.iceberg_sync import follow_iceberg
from tablestore_engine.store.metadata.commit_history import follows
from tablestore_engine.store.metadata.tags import TagStore
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.table_traits import TableTraits


def roll_back(context: TableContext, snapshot_id: int) -> int:
    """Make `snapshot_id` the newest; the number of deleted snapshots.

    Raises NotFound TS1302; RetryError TS1365; FixRequest TS1322 on tables with a log.
    """
    context.guard.check()
    target = context.snapshots.get(snapshot_id)
    later = [number for number in context.snapshots.list_ids() if number > snapshot_id]
    if not later:
        _forget_kept(context)
        return 0
    if TableTraits(context.latest_schema()).has_log:
        raise FixRequest(
            "TS1322",
            f"{context.layout.location} cannot be rolled back to snapshot {snapshot_id}",
            why="its later snapshots are in the log, whose readers would keep rows that the table no longer has",
            fix=f"restore instead (`tablestore restore … --to {snapshot_id}`): the old rows become a new snapshot, "
            "and the log gets the difference",
        )
    context.guard.check()
    keep = context.layout.keep_path(snapshot_id)
    context.fileio.replace(keep, context.snapshots.own_mark)
    context.runtime.crash_point("rollback.kept")
    try:
        context.snapshots.get(snapshot_id)
    except NotFound:
        context.fileio.delete(keep)
        raise
    context.snapshots.write_hints(snapshot_id)
    for number in reversed(later):
        context.guard.check()
        context.fileio.delete(context.layout.snapshot_path(number))
    _delete_strays(context, target)
    _delete_tags_behind(context, snapshot_id)
    MainDestination(
        context.snapshots, context.schemas, context.guard, context.sweeps, context.runtime
    ).cover_schemas()
    _forget_kept(context)
    follow_iceberg(context)
    return len(later)


def _delete_tags_behind(context: TableContext, snapshot_id: int) -> None:
    tags = TagStore(context.fileio, context.layout, context.snapshots)
    for name, number in tags.list_all().items():
        if number > snapshot_id:
            tags.delete(name)


def _forget_kept(context: TableContext) -> None:
    """Of this rollback, and of earlier ones that died."""
    for one in context.fileio.list(context.layout.expire_dir):
        if find_id(one.name, KEEP_PREFIX) is not None:
            context.fileio.delete(one.path)


def _delete_strays(context: TableContext, target: Snapshot) -> None:
    """Snapshots behind the target that do not go back to it: claimed meanwhile by writers that had not seen us."""
    while True:
        before, strays = target, []
        for number in context.snapshots.list_ids():
            found = context.snapshots.find(number) if number > target.id else None
            if found is None:
                continue
            if number == before.id + 1 and follows(found, before):
                before = found
            else:
                strays.append(found)
        if not strays:
            return
        for stray in reversed(strays):
            context.snapshots.delete_own(stray)
