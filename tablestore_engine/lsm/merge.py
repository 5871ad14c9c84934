"""The merge of a bucket: incoming rows among themselves, then with stored rows of their keys.

CHANGE     the result, deletions and changelog of a merge
Steps      1 pairs of a hit: (stored, incoming), turned round where the sequence field calls the stored row newer
           2 the engine makes one version of each pair  3 where it is the stored row, or one like it, nothing changes
           4 else it is replaced: -U +U, or -D when the outcome retracts
           5 a row without hit: +I, or nothing for a retraction
INVARIANT  each key has at most one visible stored row, so `hits` names every incoming row at most once.
INVARIANT  the changelog is what was visible before against what is visible after: no engine has a say in it.
INVARIANT  a stored row that gives way (an overwrite took it) is no version: it meets nobody.
CHANGE     which versions an engine that combines values is given
Steps      versions of keys that a stored row or the engine changes → one row of each → in place of the incoming one
PAIMON     level 0 meets the rows below it in one merge, in which lone versions take part, too: a retraction without a
           stored row may leave one (a negative sum). A batch is merged before, where lone versions stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.lsm.arrow_take import take_rows
from tablestore_engine.lsm.key_order import Index, Mask
from tablestore_engine.lsm.key_versions import Versions, sort_versions
from tablestore_engine.lsm.merge_engine import Merged, MergeEngine
from tablestore_engine.lsm.merge_records import IncomingRecords, MergeResult, StoredRecords, merged_rows
from tablestore_engine.lsm.sequence_field import SequenceOrder
from tablestore_engine.lsm.version_stack import VersionStack


def merge_combining(engine: MergeEngine, incoming: IncomingRecords, stored: StoredRecords) -> MergeResult:
    """What each key holds. REQUIRES `stored.rows`, and their `order` when the incoming rows are a stack."""
    height = len(incoming.deletes)
    if incoming.stack is None or _moves_up(incoming):
        versions, touched = _beside_stored(engine, incoming, stored)
    else:
        versions, touched = _stack_with_stored(incoming.stack, stored), np.arange(height)
    kept = np.zeros(len(stored.hits), dtype=np.bool_)
    if not len(touched):
        return MergeResult(incoming.rows, incoming.deletes, stored.hits, kept)
    merged = engine.merge(replace(versions, settles=True))
    assert versions.rows is not None
    made, deletes = merged_rows(versions.rows, merged), incoming.deletes.copy()
    deletes[touched] = merged.deletes
    if len(touched) < height:
        at = np.arange(height)
        at[touched] = height + np.arange(len(touched))
        made = take_rows(pa.concat_tables([incoming.rows, made]), at)
    return MergeResult(made, deletes, stored.hits, kept)


def _beside_stored(
    engine: MergeEngine, incoming: IncomingRecords, stored: StoredRecords
) -> tuple[Versions, Index]:
    """Stored and incoming row of keys that have both, else the incoming one if the engine may change it; the keys."""
    height, meeting = len(incoming.deletes), np.flatnonzero(~stored.gives_way)
    meets = np.zeros(height, dtype=np.bool_)
    meets[stored.hits[meeting]] = True
    touched = np.flatnonzero(meets | _changed_alone(engine, incoming))
    old_of, is_newer = np.zeros(height, dtype=np.int64), np.zeros(height, dtype=np.bool_)
    old_of[stored.hits[meeting]] = height + meeting
    if stored.newer is not None:
        is_newer[stored.hits[meeting]] = stored.newer[meeting]
    pairs, late = meets[touched], is_newer[touched]
    sizes = np.where(pairs, 2, 1)
    first = np.cumsum(sizes) - sizes
    order = np.empty(int(sizes.sum()), dtype=np.int64)
    order[first + (pairs & ~late)] = touched
    order[first[pairs] + late[pairs]] = old_of[touched[pairs]]
    starts = np.zeros(len(order), dtype=np.bool_)
    starts[first] = True
    adds = np.zeros(len(stored.hits), dtype=np.bool_)
    update_befores = (
        None if incoming.update_befores is None else np.concatenate([incoming.update_befores, adds])
    )
    rows = _stacked(incoming.rows, stored)
    return Versions(
        order, starts, np.concatenate([incoming.deletes, adds]), None, rows, update_befores
    ), touched


def _changed_alone(engine: MergeEngine, incoming: IncomingRecords) -> Mask:
    """Keys whose incoming version the engine may change though it is alone; rows of a statement stay as they are."""
    if incoming.replaces or _moves_up(incoming):
        return np.zeros(len(incoming.deletes), dtype=np.bool_)
    return np.ones(len(incoming.deletes), dtype=np.bool_) if engine.merges_lone else incoming.deletes


def _moves_up(incoming: IncomingRecords) -> bool:
    """Whether Paimon would move the file of these rows to the top level as it is: nothing is stored, none retracts."""
    if incoming.stack is not None and len(incoming.stack.keys) > len(incoming.deletes):
        return False
    return incoming.into_empty and not incoming.deletes.any()


def _stack_with_stored(stack: VersionStack, stored: StoredRecords) -> Versions:
    """All versions of every key of the stack with its stored row."""
    assert stored.order is not None
    rows = _stacked(stack.rows, stored)
    keys = np.concatenate([stack.keys, stored.hits])
    adds = np.zeros(len(stored.hits), dtype=np.bool_)
    update_befores = None if stack.update_befores is None else np.concatenate([stack.update_befores, adds])
    order = SequenceOrder.stacked([stack.order, stored.order])
    retracts = np.concatenate([stack.retracts, adds])
    return sort_versions(pl.DataFrame({"key": keys}), retracts, order, rows, update_befores)


def _stacked(rows: pa.Table, stored: StoredRecords) -> pa.Table:
    if not len(stored.hits):
        return rows
    assert stored.rows is not None  # the caller asked the engine whether it combines
    return pa.concat_tables([rows, stored.rows.select(rows.column_names)])


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
