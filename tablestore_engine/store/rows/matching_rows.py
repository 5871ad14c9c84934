"""Rows of one file that a condition is TRUE of, found by as few bytes as its statistics allow.

Steps      row groups that may hold such a row → their columns that decide → which rows → other columns of these
INVARIANT  a row group is left out only if no row of it can match (BoundCondition.possible), or readers see none.
INVARIANT  rows that the deletion vector hides are neither cast nor evaluated.
WHY        blocks of row groups are asked first: of a column in the order of the file few blocks remain, of any other
           they cost a sixteenth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa

from tablestore_engine.lsm.key_order import Mask
from tablestore_engine.store.files.file_read import OpenFile, filtered_rows
from tablestore_engine.store.files.row_budget import STEP_ROWS
from tablestore_engine.store.rows.row_condition import BoundCondition

BLOCK_GROUPS = 16


@dataclass(frozen=True)
class Matches:
    """Of the physical rows of `groups`, which are ascending, `mask` names those that match; `rows`: their columns that
    decide.
    """

    groups: Sequence[int]
    mask: Mask
    rows: pa.Table


def possible_groups(opened: OpenFile, wanted: BoundCondition) -> list[int]:
    """Ascending numbers of the row groups that may hold a row that `wanted` is TRUE of."""
    groups = opened.groups
    if len(groups) > 1 and any(opened.facts.of(groups)(name) is not None for name in wanted.columns):
        blocks = [groups[first : first + BLOCK_GROUPS] for first in range(0, len(groups), BLOCK_GROUPS)]
        left = [*chain.from_iterable(_possible(opened, wanted, blocks))] if len(blocks) > 1 else [*groups]
        kept = [*chain.from_iterable(_possible(opened, wanted, [range(one, one + 1) for one in left]))]
    else:
        kept = [*groups]
    return _visible_groups(opened, kept)


def find_matches(
    opened: OpenFile, wanted: BoundCondition, groups: Sequence[int], *, parallel: bool = False
) -> Matches:
    """Those among the rows of some row groups. Raises what reading a file and BoundCondition.mask raise."""
    visible = opened.visible_rows(groups)
    rows = opened.read_groups(groups, wanted.columns, picked=visible, parallel=parallel)
    truth = wanted.mask(rows)
    mask = truth
    if visible is not None:
        mask = visible.copy()
        mask[visible] = truth
    return Matches(groups, mask, filtered_rows(rows, truth))


def read_more(
    opened: OpenFile, found: Matches, columns: Sequence[str], *, parallel: bool = False
) -> pa.Table:
    """Other columns of the matching rows: only row groups with such rows are decoded, a step at a time."""
    starts, at, parts = opened.parquet.group_starts, 0, []
    sizes = [int(starts[one + 1] - starts[one]) for one in found.groups]
    masks = {}
    for group, size in zip(found.groups, sizes, strict=True):
        mine = found.mask[at : at + size]
        at += size
        if bool(mine.any()):
            masks[group] = mine
    for groups in opened.parquet.portions(STEP_ROWS, list(masks)):
        picked = np.concatenate([masks[one] for one in groups])
        parts.append(opened.read_groups(groups, columns, picked=picked, parallel=parallel))
    return pa.concat_tables(parts)


def _possible(opened: OpenFile, wanted: BoundCondition, sets: Sequence[range]) -> list[range]:
    answers = wanted.possible([opened.facts.of(one) for one in sets])
    return [one for one, may in zip(sets, answers, strict=True) if may]


def _visible_groups(opened: OpenFile, groups: list[int]) -> list[int]:
    """Those with a row that readers see."""
    deleted = opened.file.deleted
    if not deleted:
        return groups
    starts = opened.parquet.group_starts.tolist()
    return [
        one
        for one in groups
        if deleted.range_cardinality(starts[one], starts[one + 1]) < starts[one + 1] - starts[one]
    ]
