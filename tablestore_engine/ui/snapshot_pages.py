"""Snapshots of one table page by page, newest first, so that 10,000 of them cost a page of files and no listing.

INVARIANT  ids have no gaps: each number between the oldest and the newest snapshot is taken (store.metadata.snapshots).
           One that is not there all the same is left out.
INVARIANT  a page reads at most PAGE_MAX snapshot files, and the history at most HISTORY_POINTS.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from tablestore_engine.api import Table
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.runtime.moments import moment_text
from tablestore_engine.store.expiry.expire_snapshots import find_horizon
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.ui.commit_records import Record, snapshot_record

PAGE_MAX, HISTORY_POINTS = 120, 48


def read_snapshot_page(table: Table, before: int | None = None) -> Record:
    """The newest PAGE_MAX snapshots whose id is below `before`, oldest first; the ends of all; a sparse history."""
    snapshots = table.store.snapshots
    oldest, newest = snapshots.find_earliest_id(), snapshots.find_latest_id()
    every = range(0) if oldest is None or newest is None else range(oldest, newest + 1)
    end = every.stop if before is None else min(max(before, every.start), every.stop)
    page = range(max(every.start, end - PAGE_MAX), end)
    tags: dict[int, list[str]] = {}
    for name, number in table.list_tags().items():
        tags.setdefault(number, []).append(name)
    return {
        "snapshots": [snapshot_record(one, tags.get(one.id, [])) for one in _read(table, page)],
        "total": len(every),
        "oldest": oldest,
        "newest": newest,
        "has_older": page.start > every.start,
        "tags": [{"name": name, "snapshot": at} for at, names in sorted(tags.items()) for name in names],
        "history": _history(table, every) if len(every) > PAGE_MAX else [],
    }


def _read(table: Table, ids: Iterable[int]) -> list[Snapshot]:
    """Those that vanish meanwhile are left out."""
    find = table.store.snapshots.find_file
    looks = [partial(find, number) for number in ids]
    return [one for one in table.store.fileio.run_together(looks) if one is not None]


def _history(table: Table, every: range) -> list[Record]:
    """Stored rows and time of snapshots at equal distances, oldest first, the two ends among them."""
    last = len(every) - 1
    places = sorted({round(at * last / (HISTORY_POINTS - 1)) for at in range(HISTORY_POINTS)})
    return [
        {"id": one.id, "committed_at": moment_text(one.time_millis), "stored_rows": one.total_record_count}
        for one in _read(table, (every[at] for at in places))
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
