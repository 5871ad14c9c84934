"""Which small files of an append-only bucket are compacted into one. Pure: no file is opened.

CHANGE     which small files are compacted (option compaction.min.file-num)
INVARIANT  runs that clustering sorted (levels above 0) are compacted only when somebody asks for it.
INVARIANT  in a table of fixed buckets rows have the order of their sequence numbers, so only neighbours are compacted.
WHY        tiers grow by a factor: a row is rewritten O(log n) times however long a table is appended to. Java takes the
           oldest files without tiers, and writes the first rows again with each few appends.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from tablestore_engine.format.data_file import DataFileMeta
from tablestore_engine.store.files.bucket_state import BucketState
from tablestore_engine.store.tasks.bucket_task import BucketTask, CompactSmallFiles, TaskTable

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
