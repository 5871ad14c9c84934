"""Leftovers: what nobody names goes, everything that anybody can read stays, and what is in doubt stops the work."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tablestore_engine.errors import RetryError
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.runtime.system import CRASH_POINTS
from tablestore_engine.store.orphans import DAY_MS, IS_YOUNG, OrphanReport, OrphanRequest
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.testing.faults import (
    DyingFileIO,
    SimulatedCrash,
    crashing,
    seeded_runtime,
)
from tests.unit.store.expiry_world import newest, strays, visible
from tests.unit.store.table_world import (
    acting,
    changes_of,
    delete,
    make_table,
    open_table,
    overwrite,
    put,
    row,
    rows_of,
)

AT_ONCE = -(1 << 60)  # the clocks of tests begin anew with each handle
UUID = "0a0b0c0d-1111-4222-8333-444455556666"


def clean(store: TableStore, **more: object) -> OrphanReport:
    """Delete what is left over, whatever its age."""
    return store.orphans(OrphanRequest(grace_ms=AT_ONCE, delete=True, **more))  # type: ignore[arg-type]


def found(store: TableStore) -> OrphanReport:
    """The same, looked at only."""
    return store.orphans(OrphanRequest(grace_ms=AT_ONCE))


def readable(store: TableStore) -> dict[str, object]:
    """Rows of everything, and the changelog of each snapshot."""
    logs = {f"changes {number}": changes_of(store, number) for number in store.snapshots.list_ids()[1:]}
    return {**visible(store), **logs}


def files_of(store: TableStore) -> set[str]:
    """Paths of all files in the folder."""
    root = Path(store.location)
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


@contextlib.contextmanager
def unchanged(store: TableStore) -> Iterator[None]:
    """What can be read before is read the same behind it."""
    before = readable(open_table(Path(store.location).parents[1]))
    yield
    again = open_table(Path(store.location).parents[1])
    assert readable(again) == before
    assert again.verify() == ()


def history(root: Path) -> TableStore:
    """Vectors, folds, a tag whose snapshot expired, a stage, a rolled back end, a discarded stage."""
    store = make_table(root, options={"manifest.merge-min-count": "3"})
    for number in range(5):
        put(store, row(number % 3, f"v{number}"), row(7))
    delete(store, {"id": 7})
    store.tags.create("old", 2)
    store.expire(newest(3))
    put(store, row(1, "dropped"), stage="no")
    store.staging.discard("no")
    put(store, row(2, "lost"))
    overwrite(store, row(3, "lost"))
    store.rollback(6)
    put(store, row(4, "staged"), stage="gate")
    return store


def test_what_nobody_names_goes_and_all_the_rest_reads_as_before(tmp_path: Path) -> None:
    """Snapshots, an expired one's tag, a stage and changelogs; the dry run tells it and changes nothing."""
    store = history(tmp_path)
    lost = strays(store)
    assert lost
    told, before = found(store), files_of(store)
    assert files_of(store) == before
    with unchanged(store):
        done = clean(store)
    assert {one.name for one in told.found if one.kind != "folder"} == lost
    assert done.found == told.found
    assert (told.is_deleted, done.is_deleted) == (False, True)
    assert done.size_bytes == sum(size for _, size in done.by_kind.values()) > 0
    assert {kind for kind, _ in done.by_kind.items()} >= {"data", "changelog", "manifest", "index"}
    assert strays(store) == set()
    assert clean(store).found == ()
    store.staging.publish("gate")
    assert rows_of(store)


def test_fresh_files_stay_for_a_day(tmp_path: Path) -> None:
    """Who is still writing has time; the clock of the table decides, to the millisecond."""
    store = history(tmp_path)
    now = int(time.time() * 1000)
    at = replace(seeded_runtime(5), now_ms=lambda: now + DAY_MS // 2)
    report = open_table(tmp_path, runtime=at).orphans(OrphanRequest(delete=True))
    assert report.found == ()
    assert report.left[IS_YOUNG] == len(strays(store))
    late = replace(seeded_runtime(6), now_ms=lambda: now + 2 * DAY_MS)
    with unchanged(store):
        assert open_table(tmp_path, runtime=late).orphans(OrphanRequest(delete=True)).found
    assert strays(store) == set()


@pytest.mark.parametrize(
    "point", [name for name in CRASH_POINTS if name.startswith(("write", "commit", "stage"))]
)
def test_leftovers_of_killed_writers(tmp_path: Path, point: str) -> None:
    """At each point of a commit and of a stage: readers see no difference, nothing else stays."""
    store = make_table(tmp_path)
    put(store, row(1), row(2))
    dying = open_table(tmp_path, runtime=crashing(seeded_runtime(9), point))
    with contextlib.suppress(SimulatedCrash):
        put(dying, row(1, "late"))
    with contextlib.suppress(SimulatedCrash):
        put(dying, row(1, "later"), stage="gate")
    with unchanged(store):
        clean(store)
    assert strays(store) == set()


def test_a_write_that_dies_at_each_change_of_a_name(tmp_path: Path) -> None:
    """Into a bucket of its own too, whose folder would stay empty; then the same write is made and nothing is lost."""
    changes, is_killed = 0, True
    while is_killed:
        root = tmp_path / str(changes)
        root.mkdir()
        store = make_table(root, options={"bucket": "3"})
        put(store, row(1))
        fileio = DyingFileIO(LocalFileIO(str(root)), seed=changes, changes_left=changes)
        try:
            put(open_table(root, fileio=fileio), *(row(number) for number in range(9)), stage="gate")
            is_killed = False
        except SimulatedCrash:
            changes += 1
        with unchanged(store):
            clean(store)
        assert strays(store) == set()
        put(store, row(5, "again"))
        assert len(rows_of(store)) == 2
    assert changes > 5


def test_a_discard_that_dies_leaves_no_branch(tmp_path: Path) -> None:
    """Whatever of its folder is left: it counts for nobody, and goes with its files."""
    changes, is_killed = 0, True
    while is_killed:
        root = tmp_path / str(changes)
        root.mkdir()
        store = make_table(root)
        put(store, row(1))
        put(store, row(2), stage="gate")
        fileio = DyingFileIO(LocalFileIO(str(root)), seed=changes, changes_left=changes)
        try:
            open_table(root, fileio=fileio).staging.discard("gate")
            is_killed = False
        except SimulatedCrash:
            changes += 1
        is_whole = store.staging.find("gate") is not None
        with unchanged(store):
            clean(store)
        assert (Path(store.location) / "branch/branch-ts_staged_gate").exists() is is_whole
        assert strays(store) == set()
    assert changes > 3


def test_a_commit_that_ends_between_the_passes_is_safe(tmp_path: Path) -> None:
    """Its files were leftovers when they were listed first, and are named when names are read again."""
    store = make_table(tmp_path)
    put(store, row(1))
    works: list[Callable[[], object]] = []

    def claimed_meanwhile() -> None:
        works.append(lambda: clean(open_table(tmp_path)))

    other = open_table(tmp_path, runtime=acting("orphans.begun", lambda: put(store, row(2, "meanwhile"))))
    claimed_meanwhile()
    put(store, row(8, "dropped"), stage="no")
    store.staging.discard("no")
    clean(other)
    assert [one["name"] for one in rows_of(store)] == ["a", "meanwhile"]
    assert strays(store) == set()
    assert store.verify() == ()


@pytest.mark.parametrize("stage", [None, "gate"])
def test_a_writer_that_slept_through_a_cleaning_is_refused(tmp_path: Path, stage: str | None) -> None:
    """Slower than the grace: between his files and his claim all of them went. He is told, and the table is whole."""
    store = make_table(tmp_path)
    put(store, row(1))
    runtime = acting("commit.manifests", lambda: clean(open_table(tmp_path)))
    with pytest.raises(RetryError, match="TS1328"):
        put(open_table(tmp_path, runtime=runtime), row(2), stage=stage)
    assert [one["id"] for one in rows_of(store)] == [1]
    assert store.staging.list_all() == ()
    assert store.verify() == ()
