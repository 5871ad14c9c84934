"""Aggregate functions whose outcome is the value of one version: last, first, largest, smallest, and, or.

CHANGE     the aggregate functions last_value, last_non_null_value, first_value, first_non_null_value, max, min,
           bool_and and bool_or
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tablestore_engine.lsm.aggregate_function import AggregatedColumn, AggregateFunction, wrong_type
from tablestore_engine.lsm.key_order import fixed_words, order_frame, order_permutation, starts_of_groups
from tablestore_engine.lsm.version_groups import NO_ROW, VersionGroups, pick_values


@dataclass(frozen=True)
class Last(AggregateFunction):
    """The newest value; `skips_null`: of those that are not NULL. A retraction of it leaves NULL."""

    skips_null: bool
    retracts = True
    is_ordered = True

    def aggregate(self, values: pa.ChunkedArray, groups: VersionGroups) -> pa.ChunkedArray:
        """The value of the last version that counts, unless it retracts."""
        mine = groups.valid(values) if self.skips_null else groups
        if mine.late is not None and mine.late.any():
            mine = _late_where_nothing_is(mine) if self.skips_null else mine.only(~mine.late)
        found = mine.row_of_each(mine.ends)
        found[mine.present[mine.retracts[mine.ends]]] = NO_ROW
        return pick_values(values, found)


def _late_where_nothing_is(groups: VersionGroups) -> VersionGroups:
    """Without late versions, but for the first one after a retraction, or of a key that has no others."""
    assert groups.late is not None
    places = np.arange(len(groups.rows))
    last = np.maximum.reduceat(np.where(groups.late, -1, places), groups.starts)
    last_of = np.repeat(last, groups.sizes)
    counts = groups.late & ~groups.retracts & (places > last_of)
    first = np.minimum.reduceat(np.where(counts, places, len(places)), groups.starts)
    is_empty = (last_of < 0) | groups.retracts[last_of]
    return groups.only(~groups.late | (is_empty & (places == np.repeat(first, groups.sizes))))


@dataclass(frozen=True)
class First(AggregateFunction):
    """The oldest value; `skips_null`: of those that are not NULL."""

    skips_null: bool
    is_ordered = True

    def aggregate(self, values: pa.ChunkedArray, groups: VersionGroups) -> pa.ChunkedArray:
        """The value of the first version that counts."""
        mine = groups.late_first()
        mine = mine.valid(values) if self.skips_null else mine
        return pick_values(values, mine.row_of_each(mine.starts))


@dataclass(frozen=True)
class Extreme(AggregateFunction):
    """The largest or smallest value in the order of keys, NULL as nothing."""

    largest: bool

    def aggregate(self, values: pa.ChunkedArray, groups: VersionGroups) -> pa.ChunkedArray:
        """The first version with that value."""
        mine = groups.valid(values)
        if not len(mine.rows):
            return pick_values(values, mine.row_of_each(mine.starts))
        frame = order_frame([mine.values(values)])
        words = fixed_words(frame)
        if words is None:
            order = order_permutation(frame)
            words = np.empty(len(order), dtype=np.int64)
            words[order] = np.cumsum(starts_of_groups(frame[order]))
        best = (np.maximum if self.largest else np.minimum).reduceat(words, mine.starts)
        places = np.arange(len(words))
        hits = np.where(words == np.repeat(best, mine.sizes), places, len(words))
        return pick_values(values, mine.row_of_each(np.minimum.reduceat(hits, mine.starts)))


def make_extreme(column: AggregatedColumn, *, largest: bool) -> Extreme:
    """Raises FixRequest TS1662."""
    if not column.type.is_atomic:
        raise wrong_type(column, "max" if largest else "min", "a type whose values have an order")
    return Extreme(largest)


def make_boolean(column: AggregatedColumn, *, largest: bool) -> Extreme:
    """`and` is the smallest, `or` the largest of false < true. Raises FixRequest TS1662."""
    if column.type.root != "BOOLEAN":
        raise wrong_type(column, "bool_or" if largest else "bool_and", "BOOLEAN")
    return Extreme(largest)
