"""Rows of a part of a plan in the driver: Arrow columns by their ExprIds, and equal values of two of them.

INVARIANT  a value is the one that Spark has, to the bit: rows are chosen and put together, nothing is computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa

Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Values: TypeAlias = Any  # a chunked array of Arrow


@dataclass(frozen=True)
class TypedValues:
    """A column, and its type as Catalyst's JSON has it."""

    values: Values
    type: object


@dataclass(frozen=True)
class PlanRows:
    """`columns`: by ExprId, in the order of the rows' columns."""

    columns: Mapping[int, TypedValues]
    count: int

    def of(self, chosen: Mapping[int, TypedValues]) -> PlanRows:
        """The same rows with other columns."""
        return PlanRows(chosen, self.count)

    def take(self, index: pa.Array) -> PlanRows:
        """Rows by their numbers; of NULL a row of NULL."""
        taken = {
            one: TypedValues(found.values.take(index), found.type) for one, found in self.columns.items()
        }
        return PlanRows(taken, len(index))

    def filter(self, mask: np.ndarray[Any, np.dtype[np.bool_]]) -> PlanRows:
        """Rows for which it is true."""
        return self if mask.all() else self.take(pa.array(np.flatnonzero(mask)))

    def beside(self, other: PlanRows) -> PlanRows:
        """Each row beside that of the same number."""
        return self.of({**self.columns, **other.columns})

    def table(self, names: Sequence[str]) -> pa.Table:
        """By position."""
        return pa.table([one.values for one in self.columns.values()], names=list(names))


def rows_of_all(parts: Sequence[PlanRows]) -> PlanRows:
    """Rows of all parts, which have the same columns."""
    first = parts[0]
    columns = {
        one: TypedValues(
            pa.chunked_array(
                [chunk for part in parts for chunk in part.columns[one].values.chunks], found.values.type
            ),
            found.type,
        )
        for one, found in first.columns.items()
    }
    return PlanRows(columns, sum(part.count for part in parts))


def equal_rows(left: Sequence[Values], right: Sequence[Values]) -> tuple[Numbers, Numbers]:
    """Numbers of the rows of both sides with equal values; NULL equals nothing. REQUIRES types whose equal values are
    the same value.
    """
    if not len(left[0]) or not len(right[0]):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    places = [f"k{at}" for at in range(len(left))]
    sides = [
        pl.DataFrame({name: pl.from_arrow(one) for name, one in zip(places, values, strict=True)})
        for values in (left, right)
    ]
    found = sides[0].with_row_index("l").join(sides[1].with_row_index("r"), on=places, how="inner")
    return tuple(found[name].to_numpy().astype(np.int64) for name in ("l", "r"))  # type: ignore[return-value]


def codes_of(columns: Sequence[Values], count: int) -> tuple[Numbers, Numbers]:
    """(for each row the number of its group of equal values, where NULL equals NULL; the first row of each group).

    REQUIRES types whose equal values are the same value.
    """
    codes = None
    for one in columns:
        encoded = one.combine_chunks().dictionary_encode(null_encoding="encode")
        indices = np.asarray(encoded.indices, np.int64)
        if codes is None:
            codes = indices
            continue
        pairs = pa.array(codes * (len(encoded.dictionary) + 1) + indices).dictionary_encode()
        codes = np.asarray(pairs.indices, np.int64)
    if codes is None:
        codes = np.zeros(count, np.int64)
    first = np.zeros(codes.max() + 1 if count else 0, np.int64)
    first[codes[::-1]] = np.arange(count - 1, -1, -1)  # of equal codes the last assignment counts
    return codes, first
