"""Rollback: an earlier snapshot becomes the newest again, as Paimon does it.

Names      roll_back   delete all later snapshots, newest first, and the tags that name them
Steps      LATEST := target → snapshots newest → target + 1 → later tags
INVARIANT  readers see a table at each step: ids stay without gaps, since the newest goes first.
INVARIANT  files of deleted snapshots stay for orphan cleaning; schemas stay, their ids are never used again.
CRASH      anywhere: the table is at some snapshot between; running it again goes on.
DANGER     no writer may run meanwhile: one that planned on a deleted snapshot could claim an id behind a gap
           (the format has no guard against it). Snapshots that are in the log cannot be taken back: refused.
"""

from __future__ import annotations

from collections.abc import Callable

from tablestore_engine.errors import FixRequest
from tablestore_engine.store.parts import Parts
from tablestore_engine.store.tags import TagStore


def roll_back(parts: Parts, snapshot_id: int, *, confirm: Callable[[], bool] | None = None) -> int:
    """Make `snapshot_id` the newest; the number of deleted snapshots.

    Raises NotFound TS1302; FixRequest TS1322 on tables with a log unless `confirm` says that it may be.
    """
    parts.snapshots.get(snapshot_id)
    later = [number for number in parts.snapshots.list_ids() if number > snapshot_id]
    if not later:
        return 0
    has_log = parts.latest_schema().options.get("log.system", "none") != "none"
    if has_log and not (confirm is not None and confirm()):
        raise FixRequest(
            "TS1322",
            f"{parts.layout.location} cannot be rolled back to snapshot {snapshot_id}",
            why="its later snapshots are in the log, whose readers would keep rows that the table no longer has",
            fix="overwrite the table with the rows of the old snapshot: the log gets the difference",
        )
    tags = TagStore(parts.fileio, parts.layout, parts.snapshots)
    parts.snapshots.write_hints(snapshot_id)
    for number in reversed(later):
        parts.fileio.delete(parts.layout.snapshot_path(number))
    for name, number in tags.list_all().items():
        if number > snapshot_id:
            tags.delete(name)
    return len(later)
