"""Folding and joining: the table stays the same, and stays small however long it is written to."""

from __future__ import annotations

from pathlib import Path

from tablestore_engine.format.snapshot import CommitKind
from tests.unit.store.table_world import make_table, open_table, put, row, rows_of


def test_runs_of_a_bucket_stay_bounded(tmp_path: Path) -> None:
    """40 commits: at most 11 runs at any time, each fold a COMPACT snapshot of another user before the APPEND."""
    store = make_table(tmp_path)
    for turn in range(40):
        put(store, row(turn % 7, f"t{turn}"), row(1_000 + turn), commit_user="job", commit_identifier=turn)
        assert len({file.meta.level for file in store.plan_scan().files}) <= 11
    kinds = [one.commit_kind for one in store.snapshots.list_all()]
    assert kinds.count(CommitKind.COMPACT) >= 2
    assert kinds[-1] is CommitKind.APPEND
    folds = [one for one in store.snapshots.list_all() if one.commit_kind is CommitKind.COMPACT]
    assert {one.commit_user for one in folds} == {"job_compact"}
    assert len(rows_of(store)) == 47
    assert store.verify() == ()


def test_six_levels_are_enough(tmp_path: Path) -> None:
    """A table with Paimon's default of 6 levels folds in time: no write ever lands on level 0."""
    store = make_table(tmp_path, options={"num-levels": "6"})
    for turn in range(25):
        put(store, row(turn % 5, f"t{turn}"))
    assert min(file.meta.level for file in store.plan_scan().files) > 0
    assert len(rows_of(store)) == 5
    assert store.verify() == ()


def test_compacting_leaves_one_run_without_dead_rows(tmp_path: Path) -> None:
    """After compact: one level, no vector in use, equal rows; again: no further snapshot."""
    store = make_table(tmp_path, options={"bucket": "2"})
    for turn in range(4):
        put(store, *[row(number, f"t{turn}") for number in range(10)])
    before = rows_of(store)
    store.compact(full=True)
    assert {(file.meta.level, file.deleted) for file in store.plan_scan().files} == {(19, None)}
    newest = store.snapshots.find_latest_id()
    store.compact(full=True)
    assert store.snapshots.find_latest_id() == newest
    assert rows_of(store) == before
    assert store.verify() == ()


def test_appending_for_ever_keeps_few_files(tmp_path: Path) -> None:
    """60 appends: files are joined in tiers; rows and their number stay."""
    store = make_table(tmp_path, keys=())
    for turn in range(60):
        put(store, row(turn), row(turn))
    assert len(store.plan_scan().files) <= 12
    assert len(rows_of(store)) == 120
    assert CommitKind.COMPACT in {one.commit_kind for one in store.snapshots.list_all()}
    store.compact(full=True)
    assert len(store.plan_scan().files) == 1
    assert open_table(tmp_path).verify() == ()


def test_manifests_are_merged(tmp_path: Path) -> None:
    """With merge-min-count 5 the base list stays short, and every snapshot still reads."""
    store = make_table(
        tmp_path, keys=(), options={"manifest.merge-min-count": "5", "compaction.min.file-num": "99"}
    )
    for turn in range(17):
        put(store, row(turn))
        newest = store.latest()
        assert newest is not None
        assert len(store.context.manifests.read_list(newest.base_manifest_list)) <= 5
    assert [len(rows_of(store, number)) for number in (1, 8, 17)] == [1, 8, 17]
    assert store.verify() == ()
