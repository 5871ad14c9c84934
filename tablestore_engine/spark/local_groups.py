"""Contributions to groups without a Spark job: signed rows that the driver has, added up in Arrow.

CHANGE     how the driver adds up few changed rows
INVARIANT  columns and values are those of delta_query.contributions: integration_tests/spark/test_local_groups.py
           compares both on random rows. Types are those that delta_root follows: no floats, no nested values.
WHY        two groupings are two shuffles, which Spark compiles and runs in 0.4 s of processor time for a hundred rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.queryplan.delta_root import COUNT, DISTINCT, GROUP, MAX, MIN, GroupColumn
from tablestore_engine.spark.merged_groups import Mask, fits_in
from tablestore_engine.spark.plan_rows import Numbers, codes_of

_SUM_DIGITS, _WIDE = 38, 60
_LONG_DIGITS, _DOUBLE_MAX = 18, 1 << 53  # digits of any LONG; up to here DOUBLE has each integer


def local_contributions(rows: pa.Table, columns: Sequence[GroupColumn]) -> pa.Table:
    """`rows`: values `x<i>_<j>`, conditions `f<i>` and signs `s`, as delta_query.columns_of names them."""
    return _Contributions(rows.combine_chunks(), columns).table()


def local_net(rows: pa.Table) -> pa.Table | None:
    """As net_rows; None for types of which equal values can differ."""
    *names, sign = rows.column_names
    if any(pa.types.is_floating(one.type) or pa.types.is_nested(one.type) for one in rows.schema):
        return None
    codes, first = codes_of([rows.column(name) for name in names], rows.num_rows)
    net = _summed(codes, len(first), np.asarray(rows.column(sign)))
    kept = np.flatnonzero(net)
    found = rows.select(names).take(pa.array(first[kept]))
    return found.append_column("n", pa.array(net[kept]))


class _Contributions:
    def __init__(self, rows: pa.Table, columns: Sequence[GroupColumn]) -> None:
        self._rows, self._columns = rows, columns
        self._signs = np.asarray(rows.column("s"), np.int64)
        keys = [rows.column(f"x{at}_0") for at, one in enumerate(columns) if one.how == GROUP]
        self._group, self._first = codes_of(keys, rows.num_rows)

    def table(self) -> pa.Table:
        found: dict[str, Any] = {}
        for at, one in enumerate(self._columns):
            if one.how == GROUP:
                found[f"g{at}"] = self._rows.column(f"x{at}_0").take(pa.array(self._first))
        found["n"] = pa.array(self._sum(self._signs))
        for at, one in enumerate(self._columns):
            if one.how == COUNT:
                found[f"v{at}"] = pa.array(self._sum(np.where(self._counted(at, one), self._signs, 0)))
            elif one.how not in (GROUP, MIN, MAX, DISTINCT):
                found |= self._sums(at, one)
        return pa.table(found | self._of_net())

    def _sum(self, values: Numbers) -> Numbers:
        return _summed(self._group, len(self._first), values)

    def _counted(self, at: int, column: GroupColumn) -> Mask:
        """Rows that count for a column."""
        found = np.ones(self._rows.num_rows, bool)
        for number in range(len(column.values)):
            found &= np.asarray(self._rows.column(f"x{at}_{number}").is_valid())
        if column.is_negative:
            value = self._rows.column(f"x{at}_0")
            zero = Decimal(0) if pa.types.is_decimal(value.type) else 0
            found &= _true(pc.less(value, pa.scalar(zero, value.type)))
        if column.condition is not None:
            found &= _true(self._rows.column(f"f{at}"))
        return found

    def _sums(self, at: int, column: GroupColumn) -> dict[str, Any]:
        counted = self._counted(at, column)
        rows = pa.array(np.flatnonzero(counted))
        signs, groups = self._signs[counted], self._group[counted]
        values = self._rows.column(f"x{at}_0").take(rows).combine_chunks()
        scale = values.type.scale if pa.types.is_decimal(values.type) else 0
        value = _small_sums(values, signs, groups, len(self._first), pa.decimal128(_SUM_DIGITS, scale))
        if value is None:
            value = self._wide_sums(values, signs, groups, scale)
        return {
            f"v{at}": value,
            f"m{at}": pa.array(_summed(groups, len(self._first), signs)),
            f"c{at}": pa.array(_summed(groups, len(self._first), np.ones(len(groups), np.int64))),
        }

    def _wide_sums(self, values: pa.Array, signs: Numbers, groups: Numbers, scale: int) -> pa.Array:
        """NULL where there is no row, or the sum has more digits than Spark's."""
        narrow = pa.decimal128(_SUM_DIGITS, scale)
        wide = values.cast(narrow).cast(pa.decimal256(_WIDE, scale))
        signed = pc.if_else(pa.array(signs > 0), wide, pc.negate(wide))
        added = pa.table({"g": groups, "v": signed}).group_by("g").aggregate([("v", "sum")])
        index = np.full(len(self._first), -1)
        index[np.asarray(added.column("g"))] = np.arange(added.num_rows)
        total = added.column("v_sum").take(pa.array(index, mask=index < 0)).combine_chunks()
        fits = pa.array(fits_in(total, narrow))
        return pc.if_else(fits, total, pa.scalar(None, total.type)).cast(narrow)

    # ---- extremes and distinct values: of rows in which both signs have cancelled ---------------------------

    def _of_net(self) -> dict[str, Any]:
        asked = [(at, one) for at, one in enumerate(self._columns) if one.how in (MIN, MAX, DISTINCT)]
        if not asked:
            return {}
        shown = {at: self._shown(at, one) for at, one in asked}
        codes, first = codes_of(
            [self._numbers(self._group), *(each for one in shown.values() for each in one)],
            self._rows.num_rows,
        )
        net, groups = _summed(codes, len(first), self._signs), self._group[first]
        found: dict[str, Any] = {}
        for at, one in asked:
            values = [each.take(pa.array(first)) for each in shown[at]]
            if one.how == DISTINCT:
                found |= self._distinct(at, values, groups, net)
            else:
                for name, chosen in ((f"p{at}", net > 0), (f"q{at}", net < 0)):
                    found[name] = self._extreme(values[0], groups, chosen, is_max=one.how == MAX)
        return found

    def _shown(self, at: int, column: GroupColumn) -> list[pa.ChunkedArray]:
        """The values of a column, NULL where they do not count."""
        mask = pa.array(self._counted(at, column))
        values = [self._rows.column(f"x{at}_{number}") for number in range(len(column.values))]
        return [pc.if_else(mask, one, pa.scalar(None, one.type)) for one in values]

    def _numbers(self, values: Numbers) -> pa.ChunkedArray:
        return pa.chunked_array([values])

    def _distinct(
        self, at: int, values: Sequence[pa.ChunkedArray], groups: Numbers, net: Numbers
    ) -> dict[str, Any]:
        codes, first = codes_of([self._numbers(groups), *values], len(groups))
        moved = _summed(codes, len(first), net)
        is_value = np.asarray(values[0].is_valid())
        came = (moved > 0) & is_value[first]
        of_row = moved[codes]

        def count(of: Numbers, mask: Mask) -> pa.Array:
            return pa.array(_summed(of, len(self._first), mask.astype(np.int64)))

        return {
            f"v{at}": count(groups[first], came),
            f"c{at}": count(groups, is_value & (of_row != 0)),
            f"m{at}": count(groups, is_value & (of_row < 0)),
        }

    def _extreme(self, values: pa.ChunkedArray, groups: Numbers, chosen: Mask, *, is_max: bool) -> pa.Array:
        """Of the chosen values of each group, NULL of none."""
        rows = np.flatnonzero(chosen & np.asarray(values.is_valid()))
        kept = values.take(pa.array(rows)).combine_chunks()
        ordered = kept.cast(pa.int8()) if pa.types.is_boolean(kept.type) else kept
        order = np.asarray(pc.array_sort_indices(ordered, order="ascending" if is_max else "descending"))
        best = np.full(len(self._first), -1)
        best[groups[rows[order]]] = order  # of equal numbers the last assignment counts
        return kept.take(pa.array(best, mask=best < 0))


def _summed(groups: Numbers, count: int, values: Numbers) -> Numbers:
    """Sums by group of values that are -1, 0 or 1, or few: exact, as no sum has more than 53 bits."""
    return np.bincount(groups, weights=values, minlength=count).astype(np.int64)


def _true(values: Any) -> Mask:  # noqa: ANN401 - an array or a chunked one
    """NULL is false."""
    return np.asarray(pc.fill_null(values, False), dtype=bool)


def _small_sums(
    values: pa.Array, signs: Numbers, groups: Numbers, count: int, type_: pa.DataType
) -> pa.Array | None:
    """Sums by group of numbers that stay exact as DOUBLE while they are added; NULL of no row. None: others. REQUIRES
    no NULL.
    """
    if pa.types.is_decimal(values.type):
        if values.type.precision > _LONG_DIGITS or values.type.bit_width != 128:
            return None
        # the low half is the number, if it has so few digits
        halves = np.frombuffer(values.buffers()[1], np.int64)
        numbers = halves[2 * values.offset : 2 * (values.offset + len(values)) : 2]
    else:
        numbers = np.asarray(values, np.int64)
    if not len(numbers) or len(numbers) * max(int(numbers.max()), -int(numbers.min())) >= _DOUBLE_MAX:
        return None
    added = np.bincount(groups, weights=numbers * signs, minlength=count).astype(np.int64)
    has_rows = pa.array(np.bincount(groups, minlength=count) > 0)
    whole = pa.Array.from_buffers(
        type_, count, [None, pa.py_buffer(np.stack([added, added >> 63], axis=1).tobytes())]
    )
    return pc.if_else(has_rows, whole, pa.scalar(None, type_))
