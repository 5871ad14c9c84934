"""What an upsert does to each key, decided on row numbers alone; the deduplicate merge function.

Names      Decision        rows to write, old rows to mark deleted, the changelog as row numbers, counts
           decide          the only entry: incoming rows in key order and the hits among stored rows
           ChangelogRows   which rows of which side, of what kind, in key order with -U before +U
Steps      1 a hit whose stored row is newer, or that changes nothing, leaves the stored row alone
           2 any other hit replaces it: -U +U, or -D when the incoming row deletes
           3 an incoming row without hit is +I; a delete without hit is nothing
INVARIANT  each key has at most one visible stored row, so `hits` names every incoming row at most once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.lsm.key_order import Index, Mask

Kinds = npt.NDArray[np.int8]


@dataclass(frozen=True)
class ChangelogRows:
    """Row i is `incoming[rows[i]]` or, where `from_old[i]`, the old row of hit `rows[i]`."""

    rows: Index
    from_old: Mask
    kinds: Kinds


@dataclass(frozen=True)
class Decision:
    """`written` incoming rows and `replaced` hits, ascending; counts are of keys."""

    written: Index
    replaced: Index
    inserted: int
    updated: int
    deleted: int
    unchanged: int


def decide(deletes: Mask, hits: Index, *, stored_newer: Mask | None, identical: Mask | None) -> Decision:
    """Deduplicate: the newest row wins, whole. `deletes[i]`: incoming row i deletes its key."""
    left_alone = np.zeros(len(hits), dtype=np.bool_)
    if stored_newer is not None:
        left_alone |= stored_newer
    if identical is not None:
        left_alone |= identical & ~deletes[hits]
    written = ~deletes
    written[hits[left_alone]] = False
    replaced = np.flatnonzero(~left_alone)
    deleted = int(deletes[hits[replaced]].sum())
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


def changelog_rows(decision: Decision, deletes: Mask, hits: Index) -> ChangelogRows:
    """The changelog of a decision, in key order (incoming rows are), -U before +U."""
    old_keys = hits[decision.replaced]
    has_old = np.zeros(len(deletes), dtype=np.bool_)
    has_old[old_keys] = True
    old_kinds = np.where(deletes[old_keys], RowKind.DELETE, RowKind.UPDATE_BEFORE)
    new_kinds = np.where(has_old[decision.written], RowKind.UPDATE_AFTER, RowKind.INSERT)
    order = np.argsort(np.concatenate([2 * old_keys, 2 * decision.written + 1]), kind="stable")
    from_old = np.zeros(len(order), dtype=np.bool_)
    from_old[: len(old_keys)] = True
    return ChangelogRows(
        rows=np.concatenate([decision.replaced, decision.written])[order],
        from_old=from_old[order],
        kinds=np.concatenate([old_kinds, new_kinds]).astype(np.int8)[order],
    )
