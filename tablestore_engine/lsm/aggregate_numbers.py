"""Aggregate functions that calculate: sum and product.

CHANGE     the aggregate functions sum and product
INVARIANT  whole numbers and decimals are exact or an error (TS1659); floats are added in the order of the versions.
PAIMON     up to 1.4 integers wrap around, later releases fail; a decimal that does not fit becomes NULL in all of them.
How        sums of up to 128 bits: a number is four words of 32 bits, the highest one signed; each word is summed in 64
           bits, then carries move up. Up to 2**31 numbers of a group fit.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore_engine.errors import FixData
from tablestore_engine.lsm.aggregate_function import AggregatedColumn, AggregateFunction, overflow, wrong_type
from tablestore_engine.lsm.key_order import Index, Mask
from tablestore_engine.lsm.version_groups import VersionGroups

Words = npt.NDArray[np.int64]
_LOW = np.int64(0xFFFF_FFFF)


@dataclass(frozen=True)
class Wide:
    """`high` * 2**64 + `low`."""

    low: npt.NDArray[np.uint64]
    high: Words

    @classmethod
    def of(cls, array: pa.Array) -> Wide:
        """Of integers or a decimal128, without NULL."""
        if pa.types.is_decimal(array.type):
            words = np.frombuffer(array.buffers()[1], dtype=np.uint64)[2 * array.offset :][: 2 * len(array)]
            return cls(words[0::2].copy(), words[1::2].view(np.int64).copy())
        values = array.to_numpy(zero_copy_only=False).astype(np.int64)
        return cls(values.view(np.uint64), values >> np.int64(63))

    def within(self, least: int, most: int) -> Mask:
        """Which are from `least` to `most`."""
        return self._at_most(most) & ~self._at_most(least - 1)

    def _at_most(self, bound: int) -> Mask:
        high, low = np.int64(bound >> 64), np.uint64(bound & (2**64 - 1))
        return np.asarray((self.high < high) | ((self.high == high) & (self.low <= low)))

    def to_arrow(self, kind: pa.DataType) -> pa.Array:
        """REQUIRES that the numbers fit the type."""
        if not pa.types.is_decimal(kind):
            return pa.array(self.low.view(np.int64)).cast(kind)
        words = np.empty(2 * len(self.low), dtype=np.uint64)
        words[0::2], words[1::2] = self.low, self.high.view(np.uint64)
        return pa.Array.from_buffers(kind, len(self.low), [None, pa.py_buffer(words)])


def exact_sums(numbers: Wide, negative: Mask, starts: Index) -> tuple[Wide, Mask]:
    """The sum of each group, and whether it fits 128 bits; numbers of `negative` places are subtracted."""
    short = numbers.low.view(np.int64)
    longest = int(np.diff(np.append(starts, len(short))).max(initial=1))
    bound = 2**62 // longest
    if bool(numbers.within(-bound, bound).all()):  # then 64 bits are enough for every sum
        plain = np.add.reduceat(np.where(negative, -short, short), starts)
        return Wide(plain.view(np.uint64), plain >> np.int64(63)), np.ones(len(plain), dtype=np.bool_)
    sign = np.where(negative, np.int64(-1), np.int64(1))
    words = (
        (numbers.low & np.uint64(_LOW)).astype(np.int64),
        (numbers.low >> np.uint64(32)).astype(np.int64),
        numbers.high & _LOW,
        numbers.high >> np.int64(32),
    )
    sums = [np.add.reduceat(word * sign, starts) for word in words]
    for lower, upper in ((0, 1), (1, 2), (2, 3)):
        sums[upper] += sums[lower] >> np.int64(32)
        sums[lower] &= _LOW
    fits = (sums[3] >= -(2**31)) & (sums[3] < 2**31)
    low = sums[0].view(np.uint64) | (sums[1].view(np.uint64) << np.uint64(32))
    return Wide(low, (sums[3] << np.int64(32)) | sums[2]), fits


_INTEGER_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_FLOATS = ("FLOAT", "DOUBLE")
_LONG_GROUP = 64  # versions: longer ones are added key by key
_JAVA_INTEGERS = "Paimon up to 1.4 stores what is left of it after an overflow, later releases fail"
_JAVA_DECIMALS = "Paimon stores NULL"

Numbers = npt.NDArray[Any]
Step = Callable[[Numbers, Numbers, Mask], Numbers]


@dataclass(frozen=True)
class Sum(AggregateFunction):
    """NULL counts as nothing; a retraction is subtracted."""

    column: AggregatedColumn
    retracts = True

    def aggregate(self, values: pa.ChunkedArray, groups: VersionGroups) -> pa.ChunkedArray:
        """Raises FixData TS1659."""
        mine = groups.valid(values)
        if not len(mine.rows):
            return pa.chunked_array([pa.nulls(groups.count, values.type)])
        numbers = mine.values(values).combine_chunks()
        if self.column.type.root in _FLOATS:
            plain = numbers.to_numpy(zero_copy_only=False)
            signed = np.where(mine.retracts, -plain, plain)
            return mine.spread(pa.array(_added(signed, mine), values.type))
        sums, fits = exact_sums(Wide.of(numbers), mine.retracts, mine.starts)
        least, most = _bounds(self.column)
        if not bool((fits & sums.within(least, most)).all()):
            raise _overflow(self.column, "sum")
        return mine.spread(sums.to_arrow(values.type))


@dataclass(frozen=True)
class Product(AggregateFunction):
    """NULL counts as nothing; a retraction divides, whole numbers without a remainder."""

    column: AggregatedColumn
    retracts = True

    def aggregate(self, values: pa.ChunkedArray, groups: VersionGroups) -> pa.ChunkedArray:
        """Raises FixData TS1659."""
        mine = _from_first_addition(groups.valid(values))
        if not len(mine.rows):
            return pa.chunked_array([pa.nulls(groups.count, values.type)])
        numbers, root = mine.values(values).combine_chunks(), self.column.type.root
        if root in _FLOATS:
            plain = numbers.to_numpy(zero_copy_only=False)
            with np.errstate(all="ignore"):  # infinite and NaN, as in Java
                made = in_order(plain, mine, lambda a, b, away: np.where(away, a / b, a * b))
            return mine.spread(pa.array(made, values.type))
        exact = np.array(numbers.to_pylist(), dtype=object)
        divided = _decimal_step(self.column) if root == "DECIMAL" else _integer_step(self.column)
        return mine.spread(pa.array(list(in_order(exact, mine, divided)), values.type))


def in_order(values: Numbers, groups: VersionGroups, step: Step) -> Numbers:
    """The values of each group put together from the oldest on: round r takes the r-th version of all that have it."""
    made, at, rank = values[groups.starts].copy(), np.arange(len(groups.starts)), 1
    while True:
        at = at[groups.sizes[at] > rank]
        if not len(at):
            return made
        places = groups.starts[at] + rank
        made[at] = step(made[at], values[places], groups.retracts[places])
        rank += 1


def _added(signed: Numbers, groups: VersionGroups) -> Numbers:
    """Floats in the order of the versions, as Java rounds them: pairwise sums would differ in the last digit."""
    is_long = groups.sizes > _LONG_GROUP
    if not is_long.any():
        return in_order(signed, groups, lambda a, b, _away: a + b)
    short = groups.only(np.repeat(~is_long, groups.sizes))
    made = np.empty(len(groups.starts), dtype=signed.dtype)
    if len(short.rows):
        kept = signed[np.repeat(~is_long, groups.sizes)]
        made[~is_long] = in_order(kept, short, lambda a, b, _away: a + b)
    for number in np.flatnonzero(is_long):
        start = groups.starts[number]
        made[number] = np.add.accumulate(signed[start : start + groups.sizes[number]])[-1]
    return made


def _from_first_addition(groups: VersionGroups) -> VersionGroups:
    """Without retractions before the first addition: nothing is there to divide."""
    if not groups.retracts.any() or not len(groups.rows):
        return groups
    seen = np.cumsum(~groups.retracts)
    before: Index = np.repeat(seen[groups.starts] - (~groups.retracts)[groups.starts], groups.sizes)
    return groups.only(seen > before)


def _integer_step(column: AggregatedColumn) -> Step:
    least, most = _bounds(column)

    def step(made: Numbers, values: Numbers, away: Mask) -> Numbers:
        found = made.copy()
        for number, (a, b, divides) in enumerate(zip(made, values, away, strict=True)):
            if divides and b == 0:
                raise _by_zero(column)
            found[number] = _quotient(a, b) if divides else a * b
            if not least <= found[number] <= most:
                raise _overflow(column, "product")
        return found

    return step


def _quotient(a: int, b: int) -> int:
    """Towards zero, as Java divides."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _decimal_step(column: AggregatedColumn) -> Step:
    scale = column.type.scale or 0
    digits, unit = (column.type.precision or 38) - scale, decimal.Decimal(1).scaleb(-scale)
    context = decimal.Context(prec=120, rounding=decimal.ROUND_HALF_UP)

    def step(made: Numbers, values: Numbers, away: Mask) -> Numbers:
        found = made.copy()
        for number, (a, b, divides) in enumerate(zip(made, values, away, strict=True)):
            if divides and not b:
                raise _by_zero(column)
            exact = context.divide(a, b) if divides else context.multiply(a, b)
            if divides and context.multiply(exact, b) != a:
                raise _inexact(column)
            found[number] = exact.quantize(unit, context=context)
            if abs(found[number]) >= decimal.Decimal(10) ** digits:
                raise _overflow(column, "product")
        return found

    return step


def _bounds(column: AggregatedColumn) -> tuple[int, int]:
    if column.type.root == "DECIMAL":
        most = 10 ** (column.type.precision or 38) - 1
        return -most, most
    bits = _INTEGER_BITS[column.type.root]
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def _overflow(column: AggregatedColumn, function: str) -> FixData:
    java = _JAVA_DECIMALS if column.type.root == "DECIMAL" else _JAVA_INTEGERS
    return overflow(column, function, java)


def _by_zero(column: AggregatedColumn) -> FixData:
    return FixData(
        "TS1663",
        f"column {column.name}: a retraction of product divides by zero",
        why="product takes a value back by division; Paimon fails too",
        fix=f"set 'fields.{column.name}.ignore-retract' = 'true', or leave the retraction out",
    )


def _inexact(column: AggregatedColumn) -> FixData:
    return FixData(
        "TS1664",
        f"column {column.name}: a retraction of product has no exact result",
        why="product takes a value back by division, whose digits do not end; Paimon fails too",
        fix=f"set 'fields.{column.name}.ignore-retract' = 'true', or leave the retraction out",
    )


def make_number(column: AggregatedColumn, *, multiplies: bool) -> Sum | Product:
    """Raises FixRequest TS1662."""
    if column.type.root not in (*_INTEGER_BITS, "DECIMAL", *_FLOATS):
        raise wrong_type(column, "product" if multiplies else "sum", "a number")
    return Product(column) if multiplies else Sum(column)
