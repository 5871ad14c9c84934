"""The merge with stored rows under an engine that combines values: it settles what each key holds.

CHANGE     which versions an engine that combines values is given
Steps      versions of keys that a stored row or the engine changes → one row of each → in place of the incoming one
PAIMON     level 0 meets the rows below it in one merge, in which lone versions take part, too: a retraction without a
           stored row may leave one (a negative sum). A batch is merged before, where lone versions stay as they are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow as pa

from tablestore_engine.lsm.arrow_take import take_rows
from tablestore_engine.lsm.key_order import Index, Mask
from tablestore_engine.lsm.key_versions import Versions, sort_versions
from tablestore_engine.lsm.merge_engine import MergeEngine
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
