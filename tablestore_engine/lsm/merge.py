"""The merge of a bucket: incoming rows among themselves, then with stored rows of their keys.

CHANGE     the result, deletions and changelog of a merge
Steps      1 pairs of a hit: (stored, incoming), turned round where the sequence field calls the stored row newer
           2 the engine makes one version of each pair  3 where it is the stored row, or one like it, nothing changes
           4 else it is replaced: -U +U, or -D when the outcome retracts
           5 a row without hit: +I, or nothing for a retraction
INVARIANT  each key has at most one visible stored row, so `hits` names every incoming row at most once.
INVARIANT  the changelog is what was visible before against what is visible after: no engine has a say in it.
INVARIANT  a stored row that gives way (an overwrite took it) is no version: it meets nobody.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.lsm.combining_merge import merge_combining
from tablestore_engine.lsm.key_order import Index, Mask
from tablestore_engine.lsm.key_versions import Versions
from tablestore_engine.lsm.merge_engine import Merged, MergeEngine
from tablestore_engine.lsm.merge_records import IncomingRecords, MergeResult, StoredRecords

Kinds = npt.NDArray[np.int8]


@dataclass(frozen=True)
class ChangelogRowNumbers:
    """Row i is `MergeResult.rows[rows[i]]` or, where `from_old[i]`, the stored row of hit `rows[i]`."""

    rows: Index
    from_old: Mask
    kinds: Kinds


@dataclass(frozen=True)
class Decision:
    """`written` rows of the MergeResult and `replaced` hits, ascending; counts are of keys."""

    written: Index
    replaced: Index
    inserted: int
    updated: int
    deleted: int
    unchanged: int


def merge_versions(engine: MergeEngine, versions: Versions) -> Merged:
    """One version of each key, which may be a retraction."""
    if versions.are_single:
        return Merged(versions.order, versions.retracts[versions.order])
    return engine.merge(versions)


def merge_with_stored(engine: MergeEngine, incoming: IncomingRecords, stored: StoredRecords) -> MergeResult:
    """What each key holds: its incoming version merged with the stored row. REQUIRES `stored.rows` if it combines."""
    kept = np.zeros(len(stored.hits), dtype=np.bool_)
    meeting = np.flatnonzero(~stored.gives_way)
    if not len(meeting) and not engine.combines:
        return MergeResult(incoming.rows, incoming.deletes, stored.hits, kept)
    if (
        engine.newest_wins or engine.keeps_stored
    ):  # the place in a pair says it all: none is made of millions of rows
        stays = np.True_ if engine.keeps_stored else stored.newer
        kept = kept if stays is None else stays & ~stored.gives_way
        deletes = incoming.deletes.copy()
        deletes[stored.hits[kept]] = False
        return MergeResult(incoming.rows, deletes, stored.hits, kept)
    if engine.combines:
        return merge_combining(engine, incoming, stored)
    hits, height = stored.hits[meeting], len(incoming.deletes)
    merged = engine.merge(_pairs(incoming, stored, meeting))
    kept[meeting] = merged.winners >= height
    deletes = incoming.deletes.copy()
    deletes[hits] = merged.deletes
    return MergeResult(incoming.rows, deletes, stored.hits, kept)


def _pairs(incoming: IncomingRecords, stored: StoredRecords, meeting: Index) -> Versions:
    """Two versions of each key that meets; stored row j has the number `len(incoming) + j`."""
    mine, theirs = stored.hits[meeting], len(incoming.deletes) + meeting
    order = np.empty(2 * len(meeting), dtype=np.int64)
    order[0::2], order[1::2] = theirs, mine
    if stored.newer is not None:
        newer = stored.newer[meeting]
        order[0::2][newer], order[1::2][newer] = mine[newer], theirs[newer]
    starts = np.zeros(len(order), dtype=np.bool_)
    starts[0::2] = True
    taken_away = np.concatenate([incoming.deletes, np.zeros(len(stored.hits), dtype=np.bool_)])
    return Versions(order, starts, taken_away)


def decide(result: MergeResult, *, identical: Mask | None = None) -> Decision:
    """What has to be done. `identical`: of which hits the outcome equals the stored row, when that shall not count."""
    left_alone = result.kept.copy()
    if identical is not None:
        left_alone |= identical & ~result.deletes[result.hits]
    written = ~result.deletes
    written[result.hits[left_alone]] = False
    replaced = np.flatnonzero(~left_alone)
    deleted = int(result.deletes[result.hits[replaced]].sum())
    updated = len(replaced) - deleted
    rows = np.flatnonzero(written)
    return Decision(
        written=rows,
        replaced=replaced,
        inserted=len(rows) - updated,
        updated=updated,
        deleted=deleted,
        unchanged=int(left_alone.sum()),
    )


def changelog_rows(
    result: MergeResult, decision: Decision, unlogged: Mask | None = None
) -> ChangelogRowNumbers:
    """The changelog of a decision, in key order (incoming rows are), -U before +U. `unlogged`: hits without one."""
    replaced, written = decision.replaced, decision.written
    has_old = np.zeros(len(result.deletes), dtype=np.bool_)
    has_old[result.hits[replaced]] = True
    if unlogged is not None:
        silent = np.zeros(len(result.deletes), dtype=np.bool_)
        silent[result.hits[unlogged]] = True
        silent &= ~result.deletes
        replaced, written = replaced[~silent[result.hits[replaced]]], written[~silent[written]]
    old_keys = result.hits[replaced]
    old_kinds = np.where(result.deletes[old_keys], RowKind.DELETE, RowKind.UPDATE_BEFORE)
    new_kinds = np.where(has_old[written], RowKind.UPDATE_AFTER, RowKind.INSERT)
    order = np.argsort(np.concatenate([2 * old_keys, 2 * written + 1]), kind="stable")
    from_old = np.zeros(len(order), dtype=np.bool_)
    from_old[: len(old_keys)] = True
    return ChangelogRowNumbers(
        rows=np.concatenate([replaced, written])[order],
        from_old=from_old[order],
        kinds=np.concatenate([old_kinds, new_kinds]).astype(np.int8)[order],
    )
