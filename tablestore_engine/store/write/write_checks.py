"""Whether a request may be written on a base, and with which schema; checked for every base, before a file is written.

CHANGE     the checks of a write against its base snapshot
INVARIANT  nothing is written here. A refusal on this base may be an agreement on the next one: others commit meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tablestore_engine.errors import FixRequest, RetryError, Unsupported
from tablestore_engine.format.capability import check_writable
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import CommitKind, Snapshot
from tablestore_engine.store.files.bucket_state import BucketChange, BucketId, BucketState
from tablestore_engine.store.metadata.schemas import is_same_schema
from tablestore_engine.store.rows.row_filter import RowPositions, check_positions
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.store.write.write_request import Extent, WriteRequest


def check_unmoved(context: TableContext, base: Snapshot | None, request: WriteRequest) -> None:
    """Rows of an UPDATE, DELETE or MERGE are right on their snapshot only; compactions since then change no row.

    Raises RetryError TS1324 when somebody committed rows meanwhile, or took that snapshot back.
    """
    start = request.computed_from
    if start is None:
        return
    newest = 0 if base is None else base.id
    if start > newest:
        raise _moved(context, start, f"it was taken back, the newest is {newest or 'none'} now")
    if start and request.computed_from_unique is not None:
        found = context.snapshots.find(start)
        if found is not None and found.unique != request.computed_from_unique:
            raise _moved(context, start, "it was taken back, another one has its number now")
    for number in range(start + 1, newest + 1):
        snapshot = context.snapshots.get(number)
        if (
            snapshot.commit_kind not in (CommitKind.COMPACT, CommitKind.ANALYZE)
            or snapshot.changelog_manifest_list is not None
        ):
            raise _moved(context, start, f"snapshot {number} came since")


def _moved(context: TableContext, start: int, why: str) -> RetryError:
    return RetryError(
        "TS1324",
        f"{context.layout.location} changed while the statement ran",
        why=f"its rows were computed from snapshot {start}; {why}",
        fix="run the statement again",
    )


def target_schema(
    context: TableContext, base: Snapshot | None, request: WriteRequest, claim: str
) -> TableSchema:
    """The schema to write with, on this base. Raises Unsupported TS1127, TS1309, RetryError TS1307."""
    current, wanted = context.schema_at(base), request.new_schema
    if wanted is None or is_same_schema(wanted, current):
        schema = current
    elif wanted.id != current.id + 1:
        raise _schema_changed(context.layout, wanted, current)
    else:
        changed = replace(wanted, time_millis=context.runtime.now_ms())
        schema = context.schemas.numbered(changed, claim, above=current)
    check_table_writable(context.layout, schema)
    return schema


def check_table_writable(layout: TableLayout, schema: TableSchema) -> None:
    """Also before a compaction. Raises Unsupported TS1127, TS1152, TS1309."""
    check_writable(schema)
    if schema.crosses_partitions:
        from tablestore_engine.store.write.moved_rows import check_can_move  # noqa: PLC0415 - few tables need it (decision 0137)

        check_can_move(TableTraits(schema), layout.location)
    if schema.is_keyed and not TableTraits(schema).has_inbox:
        raise Unsupported(
            "TS1309",
            f"{layout.location} cannot be written",
            why="it has a primary key but no deletion vectors; writing needs deletion-vectors.enabled=true",
            fix="convert it: `tablestore convert DATABASE.TABLE`, with the other engine's jobs on it stopped",
        )


def _schema_changed(layout: TableLayout, wanted: TableSchema, current: TableSchema) -> RetryError:
    """TS1307: the new schema was made from one that is not the table's any more."""
    return RetryError(
        "TS1307",
        f"the schema of {layout.location} was changed by another writer",
        why=f"this commit changes schema {wanted.id - 1}, the table has schema {current.id} now",
        fix="run the command again: it plans on the new schema",
    )


def check_picks(extent: Extent, states: Mapping[BucketId, BucketState]) -> None:
    """Raises RetryError TS1386 when picked positions are no longer where they were."""
    if isinstance(extent.picks, RowPositions):
        check_positions(extent.picks, states.values())


def check_bucket_count(
    context: TableContext,
    base: Snapshot | None,
    schema: TableSchema,
    extent: Extent,
    partitions: frozenset[bytes],
) -> bool:
    """Whether the extent has to be rescaled. Raises FixRequest TS1314 where that is not possible."""
    if base is None or schema.bucket_count <= 0:
        return False
    others = {
        entry.total_buckets
        for entry in context.scanner.live_entries(base)
        if entry.partition in partitions
        or (extent.rewrites and extent.covers((entry.partition, entry.bucket)))
    } - {schema.bucket_count}
    if not others:
        return False
    if not extent.rewrites or TableTraits(schema).has_log:
        raise FixRequest(
            "TS1314",
            f"rows cannot be written into {schema.bucket_count} buckets",
            why=f"the partition has files of {min(others)} buckets"
            + (" and the log has one partition per bucket" if extent.rewrites else ""),
            fix="overwrite the whole partition (tables without log), or set bucket back",
        )
    return True


def takes_rows_away(schema: TableSchema, changes: Iterable[BucketChange]) -> bool:
    """Whether rows go without a deletion vector of a key: the commit is an OVERWRITE then."""
    if schema.is_keyed:
        return any(change.removed for change in changes)
    return any(change.removed or change.deletion_vectors is not None for change in changes)


def check_log_takes(layout: TableLayout, schema: TableSchema, changes: Iterable[BucketChange]) -> None:
    """Raises FixRequest TS1329 for rows that are taken away behind the back of a log that knows inserts only."""
    gone = sum(change.deleted for change in changes)
    if gone and TableTraits(schema).log_takes_inserts_only:
        raise FixRequest(
            "TS1329",
            f"{gone} rows of {layout.location} cannot be retracted; nothing was written",
            why="'log.format' = 'json' has no message for it, so readers of the log would keep them",
            fix="only append to this table, or build it again with another 'log.format', or with 'log.ignore-delete' = "
            "'true', which leaves deletes out of the log",
        )
