"""Reads with conditions give the rows for which they hold, and open no other files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from tablestore_engine.store.read.scan import ScanPlan
from tablestore_engine.store.read.text_condition import TextCondition
from tablestore_engine.store.table_store import TableStore
from tests.unit.store.table_world import delete, make_table, put, row
from tests.unit.store.test_changelog import foreign_level_zero


def read_where(
    store: TableStore, plan: ScanPlan, where: str, columns: Sequence[str] | None = None
) -> pa.Table:
    """The rows that a filter text is TRUE of."""
    return store.read_matching(plan, TextCondition(where).bind(plan.schema), columns)


def test_rows_of_a_partition_and_a_key_without_the_other_files(tmp_path: Path) -> None:
    """Partition, key range and bucket decide before files are opened: those that cannot match may be gone."""
    store = make_table(
        tmp_path,
        keys=("id", "dt"),
        partitions=("dt",),
        columns={"id": "INT", "dt": "STRING", "n": "INT"},
        options={"bucket": "2"},
    )
    put(store, *[{"id": number, "dt": dt, "n": number} for number in range(10) for dt in ("x", "y")])
    put(store, {"id": 3, "dt": "x", "n": 33})
    plan = store.plan_scan()
    where = "dt = 'x' AND ID IN (3, 4)"
    wanted = list(TextCondition(where).bind(store.schema).prune(plan.files))
    for file in (one for one in plan.files if one not in wanted):
        Path(file.path).unlink()
    assert read_where(store, plan, where).sort_by("id").to_pylist() == [
        {"id": 3, "dt": "x", "n": 33},
        {"id": 4, "dt": "x", "n": 4},
    ]
    assert read_where(store, plan, f"{where} AND n > 4", ["id"]).to_pylist() == [{"id": 3}]
    assert {file.partition for file in wanted} == {("x",)}


def test_null_and_dead_rows(tmp_path: Path) -> None:
    """NULL is in no comparison and is asked for with IS NULL; rows that were replaced or deleted stay out."""
    store = make_table(tmp_path)
    put(store, row(1, n=None), row(2, n=2), row(3, n=3))
    put(store, row(2, n=20))
    delete(store, row(3))
    plan = store.plan_scan()

    def ids(where: str) -> list[int]:
        return read_where(store, plan, where)["id"].to_pylist()

    assert ids("n IS NULL") == [1]
    assert ids("n IS NOT NULL") == [2]
    assert ids("n != 5") == [2]
    assert ids("n <= 3") == []
    assert ids("n IN (20, 3)") == [2]
    assert ids(f"n IN (20, {2**40})") == [2]  # more than an INT holds


def test_a_skipped_newer_version_does_not_bring_the_older_one_back(tmp_path: Path) -> None:
    """Tables read by merging: the value filter leaves the newer file out, and the older row stays dead."""
    store = make_table(tmp_path, options={"deletion-vectors.enabled": "false"})
    foreign_level_zero(store, [row(1, n=1), row(2, n=1)], [0, 0])
    foreign_level_zero(store, [row(1, n=9)], [2])
    plan, where = store.plan_scan(), "n = 1"
    assert len(list(TextCondition(where).bind(store.schema).prune(plan.files))) == 1
    assert read_where(store, plan, where)["id"].to_pylist() == [2]
