"""Conditions as values that files can be pruned by, and their truth for rows.

CHANGE     the conditions of file pruning
Values     in the form of files/comparable_values.py.
INVARIANT  three-valued as in SQL: a row with NULL fulfils no Compare, OneOf, Prefix or Like, nor the negation of one.
INVARIANT  floats as in Spark: NaN is above every number. A NaN is never a value of a condition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.format.data_type import INTEGER_ROOTS, TIMESTAMP_ROOTS, DataType
from tablestore_engine.store.files.comparable_values import Comparable, comparable_column

Operator = Literal["=", "!=", "<", "<=", ">", ">="]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Compare:
    """`column operator value`."""

    column: str
    operator: Operator
    value: Comparable


@dataclass(frozen=True)
class OneOf:
    """`column in (values)`."""

    column: str
    values: frozenset[Comparable]

    @cached_property
    def ordered(self) -> Sequence[Any]:
        """The values, ascending."""
        return sorted(self.values)


@dataclass(frozen=True)
class Prefix:
    """A text that starts with `text`."""

    column: str
    text: str


@dataclass(frozen=True)
class Like:
    """A text that matches an SQL pattern of `%` and `_`, or with `negated` one that does not; without escapes."""

    column: str
    pattern: str
    negated: bool = False

    @property
    def prefix(self) -> str:
        """What each matching text begins with."""
        return re.split("[%_]", self.pattern, maxsplit=1)[0]


@dataclass(frozen=True)
class Missing:
    """`column is null`, or with `negated` that it is not."""

    column: str
    negated: bool = False


@dataclass(frozen=True)
class And:
    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Or:
    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Always:
    """True of every row, or may be (ANYTHING); of none (NOTHING)."""

    holds: bool


Predicate = Compare | OneOf | Prefix | Like | Missing | And | Or | Always
ANYTHING = Always(True)
NOTHING = Always(False)

_OPPOSITE: Mapping[Operator, Operator] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def negate(wanted: Predicate) -> Predicate:
    """What holds where `wanted` is FALSE, or more; ANYTHING stays ANYTHING, since nobody knows its other side."""
    match wanted:
        case Compare(column, operator, value):
            return Compare(column, _OPPOSITE[operator], value)
        case OneOf(column, values):
            return And(
                (
                    Missing(column, negated=True),
                    *(Compare(column, "!=", value) for value in sorted(values, key=repr)),
                )
            )
        case Prefix(column):
            return Missing(column, negated=True)
        case Like(column, pattern, negated):
            return Like(column, pattern, not negated)
        case Missing(column, negated):
            return Missing(column, not negated)
        case And(parts):
            return Or(tuple(negate(part) for part in parts))
        case Or(parts):
            return And(tuple(negate(part) for part in parts))
        case Always():
            return ANYTHING


def pinned(wanted: Predicate, column: str) -> frozenset[Comparable] | None:
    """The values that the column has in every row that fulfils the condition; None when it may have any."""
    match wanted:
        case Compare(name, "=", value) if name == column:
            return frozenset([value])
        case OneOf(name, values) if name == column:
            return values
        case Always(holds=False):
            return frozenset()
        case And(parts):
            found = [one for part in parts if (one := pinned(part, column)) is not None]
            return reduce(frozenset.intersection, found) if found else None
        case Or(parts):
            each = [pinned(part, column) for part in parts]
            known = [one for one in each if one is not None]
            return frozenset(value for one in known for value in one) if len(known) == len(each) else None
        case _:
            return None


# ---- truth of rows -----------------------------------------------------------------------------------------

_KERNELS: Mapping[Operator, Callable[..., pa.ChunkedArray]] = {
    "=": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
}  # fmt: skip
_LISTED = (*INTEGER_ROOTS, "VARCHAR", "DATE", *TIMESTAMP_ROOTS)  # equal where they hash alike: -0.0 does not
_ABOVE: tuple[Operator, ...] = (">", ">=")


def matching(wanted: Predicate, rows: pa.Table, types: Mapping[str, DataType]) -> Mask:
    """For each row whether the condition is TRUE of it. REQUIRES comparable columns, but for Missing."""
    match wanted:
        case Always(holds):
            return np.full(rows.num_rows, holds)
        case And(parts):
            return reduce(
                np.logical_and,
                (matching(p, rows, types) for p in parts),
                np.ones(rows.num_rows, np.bool_),
            )
        case Or(parts):
            return reduce(
                np.logical_or,
                (matching(p, rows, types) for p in parts),
                np.zeros(rows.num_rows, np.bool_),
            )
        case Missing(column, negated):
            found = rows.column(column).is_valid() if negated else rows.column(column).is_null()
            return np.asarray(found)
        case OneOf(column, values) if len(values) > 1 and types[column].root in _LISTED:
            stored = comparable_column(rows.column(column), types[column])
            if pa.types.is_integer(stored.type):
                return _listed_integers(stored, values)
            return _true(pc.is_in(stored, pa.array(list(values), stored.type)))
        case OneOf(column, values):
            each = tuple(Compare(column, "=", value) for value in values)
            return matching(Or(each), rows, types)
        case Prefix(column, text):
            return _true(pc.starts_with(rows.column(column), text))
        case Like(column, pattern, negated):
            found = pc.match_like(rows.column(column), pattern)
            return _true(pc.invert(found) if negated else found)
        case Compare(column, operator, value):
            stored = comparable_column(rows.column(column), types[column])
            if operator in _ABOVE and pa.types.is_floating(
                stored.type
            ):  # NaN, which is below no number, is above all
                return _true(pc.invert(_KERNELS[_OPPOSITE[operator]](stored, pa.scalar(value))))
            return _true(_KERNELS[operator](stored, pa.scalar(value)))


def _true(answer: pa.ChunkedArray) -> Mask:
    return np.asarray(pc.fill_null(answer, False) if answer.null_count else answer)


_TABLE_MAX = 1 << 22  # bytes of a table of truths; beyond, numbers are hashed


def _listed_integers(stored: pa.ChunkedArray, values: frozenset[Any]) -> Mask:
    """Which rows have one of the values. A table of truths takes a tenth of the time of a hash table."""
    low, high = min(values), max(values)
    if high - low >= _TABLE_MAX or abs(low) > 1 << 61:  # no difference may overflow into the table
        return _true(pc.is_in(stored.cast(pa.int64()), pa.array(list(values), pa.int64())))
    truths = np.zeros(high - low + 3, np.bool_)  # of the numbers, and below and above them
    truths[np.fromiter(values, np.int64) - (low - 1)] = True
    numbers = np.asarray(pc.fill_null(stored, 0) if stored.null_count else stored).astype(np.int64)
    found: Mask = np.take(truths, numbers - (low - 1), mode="clip")
    return found & np.asarray(stored.is_valid()) if stored.null_count else found
