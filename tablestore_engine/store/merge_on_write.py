"""A batch against the stored rows of its bucket: the one place where merge-on-write happens.

Names      Target        where and how the outcome is written
           merge_batch   the only entry: → BucketChange
Steps      1 find hits  2 fetch old rows, as few columns as the question needs  3 let them meet (lsm.merge) and decide
           4 write the run  5 write the changelog  6 new vectors
INVARIANT  old rows are read only if someone asks: changelog, sequence field, comparison, or an engine that combines.
INVARIANT  nothing here knows what becomes of a key: rows are brought to lsm.merge, and what it says is placed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from tablestore_engine.errors import StorageError
from tablestore_engine.format.data_file import SEQUENCE_NUMBER, SOURCE_APPEND, DataFileMeta
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.lsm.key_order import Index, Mask, order_columns, order_permutation
from tablestore_engine.lsm.merge import Decision, Incoming, Met, Stored, changelog_rows, decide, meet_stored
from tablestore_engine.lsm.take import take_rows
from tablestore_engine.lsm.versions import stored_newer
from tablestore_engine.store.bucket_state import BucketChange, BucketState
from tablestore_engine.store.data_files import DataFiles, RunRows
from tablestore_engine.store.incoming_batch import Batch, sequence_of
from tablestore_engine.store.lookup import FileHits, Hits, KeyCache, absent_rows, fetch, find_hits
from tablestore_engine.store.row_equality import rows_identical
from tablestore_engine.store.row_filter import RowFilter, picked_rows


@dataclass(frozen=True)
class Target:
    """`picks`: picked rows whose keys the batch lacks are deleted. `skip_identical`: rows without change stay."""

    level: int
    source: int = SOURCE_APPEND
    picks: RowFilter | None = None
    skip_identical: bool = False


@dataclass(frozen=True)
class _Found:
    """What the bucket holds for the batch: hits, their old rows in hit order (first column their numbers), the rest.

    `picked`: which hits, in hit order, are rows that give way.
    """

    hits: Hits
    old: pa.Table | None
    absent: tuple[FileHits, ...]
    picked: Mask


def merge_batch(
    files: DataFiles, state: BucketState, batch: Batch, target: Target, cache: KeyCache | None
) -> BucketChange:
    """Files, vectors, changelog and counts of merging `batch` into `state`."""
    found = _find(files, state, batch, target, cache)
    met = _meet(files, batch, found)
    decision = decide(met, identical=_identical(batch, target, found, met))
    numbers = (
        state.next_sequence + np.arange(len(decision.written))
        if batch.numbers is None
        else batch.numbers[decision.written]
    )
    run = RunRows(take_rows(met.rows, decision.written), numbers)
    added = files.write_run(state, run, level=target.level, source=target.source)
    changelog: tuple[DataFileMeta, ...] = ()
    try:
        if files.traits.changelog_producer.writes_at_merge:
            changelog = _write_changelog(
                files, state, _changelog(files, met, found, decision, run), added, target
            )
    except StorageError:
        files.discard(state, added)
        raise
    absent_count = sum(len(one.positions) for one in found.absent)
    return BucketChange(
        state.partition_bytes,
        state.bucket,
        added=added,
        changelog=changelog,
        deletion_vectors=_new_vectors(state, found, decision),
        inserted=decision.inserted,
        updated=decision.updated,
        deleted=decision.deleted + absent_count,
        unchanged=decision.unchanged,
    )


def _write_changelog(
    files: DataFiles, state: BucketState, log: RunRows, added: tuple[DataFileMeta, ...], target: Target
) -> tuple[DataFileMeta, ...]:
    """The rows of `log`; without kinds they are the added run, whose bytes are taken again."""
    if log.kinds is None:
        return files.copy_as_changelog(state, added)
    with files.open_changelog(state, level=target.level) as output:
        output.add(log)
    return output.metas


def _find(
    files: DataFiles, state: BucketState, batch: Batch, target: Target, cache: KeyCache | None
) -> _Found:
    hits = find_hits(files.reader, state.files, batch.keys, cache)
    masks = _picked_masks(files, state, target)
    absent = absent_rows(state.files, hits, masks)
    columns = _old_columns(files, batch, target)
    old = None
    if columns is None or columns:
        old = fetch(files.reader, hits.by_file, columns, keep=(SEQUENCE_NUMBER,))
        old = None if old is None else take_rows(old, hits.order)
    return _Found(hits, old, absent, _picked_hits(hits, masks))


def _picked_masks(files: DataFiles, state: BucketState, target: Target) -> dict[str, Mask]:
    """Path → positions of rows that give way, for the files that have any."""
    if target.picks is None:
        return {}
    found = ((file.path, picked_rows(files.reader, file, target.picks)) for file in state.files)
    return {path: mask for path, mask in found if mask is not None}


def _picked_hits(hits: Hits, masks: dict[str, Mask]) -> Mask:
    parts = [
        masks[one.file.path][one.positions]
        if one.file.path in masks
        else np.zeros(len(one.positions), dtype=np.bool_)
        for one in hits.by_file
    ]
    return np.concatenate(parts)[hits.order] if parts else np.zeros(0, dtype=np.bool_)


def _old_columns(files: DataFiles, batch: Batch, target: Target) -> tuple[str, ...] | None:
    """Which columns of the old rows are needed: None is all of them."""
    if (
        files.traits.changelog_producer.writes_at_merge
        or target.skip_identical
        or files.traits.merge_engine.combines
    ):
        return None
    return files.traits.sequence_fields if batch.sequence is not None else ()


def _meet(files: DataFiles, batch: Batch, found: _Found) -> Met:
    """The batch and the stored rows that it hits. The sequence field does not protect rows that give way."""
    hits = found.hits.incoming
    newer = None
    if found.old is not None and batch.sequence is not None and not bool(found.picked.all()):
        stored = sequence_of(found.old, files.traits)
        newer = None if stored is None else stored_newer(batch.sequence.at(hits), stored)
    return meet_stored(
        files.traits.merge_engine,
        Incoming(batch.rows, batch.deletes),
        Stored(hits, found.old, newer, gives_way=found.picked),
    )


def _identical(batch: Batch, target: Target, found: _Found, met: Met) -> Mask | None:
    """Which hits would only write again what is stored, if the target wants to know."""
    if found.old is None or not target.skip_identical:
        return None
    return rows_identical(take_rows(met.rows, met.hits), found.old.select(batch.rows.column_names))


def _changelog(files: DataFiles, met: Met, found: _Found, decision: Decision, run: RunRows) -> RunRows:
    """Changelog rows in key order, -U before +U; `kinds` None means: exactly the inserted run."""
    if not len(decision.replaced) and not found.absent:
        return run
    names = met.rows.column_names
    wanted = changelog_rows(met, decision)
    olds = [] if found.old is None else [found.old]
    old_count = sum(old.num_rows for old in olds)
    number_of = np.zeros(met.rows.num_rows, dtype=np.int64)
    number_of[decision.written] = run.numbers
    at = np.where(wanted.from_old, wanted.rows, old_count + wanted.rows)
    kinds = wanted.kinds
    parts = [*(old.select(names) for old in olds), met.rows]
    numbers = [*(np.asarray(old.column(SEQUENCE_NUMBER)) for old in olds), number_of]
    gone = fetch(files.reader, found.absent, None, keep=(SEQUENCE_NUMBER,))
    if gone is not None:
        at = np.concatenate([at, old_count + met.rows.num_rows + np.arange(gone.num_rows)])
        kinds = np.concatenate([kinds, np.full(gone.num_rows, RowKind.DELETE, dtype=np.int8)])
        parts.append(gone.select(names))
        numbers.append(np.asarray(gone.column(SEQUENCE_NUMBER)))
    rows, all_numbers = take_rows(pa.concat_tables(parts), at), np.concatenate(numbers)[at]
    if gone is not None:  # rows of absent keys stand at the end: sort them in, each key's rows stay in order
        order = order_permutation(order_columns(rows, files.schema.trimmed_primary_keys))
        rows, all_numbers, kinds = take_rows(rows, order), all_numbers[order], kinds[order]
    return RunRows(rows, all_numbers, kinds)


def _new_vectors(state: BucketState, found: _Found, decision: Decision) -> dict[str, BitMap] | None:
    """The complete vectors of the bucket, None when nothing was deleted or replaced."""
    is_replaced = np.zeros(len(found.hits.incoming), dtype=np.bool_)
    is_replaced[found.hits.order[decision.replaced]] = True  # from hit order back to file order
    dead: list[tuple[str, Index]] = [(one.file.meta.file_name, one.positions) for one in found.absent]
    at = 0
    for one in found.hits.by_file:
        dead.append((one.file.meta.file_name, one.positions[is_replaced[at : at + len(one.positions)]]))
        at += len(one.positions)
    if not any(len(positions) for _, positions in dead):
        return None
    vectors = state.deletion_vectors
    for name, positions in dead:
        if len(positions):
            vectors[name] = vectors.get(name, BitMap()) | BitMap(positions.astype(np.uint32))
    return vectors
