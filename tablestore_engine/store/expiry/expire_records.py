"""Expiry of records: one commit that deletes them, before a requested compaction takes them out of the files.

CHANGE     when records expire
Steps      newest snapshot → record_time says which rows are due → a replacing write of no rows (look-ups, changelog and
           conflicts as of any other) → the compaction, whose steps are COMPACT snapshots
INVARIANT  the rows that go are deletes in the changelog. Readers leave out no row: a snapshot keeps its rows.
RACE       the moment is taken once; a lost race deletes the rows of the new base that were due then.
PAIMON     leaves expired rows out of the files that a compaction writes: no changelog and no stream says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tablestore_engine.format.cluster_order import check_order
from tablestore_engine.store.commit.commit import Committer
from tablestore_engine.store.commit.commit_report import CommitReport
from tablestore_engine.store.expiry.record_time import expired_records
from tablestore_engine.store.rows.row_filter import MatchingRows
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.write.requested_compaction import (
    CompactionReport,
    CompactionRequest,
    compact_table,
)
from tablestore_engine.store.write.write_request import WriteMode, WriteRequest

Write = Callable[[WriteRequest], CommitReport]


def compact_records(
    context: TableContext, committer: Committer, write: Write, request: CompactionRequest, *, expires: bool
) -> CompactionReport:
    """Compacts; with `expires`, and for a whole table, expired records go before. Raises FixRequest TS1154, what a
    write can, and as compact_table.
    """
    if request.order is not None:  # refused before rows go
        check_order(request.order, context.latest_schema())
    went = _expire(context, write) if expires and not request.partition else None
    done = compact_table(context, committer, request)
    return done if went is None else replace(done, snapshot_ids=(went, *done.snapshot_ids))


def _expire(context: TableContext, write: Write) -> int | None:
    """The snapshot without the rows that were due; None: none was."""
    newest = context.snapshots.find_latest()
    due = expired_records(context.schema_at(newest), context.runtime.now_ms())
    if due is None or newest is None:
        return None
    done = write(
        WriteRequest(mode=WriteMode.REPLACE, replaces=MatchingRows(due), identity=context.guard.identity)
    )
    return None if done.is_empty else done.snapshot_id
