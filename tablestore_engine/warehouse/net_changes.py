"""Net changes between two states of a table, as counts and as sample rows: what a key was before, and what it is after.

INVARIANT  counts and samples are of the same keys (net_ends): one that came and went, or is as it was, is no change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from tablestore_engine.format.row_values import row_dicts
from tablestore_engine.warehouse.net_ends import NetEnds

Row = Mapping[str, object]
_Pair = tuple[int | None, int | None]  # numbers of the rows before and after
_KINDS = (
    (False, True),
    (True, True),
    (True, False),
)  # existed before, exists now: inserted, updated, deleted


@dataclass(frozen=True)
class ChangeCounts:
    """Net changes: `updated` keys existed before and after, with another row."""

    inserted: int
    updated: int
    deleted: int


@dataclass(frozen=True)
class NetChange:
    """One key; both rows None never occurs."""

    before: Row | None
    after: Row | None

    @property
    def kind(self) -> str:
        """inserted, updated or deleted."""
        if self.before is None:
            return "inserted"
        return "deleted" if self.after is None else "updated"

    def swapped(self) -> NetChange:
        return NetChange(self.after, self.before)


def count_net_changes(ends: NetEnds) -> ChangeCounts:
    """Keys inserted, updated and deleted; of tables without a key rows that came and rows that went."""
    counts = dict.fromkeys(_KINDS, 0)
    for frame in ends.frames():
        for existed, exists in _KINDS:
            counts[existed, exists] += frame.filter(_of_kind(existed, exists=exists)).height
    return ChangeCounts(*counts.values())


def pick_samples(ends: NetEnds, limit: int) -> tuple[NetChange, ...]:
    """`limit` inserted, updated and deleted keys each, in the order in which they first changed.

    Changes are read several times: keys and kinds to choose, then the chosen rows, which alone are held.
    """
    if limit <= 0:
        return ()
    chosen = _choose(ends, limit)
    wanted = np.unique(np.array([at for pair in chosen for at in pair if at is not None], np.int64))
    if not len(wanted):
        return ()
    rows = dict(zip(wanted.tolist(), row_dicts(ends.rows_at(wanted)), strict=True))
    return tuple(NetChange(*(None if at is None else rows[at] for at in pair)) for pair in chosen)


def _choose(ends: NetEnds, limit: int) -> list[_Pair]:
    picked: dict[tuple[bool, bool], list[tuple[int, int]]] = {kind: [] for kind in _KINDS}
    for frame in ends.frames():
        for existed, exists in _KINDS:
            found = frame.filter(_of_kind(existed, exists=exists)).sort("#first").head(limit)
            picked[existed, exists] += found.select("#first", "#last").rows()
    return [
        (first if existed else None, last if exists else None)
        for existed, exists in _KINDS
        for first, last in sorted(picked[existed, exists])[:limit]
    ]


def _of_kind(existed: bool, *, exists: bool) -> pl.Expr:
    return (pl.col("#existed") == existed) & (pl.col("#exists") == exists)
