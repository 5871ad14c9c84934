"""All versions of the keys of a batch, for engines that combine values: level 0 before it meets the rows below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tablestore_engine.lsm.key_order import Index, Mask
from tablestore_engine.lsm.sequence_field import SequenceOrder


@dataclass(frozen=True)
class VersionStack:
    """By row: `keys` (the number of its key in the batch, ascending), its `order`, whether it retracts, and by -U."""

    rows: pa.Table
    keys: Index
    order: SequenceOrder
    retracts: Mask
    update_befores: Mask | None = None

    def of_keys(self, start: int, end: int) -> VersionStack:
        """The versions of keys start … end - 1, which are numbered from 0 then."""
        first, last = np.searchsorted(self.keys, [start, end])
        return VersionStack(
            self.rows.slice(first, last - first),
            self.keys[first:last] - start,
            SequenceOrder(self.order.frame.slice(first, last - first), self.order.descending),
            self.retracts[first:last],
            None if self.update_befores is None else self.update_befores[first:last],
        )


def join_stacks(parts: Sequence[VersionStack], heights: Sequence[int]) -> VersionStack:
    """Stacks of batches that follow each other; `heights`: the number of keys of each."""
    begins = np.cumsum([0, *heights[:-1]])
    update_befores = [
        np.zeros_like(one.retracts) if one.update_befores is None else one.update_befores for one in parts
    ]
    return VersionStack(
        pa.concat_tables([one.rows for one in parts]),
        np.concatenate([one.keys + begin for one, begin in zip(parts, begins, strict=True)]),
        SequenceOrder.stacked([one.order for one in parts]),
        np.concatenate([one.retracts for one in parts]),
        np.concatenate(update_befores) if any(one.update_befores is not None for one in parts) else None,
    )
