"""Folding runs, taking in level 0 and joining small files: snapshots that change no row.

Names      plan_preparation   what must or should be done before a keyed write: COMPACT plan or None
           plan_compaction    everything into its best shape (CALL compact): COMPACT plan or None
           plan_small_files   append-only: which files to join; pure
           plan_append_compaction   joins them, dead rows are left out
           run_buckets        run the same work for several buckets
Steps      keyed: a bucket without a free level, with too many runs or mostly dead files is folded first; only then
           can its level 0 be taken in, in a further snapshot
INVARIANT  a preparing snapshot is COMPACT and complete in itself: whoever dies after it leaves a right table (K5, K6).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

import pyarrow as pa

from tablestore_engine.errors import StorageError
from tablestore_engine.format.data_file import SOURCE_COMPACT, DataFileMeta
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import CommitKind, Snapshot
from tablestore_engine.lsm.compaction import CompactionUnit, pick, pick_full
from tablestore_engine.store.bucket_state import BucketChange, BucketState
from tablestore_engine.store.bucket_writer import BucketWriter
from tablestore_engine.store.conflict import BucketId, Scope
from tablestore_engine.store.parts import Parts
from tablestore_engine.store.snapshot_files import Planned
from tablestore_engine.store.table_traits import TableTraits

THREADS_MAX = 4
SMALL_FILE_SHARE = 0.7
_TIER_ROWS, _TIER_FACTOR = 4_096, 4
T = TypeVar("T")


def run_buckets(
    parts: Parts, schema: TableSchema, work: Callable[[T], BucketChange], items: Sequence[T]
) -> list[BucketChange]:
    """Changes in order; a few threads, since Parquet, sorting and hashing leave Python alone.

    When the disk refuses one of them (StorageError), the files of the others are deleted: nobody will name them.
    """
    done: list[BucketChange] = []

    def run(item: T) -> BucketChange:
        change = work(item)
        done.append(change)
        return change

    threads = min(THREADS_MAX, os.cpu_count() or 1, len(items))
    try:
        if threads <= 1:
            return [run(item) for item in items]
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(run, items))
    except StorageError:
        unused = Planned(kind=CommitKind.APPEND, schema=schema, changes=tuple(done), scope=Scope())
        for path in unused.file_paths(parts.layout):
            parts.fileio.delete(path)
        raise


def plan_preparation(
    parts: Parts, base: Snapshot | None, schema: TableSchema, touched: Callable[[BucketId], bool]
) -> Planned | None:
    """Folds of touched buckets that need one, and level 0 of all buckets; None when a write may go ahead."""
    if base is None or not TableTraits(schema).has_inbox:
        return None
    inbox = {(one.partition, one.bucket) for one in parts.scanner.live_entries(base) if one.file.level == 0}
    states = parts.scanner.bucket_states(base, schema, lambda key: key in inbox or touched(key))
    writer = parts.writer(schema)
    work = [
        task
        for key, state in states.items()
        if (task := _pick_task(writer, state, has_inbox=key in inbox)) is not None
    ]
    return _compact_plan(schema, run_buckets(parts, schema, lambda task: task(), work))


def _pick_task(
    writer: BucketWriter, state: BucketState, *, has_inbox: bool
) -> Callable[[], BucketChange] | None:
    """A fold if one is due, else taking in level 0, else nothing."""
    unit = pick(
        writer.levels(state),
        target_bytes=writer.traits.target_bytes,
        amplification_max=writer.traits.amplification_max,
    )
    if unit is not None:
        return lambda: writer.fold(state, unit)
    return (lambda: writer.take_in_level_zero(state)) if has_inbox else None


def plan_compaction(
    parts: Parts, base: Snapshot | None, schema: TableSchema, touched: Callable[[BucketId], bool]
) -> Planned | None:
    """One step towards one run per bucket without dead rows; keyed: level 0 first; append-only: joined files."""
    if base is None:
        return None
    if not schema.is_keyed:
        return plan_append_compaction(parts, base, schema, touched, files_min=2)
    inbox = any(entry.file.level == 0 for entry in parts.scanner.live_entries(base))
    if inbox:
        return plan_preparation(parts, base, schema, touched)
    writer = parts.writer(schema)
    work: list[tuple[BucketState, CompactionUnit]] = []
    for state in parts.scanner.bucket_states(base, schema, touched).values():
        unit = pick_full(writer.levels(state), target_bytes=writer.traits.target_bytes)
        if unit is not None and (unit.groups or unit.dropped):
            work.append((state, unit))
    return _compact_plan(schema, run_buckets(parts, schema, lambda one: writer.fold(*one), work))


# ---- append-only tables ------------------------------------------------------------------------------------


def plan_append_compaction(
    parts: Parts,
    base: Snapshot | None,
    schema: TableSchema,
    touched: Callable[[BucketId], bool],
    *,
    files_min: int | None = None,
) -> Planned | None:
    """Joined small files of an append-only table without buckets, or None."""
    if base is None or schema.bucket_count > 0:
        return None
    writer = parts.writer(schema)
    least = files_min or writer.traits.joined_files_min
    work: list[tuple[BucketState, tuple[str, ...]]] = []
    for state in parts.scanner.bucket_states(base, schema, touched).values():
        names = plan_small_files(
            [file.meta for file in state.files],
            target_bytes=writer.traits.target_bytes,
            files_min=least,
            all_tiers=files_min is not None,
        )
        if files_min is not None:  # asked for: files with dead rows are written anew as well
            wanted = {*names, *state.deletion_vectors}
            names = tuple(file.meta.file_name for file in state.files if file.meta.file_name in wanted)
        if names:
            work.append((state, names))
    return _compact_plan(schema, run_buckets(parts, schema, lambda one: _join_files(writer, *one), work))


def plan_small_files(
    files: Sequence[DataFileMeta], *, target_bytes: int, files_min: int, all_tiers: bool = False
) -> tuple[str, ...]:
    """Names of files to join, in order: the lowest size tier with `files_min` files, and all smaller files.

    Tiers grow by a factor, so that a row is rewritten O(log n) times however long a table is appended to.
    """
    small = [file for file in files if file.file_size < SMALL_FILE_SHARE * target_bytes]
    if all_tiers:
        return tuple(file.file_name for file in small) if len(small) >= files_min else ()
    tiers: dict[int, int] = {}
    for file in small:
        tiers[_tier(file)] = tiers.get(_tier(file), 0) + 1
    full = [tier for tier, count in tiers.items() if count >= files_min]
    if not full:
        return ()
    return tuple(file.file_name for file in small if _tier(file) <= max(full))


def _tier(file: DataFileMeta) -> int:
    tier, bound = 0, _TIER_ROWS
    while file.row_count >= bound:
        tier, bound = tier + 1, bound * _TIER_FACTOR
    return tier


def _join_files(writer: BucketWriter, state: BucketState, names: Collection[str]) -> BucketChange:
    """Visible rows of the named files in their order, as one file (or several of the target size)."""
    taken = [file for file in state.files if file.meta.file_name in names]
    rows = pa.concat_tables([writer.files.reader.read_visible(file) for file in taken])
    first = min(file.meta.min_sequence_number for file in taken)
    added = writer.files.write_append(state, rows, first)
    kept = {name: bits for name, bits in state.deletion_vectors.items() if name not in names}
    return BucketChange(
        state.partition_bytes,
        state.bucket,
        added=tuple(replace(meta, file_source=SOURCE_COMPACT) for meta in added),
        removed=tuple(file.meta for file in taken),
        deletion_vectors=None if kept == state.deletion_vectors else kept,
    )


def _compact_plan(schema: TableSchema, changes: Iterable[BucketChange]) -> Planned | None:
    made = tuple(change for change in changes if not change.is_empty)
    if not made:
        return None
    return Planned(
        kind=CommitKind.COMPACT,
        schema=schema,
        changes=made,
        scope=Scope(buckets=frozenset((change.partition_bytes, change.bucket) for change in made)),
        then_again=True,
    )
