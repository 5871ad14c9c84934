"""Options of writing that change what lies on disk or which row wins."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablestore_engine.format.snapshot import CommitKind
from tests.unit.store.table_world import make_table, put, row, rows_of


@pytest.mark.parametrize(("order", "winner"), [("ascending", "late"), ("descending", "early")])
def test_the_sort_order_says_which_end_is_newest(tmp_path: Path, order: str, winner: str) -> None:
    """sequence.field.sort-order: of two versions the one with the larger, or the smaller, sequence stays."""
    store = make_table(tmp_path, options={"sequence.field": "n", "sequence.field.sort-order": order})
    put(store, row(1, "late", 9))
    put(store, row(1, "early", 3))
    assert [one["name"] for one in rows_of(store)] == [winner]


def test_a_higher_zstd_level_makes_smaller_files(tmp_path: Path) -> None:
    """file.compression.zstd-level reaches the writer."""
    sizes = []
    for level in ("1", "9"):
        store = make_table(tmp_path / level, options={"file.compression.zstd-level": level})
        put(store, *(row(n, f"{n * 7919 % 1000} of {n * 104729 % 5000}") for n in range(5000)))
        sizes.append(sum(path.stat().st_size for path in (tmp_path / level).rglob("data-*")))
    assert sizes[1] < sizes[0]


def test_bounded_amplification_folds_before_the_next_write(tmp_path: Path) -> None:
    """compaction.max-size-amplification-percent: a table that sets it folds its runs, one that does not keeps them."""
    kinds = {}
    for name, options in (("off", {}), ("on", {"compaction.max-size-amplification-percent": "50"})):
        store = make_table(tmp_path / name, options=options)
        for number in range(4):
            put(store, *(row(number * 100 + n) for n in range(50)))
        kinds[name] = [one.commit_kind for one in store.snapshots.list_all()]
    assert CommitKind.COMPACT not in kinds["off"]
    assert CommitKind.COMPACT in kinds["on"]
