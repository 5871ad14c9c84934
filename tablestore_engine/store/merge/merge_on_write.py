"""A batch against the stored rows of its bucket: the one place where merge-on-write happens.

CHANGE     how a merge reads and writes files
Steps      1 find hits, in one step or, of many rows, one key range after the other (merge_steps); of each step:
           2 fetch old rows, as few columns as the question needs  3 let them meet (lsm.merge) and decide
           4 write the run on  5 write the changelog on  6 new vectors
Memory     a step of rows (row_budget) beside the batch, however many it has, and however many are replaced.
INVARIANT  old rows are read only if someone asks: changelog, sequence field, comparison, or an engine that combines.
INVARIANT  nothing here knows what becomes of a key: rows are brought to lsm.merge, and what it says is placed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from tablestore_engine.errors import StorageError
from tablestore_engine.format.data_file import SEQUENCE_NUMBER, SOURCE_APPEND, DataFileMeta
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.lsm.arrow_take import take_rows
from tablestore_engine.lsm.key_order import Index, Mask, order_columns, order_permutation
from tablestore_engine.lsm.merge import (
    Decision,
    changelog_rows,
    decide,
    merge_with_stored,
)
from tablestore_engine.lsm.merge_records import IncomingRecords, MergeResult, StoredRecords
from tablestore_engine.lsm.sequence_field import SequenceOrder, stored_newer
from tablestore_engine.store.files.bucket_state import BucketChange, BucketState
from tablestore_engine.store.files.data_files import DataFiles, RunRows
from tablestore_engine.store.files.rolling_writer import RollingWriter, finish_together
from tablestore_engine.store.merge.bucket_keys import KeysByBucket, keys_of_partition
from tablestore_engine.store.merge.lookup import FileHits, Hits, KeyCache, fetch, find_hits
from tablestore_engine.store.merge.merge_steps import Batches, MergeStep, find_steps
from tablestore_engine.store.merge.rows_left import without_rows
from tablestore_engine.store.rows.incoming_batch import Batch, sequence_of
from tablestore_engine.store.rows.row_equality import rows_identical
from tablestore_engine.store.rows.row_filter import RowFilter, SameKeys, picked_rows

COPY_BYTES_MIN = 16 << 20  # of rows: fewer are written twice, where a copy is a request of its own


@dataclass(frozen=True)
class Target:
    """`picks`: picked rows whose keys the batch lacks are deleted. `skip_identical`: rows without change stay."""

    level: int
    source: int = SOURCE_APPEND
    picks: RowFilter | None = None
    skip_identical: bool = False


@dataclass(frozen=True)
class FoundRows:
    """What the bucket holds for a step: hits, their old rows in hit order (first column their numbers), the rest.

    `picked`: which hits, in hit order, are rows that are replaced.
    """

    hits: Hits
    old: pa.Table | None
    absent: tuple[FileHits, ...]
    picked: Mask


@dataclass(frozen=True)
class Settled:
    """One step, decided: its part of the run and of the changelog (None: none is written)."""

    run: RunRows
    log: RunRows | None
    result: MergeResult
    decision: Decision


def merge_batch(
    files: DataFiles, state: BucketState, incoming: Batch | Batches, target: Target, cache: KeyCache | None
) -> BucketChange:
    """Files, vectors, changelog and counts of merging `incoming` into `state`."""
    masks = _picked_masks(files, state, target, cache)
    run = files.open_run(state, level=target.level, source=target.source)
    log = files.open_changelog(state, level=target.level)
    tally = _Tally(state)
    try:
        with run, log:
            held = None  # a changelog that is the run, as long as it may be all there is
            for step in find_steps(files.reader, state, incoming, masks, cache):
                found = _fetch_old(files, step, masks, target)
                settled = settle(
                    files, step.batch, found, target, tally.numbers_of, into_empty=not state.files
                )
                run.add(settled.run)
                held = _log_on(log, settled.log, held, may_copy=not tally.steps or not state.files)
                tally.add(found, settled.decision)
            is_small = held is not None and tally.steps == 1 and held.rows.nbytes <= COPY_BYTES_MIN
            if held is not None and is_small and files.fileio.folders is None:
                log.add(held)  # a copy by the store would have to wait for the run
                held = None
            finish_together(files.fileio, [run, log])
        changelog = log.metas if held is None else files.copy_as_changelog(state, run.metas)
    except StorageError:
        run.discard()
        log.discard()
        raise
    return _change(files, state, tally, run.metas, changelog)


def _change(
    files: DataFiles,
    state: BucketState,
    tally: _Tally,
    added: tuple[DataFileMeta, ...],
    changelog: tuple[DataFileMeta, ...],
) -> BucketChange:
    """What the steps did; without vectors the files of dead rows are written again."""
    has_vectors = files.traits.has_vectors
    removed: tuple[DataFileMeta, ...] = ()
    if tally.dead and not has_vectors:
        left = without_rows(files, state, tally.dead)
        added, removed = (*added, *left.rewritten), left.removed
    return BucketChange(
        state.partition_bytes,
        state.bucket,
        added=added,
        removed=removed,
        changelog=changelog,
        deletion_vectors=tally.new_vectors() if has_vectors else None,
        inserted=tally.inserted,
        updated=tally.updated,
        deleted=tally.deleted,
        unchanged=tally.unchanged,
    )


def _log_on(
    output: RollingWriter[RunRows], log: RunRows | None, held: RunRows | None, *, may_copy: bool
) -> RunRows | None:
    """Write a step's changelog; what is held back instead: of a run that only inserts the bytes are copied."""
    if log is None or (may_copy and log.kinds is None):
        return log
    if held is not None:
        output.add(held)
    output.add(log)
    return None


def settle(
    files: DataFiles,
    batch: Batch,
    found: FoundRows,
    target: Target,
    numbers_of: Callable[[Index], npt.NDArray[np.int64]],
    *,
    into_empty: bool,
) -> Settled:
    """What becomes of the keys of a batch. `numbers_of`: sequence numbers of written rows that have none yet.

    `into_empty`: no row is stored in their buckets.
    """
    result = _merge(files, batch, found, replaces=target.picks is not None, into_empty=into_empty)
    decision = decide(result, identical=_identical(batch, target, found, result))
    numbers = numbers_of(decision.written) if batch.numbers is None else batch.numbers[decision.written]
    run = RunRows(take_rows(result.rows, decision.written), numbers)
    log = _changelog(files, result, found, decision, run) if _writes_log(files, target) else None
    return Settled(run, log, result, decision)


class _Tally:
    def __init__(self, state: BucketState) -> None:
        self._state = state
        self.dead: dict[str, BitMap] = {}
        self.steps = self.inserted = self.updated = self.deleted = self.unchanged = 0
        self.next_number = state.next_sequence

    def numbers_of(self, written: Index) -> npt.NDArray[np.int64]:
        return self.next_number + np.arange(len(written))

    def add(self, found: FoundRows, decision: Decision) -> None:
        self.steps += 1
        self.next_number += len(decision.written)
        self.inserted += decision.inserted
        self.updated += decision.updated
        self.deleted += decision.deleted + sum(len(one.positions) for one in found.absent)
        self.unchanged += decision.unchanged
        for name, positions in _dead_rows(found, decision):
            if len(positions):
                self.dead.setdefault(name, BitMap()).update(BitMap(positions.astype(np.uint32)))

    def new_vectors(self) -> dict[str, BitMap] | None:
        """The complete vectors of the bucket, None when nothing was deleted or replaced."""
        if not self.dead:
            return None
        vectors = self._state.deletion_vectors
        for name, dead in self.dead.items():
            vectors[name] = vectors.get(name, BitMap()) | dead
        return vectors


def _fetch_old(files: DataFiles, step: MergeStep, masks: dict[str, Mask], target: Target) -> FoundRows:
    hits = step.hits
    columns = old_columns(files, step.batch, target)
    old = None
    if columns is None or columns:
        old = fetch(files.reader, hits.by_file, columns, keep=(SEQUENCE_NUMBER,), keys=step.batch.keys)
        old = None if old is None else take_rows(old, hits.order)
    return FoundRows(hits, old, step.absent, _picked_hits(hits, masks))


def _picked_masks(
    files: DataFiles, state: BucketState, target: Target, cache: KeyCache | None
) -> dict[str, Mask]:
    """Path → positions of rows that are replaced, for the files that have any. Whole keys are looked up."""
    picks, schema = target.picks, files.schema
    if picks is None:
        return {}
    if isinstance(picks, SameKeys) and picks.keys is not None and picks.is_key_of(schema):
        keys = KeysByBucket(keys_of_partition(picks.keys, state.partition, schema), schema)
        mine = keys.of(state.bucket, state.total_buckets)
        return {one.file.path: one.mask for one in find_hits(files.reader, state.files, mine, cache).by_file}
    found = ((file.path, picked_rows(files.reader, file, picks)) for file in state.files)
    return {path: mask for path, mask in found if mask is not None}


def _picked_hits(hits: Hits, masks: dict[str, Mask]) -> Mask:
    parts = [
        masks[one.file.path][one.positions]
        if one.file.path in masks
        else np.zeros(len(one.positions), dtype=np.bool_)
        for one in hits.by_file
    ]
    return np.concatenate(parts)[hits.order] if parts else np.zeros(0, dtype=np.bool_)


def old_columns(files: DataFiles, batch: Batch, target: Target) -> tuple[str, ...] | None:
    """Which columns of the old rows are needed: None is all of them."""
    if _writes_log(files, target) or target.skip_identical or files.traits.merge_engine.combines:
        return None
    return files.traits.sequence_fields if batch.sequence is not None else ()


def _writes_log(files: DataFiles, target: Target) -> bool:
    """Rows that a statement replaces came from nobody: `input` has their changes, too."""
    producer = files.traits.changelog_producer
    return producer.writes_at_merge or (producer.writes_input and target.picks is not None)


def _merge(
    files: DataFiles, batch: Batch, found: FoundRows, *, replaces: bool, into_empty: bool
) -> MergeResult:
    """The batch and the stored rows that it hits. The sequence field does not protect rows that are replaced."""
    hits = found.hits.incoming
    newer = None
    if found.old is not None and batch.sequence is not None and not bool(found.picked.all()):
        stored = sequence_of(found.old, files.traits)
        newer = None if stored is None else stored_newer(batch.sequence.at(hits), stored)
    return merge_with_stored(
        files.traits.merge_engine,
        IncomingRecords(
            batch.rows, batch.deletes, batch.update_befores, batch.stack, replaces, into_empty=into_empty
        ),
        StoredRecords(hits, found.old, newer, found.picked, _stored_order(files, batch, found)),
    )


def _stored_order(files: DataFiles, batch: Batch, found: FoundRows) -> SequenceOrder | None:
    """Of the old rows, by which a stack of versions takes them between its own."""
    if batch.stack is None:
        return None
    if found.old is None:
        return batch.stack.order.at(np.empty(0, dtype=np.int64))
    numbers = np.asarray(found.old.column(SEQUENCE_NUMBER))
    field = sequence_of(found.old, files.traits)
    return SequenceOrder.of_stored(field, numbers, np.ones(len(numbers), dtype=np.bool_))


def _identical(batch: Batch, target: Target, found: FoundRows, result: MergeResult) -> Mask | None:
    """Which hits would only write again what is stored, if the target wants to know."""
    if found.old is None or not target.skip_identical:
        return None
    return rows_identical(take_rows(result.rows, result.hits), found.old.select(batch.rows.column_names))


def _unlogged(files: DataFiles, found: FoundRows, result: MergeResult) -> Mask | None:
    """Hits whose rows differ in columns that the changelog ignores at most; None: no column is ignored."""
    ignored = files.traits.unlogged_columns
    if not ignored or found.old is None:
        return None
    names = [name for name in result.rows.column_names if name not in ignored]
    return rows_identical(take_rows(result.rows.select(names), result.hits), found.old.select(names))


def _changelog(
    files: DataFiles, result: MergeResult, found: FoundRows, decision: Decision, run: RunRows
) -> RunRows:
    """Changelog rows in key order, -U before +U; `kinds` None means: exactly the inserted run."""
    if not len(decision.replaced) and not found.absent:
        return run
    names = result.rows.column_names
    wanted = changelog_rows(result, decision, _unlogged(files, found, result))
    olds = [] if found.old is None else [found.old]
    old_count = sum(old.num_rows for old in olds)
    number_of = np.zeros(result.rows.num_rows, dtype=np.int64)
    number_of[decision.written] = run.numbers
    at = np.where(wanted.from_old, wanted.rows, old_count + wanted.rows)
    kinds = wanted.kinds
    parts = [*(old.select(names) for old in olds), result.rows]
    numbers = [*(np.asarray(old.column(SEQUENCE_NUMBER)) for old in olds), number_of]
    gone = fetch(files.reader, found.absent, None, keep=(SEQUENCE_NUMBER,))
    if gone is not None:
        at = np.concatenate([at, old_count + result.rows.num_rows + np.arange(gone.num_rows)])
        kinds = np.concatenate([kinds, np.full(gone.num_rows, RowKind.DELETE, dtype=np.int8)])
        parts.append(gone.select(names))
        numbers.append(np.asarray(gone.column(SEQUENCE_NUMBER)))
    rows, all_numbers = take_rows(pa.concat_tables(parts), at), np.concatenate(numbers)[at]
    if gone is not None:  # rows of absent keys stand at the end: sort them in, each key's rows stay in order
        order = order_permutation(order_columns(rows, files.schema.trimmed_primary_keys))
        rows, all_numbers, kinds = take_rows(rows, order), all_numbers[order], kinds[order]
    return RunRows(rows, all_numbers, kinds)


def _dead_rows(found: FoundRows, decision: Decision) -> list[tuple[str, Index]]:
    """File name and positions of rows that this step deletes or replaces."""
    is_replaced = np.zeros(len(found.hits.incoming), dtype=np.bool_)
    is_replaced[found.hits.order[decision.replaced]] = True  # from hit order back to file order
    dead: list[tuple[str, Index]] = [(one.file.meta.file_name, one.positions) for one in found.absent]
    at = 0
    for one in found.hits.by_file:
        dead.append((one.file.meta.file_name, one.positions[is_replaced[at : at + len(one.positions)]]))
        at += len(one.positions)
    return dead
