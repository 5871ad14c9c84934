"""Commits of others in a table whose rows one writer derives: what they changed is not what the writer has computed.

INVARIANT  a commit that may have changed a row or the meaning of a column is found, or its number is: where the history
           does not tell, the answer is "foreign".
Expiry of partitions is no foreign commit: the table's own options ask for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from tablestore_engine.format.snapshot import CommitKind, Snapshot
from tablestore_engine.store.metadata.commit_history import NO_ROWS, commit_of, find_row_commit
from tablestore_engine.store.metadata.source_positions import MOVED_PROPERTY
from tablestore_engine.store.table_context import TableContext

PARTITIONS_EXPIRED = "tablestore.partitions-expired"  # property of the commit that expires them
ROWS_BEFORE = "tablestore.rows-before"  # property of a commit: version_for_writer when its rows were computed


def version_for_writer(context: TableContext) -> str:
    """Of the newest commit that a writer of derived rows has to know of."""
    found = _row_commit(context, context.newest_snapshot())
    return NO_ROWS if found is None else commit_of(found)


def find_foreign_commit(context: TableContext, own: Mapping[str, str]) -> Snapshot | None:
    """`own`: a property that all commits of the writer have. Looks at the newest commit of rows, and at the one before
    it, which the writer did not know of if it came while the rows were computed.
    """
    newest = _row_commit(context, context.newest_snapshot())
    if newest is None:
        return None
    properties = newest.properties or {}
    if any(properties.get(name) != value for name, value in own.items()):
        return newest
    known = properties.get(ROWS_BEFORE)
    if known is None:
        return None
    before = _row_commit(context, context.snapshots.find(newest.id - 1))
    return None if before is None or commit_of(before) == known else before


def _row_commit(context: TableContext, snapshot: Snapshot | None) -> Snapshot | None:
    found = find_row_commit(context.snapshots, snapshot)
    while found is not None:
        before = context.snapshots.find(found.id - 1)
        if before is None or not (_is_expiry(found) or _is_quiet(context, before, found)):
            break
        found = find_row_commit(context.snapshots, before)
    return found


def _is_expiry(snapshot: Snapshot) -> bool:
    return PARTITIONS_EXPIRED in (snapshot.properties or {})


def _is_quiet(context: TableContext, before: Snapshot, snapshot: Snapshot) -> bool:
    """Whether it changed options or comments alone."""
    if snapshot.commit_kind is not CommitKind.APPEND or snapshot.changelog_manifest_list is not None:
        return False
    if (snapshot.delta_record_count, snapshot.index_manifest) != (0, before.index_manifest):
        return False
    columns = [
        [(one.id, one.name, one.type) for one in context.schemas.get(number).fields]
        for number in (before.schema_id, snapshot.schema_id)
    ]
    return columns[0] == columns[1] and not _moves(snapshot)


def _moves(snapshot: Snapshot) -> bool:
    """A writer's own commit without rows, which moved its positions."""
    return MOVED_PROPERTY in (snapshot.properties or {})
