"""A snapshot as a record with stable names, and the changes between two: for commands, page and report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.runtime.moments import moment_text
from tablestore_engine.store.commit.commit_report import report_of

if TYPE_CHECKING:
    from tablestore_engine.warehouse.net_changes import NetChange

Record = dict[str, object]


def snapshot_record(snapshot: Snapshot, tags: Sequence[str]) -> Record:
    """One snapshot; the counts of other writers' snapshots are 0."""
    report = report_of(snapshot)
    return {
        "id": snapshot.id,
        "committed_at": moment_text(snapshot.time_millis),
        "kind": str(snapshot.commit_kind),
        "inserted": report.inserted,
        "updated": report.updated,
        "deleted": report.deleted,
        "changelog_rows": report.changelog_rows,
        "stored_rows": snapshot.total_record_count,
        "schema": snapshot.schema_id,
        "commit_user": snapshot.commit_user,
        "commit_identifier": snapshot.commit_identifier,
        "properties": dict(snapshot.properties or {}),
        "tags": list(tags),
    }


def samples_record(samples: Sequence[NetChange]) -> Record:
    """Sample rows by kind; an update has both rows."""
    return {
        "inserted": [one.after for one in samples if one.kind == "inserted"],
        "updated": [{"before": one.before, "after": one.after} for one in samples if one.kind == "updated"],
        "deleted": [one.before for one in samples if one.kind == "deleted"],
    }
