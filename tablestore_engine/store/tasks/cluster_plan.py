"""Which files of an append table are sorted together, and on which level the sorted run comes. Pure: no file is opened.

CHANGE     when rows of an append table are clustered
Levels     as in Java: level 0 has the files that writers left, each higher level is one sorted run
INVARIANT  a run that is on the highest level, was made under the table's order and has no deleted rows stays.
"""

from __future__ import annotations

from collections.abc import Iterable

from tablestore_engine.format.cluster_order import ClusterOrder, ClusterRule, find_rule
from tablestore_engine.lsm.levels import level_count
from tablestore_engine.store.files.bucket_state import BucketState
from tablestore_engine.store.tasks.bucket_task import BucketTask, ClusterFiles, TaskTable

_SIZE_RATIO = 1.01  # a run that is hardly larger than what is sorted already is sorted with it


def plan_clustering(
    table: TaskTable, states: Iterable[BucketState], order: ClusterOrder
) -> tuple[BucketTask, ...]:
    """All files of each bucket as one run: on the highest level, or below it when the table's own order is another one,
    so that a full compaction knows that the run does not have that one.
    """
    rule, top = find_rule(table.schema), level_count(table.schema.options) - 1
    level = top if rule is None or rule.order == order else top - 1
    return tuple(
        ClusterFiles(table, state, tuple(file.meta.file_name for file in state.files), order, level)
        for state in states
        if state.files
    )


def plan_full_clustering(
    table: TaskTable, states: Iterable[BucketState], rule: ClusterRule
) -> tuple[BucketTask, ...]:
    """The same of the buckets that are not so already."""
    top = level_count(table.schema.options) - 1
    return plan_clustering(
        table, [one for one in states if not _is_clustered(one, rule.order, top)], rule.order
    )


def plan_due_clustering(
    table: TaskTable, states: Iterable[BucketState], rule: ClusterRule
) -> tuple[BucketTask, ...]:
    """Level 0 with the runs above it that are hardly larger, once there are so many as `compaction.min.file-num` says;
    a file of level 0 is one.
    """
    tasks = []
    top = level_count(table.schema.options) - 1
    for state in states:
        names, level = _pick_runs(state, table.traits.joined_files_min, top)
        if names:
            tasks.append(ClusterFiles(table, state, names, rule.order, level))
    return tuple(tasks)


def _pick_runs(state: BucketState, runs_min: int, top: int) -> tuple[tuple[str, ...], int]:
    """The files, and the level of the run that they become."""
    runs: dict[int, list[str]] = {}
    sizes: dict[int, int] = {}
    for file in state.files:
        runs.setdefault(file.meta.level, []).append(file.meta.file_name)
        sizes[file.meta.level] = sizes.get(file.meta.level, 0) + file.meta.file_size
    new = runs.get(0, [])
    if not new or len(new) + len(runs) - 1 < runs_min:
        return (), 0
    names, size = list(new), sizes[0]
    above = sorted(level for level in runs if level)
    while above and (sizes[above[0]] <= size * _SIZE_RATIO or above[0] == 1):
        names += runs[above[0]]
        size += sizes[above.pop(0)]
    return tuple(names), above[0] - 1 if above else top


def _is_clustered(state: BucketState, order: ClusterOrder, top: int) -> bool:
    if any(file.meta.level < top or file.deleted for file in state.files):
        return False
    made = [find_rule(file.schema) for file in state.files]
    return all(one is not None and one.order == order for one in made)
