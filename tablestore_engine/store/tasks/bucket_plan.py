"""Which work the buckets of a table need: a snapshot's states, and rows, become tasks. Pure: no file is opened.

CHANGE     the tasks of a bucket, and when it is compacted (options tablestore.compaction, write-only)
Steps      a bucket without a free level, with too many runs or mostly deleted rows is compacted first; only then
           its level 0 can be compacted, in a further snapshot
INVARIANT  equal inputs give equal tasks in equal order, so that planning again on the same base changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tablestore_engine.errors import EngineBug
from tablestore_engine.lsm.compaction_strategy import needs_compaction, pick, pick_full
from tablestore_engine.lsm.levels import FileSummary, Levels, get_free_level
from tablestore_engine.store.files.bucket_state import BucketId, BucketState, empty_bucket
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.merge.lookup import key_range
from tablestore_engine.store.rows.routing import RoutedRows
from tablestore_engine.store.rows.row_filter import RowFilter
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.store.tasks.bucket_task import (
    Append,
    BucketTask,
    CompactLevelZero,
    CompactRuns,
    Replace,
    Rescale,
    RestoreBucket,
    TaskTable,
    Upsert,
)

# ---- writes ------------------------------------------------------------------------------------------------


def plan_write(
    table: TaskTable,
    routed: Sequence[RoutedRows],
    states: Mapping[BucketId, BucketState],
    picks: RowFilter | None,
) -> tuple[BucketTask, ...]:
    """The tasks of a write that has all its rows at hand; `states`: the buckets that it may change.

    A process that has some of the rows only asks for plan_rows: a bucket without rows there may have some elsewhere.
    """
    tasks = plan_rows(table, routed, states, picks)
    if picks is None:
        return tasks
    seen = {(one.partition_bytes, one.bucket) for one in routed}
    return tasks + plan_replaced(table, [state for key, state in states.items() if key not in seen], picks)


def plan_rows(
    table: TaskTable,
    routed: Sequence[RoutedRows],
    states: Mapping[BucketId, BucketState],
    picks: RowFilter | None,
) -> tuple[BucketTask, ...]:
    """One task for each bucket that has rows, in their order; a bucket without a state has no files yet."""
    tasks = []
    for one in routed:
        state = states.get((one.partition_bytes, one.bucket))
        if state is None:
            state = empty_bucket(table.schema, one.partition, one.bucket)
        tasks.append(plan_bucket(table, state, one, picks))
    return tuple(tasks)


def plan_replaced(
    table: TaskTable, states: Iterable[BucketState], picks: RowFilter
) -> tuple[BucketTask, ...]:
    """Buckets without rows: what `picks` picks there gives way to nothing."""
    return tuple(plan_bucket(table, state, None, picks) for state in states)


def plan_restore(
    table: TaskTable,
    states: Mapping[BucketId, BucketState],
    files: Mapping[BucketId, tuple[StoredFile, ...]],
) -> tuple[BucketTask, ...]:
    """One task for each bucket whose `files` of the other snapshot are not those of today, hidden rows included.

    Raises EngineBug TS1650, TS1653 as plan_bucket.
    """
    tasks = []
    for key in sorted(states.keys() | files.keys()):
        then = files.get(key, ())
        state = states.get(key) or empty_bucket(table.schema, then[0].partition, key[1])
        if {one.path: one.deleted for one in state.files} == {one.path: one.deleted for one in then}:
            continue
        level = 0
        if table.schema.is_keyed:
            _check_inbox_is_empty(state)
            level = _free_level(table, state)
        tasks.append(RestoreBucket(table, state, then, level, state.next_sequence))
    return tuple(tasks)


def plan_rescale(
    table: TaskTable, states: Iterable[BucketState], *, bucket_count: int
) -> tuple[BucketTask, ...]:
    """One task for each bucket that `table` has in each partition; `bucket_count`: of `states`, or a divisor.

    A row of bucket b has |hash| = b modulo the old count, so it can only come into buckets that equal b modulo the
    greatest common divisor of both counts: twice as many buckets read each file twice, not all of them all files.
    """
    partitions: dict[bytes, list[BucketState]] = {}
    for state in states:
        partitions.setdefault(state.partition_bytes, []).append(state)
    wanted, tasks = table.schema.bucket_count, []
    shared = math.gcd(wanted, bucket_count)
    level = table.traits.level_count - 1 if table.schema.is_keyed else 0
    for _, of_partition in sorted(partitions.items()):
        for bucket in range(wanted):
            sources = [one for one in of_partition if one.bucket % shared == bucket % shared]
            files = tuple(file for state in sources for file in state.files)
            if files:
                empty = empty_bucket(table.schema, of_partition[0].partition, bucket)
                tasks.append(Rescale(table, empty, files, level))
    return tuple(tasks)


def plan_bucket(
    table: TaskTable, state: BucketState, routed: RoutedRows | None, picks: RowFilter | None
) -> BucketTask:
    """The task of one bucket; `routed` None: no row came. REQUIRES rows or picks.

    Raises EngineBug TS1650 (keyed: no free level, compact first), TS1653 (level 0, compact it first).
    """
    rows, kinds = (None, None) if routed is None else (routed.rows, routed.kinds)
    if table.schema.is_keyed:
        _check_inbox_is_empty(state)
        return Upsert(table, state, _free_level(table, state), rows, kinds, picks)
    # without fixed buckets any number of writers append at once, rebased without looking: numbers begin at 0 in each
    first = state.next_sequence if table.schema.bucket_count > 0 else 0
    if picks is not None:
        return Replace(table, state, picks, rows, first)
    assert rows is not None
    return Append(table, replace(state, files=()), rows, first)


def _free_level(table: TaskTable, state: BucketState) -> int:
    return get_free_level((file.meta.level for file in state.files), table.traits.level_count)


def _check_inbox_is_empty(state: BucketState) -> None:
    if any(file.meta.level == 0 for file in state.files):
        raise EngineBug(
            "TS1653",
            f"bucket {state.bucket} still has level 0 files",
            why="rows of other writers must be taken in before an upsert can look up keys",
            fix="commit the level-0 compaction of the bucket first; please report this",
        )


# ---- keyed tables ------------------------------------------------------------------------------------------


def plan_preparation(
    table: TaskTable, states: Iterable[BucketState], *, asked: bool = False
) -> tuple[BucketTask, ...]:
    """For each bucket a compaction if one is due, else one of its level 0, else nothing.

    Where compactions are requested ones (`asked`), a writer compacts only the bucket that has no free level.
    """
    tasks: list[BucketTask] = []
    leaves = table.traits.leaves_compaction and not asked
    for state in states:
        levels = levels_of(state, table.traits)
        unit = None
        if not leaves or needs_compaction(levels):
            unit = pick(
                levels,
                target_bytes=table.traits.target_bytes,
                amplification_max=table.traits.amplification_max,
            )
        if unit is not None:
            tasks.append(CompactRuns(table, state, unit))
        elif any(file.meta.level == 0 for file in state.files):
            tasks.append(CompactLevelZero(table, state, _free_level(table, state)))
    return tuple(tasks)


def plan_compaction(table: TaskTable, states: Iterable[BucketState]) -> tuple[BucketTask, ...]:
    """One run on the top level, without dead rows, for each bucket that is not so already. REQUIRES no level 0."""
    tasks = []
    for state in states:
        # a unit without files can come of runs that are fine where they lie: nothing to commit
        unit = pick_full(levels_of(state, table.traits), target_bytes=table.traits.target_bytes)
        if unit is not None and unit.file_names:
            tasks.append(CompactRuns(table, state, unit))
    return tuple(tasks)


def levels_of(state: BucketState, traits: TableTraits) -> Levels:
    """The bucket's shape by its metadata, for lsm.compaction."""
    summaries = []
    for file in state.files:
        low, high = key_range(traits.schema, file)
        meta = file.meta
        summaries.append(
            FileSummary(
                meta.file_name, meta.level, meta.row_count, file.dead_count, meta.file_size, low, high
            )
        )
    return Levels.of(summaries, traits.level_count)
