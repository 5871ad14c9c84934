"""Sorted runs of versions whose order in time is that of the runs: then a stable sort by key is the merge order.

WHY        what writers leave in level 0 are such runs, and a sort of a few ascending runs costs a tenth of one that has
           to compare sequence numbers, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import polars as pl

from tablestore_engine.lsm.key_order import Index, starts_of_groups


def order_by_age(runs: Sequence[tuple[Sequence[pl.DataFrame], Sequence[Index]]]) -> list[int] | None:
    """Numbers of the runs, the oldest first; None when their sequence numbers overlap or a run has a key twice.

    A run: its keys, ascending, and sequence numbers, in pieces that follow each other. No piece is empty.
    """
    spans = [
        (min(int(one.min()) for one in found), max(int(one.max()) for one in found)) for _, found in runs
    ]
    order = sorted(range(len(runs)), key=spans.__getitem__)
    if any(spans[older][1] >= spans[newer][0] for older, newer in pairwise(order)):
        return None
    for keys, _ in runs:
        if not starts_of_groups(keys[0] if len(keys) == 1 else pl.concat(list(keys))).all():
            return None
    return order
