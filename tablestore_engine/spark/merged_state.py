"""Contributions to groups, added to the state of these groups: Arrow, column by column.

CHANGE     how the state of a changed group follows from the stored one
State      `g<i>` the key; `n` rows of the group; of slot i: `v<i>` the count, sum (38 digits) or extreme, `m<i>` values
           of a sum that are not NULL. A sum of NULL is not known: it had no room
INVARIANT  a state is merged only where contributions and stored state determine it. Counts that fall below 0, a sum of
           no values that is not 0, a removed extreme: the group is evaluated.
INVARIANT  a group without rows has no state, but for a total, which always has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.format.group_state_file import GroupState
from tablestore_engine.queryplan.delta_root import COUNT, GROUP, MAX, SUM, GroupColumn
from tablestore_engine.spark.merged_groups import Group, Mask, fits_in, merge_extreme

_SUM_DIGITS, _WIDE = 38, 60


@dataclass(frozen=True)
class ChangedState:
    """`keys`: of all groups that changes touched. `rows`: the new state of those that need no evaluation and still
    have rows; `again`: keys of those that are evaluated. `before`: the state of all groups before.
    """

    keys: pa.Table
    rows: pa.Table
    again: pa.Table
    before: GroupState

    def with_evaluated(self, fresh: pa.Table) -> tuple[pa.Table, GroupState]:
        """(the state of the touched groups, of all groups)."""
        touched = pa.concat_tables([self.rows, fresh.cast(self.rows.schema)])
        return touched, self.before.changed(self.keys, touched)


def merge_state(
    found: pa.Table, slots: Sequence[GroupColumn], state: GroupState, *, is_total: bool
) -> ChangedState:
    """`found`: contributions (delta_query), `state`: of all groups before."""
    found = found.filter(pc.is_valid(found.column("n")))
    index = state.positions(found)
    old, is_stored = state.rows.take(index), np.asarray(pc.is_valid(index))
    group = Group(found, old, is_stored)
    columns: dict[str, pa.Array] = {}
    count = pc.add(pc.fill_null(old.column("n").combine_chunks(), 0), group.part("n"))
    rows = np.asarray(count)
    again: Mask = (rows < 0) | (~is_stored if is_total else np.zeros(len(rows), dtype=bool))
    for at, slot in enumerate(slots):
        made, unknown = _merged(group, at, slot)
        columns |= made
        again = again | unknown
    columns["n"] = count
    schema = state.rows.schema
    merged = pa.table({name: columns[name] for name in schema.names}).cast(schema)
    stays = ~again & ((rows > 0) | is_total)
    keys = merged.select(state.key)
    return ChangedState(keys, merged.filter(pa.array(stays)), keys.filter(pa.array(again)), state)


def without(keys: pa.Table, state: GroupState) -> ChangedState:
    """All groups of these keys are evaluated. `keys` has the columns of the key, by position; of a total none."""
    asked = keys.rename_columns(state.key) if state.key else state.rows.select([])
    asked = asked.cast(state.rows.select(state.key).schema)
    return ChangedState(asked, state.rows.slice(0, 0), asked, state)


def key_names(slots: Sequence[GroupColumn]) -> list[str]:
    """Of the columns of the key."""
    return [f"g{at}" for at, one in enumerate(slots) if one.how == GROUP]


def _merged(group: Group, at: int, slot: GroupColumn) -> tuple[dict[str, pa.Array], Mask]:
    """The columns of a slot, and where its value is not determined."""
    if slot.how == GROUP:
        return {f"g{at}": group.part(f"g{at}")}, np.zeros(len(group.is_stored), dtype=bool)
    old = group.old.column(f"v{at}").combine_chunks()
    if slot.how == COUNT:
        value = pc.add(pc.fill_null(old, 0), group.part(f"v{at}"))
        return {f"v{at}": value}, np.asarray(value) < 0
    if slot.how == SUM:
        return _sum(group, at, old)
    extreme = merge_extreme(group, at, old, is_max=slot.how == MAX)
    return {f"v{at}": extreme.values}, extreme.again


def _sum(group: Group, at: int, old: pa.Array) -> tuple[dict[str, pa.Array], Mask]:
    part, is_touched = group.part(f"v{at}"), np.asarray(group.part(f"c{at}")) > 0
    count = pc.add(
        pc.fill_null(group.old.column(f"m{at}").combine_chunks(), 0),
        pc.fill_null(group.part(f"m{at}"), 0),
    )
    wide = pa.decimal256(_WIDE, old.type.scale)
    zero = pa.scalar(0, pa.int64()).cast(pa.decimal128(38, 0)).cast(wide)
    total = pc.add(pc.fill_null(old.cast(wide), zero), pc.fill_null(part.cast(wide), zero))
    is_known = ~(group.is_stored & ~np.asarray(pc.is_valid(old)))
    is_known &= ~(is_touched & ~np.asarray(pc.is_valid(part)))
    fits = fits_in(total, pa.decimal128(_SUM_DIGITS, old.type.scale))
    number = np.asarray(count)
    is_wrong = (number < 0) | ((number == 0) & ~np.asarray(pc.equal(total, zero)))
    again = ~is_known | ~fits | is_wrong
    summed = pc.if_else(pa.array(again), pa.scalar(None, wide), total).cast(old.type)
    return {f"v{at}": summed, f"m{at}": count}, again
