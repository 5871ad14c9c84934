"""Merge-on-read under engines that combine values: plans show rows that no file has, and the scratch is cleared."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.errors import Unsupported
from tablestore_engine.format.snapshot import CommitKind, Snapshot
from tablestore_engine.lsm.merge_on_read import sections_of
from tablestore_engine.store.changelog import ChangelogReader
from tablestore_engine.store.files import row_budget
from tablestore_engine.store.read.scan import ScanPlan
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.warehouse.write.converted_schema import plan_conversion
from tests.garbage import collect_young
from tests.unit.store.table_world import make_table, put, row, rows_of
from tests.unit.store.test_changelog import _foreign, foreign_level_zero, foreign_overwrite

SUMS = {
    "deletion-vectors.enabled": "false",
    "changelog-producer": "none",
    "merge-engine": "aggregation",
    "fields.n.aggregate-function": "sum",
    "num-levels": "6",
}
INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = range(4)


def sums_table(root: Path, **options: str) -> TableStore:
    """Three commits of another engine to level 0; key 3 is retracted once more than it was added."""
    store = make_table(
        root, options={**SUMS, **{key.replace("_", "-"): value for key, value in options.items()}}
    )
    foreign_level_zero(store, [row(1, "a", 5), row(2, "b", 1), row(9, "z", 1)], [INSERT] * 3)
    foreign_level_zero(store, [row(1, "c", 2), row(3, "d", 4)], [UPDATE_AFTER, DELETE])
    foreign_level_zero(store, [row(1, None, -1), row(2, "b", 1)], [INSERT, DELETE])
    return store


MERGED = [row(1, "c", 6), row(2, None, 0), row(9, "z", 1)]


def copies(plan: ScanPlan) -> set[Path]:
    """Files of the plan that are no files of the table."""
    return {Path(file.path) for file in plan.files if file.fileio is not None}


def test_rows_are_made_of_all_versions(tmp_path: Path) -> None:
    """Sums over three files; a lone retraction is no row; every snapshot has its own rows; keys find them."""
    store = sums_table(tmp_path)
    assert rows_of(store) == MERGED
    assert rows_of(store, 1) == [row(1, "a", 5), row(2, "b", 1), row(9, "z", 1)]
    plan = store.plan_scan()
    assert plan.visible_rows == 3
    newest = store.latest()
    assert newest is not None
    keys = pa.table({"id": pa.array([1, 3], pa.int64())})
    assert store.find_rows(newest, keys).to_pylist() == [row(1, "c", 6)]
    assert [one.to_pylist() for one in store.read_batches(plan, ["n"])] == [[{"n": 6}, {"n": 0}, {"n": 1}]]


def test_ignored_retractions_change_nothing(tmp_path: Path) -> None:
    """With ignore-delete retractions that lie in files count as if they were not there."""
    assert rows_of(sums_table(tmp_path, ignore_delete="true")) == [
        row(1, "c", 6),
        row(2, "b", 1),
        row(9, "z", 1),
    ]


def test_files_that_meet_no_other_are_read_as_they_are(tmp_path: Path) -> None:
    """Only sections with several files, or with retractions, are copied; rows come in key order."""
    store = make_table(tmp_path, options=SUMS)
    foreign_level_zero(store, [row(1, "a", 5), row(2)], [INSERT] * 2)
    foreign_level_zero(store, [row(11), row(12)], [INSERT] * 2)
    foreign_level_zero(store, [row(12, "x", 3), row(13)], [INSERT, DELETE])
    plan = store.plan_scan()
    assert [file.fileio is None for file in plan.files] == [True, False]
    assert store.read(plan).column("id").to_pylist() == [1, 2, 11, 12]


def test_copies_go_with_their_plan(tmp_path: Path) -> None:
    """A second plan of a state has the same files; they go once another state is read and nobody has the plan."""
    store = sums_table(tmp_path)
    plan = store.plan_scan()
    made = copies(plan)
    assert made == copies(store.plan_scan())
    assert all(path.exists() for path in made)
    assert all(tmp_path not in path.parents for path in made)
    foreign_level_zero(store, [row(1, "q", 1)], [INSERT])
    other = store.plan_scan()
    assert all(path.exists() for path in made | copies(other))
    del plan
    collect_young()
    assert not any(path.exists() for path in made)
    assert store.read(other).column("n").to_pylist() == [7, 0, 1]


@pytest.mark.parametrize("seed", range(4))
def test_key_ranges_give_the_rows_of_one_step(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random files read in many small ranges: the sums of a dict."""
    chance, sums = random.Random(seed), defaultdict[int, int](int)
    store = make_table(tmp_path, options={**SUMS, "parquet.row-group-rows": "7"})
    for _ in range(6):
        keys = chance.sample(range(200), 60)
        foreign_level_zero(store, [row(key, "a", key % 7) for key in keys], [INSERT] * 60)
        for key in keys:
            sums[key] += key % 7
    monkeypatch.setattr(row_budget, "STEP_ROWS", 16)
    assert {one["id"]: one["n"] for one in rows_of(store)} == sums


@pytest.mark.parametrize(
    ("options", "sums"),
    [
        ({"changelog-producer": "lookup"}, {1: 8, 2: 2, 3: 9}),
        ({"force-lookup": "true"}, {1: 8, 2: 2, 3: 9}),
        ({"changelog-producer": "full-compaction"}, {1: 20, 2: 2, 3: 9}),
    ],
)
def test_stored_rows_of_a_lookup_have_the_older_ones_in_them(
    tmp_path: Path, options: Mapping[str, str], sums: Mapping[int, int]
) -> None:
    """Of levels above 0 the lowest counts, key by key, with all of level 0; without lookup every level does."""
    store = make_table(tmp_path, options={**SUMS, **options})
    for level, rows in ((5, [row(1, "a", 5), row(2, "a", 2)]), (4, [row(1, "b", 7), row(3, "b", 9)])):
        _foreign(store, rows, [INSERT] * 2, CommitKind.APPEND, level=level)
    foreign_level_zero(store, [row(1, "c", 1)], [INSERT])
    _foreign(store, [row(1, "d", 7)], [INSERT], CommitKind.APPEND, level=3)
    assert {one["id"]: one["n"] for one in rows_of(store)} == sums


def test_conversion_keeps_merged_rows(tmp_path: Path) -> None:
    """The converted table has them in its files, in several buckets too, and goes on with them."""
    for buckets in (None, 3):
        store = sums_table(tmp_path / str(buckets))
        store.convert(plan_conversion(store, buckets, "uuid"))
        assert rows_of(store) == MERGED
        assert not copies(store.plan_scan())
        put(store, row(1, "d", 10))
        assert rows_of(store)[0] == row(1, "d", 16)


def test_changes_are_refused_where_rows_are_no_changes(tmp_path: Path) -> None:
    """A level-0 row of a sum is no row of the table (TS1669); an overwrite is the difference of merged rows."""
    store = sums_table(tmp_path)
    newest = store.latest()
    assert newest is not None
    with pytest.raises(Unsupported, match="TS1669"):
        list(ChangelogReader(store.context).read(newest))
    foreign_overwrite(store, [row(1, "c", 6), row(2, "new", 8)])
    assert differences(store, store.latest()) == {
        (DELETE, 2, 0): 1,
        (DELETE, 9, 1): 1,
        (INSERT, 2, 8): 1,
    }


@pytest.mark.parametrize(
    ("options", "is_told"),
    [
        ({}, True),
        ({"deletion-vectors.enabled": "true"}, True),
        ({"deletion-vectors.enabled": "true", "merge-engine": "aggregation"}, False),
        ({"deletion-vectors.enabled": "true", "merge-engine": "partial-update"}, False),
        ({"deletion-vectors.enabled": "true", "sequence.field": "n"}, False),
        ({"sequence.field": "n"}, False),
        ({"merge-engine": "first-row"}, False),
    ],
)
def test_level_zero_has_changes_where_the_newest_row_is_the_row(
    tmp_path: Path, options: Mapping[str, str], *, is_told: bool
) -> None:
    """Without changelog files, rows of level 0 are changes only where nothing stored changes them; else TS1669."""
    plain = {"deletion-vectors.enabled": "false", "changelog-producer": "none"}
    store = make_table(tmp_path, options={**plain, **options})
    foreign_level_zero(store, [row(1, "a", 5)], [INSERT])
    if is_told:
        assert differences(store, store.latest()) == {(INSERT, 1, 5): 1}
    else:
        with pytest.raises(Unsupported, match="TS1669"):
            differences(store, store.latest())


@pytest.mark.parametrize("producer", ["none", "input", "lookup"])
def test_rows_of_an_overwrite_in_level_zero_are_told_once(tmp_path: Path, producer: str) -> None:
    """With its snapshot, if the producer tells level 0 at once; by `lookup` with the compaction that shows them."""
    options = {"deletion-vectors.enabled": "true", "changelog-producer": producer}
    store = make_table(tmp_path, options=options)
    put(store, row(1, "a", 5), row(2, "a", 6))
    _foreign(store, [row(2, "a", 6), row(3, "b", 7)], [INSERT] * 2, CommitKind.OVERWRITE, level=0)
    told = {(DELETE, 1, 5): 1, (DELETE, 2, 6): 1}
    if producer != "lookup":
        told = {(DELETE, 1, 5): 1, (INSERT, 3, 7): 1}
    assert differences(store, store.latest()) == told


def test_an_overwrite_of_waiting_rows_is_refused(tmp_path: Path) -> None:
    """Rows of level 0 were told and never visible: what goes with them is not known (TS1669)."""
    store = make_table(tmp_path, options={"deletion-vectors.enabled": "true", "changelog-producer": "none"})
    foreign_level_zero(store, [row(1, "a", 5)], [INSERT])
    _foreign(store, [row(2, "b", 7)], [INSERT], CommitKind.OVERWRITE, level=0)
    with pytest.raises(Unsupported, match="TS1669"):
        differences(store, store.latest())


def differences(store: TableStore, snapshot: Snapshot | None) -> Mapping[tuple[int, int, int], int]:
    """(kind, id, n) of the changes of a snapshot, counted."""
    assert snapshot is not None
    found: dict[tuple[int, int, int], int] = defaultdict(int)
    for batch in ChangelogReader(store.context).read(snapshot):
        for one in batch.rows.to_pylist():
            found[one["_ROW_KIND"], one["id"], one["n"]] += 1
    return dict(found)


def test_sections_ascend_and_overlap_nowhere() -> None:
    """Chains of overlaps are one section; a range within another one too."""
    ranges = [(5, 6), (1, 3), (3, 4), (0, 9), (20, 20), (11, 12)]
    assert sections_of([((low,), (high,)) for low, high in ranges]) == [[3, 1, 2, 0], [5], [4]]


def test_retractions_alone_leave_no_rows(tmp_path: Path) -> None:
    """A bucket of lone retractions has no row, and no file."""
    store = make_table(tmp_path, options=SUMS)
    foreign_level_zero(store, [row(1), row(2)], [DELETE, UPDATE_BEFORE])
    assert rows_of(store) == []
    assert store.plan_scan().files == ()
