"""Rows of the first workload: 4 M rows x 8 columns with shuffled BIGINT keys, then upserts of 200 k.

INVARIANT  a batch is a function of its seed alone; keys are unique within a batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

CITIES = ("Berlin", "Lagos", "Lima", "Osaka", "Oslo", "Pune", "Quito", "Turin")
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("city", pa.string()),
        ("amount", pa.float64()),
        ("score", pa.float64()),
        ("price", pa.decimal128(18, 2)),
        ("updated_at", pa.timestamp("us")),
        ("quantity", pa.int32()),
    ]
)


@dataclass(frozen=True)
class Sizes:
    """How much is run; the default is the workload of docs/performance.md."""

    base_rows: int = 4_000_000
    batch_rows: int = 200_000
    batches: int = 5
    small_rows: int = 100
    small_batches: int = 10


def rows_of(keys: np.ndarray, seed: int) -> pa.Table:
    """Rows for the given keys."""
    rng = np.random.default_rng(seed)
    count = len(keys)
    cents = rng.integers(0, 10_000_000, count)
    names = pc.binary_join_element_wise(
        "customer", pc.cast(pa.array(rng.integers(0, 500_000, count)), pa.string()), "-"
    )
    return pa.table(
        [
            pa.array(keys, pa.int64()),
            names,
            pa.DictionaryArray.from_arrays(
                pa.array(rng.integers(0, 8, count), pa.int8()), pa.array(CITIES)
            ).cast(pa.string()),
            pa.array(rng.random(count)),
            pa.array(rng.standard_normal(count)),
            pc.multiply(pa.array(cents).cast(pa.decimal128(19, 0)), pa.scalar(Decimal("0.01"))).cast(
                pa.decimal128(18, 2)
            ),
            pa.array(1_700_000_000_000_000 + rng.integers(0, 10**12, count)).cast(pa.timestamp("us")),
            pa.array(rng.integers(0, 1000, count), pa.int32()),
        ],
        schema=SCHEMA,
    )


def base_rows(sizes: Sizes) -> pa.Table:
    """The load."""
    return rows_of(np.random.default_rng(1).permutation(sizes.base_rows), seed=2)


def upsert_rows(sizes: Sizes, batch: int, *, rows: int | None = None) -> pa.Table:
    """Batch 0, 1, … on top of the load; new keys continue after the stored ones."""
    count = sizes.batch_rows if rows is None else rows
    rng = np.random.default_rng(1000 + batch)
    fresh = count // 5
    start = sizes.base_rows + batch * sizes.batch_rows
    old = rng.choice(sizes.base_rows, count - fresh, replace=False)
    return rows_of(rng.permutation(np.concatenate([old, np.arange(start, start + fresh)])), seed=5000 + batch)


def checksum(rows: pa.Table) -> tuple[int, int, int]:
    """(rows, sum of id, sum of quantity)."""
    return rows.num_rows, pc.sum(rows["id"]).as_py() or 0, pc.sum(rows["quantity"]).as_py() or 0


def merge(tables: list[pa.Table]) -> pa.Table:
    """Rows of the table after upserting `tables` in order, computed without any table format."""
    keys = np.concatenate([t["id"].to_numpy() for t in tables])
    _, last = np.unique(keys[::-1], return_index=True)
    return pa.concat_tables(tables).take(pa.array(len(keys) - 1 - last))


def merge_expected(tables: list[pa.Table]) -> tuple[int, int, int]:
    """Checksum of what `merge` gives."""
    return checksum(merge([t.select(["id", "quantity"]) for t in tables]))


def write_rows(folder: Path, sizes: Sizes) -> tuple[Path, list[Path], list[Path]]:
    """Files of the load, of the upserts, and of the upserts of a few rows (for two ways of writing them)."""
    base = folder / "base.parquet"
    pq.write_table(base_rows(sizes), base, row_group_size=500_000, compression="zstd")
    batches = []
    for number in range(sizes.batches):
        path = folder / f"batch{number}.parquet"
        pq.write_table(upsert_rows(sizes, number), path, compression="zstd")
        batches.append(path)
    small = []
    for number in range(sizes.small_batches * 2):
        path = folder / f"small{number}.parquet"
        rows = upsert_rows(sizes, sizes.batches + number, rows=sizes.small_rows)
        pq.write_table(rows, path, compression="zstd")
        small.append(path)
    return base, batches, small
