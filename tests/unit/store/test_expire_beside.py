"""Snapshot expiry beside tags, rollbacks, commits, another expiry and a table made anew, all at the same time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablestore_engine.errors import NotFound, TablestoreError
from tablestore_engine.fileio.local import LocalFileIO
from tests.doses import cases
from tests.unit.store.expiry_world import newest, strays, visible, written
from tests.unit.store.table_world import (
    acting,
    open_table,
    overwrite,
    put,
    row,
    rows_of,
)


def test_a_tag_that_comes_while_its_snapshot_goes_is_refused(tmp_path: Path) -> None:
    """Behind the floor nobody can tag it; a tag from before the floor is seen and kept (next test)."""
    written(tmp_path)
    refused: list[str] = []

    def tag() -> None:
        with pytest.raises(NotFound) as told:
            open_table(tmp_path).tags.create("late", 2)
        refused.append(told.value.code)

    open_table(tmp_path, runtime=acting("expire.hidden", tag)).expire(newest(1))
    assert refused == ["TS1302"]
    assert open_table(tmp_path).tags.list_all() == {}


class _Calls:
    """A file system that lets somebody else act before the first call of a kind."""

    def __init__(self, inner: LocalFileIO, operation: str, part: str, action: object) -> None:
        self._inner, self._operation, self._part, self._action = inner, operation, part, action

    def __getattr__(self, name: str) -> object:
        found = getattr(self._inner, name)
        if name != self._operation:
            return found

        def call(path: str, *rest: object, **more: object) -> object:
            action = self._action
            if action is not None and self._part in path:
                self._action = None
                action()  # type: ignore[operator]
            return found(path, *rest, **more)

        return call


def test_a_tag_from_right_before_the_floor_keeps_its_files(tmp_path: Path) -> None:
    """The plan was made without it; it is seen behind the floor."""
    store = written(tmp_path)
    overwrite(store, row(9))
    before = rows_of(store, 2)
    fileio = _Calls(
        LocalFileIO(str(tmp_path)),
        "create_exclusive",
        "floor-",
        lambda: open_table(tmp_path).tags.create("now", 2),
    )
    open_table(tmp_path, fileio=fileio).expire(newest(1))  # type: ignore[arg-type]
    again = open_table(tmp_path)
    assert again.snapshots.list_ids() == (6,)
    assert visible(again)["tag now"] == before
    assert strays(again) == set()


def test_a_rollback_that_begins_before_the_floor_keeps_its_target(tmp_path: Path) -> None:
    """The expiry gives way, and the table is at the target."""
    store = written(tmp_path)
    before = rows_of(store, 2)
    fileio = _Calls(
        LocalFileIO(str(tmp_path)), "create_exclusive", "floor-", lambda: open_table(tmp_path).rollback(2)
    )
    report = open_table(tmp_path, fileio=fileio).expire(newest(1))  # type: ignore[arg-type]
    assert report.snapshots == 0
    again = open_table(tmp_path)
    assert again.snapshots.list_ids() == (1, 2)
    assert rows_of(again) == before
    assert again.verify() == ()


def test_a_rollback_whose_target_goes_is_refused(tmp_path: Path) -> None:
    """Nothing is deleted by it: the table stays at its newest snapshot."""
    written(tmp_path)

    def roll_back() -> None:
        with pytest.raises(NotFound, match="TS1302"):
            open_table(tmp_path).rollback(2)

    open_table(tmp_path, runtime=acting("expire.hidden", roll_back)).expire(newest(1))
    assert open_table(tmp_path).snapshots.list_ids() == (5,)


def test_an_expiry_in_the_middle_of_a_rollback_gives_way(tmp_path: Path) -> None:
    """The rollback has said what it keeps before it deletes; afterwards nothing is kept for it any more."""
    written(tmp_path)
    reasons: list[str] = []

    def expire() -> None:
        reasons.append(open_table(tmp_path).expire(newest(1)).reason)

    open_table(tmp_path, runtime=acting("rollback.kept", expire)).rollback(2)
    again = open_table(tmp_path)
    assert reasons == ["a rollback to snapshot 2 has started: if it was stopped, run it again"]
    assert again.snapshots.list_ids() == (2,)
    assert again.verify() == ()
    assert again.expire(newest(1)).reason == "the newest 1 stay"


@pytest.mark.parametrize("point", ["expire.hidden", "expire.data", "expire.metadata", "expire.snapshots"])
@pytest.mark.parametrize("other", cases([1, 2, 4], 2))
def test_two_expiries_at_once(tmp_path: Path, point: str, other: int) -> None:
    """One that keeps fewer, as many or more, from beginning to end inside another one: the table is whole."""
    store = written(tmp_path)
    before = visible(store)

    def expire() -> None:
        open_table(tmp_path).expire(newest(other))

    open_table(tmp_path, runtime=acting(point, expire)).expire(newest(2))
    again = open_table(tmp_path)
    after = visible(again)
    assert after == {name: before[name] for name in after}
    assert again.snapshots.list_ids() == ((5,) if other == 1 else (4, 5))
    assert strays(again) == set()
    assert again.verify() == ()
    assert list((Path(again.location) / "expire").glob("*")) == []


def test_a_commit_beside_an_expiry(tmp_path: Path) -> None:
    """A whole expiry between the files of a commit and its claim: it lands on the base that stayed."""
    written(tmp_path)
    runtime = acting("commit.manifests", lambda: open_table(tmp_path).expire(newest(1)))
    put(open_table(tmp_path, runtime=runtime), row(30))
    again = open_table(tmp_path)
    assert again.snapshots.list_ids() == (5, 6)
    assert row(30) in rows_of(again)
    assert again.verify() == ()


def test_commits_and_an_expiry_inside_a_commit(tmp_path: Path) -> None:
    """The base of the commit has expired when it claims: it plans again, and no row is lost."""
    store = written(tmp_path)

    def act() -> None:
        for number in (40, 41, 42):
            put(open_table(tmp_path), row(number))
        open_table(tmp_path).expire(newest(1))

    expected = [*rows_of(store), *(row(number) for number in (40, 41, 42, 43))]
    put(open_table(tmp_path, runtime=acting("commit.manifests", act)), row(43))
    again = open_table(tmp_path)
    assert rows_of(again) == sorted(expected, key=repr)
    assert again.verify() == ()
    assert strays(again) == set()


def test_a_table_made_anew_keeps_its_snapshots(tmp_path: Path) -> None:
    """Dropped and created in the middle: the expiry stops at the guard, the new table's files are not touched."""
    written(tmp_path, options={"tablestore.table-uuid": "one"})
    fresh: list[dict[str, object]] = []

    def make_anew() -> None:
        LocalFileIO(str(tmp_path)).delete_tree(f"{tmp_path}/demo.db/t")
        fresh.append(dict(visible(written(tmp_path, options={"tablestore.table-uuid": "two"}))))

    with pytest.raises(TablestoreError, match="TS1365"):
        open_table(tmp_path, runtime=acting("expire.metadata", make_anew)).expire(newest(1))
    assert visible(open_table(tmp_path)) == fresh[0]
