"""The sequence field: which version of a key is newer, whenever it arrives. A late row is one that it calls older.

CHANGE     which row is late by the sequence field (options sequence.field, sequence.field.sort-order)
INVARIANT  NULL in a sequence field is older than every value, in both directions (format.md#merge-order).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from tablestore_engine.lsm.key_order import Index, Mask


@dataclass(frozen=True)
class SequenceOrder:
    """Comparable columns and, for each, whether smaller is newer."""

    frame: pl.DataFrame
    descending: tuple[bool, ...]

    @classmethod
    def of(cls, frame: pl.DataFrame, *, descending: bool) -> SequenceOrder:
        """All columns in the same direction (option `sequence.field.sort-order`)."""
        return cls(frame, (descending,) * frame.width)

    @classmethod
    def stacked(cls, parts: Sequence[SequenceOrder]) -> SequenceOrder:
        """Of rows one part after the other; at least one part."""
        return cls(pl.concat([one.frame for one in parts]), parts[0].descending)

    @classmethod
    def of_stored(
        cls, field: SequenceOrder | None, numbers: npt.NDArray[np.int64], adds: Mask
    ) -> SequenceOrder:
        """Of rows in files: the sequence field if there is one, the number, and at equal numbers additions last."""
        last = pl.DataFrame({"number": numbers, "adds": adds})
        if field is None:
            return cls(last, (False, False))
        return cls(pl.concat([field.frame, last], how="horizontal"), (*field.descending, False, False))

    def at(self, rows: Index) -> SequenceOrder:
        """Of these rows, in this order."""
        return SequenceOrder(self.frame[rows], self.descending)


def stored_newer(incoming: SequenceOrder, stored: SequenceOrder) -> Mask:
    """For aligned rows: whether the stored one is strictly newer by the sequence field."""
    newer = np.zeros(incoming.frame.height, dtype=np.bool_)
    pairs: Sequence[tuple[str, bool]] = list(zip(incoming.frame.columns, incoming.descending, strict=True))
    for name, descending in reversed(pairs):
        mine, theirs = incoming.frame.get_column(name), stored.frame.get_column(name)
        beyond = (theirs < mine if descending else theirs > mine).fill_null(False)
        beyond |= mine.is_null() & theirs.is_not_null()
        newer = beyond.to_numpy() | (mine.eq_missing(theirs).to_numpy() & newer)
    return newer
