"""Compaction steps, which change no row: of runs, of level 0, of small files. They plan and perform.

CHANGE     compactions before the tasks of a write
Steps      the states of the buckets concerned → tasks (bucket_plan, pure) → changes (TableContext.run) → one plan
INVARIANT  a step is COMPACT and complete in itself: whoever dies after it leaves a right table (decision 0001).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tablestore_engine.format.cluster_order import ClusterOrder, find_rule
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import CommitKind, Snapshot
from tablestore_engine.store.commit.conflict_rule import ConflictScope
from tablestore_engine.store.commit.snapshot_files import Planned
from tablestore_engine.store.files.bucket_state import BucketId
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.store.tasks.bucket_plan import plan_compaction, plan_preparation
from tablestore_engine.store.tasks.bucket_task import BucketTask
from tablestore_engine.store.tasks.small_file_plan import (
    plan_clustering,
    plan_due_clustering,
    plan_full_clustering,
    plan_small_file_tasks,
)
from tablestore_engine.store.tasks.task_size import first_portion
from tablestore_engine.store.write.write_request import Extent

PORTION_BYTES = 4 << 30  # of input; each step is a snapshot
_ASKED_FILES_MIN = 2  # who asks for compaction wants even two small files joined


def preparing_step(context: TableContext, base: Snapshot | None, extent: Extent) -> Planned | None:
    """Compactions of the extent's buckets and level 0 of all; append-only: of small files, without fixed buckets those
    of all partitions. None if none is due.

    Always with the schema that exists: a new one belongs to the write itself.
    """
    existing = context.schema_at(base)
    if existing.is_keyed:
        return _compacted(context, existing, _preparation(context, base, existing, extent.covers))
    if extent.rewrites or extent.needs_positions or TableTraits(existing).leaves_compaction:
        return None
    covers = extent.covers if existing.bucket_count > 0 else _every_bucket
    return _compacted(context, existing, _joins(context, base, existing, covers))


def compaction_step(
    context: TableContext,
    base: Snapshot | None,
    schema: TableSchema,
    covers: Callable[[BucketId], bool],
    *,
    full: bool,
    order: ClusterOrder | None = None,
) -> Planned | None:
    """One step of a compaction of the buckets that `covers` names, None when there is none left.

    Keyed: the compactions that are due and level 0; with `full` level 0, then one run per bucket without deleted rows.
    Append-only: the compactions that are due; with `full` all small files and those with dead rows, or all files sorted
    as the table says. With `order` all files sorted by it, also those that are: `covers` has to end it.
    """
    if base is None:
        return None
    if order is not None:
        found = context.scanner.bucket_states(base, schema, covers)
        return _compacted(
            context, schema, _portion(plan_clustering(context.task_table(schema), found.values(), order))
        )
    if not schema.is_keyed:
        least = _ASKED_FILES_MIN if full else None
        return _compacted(context, schema, _portion(_joins(context, base, schema, covers, files_min=least)))
    table, states = context.task_table(schema), context.scanner.bucket_states(base, schema, covers).values()
    if not full:
        return _compacted(context, schema, _portion(plan_preparation(table, states, asked=True)))
    inbox = [state for state in states if any(file.meta.level == 0 for file in state.files)]
    tasks = plan_preparation(table, inbox, asked=True) or plan_compaction(table, states)
    return _compacted(context, schema, _portion(tasks))


def _portion(tasks: Sequence[BucketTask]) -> Sequence[BucketTask]:
    """As many as make one step: what a lost race or a kill throws away, and what others have to wait for."""
    return first_portion(tasks, PORTION_BYTES)


def _preparation(
    context: TableContext, base: Snapshot | None, schema: TableSchema, touched: Callable[[BucketId], bool]
) -> Sequence[BucketTask]:
    if base is None or not TableTraits(schema).has_inbox:
        return ()
    live = context.scanner.live_entries(base, touched)
    inbox = {(one.partition, one.bucket) for one in live if one.file.level == 0}
    states = context.scanner.bucket_states(base, schema, lambda key: key in inbox or touched(key))
    return plan_preparation(context.task_table(schema), states.values())


def _joins(
    context: TableContext,
    base: Snapshot | None,
    schema: TableSchema,
    covers: Callable[[BucketId], bool],
    *,
    files_min: int | None = None,
) -> Sequence[BucketTask]:
    if base is None:
        return ()
    table, states = context.task_table(schema), context.scanner.bucket_states(base, schema, covers)
    rule = find_rule(schema)
    if rule is not None and files_min is not None:
        return plan_full_clustering(table, states.values(), rule)
    if rule is not None and rule.is_incremental:
        return plan_due_clustering(table, states.values(), rule)
    return plan_small_file_tasks(table, states.values(), files_min=files_min)


def _every_bucket(_: BucketId) -> bool:
    return True


def _compacted(context: TableContext, schema: TableSchema, tasks: Sequence[BucketTask]) -> Planned | None:
    """The tasks performed, as a snapshot before the write; None when nothing has to change."""
    made = tuple(change for change in context.run(tasks) if not change.is_empty)
    if not made:
        return None
    return Planned(
        kind=CommitKind.COMPACT,
        schema=schema,
        changes=made,
        scope=ConflictScope(buckets=frozenset((change.partition_bytes, change.bucket) for change in made)),
        then_again=True,
    )
