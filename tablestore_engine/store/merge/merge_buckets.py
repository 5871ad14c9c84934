"""Rows of many small buckets against their stored rows, in one pass: merge_on_write with the bucket before the key.

CHANGE     how the rows of many small buckets are merged
Steps      1 one batch of all rows, a number for each bucket going before its keys  2 old files that may have one of the
           keys, decoded once each, as one table  3 one match of keys  4 merge_on_write.settle  5 the outcome cut at the
           buckets: files (small_files), vectors, counts  6 all files written together
INVARIANT  changes, files and errors are those of merge_on_write for each bucket alone. Which buckets may be here is
           said by tasks.small_upserts.
WHY        each call of Arrow, polars and numpy costs as much for ten rows as for a thousand: 100,000 rows in 1,000
           buckets took 5 ms of Python for each bucket (decision 0138).
Memory     what tasks.small_upserts lets into one pass: a step of rows (row_budget), old and new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
from pyroaring import BitMap

from tablestore_engine.fileio.base import NewFile, write_many
from tablestore_engine.format.binary_row import decode_row
from tablestore_engine.format.data_file import SEQUENCE_NUMBER, DataFileMeta
from tablestore_engine.format.scalar import arrow_values
from tablestore_engine.lsm.arrow_take import take_rows
from tablestore_engine.lsm.key_order import Index, Mask, match_sorted, order_columns, order_frame
from tablestore_engine.store.files.bucket_state import BucketChange, BucketState
from tablestore_engine.store.files.data_files import DataFiles, RunRows
from tablestore_engine.store.files.small_files import EncodedFile, encoded_files
from tablestore_engine.store.files.stored_file import StoredFile, visible_mask
from tablestore_engine.store.merge.lookup import Hits, two_visible_rows
from tablestore_engine.store.merge.merge_on_write import FoundRows, Settled, Target, old_columns, settle
from tablestore_engine.store.rows.incoming_batch import Batch, batch_of

_BUCKET = "bucket"  # order_columns calls the columns of keys by numbers
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class BucketRows:
    """Rows of one bucket, at least one, in their order of arrival; `kinds` None: all are put.

    `level`: of its new run.
    """

    state: BucketState
    level: int
    rows: pa.Table
    kinds: npt.NDArray[np.int8] | None


@dataclass(frozen=True)
class _Stored:
    """Physical rows of old files, file after file: file i of bucket `bucket_of[i]` begins at row `starts[i]`."""

    files: Sequence[StoredFile]
    bucket_of: Index
    starts: Index
    rows: pa.Table | None


def merge_buckets(files: DataFiles, buckets: Sequence[BucketRows]) -> list[BucketChange]:
    """One change for each bucket, in order. Raises as merge_batch.

    REQUIRES that either all buckets have files or none has.
    """
    target = Target(level=0, skip_identical=files.traits.skips_identical)
    batch = _batch(files, buckets)
    bucket_of = batch.keys.get_column(_BUCKET).to_numpy()
    stored = _read_stored(files, buckets, batch, target)
    hits, at = _match(files, batch, stored)
    columns = old_columns(files, batch, target)
    old = None
    if stored.rows is not None and len(at) and (columns is None or columns):
        names = [SEQUENCE_NUMBER, *(files.schema.field_names if columns is None else columns)]
        old = take_rows(stored.rows.select(names), at)
    found = FoundRows(Hits((), hits, np.arange(len(hits))), old, (), np.zeros(len(hits), np.bool_))
    firsts = np.array([one.state.next_sequence for one in buckets], np.int64)

    def numbers_of(written: Index) -> Counts:
        mine = bucket_of[written]
        numbers: Counts = firsts[mine] + np.arange(len(written)) - np.searchsorted(mine, mine)
        return numbers

    settled = settle(
        files, batch, found, target, numbers_of, into_empty=not any(one.state.files for one in buckets)
    )
    dead = _dead_rows(stored, at[settled.decision.replaced])
    assert files.traits.has_vectors or not dead  # small_upserts: else the engine keeps stored rows
    return _changes(files, buckets, settled, bucket_of, dead)


# ---- rows of all buckets --------------------------------------------------------------------------------------


def _batch(files: DataFiles, buckets: Sequence[BucketRows]) -> Batch:
    numbers = np.repeat(np.arange(len(buckets)), [one.rows.num_rows for one in buckets])
    kinds = None
    if any(one.kinds is not None for one in buckets):
        kinds = np.concatenate(
            [np.zeros(one.rows.num_rows, np.int8) if one.kinds is None else one.kinds for one in buckets]
        )
    rows = pa.concat_tables([one.rows for one in buckets]).combine_chunks()
    return batch_of(rows, kinds, files.traits, buckets=pl.Series(_BUCKET, numbers))


def _read_stored(files: DataFiles, buckets: Sequence[BucketRows], batch: Batch, target: Target) -> _Stored:
    places = [(number, file) for number, one in enumerate(buckets) for file in one.state.files]
    wanted = [places[at] for at in np.flatnonzero(_may_hit(files, places, batch)).tolist()]
    if not wanted:
        return _Stored((), np.zeros(0, np.int64), np.zeros(0, np.int64), None)
    columns = old_columns(files, batch, target)
    keys = files.schema.trimmed_primary_keys
    names = files.schema.field_names if columns is None else list(dict.fromkeys([*keys, *columns]))
    sources = [file for _, file in wanted]
    rows, counts = files.reader.read_whole(sources, names, keep=(SEQUENCE_NUMBER,))
    bucket_of = np.array([number for number, _ in wanted], np.int64)
    return _Stored(sources, bucket_of, np.cumsum(counts) - counts, rows.combine_chunks())


def _may_hit(files: DataFiles, places: Sequence[tuple[int, StoredFile]], batch: Batch) -> Mask:
    """lookup.may_hit of every file and the rows of its bucket."""
    keys, bucket_of = batch.keys.drop(_BUCKET), batch.keys.get_column(_BUCKET).to_numpy()
    if not places or not keys.height:
        return np.zeros(len(places), np.bool_)
    types = [column.type for column in files.schema.fields_of(files.schema.trimmed_primary_keys)]
    bounds = [decode_row(key, types) for _, file in places for key in (file.meta.min_key, file.meta.max_key)]
    columns = zip(*bounds, strict=True)
    ends = _comparable(
        order_frame([arrow_values(values, type_) for values, type_ in zip(columns, types, strict=True)])
    )
    numbers = np.array([number for number, _ in places])
    first, after = np.searchsorted(bucket_of, numbers), np.searchsorted(bucket_of, numbers, side="right")
    lows = _comparable(keys[np.minimum(first, keys.height - 1)])
    highs = _comparable(keys[np.maximum(after - 1, 0)])
    return np.array(
        [
            first[at] < after[at]
            and file.dead_count < file.meta.row_count
            and ends[2 * at] <= highs[at]
            and lows[at] <= ends[2 * at + 1]
            for at, (_, file) in enumerate(places)
        ],
        np.bool_,
    )


def _comparable(keys: pl.DataFrame) -> list[tuple[object, ...]]:
    """key_order.key_at of every row."""
    return [tuple((value is not None, value) for value in row) for row in keys.iter_rows()]


def _match(files: DataFiles, batch: Batch, stored: _Stored) -> tuple[Index, Index]:
    """Batch rows that have a visible stored row, ascending, and the numbers of these. Raises EngineBug TS1652."""
    if stored.rows is None:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    sizes = np.diff(np.append(stored.starts, stored.rows.num_rows))
    masks = [visible_mask(file, size) for file, size in zip(stored.files, sizes.tolist(), strict=True)]
    visible = np.flatnonzero(np.concatenate(masks))
    frame = order_columns(stored.rows, files.schema.trimmed_primary_keys)
    keys = pl.DataFrame([pl.Series(_BUCKET, np.repeat(stored.bucket_of, sizes))]).hstack(frame)
    if len(visible) < keys.height:
        keys = keys[visible]
    hits, at = match_sorted(batch.keys, keys)
    if len(hits) > 1 and bool((hits[1:] == hits[:-1]).any()):
        twice = visible[at[:-1][hits[1:] == hits[:-1]][0]]
        first = int(stored.bucket_of[np.searchsorted(stored.starts, twice, side="right") - 1])
        raise two_visible_rows(
            [file for file, one in zip(stored.files, stored.bucket_of.tolist(), strict=True) if one == first]
        )
    return hits, visible[at]


def _dead_rows(stored: _Stored, rows: Index) -> dict[int, dict[str, Index]]:
    """Bucket → file name → positions of stored rows, given by their numbers."""
    rows = np.sort(rows)
    file_of = np.searchsorted(stored.starts, rows, side="right") - 1
    hit, firsts = np.unique(file_of, return_index=True)
    found: dict[int, dict[str, Index]] = {}
    for at, mine in zip(hit.tolist(), np.split(rows - stored.starts[file_of], firsts[1:]), strict=False):
        found.setdefault(int(stored.bucket_of[at]), {})[stored.files[at].meta.file_name] = mine
    return found


# ---- one change for each bucket --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _BucketCounts:
    """Per bucket: rows of the run, stored rows that are replaced, those of them without a new row, and left alone."""

    written: Counts
    replaced: Counts
    deleted: Counts
    unchanged: Counts


def _tally(settled: Settled, bucket_of: Index, count: int) -> _BucketCounts:
    result, decision = settled.result, settled.decision
    gone = result.hits[decision.replaced]
    replaced = np.bincount(bucket_of[gone], minlength=count)
    return _BucketCounts(
        np.bincount(bucket_of[decision.written], minlength=count),
        replaced,
        np.bincount(bucket_of[gone[result.deletes[gone]]], minlength=count),
        np.bincount(bucket_of[result.hits], minlength=count) - replaced,
    )


def _changes(
    files: DataFiles,
    buckets: Sequence[BucketRows],
    settled: Settled,
    bucket_of: Index,
    dead: dict[int, dict[str, Index]],
) -> list[BucketChange]:
    tally = _tally(settled, bucket_of, len(buckets))
    data = encoded_files(files, settled.run, tally.written, [one.level for one in buckets], prefix="data")
    logs = _logs(files, buckets, settled.log, tally)
    changes: list[BucketChange] = []
    made: list[NewFile] = []
    for number, one in enumerate(buckets):
        new = _new_files(files, one.state, data[number], logs[number], has_log=settled.log is not None)
        made += new.files
        changes.append(
            BucketChange(
                one.state.partition_bytes,
                one.state.bucket,
                added=new.added,
                changelog=new.changelog,
                deletion_vectors=_vectors(one.state, dead.get(number)),
                inserted=int(tally.written[number] - tally.replaced[number] + tally.deleted[number]),
                updated=int(tally.replaced[number] - tally.deleted[number]),
                deleted=int(tally.deleted[number]),
                unchanged=int(tally.unchanged[number]),
            )
        )
    write_many(files.fileio, made)
    return changes


def _logs(
    files: DataFiles, buckets: Sequence[BucketRows], log: RunRows | None, tally: _BucketCounts
) -> list[EncodedFile | None]:
    """Changelog files of the buckets where stored rows were replaced; elsewhere the run is the changelog."""
    if log is None or log.kinds is None:
        return [None] * len(buckets)
    sizes, has_old = tally.written + tally.replaced, tally.replaced > 0
    if not has_old.all():
        rows = np.flatnonzero(np.repeat(has_old, sizes))
        log = RunRows(take_rows(log.rows, rows), log.numbers[rows], log.kinds[rows])
        sizes = np.where(has_old, sizes, 0)
    return encoded_files(files, log, sizes, [one.level for one in buckets], prefix="changelog")


@dataclass(frozen=True)
class _NewFiles:
    added: tuple[DataFileMeta, ...] = ()
    changelog: tuple[DataFileMeta, ...] = ()
    files: tuple[NewFile, ...] = ()


def _new_files(
    files: DataFiles, state: BucketState, run: EncodedFile | None, log: EncodedFile | None, *, has_log: bool
) -> _NewFiles:
    """The files of one bucket. A changelog of insertions is the run under a second name (copy_as_changelog)."""
    found = _NewFiles()
    if log is not None:
        path = files.path(state, log.meta.file_name)
        found = _NewFiles(changelog=(log.meta,), files=(NewFile(path, log.data),))
    if run is None:
        return found
    path, also = files.path(state, run.meta.file_name), None
    if log is None and has_log:
        copy = replace(run.meta, file_name=files.new_name("changelog"))
        found, also = _NewFiles(changelog=(copy,)), files.path(state, copy.file_name)
    return replace(found, added=(run.meta,), files=(NewFile(path, run.data, also), *found.files))


def _vectors(state: BucketState, dead: dict[str, Index] | None) -> dict[str, BitMap] | None:
    """The complete vectors of the bucket, None when none changed."""
    if dead is None:
        return None
    vectors = state.deletion_vectors
    for name, positions in dead.items():
        vectors[name] = vectors.get(name, BitMap()) | BitMap(positions.astype(np.uint32))
    return vectors
