"""The benchmark beside other table formats: the rows that must come out, and the verdicts of its table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from benchmarks.data import checksum, merge, rows_of
from benchmarks.spark_peers import OPERATIONS, table


def test_merge_keeps_the_last_row_of_each_key() -> None:
    """A dictionary filled row by row has the same rows."""
    tables = [rows_of(np.array(keys), seed) for seed, keys in enumerate(([3, 1, 2], [2, 4], [2, 1]))]
    expected = {row["id"]: row for one in tables for row in one.to_pylist()}
    merged = merge(tables)
    assert merged.sort_by("id").to_pylist() == [expected[key] for key in sorted(expected)]
    assert checksum(merged) == (4, 10, sum(row["quantity"] for row in expected.values()))


def test_table_names_the_first_system_and_missed_goals() -> None:
    """The least median is bold; being first and reaching the goal are separate verdicts."""
    medians = {"ours": 2.0, "delta": 1.0, "plain": 4.0}
    found = {
        name: {"seconds": {key: [taken, taken, taken] for key in OPERATIONS}, "files": 1, "megabytes": 2}
        for name, taken in medians.items()
    }
    lines = {line.split(" | ")[0].strip("| "): line for line in table(found).splitlines()}
    assert (
        lines["load of a Parquet file"]
        == "| load of a Parquet file | 2 | **1** | 4 | 0.50 | **no** | ≤ 0.95 ×, met |"
    )
    assert lines["one key"].endswith("| **no** | ≤ 0.05 s, **missed** |")


def test_rows_of_a_table_have_one_row_per_key() -> None:
    """`merge` of one table gives the table."""
    one = rows_of(np.array([5, 2, 9]), 1)
    assert pa.Table.equals(merge([one]).sort_by("id"), one.sort_by("id"))
