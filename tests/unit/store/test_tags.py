"""Tags and rollback."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tablestore_engine.errors import FixRequest, NotFound
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store import rollback
from tablestore_engine.store.metadata.commit_history import following_properties
from tablestore_engine.store.table_context import TableContext, committer_of
from tests.unit.store.table_world import acting, make_table, open_table, put, row, rows_of


def test_a_tag_names_a_snapshot_and_reads_it(tmp_path: Path) -> None:
    """Created, listed, read, deleted; by default the newest."""
    store = make_table(tmp_path)
    put(store, row(1))
    put(store, row(2))
    store.tags.create("first", 1)
    store.tags.create("now")
    assert store.tags.list_all() == {"first": 1, "now": 2}
    assert store.tags.get("first").snapshot == store.snapshots.get(1)
    store.tags.delete("first")
    assert open_table(tmp_path).tags.list_all() == {"now": 2}


def test_a_tag_never_moves(tmp_path: Path) -> None:
    """The same again is fine; another snapshot is TS1319; missing ones are NotFound."""
    store = make_table(tmp_path)
    with pytest.raises(NotFound, match="TS1320"):
        store.tags.create("x")
    put(store, row(1))
    put(store, row(2))
    store.tags.create("x", 1)
    store.tags.create("x", 1)
    with pytest.raises(FixRequest, match="TS1319"):
        store.tags.create("x", 2)
    assert store.tags.list_all() == {"x": 1}
    with pytest.raises(NotFound, match="TS1302"):
        store.tags.create("y", 9)
    with pytest.raises(NotFound, match="TS1321") as caught:
        store.tags.delete("y")
    assert caught.value.why == "the table has the tags x"
    store.tags.delete("x")
    with pytest.raises(NotFound, match="TS1321") as caught:
        store.tags.get("x")
    assert caught.value.why == "the table has no tags"


def test_rollback_makes_an_earlier_snapshot_the_newest(tmp_path: Path) -> None:
    """Later snapshots and their tags go; writing goes on from there without gaps."""
    store = make_table(tmp_path)
    for number in (1, 2, 3):
        put(store, row(number))
    store.tags.create("keep", 1)
    store.tags.create("gone", 3)
    assert store.rollback(1) == 2
    assert store.rollback(1) == 0
    assert (rows_of(store), store.tags.list_all()) == ([row(1)], {"keep": 1})
    assert put(open_table(tmp_path), row(9)).snapshot_id == 2
    assert rows_of(store) == [row(1), row(9)]
    assert store.verify() == ()
    with pytest.raises(NotFound, match="TS1302"):
        store.rollback(7)


def test_a_table_with_a_log_is_not_rolled_back(tmp_path: Path) -> None:
    """Consumers have seen the later snapshots: TS1322, nothing changes."""
    store = make_table(tmp_path, options={"log.system": "kafka"})
    put(store, row(1))
    put(store, row(2))
    with pytest.raises(FixRequest, match="TS1322"):
        store.rollback(1)
    assert store.snapshots.list_ids() == (1, 2)


@pytest.mark.parametrize("point", ["write.data_files", "commit.manifests"])
def test_a_writer_beside_a_rollback_plans_again(tmp_path: Path, point: str) -> None:
    """Planned on a snapshot that is taken back meanwhile: no snapshot behind a gap, the rows come on the older one."""
    store = make_table(tmp_path)
    for number in range(4):
        put(store, row(number))
    writer = open_table(tmp_path, runtime=acting(point, lambda: open_table(tmp_path).rollback(2)))
    assert put(writer, row(9)).snapshot_id == 3
    assert rows_of(open_table(tmp_path)) == [row(0), row(1), row(9)]
    assert store.snapshots.list_ids() == (1, 2, 3)
    assert store.verify() == ()


@pytest.mark.parametrize("moment", ["before", "between", "after"])
def test_a_claim_in_the_midst_of_a_rollback_stays_behind_no_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """The claim comes when the rollback has listed, has deleted some, or has deleted all: ids have no gap, the rows
    taken back are gone, and a writer that was told "committed" last finds its rows.
    """
    store = make_table(tmp_path)
    for number in range(4):
        put(store, row(number))
    planned: list[object] = []
    real = LocalFileIO.delete

    def claim_now() -> None:
        """A writer that planned on snapshot 4 claims 5, whatever is there by now."""
        if not planned:
            planned.append(True)
            monkeypatch.setattr(LocalFileIO, "delete", real)
            assert not committer.claim(committer.main, late, None) or moment == "before"
            monkeypatch.setattr(LocalFileIO, "delete", delete)

    def delete(self: LocalFileIO, path: str) -> None:
        if path.endswith({"before": "snapshot-4", "between": "snapshot-3", "after": "never"}[moment]):
            claim_now()
        real(self, path)

    newest = store.snapshots.get(4)
    late = replace(newest, id=5, uuid="late", properties=following_properties(newest))
    committer = committer_of(store.context)
    monkeypatch.setattr(LocalFileIO, "delete", delete)
    open_table(tmp_path).rollback(2)
    if moment == "after":
        claim_now()
    assert planned
    assert store.snapshots.list_ids() == (1, 2)
    assert rows_of(open_table(tmp_path)) == [row(0), row(1)]
    assert put(open_table(tmp_path), row(9)).snapshot_id == 3


def test_a_commit_on_the_target_of_a_rollback_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody commits on the target before the rollback has looked around: that commit is not taken away."""
    store = make_table(tmp_path)
    for number in range(3):
        put(store, row(number))
    real = rollback._delete_strays

    def late(context: TableContext, target: Snapshot) -> None:
        put(open_table(tmp_path), row(9))
        real(context, target)

    monkeypatch.setattr(rollback, "_delete_strays", late)
    store.rollback(1)
    assert rows_of(open_table(tmp_path)) == [row(0), row(9)]


@pytest.mark.parametrize("more", [0, 1, 2])
def test_an_expired_base_is_no_rollback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: int) -> None:
    """Right after the claim others commit on it, and everything but the newest expires: the commit stands."""
    store = make_table(tmp_path)
    put(store, row(1))
    put(store, row(2))
    real = LocalFileIO.create_exclusive

    def create(self: LocalFileIO, path: str, data: bytes, *, check: Callable[[], None] | None = None) -> bool:
        won = real(self, path, data, check=check)
        if path.endswith("snapshot-3"):
            monkeypatch.setattr(LocalFileIO, "create_exclusive", real)
            for number in range(more):
                put(open_table(tmp_path), row(number))
            for number in range(1, 3 + more):
                (tmp_path / f"demo.db/t/snapshot/snapshot-{number}").unlink()
        return won

    newest = store.snapshots.get(2)
    late = replace(newest, id=3, uuid="late", commit_user="late", properties=following_properties(newest))
    monkeypatch.setattr(LocalFileIO, "create_exclusive", create)
    assert committer_of(store.context).claim(committer_of(store.context).main, late, None)
    assert store.snapshots.list_ids() == (3 + more,)


@pytest.mark.folders
def test_a_number_that_has_expired_is_not_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer sleeps between its last look and its claim, while others commit and the number it wants expires: it
    takes its snapshot away, for the table has gone on without it.
    """
    store = make_table(tmp_path)
    put(store, row(1))
    newest = store.snapshots.get(1)
    late = replace(newest, id=2, uuid="late", commit_user="late", properties=following_properties(newest))
    real = LocalFileIO.create_exclusive

    def create(self: LocalFileIO, path: str, data: bytes, *, check: Callable[[], None] | None = None) -> bool:
        if path.endswith("snapshot-2"):
            monkeypatch.setattr(LocalFileIO, "create_exclusive", real)
            for number in (2, 3, 4):
                put(open_table(tmp_path), row(number))
            for number in (1, 2):
                (tmp_path / f"demo.db/t/snapshot/snapshot-{number}").unlink()
            check = None  # it had looked before
        return real(self, path, data, check=check)

    monkeypatch.setattr(LocalFileIO, "create_exclusive", create)
    assert not committer_of(store.context).claim(committer_of(store.context).main, late, None)
    assert store.snapshots.list_ids() == (3, 4)
    assert rows_of(open_table(tmp_path)) == [row(1), row(2), row(3), row(4)]
