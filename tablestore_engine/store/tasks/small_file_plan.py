"""Which small files of an append-only bucket are compacted into one. Pure: no file is opened.

CHANGE     which small files are compacted (option compaction.min.file-num)
INVARIANT  runs that clustering sorted (levels above 0) are compacted only when somebody asks for it.
INVARIANT  in a table of fixed buckets rows have the order of their sequence numbers, so only neighbours are compacted.
WHY        tiers grow by a factor: a row is rewritten O(log n) times however long a table is appended to. Java takes the
           oldest files without tiers, and writes the first rows again with each few appends.
CHANGE     when rows of an append table are clustered
Levels     as in Java: level 0 has the files that writers left, each higher level is one sorted run
INVARIANT  a run that is on the highest level, was made under the table's order and has no deleted rows stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from tablestore_engine.format.cluster_order import ClusterOrder, ClusterRule, find_rule
from tablestore_engine.format.data_file import DataFileMeta
from tablestore_engine.lsm.levels import level_count
from tablestore_engine.store.files.bucket_state import BucketState
from tablestore_engine.store.tasks.bucket_task import BucketTask, ClusterFiles, CompactSmallFiles, TaskTable

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


SMALL_FILE_SHARE = 0.7  # of the target size: smaller files are worth compacting
_TIER_ROWS, _TIER_FACTOR = 4_096, 4

Groups = tuple[tuple[str, ...], ...]


def plan_small_file_tasks(
    table: TaskTable, states: Iterable[BucketState], *, files_min: int | None = None
) -> tuple[BucketTask, ...]:
    """A task for each bucket that has files to compact. `files_min` given: asked for, so all tiers count, and files
    with deleted rows go along.
    """
    is_ordered, target = table.schema.bucket_count > 0, table.traits.target_bytes
    tasks = []
    for state in states:
        files = [file.meta for file in state.files]
        if files_min is None:
            least = table.traits.joined_files_min
            files = [meta for meta in files if not meta.level]
            groups = pick_small_files(files, target_bytes=target, files_min=least, is_ordered=is_ordered)
        else:
            dead = state.deletion_vectors
            groups = pick_all_files(
                files, dead, target_bytes=target, files_min=files_min, is_ordered=is_ordered
            )
        if groups:
            tasks.append(CompactSmallFiles(table, state, groups))
    return tuple(tasks)


def pick_small_files(
    files: Sequence[DataFileMeta], *, target_bytes: int, files_min: int, is_ordered: bool = False
) -> Groups:
    """Of the largest size tier with `files_min` files those files and all smaller ones; `is_ordered`: of neighbours."""
    small = {file.file_name: _tier(file) for file in files if _is_small(file, target_bytes)}
    for tier in sorted(set(small.values()), reverse=True):
        wanted = {name for name, of_file in small.items() if of_file <= tier}
        parts = _parts(files, wanted, is_ordered)
        groups = tuple(part for part in parts if sum(small[name] == tier for name in part) >= files_min)
        if groups:
            return groups
    return ()


def pick_all_files(
    files: Sequence[DataFileMeta],
    dead: Collection[str],
    *,
    target_bytes: int,
    files_min: int,
    is_ordered: bool = False,
) -> Groups:
    """All small files when there are `files_min`, and those that have deleted rows (`dead`), whatever their size."""
    wanted = {file.file_name for file in files if file.file_name in dead or _is_small(file, target_bytes)}
    parts = _parts(files, wanted, is_ordered)
    return tuple(part for part in parts if len(part) >= files_min or any(name in dead for name in part))


def _parts(files: Sequence[DataFileMeta], wanted: Collection[str], is_ordered: bool) -> Groups:
    """The wanted files in their order, cut at each file that is not wanted when they are `is_ordered`."""
    parts: list[list[str]] = [[]]
    for file in files:
        if file.file_name in wanted:
            parts[-1].append(file.file_name)
        elif is_ordered:
            parts.append([])
    return tuple(tuple(part) for part in parts if part)


def _is_small(file: DataFileMeta, target_bytes: int) -> bool:
    return file.file_size < SMALL_FILE_SHARE * target_bytes


def _tier(file: DataFileMeta) -> int:
    tier, bound = 0, _TIER_ROWS
    while file.row_count >= bound:
        tier, bound = tier + 1, bound * _TIER_FACTOR
    return tier
