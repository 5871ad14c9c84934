"""Was this made before? The answer costs a bounded number of reads, and is right among foreign commits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.snapshot import CommitKind, Snapshot
from tablestore_engine.store.metadata.commit_history import find_pair, follows
from tablestore_engine.store.table_store import TableStore
from tests.doubles.faults import FaultyFileIO
from tests.unit.store.table_world import grow, make_table, open_table, put, row


def counting(root: Path) -> TableStore:
    """A handle whose file system counts."""
    return open_table(root, fileio=FaultyFileIO(LocalFileIO(str(root))))


def snapshot_reads(store: TableStore) -> int:
    """How many snapshot files were read through the handle."""
    calls = store.fileio.calls  # type: ignore[attr-defined]
    return sum(1 for call, path in calls if call == "read" and "/snapshot/snapshot-" in path)


def test_a_new_user_reads_few_snapshots_of_many(tmp_path: Path) -> None:
    """A write by a user that the table has never seen: 683 snapshots, at most a dozen reads (each was read before)."""
    store = make_table(tmp_path)
    put(store, row(1), commit_user="dbt-1", commit_identifier=1)
    grow(store, 683)
    fresh = counting(tmp_path)
    assert put(fresh, row(2), commit_user="dbt-new", commit_identifier=1).snapshot_id == 684
    assert snapshot_reads(fresh) <= 12


@pytest.mark.parametrize("number", [1, 2, 255, 256, 257, 300, 599, 600])
def test_every_pair_is_found_wherever_it_lies(tmp_path: Path, number: int) -> None:
    """The search jumps over snapshots, never over the one it looks for; another identifier is not found."""
    store = make_table(tmp_path)
    put(store, row(1), commit_user="dbt-1", commit_identifier=1)
    grow(store, 600)
    newest = store.snapshots.get(600)
    found = find_pair(store.snapshots, newest, f"dbt-{number}", 1)
    assert found is not None
    assert found.id == number
    assert find_pair(store.snapshots, newest, f"dbt-{number}", 2) is None
    assert find_pair(store.snapshots, newest, f"dbt-{number}", 1, after=number) is None


def test_snapshots_of_other_engines_are_looked_at_one_by_one(tmp_path: Path) -> None:
    """A commit between theirs is found; a compaction that carries the pair is not the commit."""
    store = make_table(tmp_path)
    put(store, row(1), commit_user="ours", commit_identifier=5)
    newest = store.snapshots.get(1)
    for number in range(2, 9):
        newest = replace(
            newest, id=number, uuid=None, commit_user="flink", commit_identifier=number, properties=None
        )
        assert store.snapshots.claim(newest)
    newest = replace(newest, id=9, commit_user="ours", commit_identifier=6, commit_kind=CommitKind.COMPACT)
    assert store.snapshots.claim(newest)
    assert store.snapshots.find_latest_id() == 9
    found = find_pair(store.snapshots, newest, "ours", 5)
    assert found is not None
    assert found.id == 1
    assert find_pair(store.snapshots, newest, "ours", 6) is None


def test_another_property_of_that_name_does_not_mislead(tmp_path: Path) -> None:
    """What is no list of digests counts as no list."""
    store = make_table(tmp_path)
    put(store, row(1), commit_user="ours", commit_identifier=5)
    newest = replace(store.snapshots.get(1), id=2, commit_user="x", properties={"tablestore.recent": "näh"})
    assert store.snapshots.claim(newest)
    found = find_pair(store.snapshots, newest, "ours", 5)
    assert found is not None


def test_a_snapshot_says_what_it_was_planned_on(tmp_path: Path) -> None:
    """`follows` knows the base by its uuid; a snapshot that says nothing is believed."""
    store = make_table(tmp_path)
    put(store, row(1))
    put(store, row(2))
    one, two = store.snapshots.get(1), store.snapshots.get(2)
    other: Snapshot = replace(one, uuid="other")
    assert follows(two, one)
    assert not follows(two, other)
    assert not follows(two, None)
    assert follows(replace(two, properties=None), other)
