"""Which upserts of small buckets are performed together. Pure: no file is opened.

CHANGE     which buckets are merged in one pass
INVARIANT  a pass has buckets of one table that all have files, or none has (lsm.combining_merge asks); each makes at
           most one data file of one row group.
WHY        a bucket above these bounds is worth its own pass, and a pass holds a step of rows at most (row_budget).
"""

from __future__ import annotations

from collections.abc import Sequence

from tablestore_engine.lsm.key_versions import retracts
from tablestore_engine.store.files.row_budget import STEP_BYTES, STEP_ROWS
from tablestore_engine.store.files.small_files import FILE_ROWS_MAX
from tablestore_engine.store.merge.lookup import FEW_ROWS
from tablestore_engine.store.tasks.bucket_task import BucketTask, Upsert
from tablestore_engine.store.tasks.task_size import is_tiny


def group_upserts(tasks: Sequence[BucketTask]) -> list[list[int]]:
    """All tasks by their places, in order of each group's first place; a task that shares no pass is a group."""
    groups: list[list[int]] = []
    open_groups: dict[tuple[int, bool], _Group] = {}
    for place, task in enumerate(tasks):
        if not isinstance(task, Upsert) or not _may_share(task):
            groups.append([place])
            continue
        kind = (id(task.table), bool(task.state.files))
        group = open_groups.get(kind)
        if group is None or not group.takes(task):
            group = open_groups[kind] = _Group()
            groups.append(group.places)
        group.add(place, task)
    return groups


class _Group:
    """Places of tasks, and how many rows and bytes they have together."""

    def __init__(self) -> None:
        self.places: list[int] = []
        self._rows = self._bytes = 0

    def takes(self, task: Upsert) -> bool:
        rows, size = _amount(task)
        return self._rows + rows <= STEP_ROWS and self._bytes + size <= STEP_BYTES

    def add(self, place: int, task: Upsert) -> None:
        rows, size = _amount(task)
        self.places.append(place)
        self._rows += rows
        self._bytes += size


def _amount(task: Upsert) -> tuple[int, int]:
    """Rows and bytes of what comes and what is stored."""
    assert task.rows is not None
    stored = [file.meta for file in task.state.files]
    return (
        task.rows.num_rows + sum(meta.row_count for meta in stored),
        task.rows.nbytes + sum(meta.file_size for meta in stored),
    )


def _may_share(task: Upsert) -> bool:
    """An upsert of few rows into a small bucket, whose outcome does not hang on what other buckets get."""
    traits = task.table.traits
    if task.picks is not None or task.rows is None or not task.rows.num_rows or not is_tiny(task):
        return False
    if 2 * task.rows.num_rows > min(traits.group_rows, FILE_ROWS_MAX):  # a changelog has two rows for each
        return False
    if any(file.meta.row_count > FEW_ROWS for file in task.state.files):
        return False  # a pass decodes files as a whole
    engine = traits.merge_engine
    if not (traits.has_vectors or engine.keeps_stored):
        return False
    if traits.changelog_producer.writes_input or traits.unlogged_columns:
        return False  # their changelogs have other rows than the merge changes
    if traits.indexed_columns:
        return False  # the indexes of a file are files of their own
    # lsm.combining_merge asks of rows into an empty bucket whether any of the batch retracts
    asks = engine.combines and not task.state.files and task.kinds is not None
    return not (asks and bool(retracts(task.kinds).any()))  # type: ignore[arg-type]  # not None if it asks
