"""Snapshots of one table page by page, newest first, so that 10,000 of them cost one listing and a page of files.

INVARIANT  a page reads at most PAGE_MAX snapshot files, and the history at most HISTORY_POINTS.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tablestore_engine.api import Table
from tablestore_engine.fileio.base import FileStatus
from tablestore_engine.format.layout import find_id
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.runtime.moments import moment_text
from tablestore_engine.store.expiry.expire_snapshots import find_horizon
from tablestore_engine.store.metadata.snapshots import SNAPSHOT_PREFIX, SnapshotStore
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.ui.commit_records import Record, snapshot_record

PAGE_MAX, HISTORY_POINTS = 120, 48


def read_snapshot_page(table: Table, before: int | None = None) -> Record:
    """The newest PAGE_MAX snapshots whose id is below `before`, oldest first; the listing's ends; a sparse history."""
    snapshots = table.store.snapshots
    listed = snapshots.list_newest_first()
    ids = [find_id(status.name, SNAPSHOT_PREFIX) or 0 for status in listed]
    below = [at for at, number in enumerate(ids) if before is None or number < before]
    page = [listed[at] for at in below[:PAGE_MAX]]
    tags: dict[int, list[str]] = {}
    for name, number in table.list_tags().items():
        tags.setdefault(number, []).append(name)
    found = _read(table, snapshots, page)
    return {
        "snapshots": [snapshot_record(one, tags.get(one.id, [])) for one in reversed(found)],
        "total": len(ids),
        "oldest": ids[-1] if ids else None,
        "newest": ids[0] if ids else None,
        "has_older": len(below) > PAGE_MAX,
        "tags": [{"name": name, "snapshot": at} for at, names in sorted(tags.items()) for name in names],
        "history": _history(table, snapshots, listed) if len(ids) > PAGE_MAX else [],
    }


def _read(table: Table, snapshots: SnapshotStore, page: Sequence[FileStatus]) -> list[Snapshot]:
    """Those that vanish meanwhile are left out."""
    looks = [partial(snapshots.find_listed, status) for status in page]
    return [one for one in table.store.fileio.run_together(looks) if one is not None]


def _history(table: Table, snapshots: SnapshotStore, listed: Sequence[FileStatus]) -> list[Record]:
    """Rows and time of snapshots at equal distances, oldest first, the two ends among them."""
    last = len(listed) - 1
    places = sorted({round(at * last / (HISTORY_POINTS - 1)) for at in range(HISTORY_POINTS)}, reverse=True)
    found = _read(table, snapshots, [listed[at] for at in places])
    return [
        {"id": one.id, "committed_at": moment_text(one.time_millis), "rows": one.total_record_count}
        for one in found
    ]


def read_horizon(table: Table) -> Record:
    """Snapshots below `end` expire with the next commit. How far a log is is not asked: it may keep more."""
    store = table.store
    traits = TableTraits(store.schema)
    found = find_horizon(store.context, traits.retention)
    return {
        "end": None if found.is_nothing else found.end,
        "reason": found.reason,
        "on_commit": traits.expires_on_commit,
        "log_may_keep": traits.has_log,
    }
