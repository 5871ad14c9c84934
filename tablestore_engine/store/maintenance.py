"""Steps of their own that change no row: folding runs, taking in level 0, joining small files. They plan and perform.

Names      preparing_step     what has to be, or should be, done before a write: a COMPACT snapshot, or None
           compaction_step    one step towards the best shape of all buckets (CALL compact), or None
Steps      the states of the buckets concerned → tasks (bucket_plan, pure) → changes (task_runner) → one COMPACT plan
INVARIANT  a step is COMPACT and complete in itself: whoever dies after it leaves a right table (decision 0001).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import CommitKind, Snapshot
from tablestore_engine.store.bucket_plan import plan_compaction, plan_joins, plan_preparation
from tablestore_engine.store.bucket_task import BucketTask
from tablestore_engine.store.conflict import BucketId, Scope
from tablestore_engine.store.parts import Parts
from tablestore_engine.store.snapshot_files import Planned
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.store.task_runner import run_tasks
from tablestore_engine.store.write import Extent

_ASKED_FILES_MIN = 2  # who asks for compaction wants even two small files joined


def preparing_step(parts: Parts, base: Snapshot | None, extent: Extent) -> Planned | None:
    """Folds of the extent's buckets and level 0 of all; append-only: joins. None when the write may go ahead.

    Always with the schema that exists: a new one belongs to the write itself.
    """
    existing = parts.schema_at(base)
    if existing.is_keyed:
        return _compacted(parts, existing, _preparation(parts, base, existing, extent.covers))
    if extent.rewrites or extent.needs_positions:
        return None
    return _compacted(parts, existing, _joins(parts, base, existing))


def compaction_step(parts: Parts, base: Snapshot | None, schema: TableSchema) -> Planned | None:
    """One step towards one run per bucket without dead rows; keyed: level 0 first; append-only: joined files."""
    if base is None:
        return None
    if not schema.is_keyed:
        return _compacted(parts, schema, _joins(parts, base, schema, files_min=_ASKED_FILES_MIN))
    if any(entry.file.level == 0 for entry in parts.scanner.live_entries(base)):
        return _compacted(parts, schema, _preparation(parts, base, schema, lambda _: True))
    states = parts.scanner.bucket_states(base, schema)
    return _compacted(parts, schema, plan_compaction(parts.task_table(schema), states.values()))


def _preparation(
    parts: Parts, base: Snapshot | None, schema: TableSchema, touched: Callable[[BucketId], bool]
) -> Sequence[BucketTask]:
    if base is None or not TableTraits(schema).has_inbox:
        return ()
    inbox = {(one.partition, one.bucket) for one in parts.scanner.live_entries(base) if one.file.level == 0}
    states = parts.scanner.bucket_states(base, schema, lambda key: key in inbox or touched(key))
    return plan_preparation(parts.task_table(schema), states.values())


def _joins(
    parts: Parts, base: Snapshot | None, schema: TableSchema, *, files_min: int | None = None
) -> Sequence[BucketTask]:
    """Tables without buckets only: in a bucket of an append-only table the files are the order of its rows."""
    if base is None or schema.bucket_count > 0:
        return ()
    states = parts.scanner.bucket_states(base, schema)
    return plan_joins(parts.task_table(schema), states.values(), files_min=files_min)


def _compacted(parts: Parts, schema: TableSchema, tasks: Sequence[BucketTask]) -> Planned | None:
    """The tasks performed, as a snapshot before the write; None when nothing has to change."""
    made = tuple(change for change in run_tasks(tasks, parts.access) if not change.is_empty)
    if not made:
        return None
    return Planned(
        kind=CommitKind.COMPACT,
        schema=schema,
        changes=made,
        scope=Scope(buckets=frozenset((change.partition_bytes, change.bucket) for change in made)),
        then_again=True,
    )
