"""Reads the stored rows of a batch's keys: at once for few rows, one key range after the other for many.

CHANGE     the order of the key ranges of a bucket
Steps      few rows: probe the files that can have their keys (lookup) → one step
           many: the batches and the key columns of all files, side by side (lsm.range_merge) → of each range the pairs
           of equal keys; rows that vectors hide are no hits
INVARIANT  steps ascend and no key is in two; together they are the one step that there would be.
WHY        two ways to look keys up, since their costs are opposite: a probe touches what it needs, and each of its
           calls may read key columns from end to end; side by side everything is read, once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import polars as pl

from tablestore_engine.lsm.key_order import Index, Mask, match_sorted
from tablestore_engine.lsm.range_merge import Piece, merge_ranges, share_rows
from tablestore_engine.store.files.bucket_state import BucketState
from tablestore_engine.store.files.file_read import FileReader
from tablestore_engine.store.files.row_budget import step_rows
from tablestore_engine.store.files.stored_file import StoredFile, visible_mask
from tablestore_engine.store.merge.lookup import FileHits, Hits, KeyCache, absent_rows, find_hits
from tablestore_engine.store.merge.range_read import file_chains, read_chain
from tablestore_engine.store.rows.incoming_batch import Batch, empty_batch, join_batches

_Piece = Piece[StoredFile | None, Any]  # no source: rows of a batch


@dataclass(frozen=True)
class MergeStep:
    """`hits` count the rows of this `batch` from 0."""

    batch: Batch
    hits: Hits
    absent: tuple[FileHits, ...]


@dataclass(frozen=True)
class Batches:
    """Batches in key order with about so many rows; `parts` is iterated once."""

    parts: Iterator[Batch]
    rows: int


def find_steps(
    reader: FileReader,
    state: BucketState,
    incoming: Batch | Batches,
    picked: Mapping[str, Mask],
    cache: KeyCache | None,
) -> Iterator[MergeStep]:
    """At least one step for a batch. Raises EngineBug TS1652, FixData TS1697, as FileReader."""
    picked_rows = sum(int(mask.sum()) for mask in picked.values())
    if isinstance(incoming, Batch):
        incoming = Batches(iter([incoming]), incoming.keys.height)
    if incoming.rows + picked_rows > step_rows(state.files):
        yield from _side_by_side(reader, state, incoming, picked)
        return
    parts = list(incoming.parts)
    batch = join_batches(parts) if parts else empty_batch(reader.schema)
    hits = find_hits(reader, state.files, batch.keys, cache)
    yield MergeStep(batch, hits, absent_rows(state.files, hits, picked))


def _side_by_side(
    reader: FileReader, state: BucketState, incoming: Batches, picked: Mapping[str, Mask]
) -> Iterator[MergeStep]:
    live = [file for file in state.files if file.visible_rows]
    visible = {file.path: visible_mask(file) for file in live if file.deleted}
    chains = file_chains(reader, live)
    counts = [sum(file.meta.row_count for file in chain) for chain in chains]
    shares = share_rows([incoming.rows, *counts], step_rows(live))
    sources: list[Iterator[Any]] = [_batch_pieces(incoming.parts, shares[0])]
    names = reader.schema.trimmed_primary_keys
    sources += [
        read_chain(reader, chain, names, rows_max=share)
        for chain, share in zip(chains, shares[1:], strict=True)
    ]
    for pieces in merge_ranges(sources, shares):
        mine = [piece for piece in pieces if piece.source is None]
        stored = [
            list(group) for _, group in groupby(pieces[len(mine) :], key=lambda piece: _file([piece]).path)
        ]
        batch = join_batches([piece.rows for piece in mine]) if mine else empty_batch(reader.schema)
        found = [_hits(batch, one, visible) for one in stored]
        hits = Hits.of([one for one in found if len(one.incoming)])
        absent = _absent(stored, hits, picked)
        if mine or absent:
            yield MergeStep(batch, hits, absent)


def _batch_pieces(parts: Iterator[Batch], rows_max: int) -> Iterator[_Piece]:
    at = 0
    for batch in parts:
        for first in range(0, batch.keys.height, rows_max):
            part = batch.slice(first, min(rows_max, batch.keys.height - first))
            yield Piece(None, at, part.keys, part)
            at += part.keys.height


def _hits(batch: Batch, found: Sequence[_Piece], visible: Mapping[str, Mask]) -> FileHits:
    """Of the rows of one file in one range, those that batch rows meet."""
    file, first = _file(found), found[0].first
    incoming, positions = match_sorted(batch.keys, pl.concat([piece.keys for piece in found]))
    positions = positions + first
    if file.path in visible:
        alive = visible[file.path][positions]
        incoming, positions = incoming[alive], positions[alive]
    return FileHits(file, incoming, positions)


def _absent(
    stored: Sequence[Sequence[_Piece]], hits: Hits, picked: Mapping[str, Mask]
) -> tuple[FileHits, ...]:
    """Picked rows of the range that no batch row hits (lookup.absent_rows, of a part of each file)."""
    hit: dict[str, Index] = {one.file.path: one.positions for one in hits.by_file}
    absent = []
    for found in stored:
        file, first = _file(found), found[0].first
        if file.path not in picked:
            continue
        rest = picked[file.path][first : first + sum(piece.keys.height for piece in found)].copy()
        if file.path in hit:
            rest[hit[file.path] - first] = False
        positions = np.flatnonzero(rest) + first
        if len(positions):
            absent.append(FileHits(file, np.full(len(positions), -1, dtype=np.int64), positions))
    return tuple(absent)


def _file(found: Sequence[_Piece]) -> StoredFile:
    file = found[0].source
    assert file is not None
    return file
