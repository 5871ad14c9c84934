"""Signed rows of a result with a key, as rows to put and rows to delete.

INVARIANT  each key has one row before and after, or the query is wrong (TS1601): a key for which that does not follow
           from its signed rows and its stored row is evaluated again, so that the error is the full query's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tablestore_engine.format.row_kind import ROW_KIND_COLUMN, RowKind


@dataclass(frozen=True)
class StoredRows:
    """`rows`: stored ones of `keys`, in any order; the keys have the types of the stored columns."""

    keys: pa.Table
    rows: pa.Table


FindRows = Callable[[pa.Table], StoredRows]


@dataclass(frozen=True)
class MergedRows:
    """`rows`: columns of the result and a row kind, 0 put, 3 delete. `again`: keys to evaluate."""

    rows: pa.Table
    again: pa.Table


def merge_rows(found: pa.Table, names: Sequence[str], key: Sequence[str], find_rows: FindRows) -> MergedRows:
    """`found`: columns of the result, then `n`, how often more than before the result has the row, never 0."""
    rows, net = (
        found.drop_columns(["n"]).rename_columns(names),
        np.asarray(found.column("n").combine_chunks()),
    )
    keys, places = rows.select(key), [f"k{at}" for at in range(len(key))]  # users' names may be any
    frame = _frame(keys.rename_columns(places)).with_columns(
        pl.Series("n", net), pl.int_range(pl.len()).alias("at")
    )
    plus, minus = pl.col("n") > 0, pl.col("n") < 0
    of_key = frame.group_by(places, maintain_order=True).agg(
        plus.sum().alias("plus"), minus.sum().alias("minus"), (pl.col("n").abs().max() > 1).alias("many"),
        pl.col("at").filter(plus).first().alias("new"), pl.col("at").filter(minus).first().alias("gone"),
        pl.col("at").first().alias("at"),
    )  # fmt: skip
    is_null = has_null(keys.take(of_key["at"].to_arrow()))
    again = (of_key["many"] | (of_key["plus"] > 1) | (of_key["minus"] > 1)).to_numpy() | is_null
    is_first = ~again & (of_key["plus"] == 1).to_numpy() & (of_key["minus"] == 0).to_numpy()
    first = keys.take(pa.array(of_key["at"].to_numpy()[is_first]))
    stored = find_rows(first)
    again[np.flatnonzero(is_first)[np.asarray(pc.is_valid(positions_in(stored.keys, stored.rows, key)))]] = (
        True
    )
    puts = of_key.filter(~pl.Series(again) & (pl.col("plus") == 1))["new"].to_arrow()
    gone = of_key.filter(~pl.Series(again) & (pl.col("plus") == 0))["gone"].to_arrow()
    return MergedRows(
        pa.concat_tables([
            with_kind(rows.take(puts), RowKind.INSERT), with_kind(rows.take(gone), RowKind.DELETE),
        ]),
        keys.take(of_key.filter(pl.Series(again))["at"].to_arrow()),
    )  # fmt: skip


def positions_in(keys: pa.Table, rows: pa.Table, key: Sequence[str]) -> pa.Array:
    """For each key the number of its row, or NULL."""
    places = [f"k{at}" for at in range(len(key))]
    left = _frame(keys.select(key).rename_columns(places)).with_row_index("at")
    right = _frame(rows.select(key).rename_columns(places)).with_row_index("found")
    joined = left.join(right, on=places, how="left").sort("at")
    return joined["found"].to_arrow()


def _frame(rows: pa.Table) -> pl.DataFrame:
    found = pl.from_arrow(rows)
    assert isinstance(found, pl.DataFrame)
    return found


def has_null(keys: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """For each row whether a column is NULL."""
    found = np.zeros(keys.num_rows, dtype=bool)
    for column in keys.columns:
        found |= np.asarray(pc.is_null(column))
    return found


def with_kind(rows: pa.Table, kind: RowKind) -> pa.Table:
    """With a column of row kinds."""
    return rows.append_column(ROW_KIND_COLUMN, pa.array(np.full(rows.num_rows, kind, np.int8)))
