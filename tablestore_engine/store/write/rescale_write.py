"""Another number of buckets: all rows are rewritten, and nothing changes for readers.

CHANGE     another number of buckets
Steps      schema with the new count → due compactions → the states of all buckets → a task for each new bucket
           (bucket_plan) → one snapshot: all old files go, the new ones come, with the new schema
INVARIANT  the snapshot is COMPACT: every row is what it was, so statements and verdicts that were computed before stay
           right, streams pass it by, and a log has nothing to tell. What is staged lies in the old buckets: it is
           built again (TS1308).
INVARIANT  all partitions change at once: there is no moment in which two have different counts.
RACE       a commit to any bucket overtakes it: planned again on what is there then. Writers that planned for the old
           count plan again for the new one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.schema_change import set_options
from tablestore_engine.format.snapshot import CommitKind, Snapshot
from tablestore_engine.store.commit.conflict_rule import ConflictScope
from tablestore_engine.store.commit.snapshot_files import Planned
from tablestore_engine.store.files.bucket_state import BucketChange, BucketState
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.store.tasks.bucket_plan import plan_rescale
from tablestore_engine.store.write.compaction_step import preparing_step
from tablestore_engine.store.write.write_checks import check_table_writable
from tablestore_engine.store.write.write_request import WriteMode, plan_extent

OPERATION = "RESCALE"


@dataclass
class RescaleWrite:
    """`claim` marks this request's schema files."""

    context: TableContext
    buckets: int
    claim: str = field(init=False)

    def __post_init__(self) -> None:
        self.claim = self.context.runtime.new_uuid()

    def __call__(self, base: Snapshot | None) -> Planned:
        """The new buckets on `base`, or a step before. Raises FixRequest TS1344; TS1127, TS1309."""
        context = self.context
        current = context.schema_at(base)
        check_table_writable(context.layout, current)
        _check(context, current, self.buckets)
        if current.bucket_count == self.buckets:
            return Planned(CommitKind.COMPACT, current, (), ConflictScope())
        step = preparing_step(context, base, plan_extent(WriteMode.OVERWRITE_TABLE, current, (), {}))
        if step is not None:
            return step
        changed = replace(
            set_options(current, {"bucket": str(self.buckets)}), time_millis=context.runtime.now_ms()
        )
        schema = context.schemas.numbered(changed, self.claim, above=current)
        states = tuple(context.scanner.bucket_states(base, schema).values())
        tasks = plan_rescale(context.task_table(schema), states, bucket_count=current.bucket_count)
        return Planned(
            kind=CommitKind.COMPACT,
            schema=schema,
            changes=(*removals(states), *context.run(tasks)),
            scope=ConflictScope(everything=True),
            is_forced=True,
            claims_schema=True,
            operation=OPERATION,
        )


def removals(states: Iterable[BucketState]) -> list[BucketChange]:
    """All files of these buckets go, with their vectors."""
    return [
        BucketChange(
            state.partition_bytes,
            state.bucket,
            removed=tuple(file.meta for file in state.files),
            total_buckets=state.total_buckets,
            deletion_vectors={} if state.deletion_vectors else None,
        )
        for state in states
    ]


def _check(context: TableContext, schema: TableSchema, buckets: int) -> None:
    """Raises FixRequest TS1344."""
    if schema.has_dynamic_buckets:
        why = "its buckets are dynamic: it gets more of them as keys come"
        fix = "leave it as it is, or convert it: `tablestore convert DATABASE.TABLE --buckets N`"
    elif schema.bucket_count < 1:
        why, fix = "it has no fixed buckets, so there is nothing to rescale", "leave it as it is"
    elif buckets < 1:
        why, fix = f"got {buckets}", "give a number of at least 1"
    elif buckets < schema.bucket_count and TableTraits(schema).has_log:
        why = "each bucket is a part of its log, and a log cannot lose parts that readers know"
        fix = "build a new table with a log of its own"
    else:
        return
    raise FixRequest(
        "TS1344",
        f"{context.layout.location} cannot get {buckets} buckets instead of {schema.bucket_count}",
        why=why,
        fix=fix,
    )
