"""Contributions to groups, merged with the stored rows of these groups: Arrow, column by column, no row in Python.

CHANGE     how a changed count, sum or extreme follows from the stored one
INVARIANT  a value is merged only where it is the one that the query gives for the group. Where contributions and stored
           row do not determine it, or contradict each other, the group is evaluated again.
Rules      count    stored + part
           sum      stored + part in 60 digits, if the result has room in the column's type. Without a stored value the
                    group is evaluated; so is one with fewer values and a sum of 0, which may have none left
           extreme  the better one of stored and added, if no removed value reaches the stored one; the added one if it
                    reaches the stored one; else the group is evaluated
           distinct the stored one, if no value came or went; of a group that is not stored what came; else evaluated
           group    stays with as many or more rows than before, or with a value that proves a row; goes when count(*)
                    is 0; else it is evaluated. A total always has its row
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.queryplan.delta_root import COUNT, DISTINCT, GROUP, MAX, SUM, SUM_OR_ZERO, GroupColumn
from tablestore_engine.spark.merged_rows import FindRows, MergedRows, has_null, positions_in, with_kind

Mask = np.ndarray[Any, np.dtype[np.bool_]]
_WIDE = 60  # digits of a sum while it is added
_LONG_LIMIT = 1 << 63


@dataclass(frozen=True)
class Group:
    """Contributions beside the stored rows; `is_stored`: which have one."""

    found: pa.Table
    old: pa.Table
    is_stored: Mask

    def part(self, name: str) -> pa.Array:
        """A column of the contributions."""
        return self.found.column(name).combine_chunks()


@dataclass(frozen=True)
class MergedColumn:
    """`again`: where the value is not determined. `proves`: where it proves that the group has a row."""

    values: pa.Array
    again: Mask
    proves: Mask


def merge_groups(
    found: pa.Table,
    columns: Sequence[GroupColumn],
    names: Sequence[str],
    key: Sequence[str],
    find_rows: FindRows,
    *,
    is_total: bool,
) -> MergedRows:
    """`found`: as delta_query gives it. `names`: of the result's columns; `key`: some of them."""
    found = found.filter(pc.is_valid(found.column("n")))
    at_key = [names.index(one) for one in key]
    keys = pa.table({name: found.column(f"g{at}") for name, at in zip(key, at_key, strict=True)})
    is_null = has_null(keys)
    unknown, found, keys = (
        keys.filter(pa.array(is_null)),
        found.filter(pa.array(~is_null)),
        keys.filter(pa.array(~is_null)),
    )
    stored = find_rows(keys)
    index = positions_in(stored.keys, stored.rows, key)
    group = Group(found, stored.rows.take(index), np.asarray(pc.is_valid(index)))
    merged = [_merge(group, at, one, names[at]) for at, one in enumerate(columns)]
    state = _states(group, columns, merged, is_total=is_total)
    rows = pa.table(dict(zip(names, (one.values for one in merged), strict=True)))
    puts, deletes = rows.filter(pa.array(state == _PUT)), rows.filter(pa.array(state == _DELETE))
    again = pa.concat_tables([unknown, keys.filter(pa.array(state == _AGAIN))])
    return MergedRows(
        pa.concat_tables([with_kind(puts, RowKind.INSERT), with_kind(deletes, RowKind.DELETE)]), again
    )


_SKIP, _PUT, _DELETE, _AGAIN = range(4)


def _states(
    group: Group, columns: Sequence[GroupColumn], merged: Sequence[MergedColumn], *, is_total: bool
) -> np.ndarray[Any, Any]:
    """What becomes of each group."""
    net = np.asarray(group.part("n"))
    again = np.logical_or.reduce([one.again for one in merged])
    proves = np.logical_or.reduce([one.proves for one in merged])
    stored = group.is_stored
    if is_total:
        return np.where(again | ~stored, _AGAIN, _PUT)
    state = np.where(again, _AGAIN, _PUT)
    state[stored & (net < 0) & ~proves] = _AGAIN
    for at, one in enumerate(columns):
        if one.counts_rows:
            rows = np.asarray(pc.fill_null(merged[at].values, -1))
            state[stored & (rows == 0)] = np.where(net[stored & (rows == 0)] < 0, _DELETE, _AGAIN)
    state[~stored & (net < 0)] = _AGAIN
    is_nothing = ~stored & (net == 0)
    state[is_nothing] = np.where((proves | again)[is_nothing], _AGAIN, _SKIP)
    return state


def _merge(group: Group, at: int, column: GroupColumn, name: str) -> MergedColumn:
    old = group.old.column(name).combine_chunks()
    nowhere = np.zeros(len(old), dtype=bool)
    if column.how == GROUP:
        return MergedColumn(group.part(f"g{at}").cast(old.type), nowhere, nowhere)
    if column.how == COUNT:
        value = pc.add(pc.fill_null(old, 0), group.part(f"v{at}"))
        number = np.asarray(value)
        return MergedColumn(value, number < 0, number > 0)
    if column.how == DISTINCT:
        return _distinct(group, at, old)
    if column.how in (SUM, SUM_OR_ZERO):
        return _sum(group, at, old, is_zeroed=column.how == SUM_OR_ZERO)
    return merge_extreme(group, at, old, is_max=column.how == MAX)


def _distinct(group: Group, at: int, old: pa.Array) -> MergedColumn:
    """Which values a stored group has is not known; a new one has those that came."""
    moved, gone = (np.asarray(group.part(f"{name}{at}")) > 0 for name in ("c", "m"))
    value = pc.if_else(pa.array(group.is_stored), old, group.part(f"v{at}").cast(old.type))
    again = np.where(group.is_stored, moved | ~_true(pc.is_valid(old)), gone)
    return MergedColumn(value, again, ~again & (np.asarray(pc.fill_null(value, 0)) > 0))


def _sum(group: Group, at: int, old: pa.Array, *, is_zeroed: bool) -> MergedColumn:
    part, more = group.part(f"v{at}"), np.asarray(group.part(f"m{at}"))
    touched = np.asarray(group.part(f"c{at}")) > 0
    stored, is_null = group.is_stored, ~_true(pc.is_valid(old))
    scale = old.type.scale if pa.types.is_decimal(old.type) else 0
    wide = pa.decimal256(_WIDE, scale)
    total = pc.add(pc.fill_null(_wide(old, wide), _zero(wide)), part.cast(wide))
    fits, is_zero = fits_in(total, old.type), _true(pc.equal(total, _zero(total.type)))
    is_empty = ~stored & (more == 0)
    again = touched & (~_true(pc.is_valid(part)) | ~fits | (stored & is_null) | (~stored & (more < 0)))
    if not is_zeroed:
        again |= touched & stored & (more < 0) & is_zero
    taken = touched & ~again & ~is_empty
    summed = pc.if_else(pa.array(taken), total, pa.scalar(None, total.type)).cast(old.type)
    value = pc.if_else(pa.array(taken), summed, old)
    if is_zeroed:
        value = pc.fill_null(value, _zero(old.type))
    is_kept = ~touched & stored & ~is_null
    if is_zeroed:  # 0 says nothing: there may be no value
        proves = (taken & ~is_zero) | (is_kept & ~_true(pc.equal(old, _zero(old.type))))
    else:
        proves = (taken & (~is_zero | (more >= 0))) | is_kept
    return MergedColumn(value, again, proves)


def _zero(type_: pa.DataType) -> pa.Scalar:
    return pa.scalar(Decimal(0) if pa.types.is_decimal(type_) else 0, type_)


def _wide(values: pa.Array, wide: pa.DataType) -> pa.Array:
    return (
        values.cast(wide)
        if pa.types.is_decimal(values.type)
        else values.cast(pa.decimal128(38, 0)).cast(wide)
    )


def fits_in(total: pa.Array, type_: pa.DataType) -> Mask:
    """Which numbers a column of the type has room for; NULL has none."""
    if pa.types.is_decimal(type_):
        digits, scale = type_.precision - type_.scale, total.type.scale
        most = pa.scalar("9" * max(digits, 1) + ("." + "9" * scale if scale else "")).cast(total.type)
        if digits == 0:
            most = pa.scalar("0." + "9" * scale).cast(total.type)
        least = pc.negate(most)
    else:
        most, least = (pa.scalar(str(one)).cast(total.type) for one in (_LONG_LIMIT - 1, -_LONG_LIMIT))
    return _true(pc.and_(pc.less_equal(total, most), pc.greater_equal(total, least)))


def merge_extreme(group: Group, at: int, old: pa.Array, *, is_max: bool) -> MergedColumn:
    """`old`: the stored extremes."""
    shown = old.type
    kind = pa.int8() if pa.types.is_boolean(shown) else shown  # booleans have no order in Arrow
    now, added, removed = (
        one.cast(shown).cast(kind) for one in (old, group.part(f"p{at}"), group.part(f"q{at}"))
    )
    better: Callable[[pa.Array, pa.Array], Any] = pc.greater if is_max else pc.less
    has_now, has_added, has_removed = (_true(pc.is_valid(one)) for one in (now, added, removed))
    reaches = has_removed & ~_true(better(now, removed))  # also where nothing is stored
    takes_added = has_added & (~has_now | ~_true(better(now, added)))
    is_contradiction = has_removed & (~has_now | _true(better(removed, now)))
    again = is_contradiction | (reaches & ~takes_added)
    value = pc.if_else(pa.array(takes_added), added, now).cast(shown)
    return MergedColumn(value, again, _true(pc.is_valid(value)) & ~again)


def _true(values: Any) -> Mask:  # noqa: ANN401 - an array or a chunked one
    """NULL is false."""
    return np.asarray(pc.fill_null(values, False), dtype=bool)
