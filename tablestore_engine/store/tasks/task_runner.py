"""Performing bucket work: the one place where a task becomes files and a change. Threads, Spark tasks and jobs call it.

CHANGE     how a bucket task is run
Steps      upsert: one row per key → find the visible stored rows → decide → new run, vectors, changelog
INVARIANT  a change is complete: with it, readers see every key once, and the changelog turns the old rows into the new.
INVARIANT  nothing is committed here: a change that is thrown away leaves only files that nothing names. A task that
           runs twice gives equal changes under other file names; only one of them may be committed.
CRASH      the same; orphan cleaning finds them.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from tablestore_engine.errors import StorageError
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.data_file import SOURCE_COMPACT
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.runtime.progress import NO_METER, Meter

if TYPE_CHECKING:
    from tablestore_engine.store.files.bucket_state import BucketChange
    from tablestore_engine.store.files.data_files import DataFiles
    from tablestore_engine.store.merge.lookup import KeyCache
    from tablestore_engine.store.tasks.bucket_task import (
        Append,
        BucketTask,
        CompactLevelZero,
        RestoreBucket,
        Upsert,
    )
    from tablestore_engine.store.tasks.prepublish_rows import TaskReceiver

    RunTasks = Callable[[Sequence[BucketTask], "FileAccess"], list[BucketChange]]

THREADS_MAX = 4


@dataclass(frozen=True)
class FileAccess:
    """`key_cache` None: a process that sees each file once remembers nothing. `early`: who gets changelog rows before
    the commit; None: nobody. `meter` counts the rows of rewriting tasks (task_size.rewritten_rows).
    """

    fileio: FileIO
    runtime: Runtime
    key_cache: KeyCache | None = None
    early: TaskReceiver | None = None
    meter: Meter = NO_METER


def run_task(task: BucketTask, access: FileAccess) -> BucketChange:
    """Perform one task; the caller commits the change.

    Raises FixData TS1601 (repeated keys), EngineBug TS1652, TS1654 (a key is visible twice), StorageError when the disk
    refuses a file, and what reading a file can raise (file_read).
    """
    from tablestore_engine.store.merge.cluster_files import cluster_files
    from tablestore_engine.store.merge.compact_runs import compact_runs
    from tablestore_engine.store.merge.compact_small_files import compact_small_files
    from tablestore_engine.store.merge.replace_rows import replace_rows
    from tablestore_engine.store.merge.rescale_rows import rescale_rows
    from tablestore_engine.store.tasks.bucket_task import (
        Append,
        ClusterFiles,
        CompactLevelZero,
        CompactRuns,
        CompactSmallFiles,
        Replace,
        Rescale,
        RestoreBucket,
        Upsert,
    )

    files = _files(task, access)
    match task:
        case Upsert():
            return _upsert(files, task, access.key_cache)
        case Append():
            return _append(files, task)
        case Replace(state=state, picks=picks):
            rows = files.schema.arrow_schema().empty_table() if task.rows is None else task.rows
            return replace_rows(files, state, rows, picks, first_sequence=task.first_sequence)
        case CompactRuns(state=state, unit=unit):
            return compact_runs(files, state, unit)
        case CompactLevelZero():
            return _compact_level_zero(files, task, access.key_cache)
        case CompactSmallFiles(state=state, groups=groups):
            return compact_small_files(files, state, groups)
        case ClusterFiles(state=state, file_names=names, order=order, level=level):
            return cluster_files(files, state, names, order, level)
        case Rescale(state=state, files=sources, level=level):
            return rescale_rows(files, state, sources, level=level)
        case RestoreBucket():
            return _restore(files, task, access.key_cache)


def run_and_hand_on(task: BucketTask, access: FileAccess) -> BucketChange:
    """What threads and Spark tasks call. Raises what run_task raises."""
    return _hand_on(task, run_task(task, access), access)


def _hand_on(task: BucketTask, change: BucketChange, access: FileAccess) -> BucketChange:
    from tablestore_engine.store.tasks.prepublish_rows import changelog_rows

    change = replace(change, total_buckets=task.state.total_buckets)
    if access.early is None or not change.changelog:
        return change
    rows = changelog_rows(_files(task, access), task.state, change.changelog)
    return replace(change, early=access.early(change.bucket, task.table.schema, rows))


def run_tasks(tasks: Sequence[BucketTask], access: FileAccess) -> list[BucketChange]:
    """Changes in order; a few threads, since Parquet, sorting and hashing leave Python alone. Tiny tasks are Python
    itself: threads that take turns at it need a quarter longer than one.

    When the disk refuses one of them (StorageError), the files of the others are deleted: nobody will name them.
    """
    from tablestore_engine.store.tasks.task_size import rewritten_rows

    rows = rewritten_rows(tasks)
    if not rows:
        return _run_all(tasks, access)
    with access.runtime.progress.begin(f"{tasks[0].table.layout.name}: rewriting rows", "rows") as meter:
        meter.expect(rows)
        return _run_all(tasks, replace(access, meter=meter))


def _run_all(tasks: Sequence[BucketTask], access: FileAccess) -> list[BucketChange]:
    from tablestore_engine.store.tasks.small_upserts import group_upserts
    from tablestore_engine.store.tasks.task_size import is_tiny

    done: list[tuple[BucketTask, BucketChange]] = []

    def run(places: Sequence[int]) -> list[BucketChange]:
        group = [tasks[place] for place in places]
        changes = run_group(group, access)
        done.extend(zip(group, changes, strict=True))
        return changes

    groups = group_upserts(tasks)
    large = sum(len(places) == 1 and not is_tiny(tasks[places[0]]) for places in groups)
    threads = min(THREADS_MAX, os.cpu_count() or 1, large)
    try:
        if threads <= 1:
            found = list(access.fileio.run_together([partial(run, places) for places in groups]))
        else:
            with ThreadPoolExecutor(threads) as pool:
                found = list(pool.map(run, groups))
    except StorageError:
        for task, change in done:  # all threads have ended: the pool waits for them
            _files(task, access).discard(task.state, change.created)
        raise
    by_place = {
        place: change
        for places, changes in zip(groups, found, strict=True)
        for place, change in zip(places, changes, strict=True)
    }
    return [by_place[place] for place in range(len(tasks))]


def run_group(tasks: Sequence[BucketTask], access: FileAccess) -> list[BucketChange]:
    """The changes of tasks that group_upserts puts together: rows are handed on after the whole group."""
    if len(tasks) == 1:
        return [run_and_hand_on(tasks[0], access)]
    from tablestore_engine.store.merge.merge_buckets import BucketRows, merge_buckets
    from tablestore_engine.store.tasks.bucket_task import Upsert

    upserts = [task for task in tasks if isinstance(task, Upsert)]
    rows = [
        BucketRows(task.state, task.level, task.rows, task.kinds) for task in upserts if task.rows is not None
    ]
    changes = merge_buckets(_files(tasks[0], access), rows)
    return [_hand_on(task, change, access) for task, change in zip(tasks, changes, strict=True)]


def _files(task: BucketTask, access: FileAccess) -> DataFiles:
    from tablestore_engine.store.files.data_files import DataFiles
    from tablestore_engine.store.tasks.task_size import is_rewrite

    meter = access.meter if is_rewrite(task) else NO_METER
    footers = None if access.key_cache is None else access.key_cache.footers
    return DataFiles(access.fileio, task.table.layout, task.table.traits, access.runtime, meter, footers)


def _upsert(files: DataFiles, task: Upsert, cache: KeyCache | None) -> BucketChange:
    from tablestore_engine.store.merge.input_changelog import write_input
    from tablestore_engine.store.merge.merge_on_write import Target, merge_batch
    from tablestore_engine.store.rows.incoming_batch import batch_of

    rows = files.schema.arrow_schema().empty_table() if task.rows is None else task.rows
    target = Target(
        level=task.level,
        picks=task.picks,
        skip_identical=task.picks is not None or files.traits.skips_identical,
    )
    batch = batch_of(rows, task.kinds, files.traits, replaces=task.picks is not None)
    change = merge_batch(files, task.state, batch, target, cache)
    if task.picks is not None or not files.traits.changelog_producer.writes_input:
        return change
    try:
        return replace(change, changelog=write_input(files, task.state, rows, task.kinds, level=task.level))
    except StorageError:
        files.discard(task.state, change.created)
        raise


def _append(files: DataFiles, task: Append) -> BucketChange:
    from tablestore_engine.store.files.bucket_state import BucketChange

    return BucketChange(
        task.state.partition_bytes,
        task.state.bucket,
        added=files.write_append(task.state, task.rows, task.first_sequence),
        inserted=task.rows.num_rows,
    )


def _restore(files: DataFiles, task: RestoreBucket, cache: KeyCache | None) -> BucketChange:
    """A difference: rows that are equal then and now stay where they lie."""
    from tablestore_engine.store.merge.merge_on_write import Target, merge_batch
    from tablestore_engine.store.merge.replace_rows import replace_rows
    from tablestore_engine.store.merge.stored_batches import read_visible
    from tablestore_engine.store.rows.row_filter import EVERY_ROW

    if files.schema.is_keyed:
        target = Target(level=task.level, picks=EVERY_ROW, skip_identical=True)
        return merge_batch(files, task.state, read_visible(files, task.files), target, cache)
    rows = [files.reader.read_visible(file) for file in task.files]
    before = pa.concat_tables(rows) if rows else files.schema.arrow_schema().empty_table()
    return replace_rows(files, task.state, before, EVERY_ROW, first_sequence=task.first_sequence)


def _compact_level_zero(files: DataFiles, task: CompactLevelZero, cache: KeyCache | None) -> BucketChange:
    """Level 0 files become one batch, which is merged into what lies below them."""
    from tablestore_engine.store.merge.merge_on_write import Target, merge_batch
    from tablestore_engine.store.merge.stored_batches import read_level_zero

    taken = [file for file in task.state.files if file.meta.level == 0]
    below = replace(task.state, files=tuple(file for file in task.state.files if file.meta.level > 0))
    batch = read_level_zero(files, taken)
    change = merge_batch(files, below, batch, Target(level=task.level, source=SOURCE_COMPACT), cache)
    return replace(change, removed=tuple(file.meta for file in taken))
