"""Versions of a key: which rows have the same key, and their order. Every merge begins here.

CHANGE     the order of the versions of a key
Order      key, then (as far as the caller has them) sequence field, sequence number, retractions before additions,
           then as the rows are given. An incoming row comes after a stored one unless the field says otherwise.
INVARIANT  what a key becomes is not decided here: that is the merge engine's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.lsm.key_order import Index, Mask, order_permutation, starts_of_groups, take_keys
from tablestore_engine.lsm.sequence_field import SequenceOrder


@dataclass(frozen=True)
class Versions:
    """`order`: row numbers by key, of each key the oldest first. `starts`: by place in it, whether a key begins.

    `retracts`, `update_befores` (which of them are -U; None: none) and `rows` are by row number; `rows` is None unless
    the engine combines values. `settles`: their keys have no other versions, so that lone ones are merged, too.
    """

    order: Index
    starts: Mask
    retracts: Mask
    sequence: SequenceOrder | None = None
    rows: pa.Table | None = None
    update_befores: Mask | None = None
    settles: bool = False

    @property
    def are_single(self) -> bool:
        """Whether no key has a second version."""
        return bool(self.starts.all())

    @property
    def ends(self) -> Mask:
        """By place, whether a key ends: its newest version."""
        return np.append(self.starts[1:], True) if len(self.starts) else self.starts

    def are_level(self, places: Index) -> Mask:
        """Whether nothing but their arrival orders the rows at these places and the ones before them.

        REQUIRES that a place and the one before it are of one key.
        """
        level = np.ones(len(places), dtype=np.bool_)
        if self.sequence is not None:
            for column in self.sequence.frame.get_columns():
                mine, before = column[self.order[places]], column[self.order[places - 1]]
                level &= mine.eq_missing(before).to_numpy()
        return level


def sort_versions(
    keys: pl.DataFrame,
    taken_away: Mask,
    sequence: SequenceOrder | None = None,
    rows: pa.Table | None = None,
    update_befores: Mask | None = None,
) -> Versions:
    """Rows by key, of each key the oldest first. `taken_away`: which of them retract; `update_befores`: by -U."""
    if sequence is None:
        order = order_permutation(keys)
    else:
        both = [keys, sequence.frame.rename({name: f"s{name}" for name in sequence.frame.columns})]
        directions = (False,) * keys.width + sequence.descending
        order = order_permutation(pl.concat(both, how="horizontal"), descending=directions)
    return Versions(
        order, starts_of_groups(take_keys(keys, order)), taken_away, sequence, rows, update_befores
    )


def retracts(kinds: npt.NDArray[np.int8]) -> Mask:
    """-U and -D. A -U whose +U did not come along deletes its key."""
    return np.asarray((kinds == RowKind.UPDATE_BEFORE) | (kinds == RowKind.DELETE))


def without_update_before(keys: pl.DataFrame, kinds: np.ndarray) -> Mask:
    """Rows to keep: a -U row says nothing when its key has another row in the batch; alone it is a delete."""
    before = kinds == RowKind.UPDATE_BEFORE
    if not before.any():
        return np.ones(len(kinds), dtype=np.bool_)
    others = keys.filter(pl.Series(~before)).unique()
    shadowed = keys.with_row_index("row").join(others, on=keys.columns, how="semi", nulls_equal=True)
    keep = np.ones(len(kinds), dtype=np.bool_)
    rows = shadowed.get_column("row").to_numpy()
    keep[rows[before[rows]]] = False
    return keep
