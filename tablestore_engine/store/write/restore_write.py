"""A table gets the rows of an earlier snapshot back, in a new snapshot with the changes; the history stays.

CHANGE     RESTORE, and when it is refused
Steps      base unmoved? → due compactions → files of then and now, bucket by bucket → tasks where they
           differ (bucket_plan) → changes: a difference, with an exact changelog (decision 0002)
INVARIANT  rows that somebody commits meanwhile are not undone unseen: the restore is refused (TS1324).
INVARIANT  a key is in the same bucket then and now: its deletion and insertion in two buckets would have no order.
INVARIANT  columns are today's: one that was dropped since stays dropped, one that was added since is NULL.
WHY        a rollback deletes snapshots; a log has their changes already, and its readers would keep them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import CommitKind, Snapshot
from tablestore_engine.store.commit.conflict_rule import ConflictScope
from tablestore_engine.store.commit.snapshot_files import Planned
from tablestore_engine.store.read.scan import bucket_files
from tablestore_engine.store.rows.bucket_assigner import BucketAssigner
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.tasks.bucket_plan import plan_restore
from tablestore_engine.store.write.compaction_step import preparing_step
from tablestore_engine.store.write.dynamic_buckets import find_assigner
from tablestore_engine.store.write.write_checks import check_table_writable, check_unmoved, takes_rows_away
from tablestore_engine.store.write.write_request import Extent, WriteMode, WriteRequest, plan_extent

OPERATION = "RESTORE"


@dataclass(frozen=True)
class RestoreWrite:
    """`past` has the rows that are wanted; `start` is the newest snapshot when somebody asked for it."""

    context: TableContext
    past: Snapshot
    start: Snapshot

    def __call__(self, base: Snapshot | None) -> Planned:
        """The changes on `base`, or a step before. Raises TS1324, TS1127, TS1309, TS1343, NotFound TS1201."""
        context = self.context
        asked = WriteRequest(computed_from=self.start.id, computed_from_unique=self.start.unique)
        check_unmoved(context, base, asked)
        schema = context.schema_at(base)
        check_table_writable(context.layout, schema)
        extent: Extent = plan_extent(WriteMode.OVERWRITE_TABLE, schema, (), {})
        step = preparing_step(context, base, extent)
        if step is not None:
            return step
        past = context.scanner.plan_scan(self.past, schema=schema).files
        states = context.scanner.bucket_states(base, schema)
        counts = {file.total_buckets for file in past} | {
            file.total_buckets for state in states.values() for file in state.files
        }
        if schema.bucket_count > 0 and counts - {schema.bucket_count}:
            named = ", ".join(map(str, sorted(counts)))
            raise _other_buckets(
                context, self.past, f"its rows are in other buckets than now: counts {named}"
            )
        indexes = self._indexes(base, schema)
        tasks = plan_restore(context.task_table(schema), states, bucket_files(past))
        changes = tuple(change for change in context.run(tasks) if not change.is_empty)
        if indexes is not None:
            then, now = indexes
            changes = tuple(
                replace(one, hashes=now.with_keys_of(then, one.partition_bytes, one.bucket))
                for one in changes
            )
        return Planned(
            kind=CommitKind.OVERWRITE if takes_rows_away(schema, changes) else CommitKind.APPEND,
            schema=schema,
            changes=changes,
            scope=ConflictScope(everything=True),
            operation=OPERATION,
        )

    def _indexes(
        self, base: Snapshot | None, schema: TableSchema
    ) -> tuple[BucketAssigner, BucketAssigner] | None:
        """Of dynamic buckets the hash indexes of then and of now. Raises FixRequest TS1343."""
        past, now = (find_assigner(self.context, one, schema) for one in (self.past, base))
        if past is None or now is None:
            return None
        if past.disagrees_with(now):
            why = "keys that were gone meanwhile came back into other buckets"
            raise _other_buckets(self.context, self.past, why)
        return past, now


def _other_buckets(context: TableContext, past: Snapshot, why: str) -> FixRequest:
    return FixRequest(
        "TS1343",
        f"{context.layout.location} cannot be restored to snapshot {past.id}",
        why=why,
        fix=f"write the rows themselves: INSERT OVERWRITE … SELECT * FROM … VERSION AS OF {past.id}",
    )
