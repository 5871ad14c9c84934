"""How much work a bucket task is, by metadata alone: what decides where it runs. Pure: no file is opened.

CHANGE     the size of a bucket task
WHY        rows that only look up their keys (Upsert, Append without picks, DELETE by key) read row groups, not files:
           they count nothing, so that a hundred rows into a large table stay the small write that they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from tablestore_engine.format.schema import TableSchema
from tablestore_engine.store.files.bucket_state import BucketState
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.rows.row_filter import EveryRow, MatchingRows, RowFilter, RowPositions, SameKeys
from tablestore_engine.store.tasks.bucket_task import (
    Append,
    BucketTask,
    ClusterFiles,
    CompactLevelZero,
    CompactRuns,
    CompactSmallFiles,
    Replace,
    Rescale,
    RestoreBucket,
    Upsert,
)

TINY_BYTES = 1 << 20


def input_bytes(task: BucketTask) -> int:
    """An upper bound: filters may skip files by their statistics, which costs decoding them here."""
    match task:
        case CompactRuns(state=state, unit=unit):
            return _bytes_of(state, unit.file_names.difference(unit.dropped))
        case CompactSmallFiles(state=state) | ClusterFiles(state=state):
            return _bytes_of(state, task.file_names)
        case CompactLevelZero(state=state):
            return _sum(file for file in state.files if file.meta.level == 0)
        case Replace(picks=EveryRow(), rows=None):
            return 0  # whole files go, unread
        case Upsert(state=state, picks=picks) | Replace(state=state, picks=picks):
            return 0 if picks is None else _picked_bytes(task.table.schema, state, picks)
        case Rescale(files=files):
            return _sum(files)
        case RestoreBucket(state=state, files=files):
            return _sum(state.files) + _sum(files)
        case Append():
            return 0


def is_rewrite(task: BucketTask) -> bool:
    """Whether it writes the visible rows of some files again, so that the number of its rows is known before."""
    return isinstance(task, CompactRuns | CompactSmallFiles | ClusterFiles | Rescale)


def rewritten_rows(tasks: Iterable[BucketTask]) -> int:
    """Rows that the tasks of is_rewrite write together; files that several of them read (rescale) count once."""
    found: dict[str, int] = {}
    for task in tasks:
        match task:
            case CompactRuns(state=state, unit=unit):
                names = unit.file_names.difference(unit.dropped)
                files = [file for file in state.files if file.meta.file_name in names]
            case CompactSmallFiles(state=state) | ClusterFiles(state=state):
                files = [file for file in state.files if file.meta.file_name in task.file_names]
            case Rescale(files=sources):
                files = list(sources)
            case _:
                continue
        found |= {file.path: file.visible_rows for file in files}
    return sum(found.values())


def carried_bytes(task: BucketTask) -> int:
    """In memory, as Arrow; 0 for tasks that only read what is stored."""
    match task:
        case Upsert(rows=rows) | Append(rows=rows) | Replace(rows=rows):
            return 0 if rows is None else int(rows.nbytes)
        case _:
            return 0


def first_portion(tasks: Sequence[BucketTask], bytes_max: int) -> Sequence[BucketTask]:
    """As many of them, in order, as read `bytes_max`; the first one however much it reads."""
    total = 0
    for number, task in enumerate(tasks):
        total += input_bytes(task)
        if number and total > bytes_max:
            return tasks[:number]
    return tasks


def is_tiny(task: BucketTask) -> bool:
    """Whether all that it could read and carries is so little that opening and closing files is what it costs."""
    return _sum(task.state.files) + carried_bytes(task) < TINY_BYTES


def _picked_bytes(schema: TableSchema, state: BucketState, picks: RowFilter) -> int:
    match picks:
        case RowPositions(by_file=by_file):
            return _bytes_of(state, by_file)
        case SameKeys(keys=keys) if keys is None or not keys.num_rows or picks.is_key_of(schema):
            return 0
        case MatchingRows(condition) if schema.is_keyed:
            if condition.bind(schema).key_values(schema.trimmed_primary_keys) is not None:
                return 0
    return _sum(state.files)


def _bytes_of(state: BucketState, names: Collection[str]) -> int:
    return _sum(file for file in state.files if file.meta.file_name in names)


def _sum(files: Iterable[StoredFile]) -> int:
    return sum(file.meta.file_size for file in files)
