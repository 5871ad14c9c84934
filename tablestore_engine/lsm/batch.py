"""One batch of rows → at most one row per key: the newest by the sequence field, or a refusal.

Names      Resolved        the winners in key order, and the keys that nothing orders
           SequenceOrder   comparable columns of the sequence field, and which direction is newer
           resolve_batch   rows → winners and ties
           without_update_before   -U rows that say nothing
           newest_wins     which stored rows are newer than the incoming ones
           retracts        which rows take their key away
Steps      1 sort by key, sequence field, arrival  2 the last row of each key wins
           3 a key whose two last rows have equal sequence is tied (every repeated key, without sequence field)
INVARIANT  NULL in a sequence field loses in both directions (format section 10).
INVARIANT  the outcome depends on arrival order only where `last_wins` says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.lsm.key_order import Index, Mask, order_permutation, starts_of_groups


@dataclass(frozen=True)
class Resolved:
    """`winners`: row numbers, one per key, in key order. `tied`: one row number of each key that is a tie."""

    winners: Index
    tied: Index


@dataclass(frozen=True)
class SequenceOrder:
    """Comparable sequence columns and, for each, whether smaller is newer."""

    frame: pl.DataFrame
    descending: tuple[bool, ...]

    @classmethod
    def of(cls, frame: pl.DataFrame, *, descending: bool) -> SequenceOrder:
        """All columns in the same direction (option `sequence.field.sort-order`)."""
        return cls(frame, (descending,) * frame.width)


def resolve_batch(
    keys: pl.DataFrame,
    sequence: SequenceOrder | None,
    *,
    last_wins: bool = False,
) -> Resolved:
    """Sort rows by key and keep the newest of each; rows arrive in the order given."""
    if sequence is None:
        order = order_permutation(keys)
    else:
        both = [keys, sequence.frame.rename({name: f"s{name}" for name in sequence.frame.columns})]
        directions = (False,) * keys.width + sequence.descending
        order = order_permutation(pl.concat(both, how="horizontal"), descending=directions)
    starts = starts_of_groups(keys[order])
    if bool(starts.all()):
        return Resolved(order, np.empty(0, dtype=np.int64))
    ends = np.append(starts[1:], True)
    return Resolved(order[ends], np.empty(0, np.int64) if last_wins else _tied(order, starts, ends, sequence))


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


def retracts(kinds: npt.NDArray[np.int8]) -> Mask:
    """-U and -D. A -U whose +U did not come along deletes its key."""
    return np.asarray((kinds == RowKind.UPDATE_BEFORE) | (kinds == RowKind.DELETE))


def newest_wins(incoming: SequenceOrder, stored: SequenceOrder) -> Mask:
    """For aligned rows: whether the stored row is strictly newer, so that the incoming one loses."""
    newer = np.zeros(incoming.frame.height, dtype=np.bool_)
    pairs: Sequence[tuple[str, bool]] = list(zip(incoming.frame.columns, incoming.descending, strict=True))
    for name, descending in reversed(pairs):
        mine, theirs = incoming.frame.get_column(name), stored.frame.get_column(name)
        beyond = (theirs < mine if descending else theirs > mine).fill_null(False)
        beyond |= mine.is_null() & theirs.is_not_null()
        newer = beyond.to_numpy() | (mine.eq_missing(theirs).to_numpy() & newer)
    return newer


def _tied(order: Index, starts: Mask, ends: Mask, sequence: SequenceOrder | None) -> Index:
    """The winners whose runner-up has the same sequence."""
    last = np.flatnonzero(ends & ~starts)
    if sequence is None:
        return order[last]
    same = np.ones(len(last), dtype=np.bool_)
    for column in sequence.frame.get_columns():
        same &= column[order[last]].eq_missing(column[order[last - 1]]).to_numpy()
    return order[last[same]]
