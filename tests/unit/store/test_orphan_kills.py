"""Orphan files of writers and stages that die, and cleanings that die or fail: the next one ends the work."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from tablestore_engine.errors import TablestoreError
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.runtime.outside_world import CRASH_POINTS
from tests.doses import cases
from tests.doubles.faults import (
    DyingFileIO,
    Fault,
    FaultKind,
    FaultyFileIO,
    SimulatedCrash,
    crashing,
    seeded_runtime,
)
from tests.unit.store.expiry_world import newest, strays
from tests.unit.store.orphan_world import clean, history, unchanged
from tests.unit.store.table_world import (
    make_table,
    open_table,
    put,
    row,
    rows_of,
)


@pytest.mark.parametrize(
    "point",
    [
        *("write.data_files", "commit.manifests", "commit.claimed", "commit.done"),
        *("stage.made", "stage.claimed"),
    ],
)
def test_leftovers_of_killed_writers(tmp_path: Path, point: str) -> None:
    """At each point of a commit and of a stage: readers see no difference, nothing else stays."""
    store = make_table(tmp_path)
    put(store, row(1), row(2))
    dying = open_table(tmp_path, runtime=crashing(seeded_runtime(9), point))
    more = {} if point.startswith(("write.", "commit.")) else {"stage": "gate"}
    with pytest.raises(SimulatedCrash):
        put(dying, row(1, "late"), **more)
    with unchanged(store):
        clean(store)
    assert strays(store) == set()


def test_a_write_that_dies_at_each_change_of_a_name(tmp_path: Path) -> None:
    """Each third one: in a new bucket too, whose folder would stay empty; the next write works."""
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
            changes += 3
        with unchanged(store):
            clean(store)
        assert strays(store) == set()
        put(store, row(5, "again"))
        assert len(rows_of(store)) == 2
    assert changes > 5


@pytest.mark.folders
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


@pytest.mark.parametrize(
    "operation", cases(["read", "list", "list_hidden", "create_exclusive", "delete", "rename"], 3)
)
def test_a_failing_file_system(tmp_path: Path, operation: str) -> None:
    """The error is told and nobody's files are gone; the next cleaning ends the work."""
    for call in (1, 4):
        root = tmp_path / str(call)
        root.mkdir()
        store = history(root)
        fault = Fault(FaultKind.BEFORE, operation, call=call)
        fileio = FaultyFileIO(LocalFileIO(str(root)), faults=(fault,))
        with unchanged(store):
            with contextlib.suppress(OSError, TablestoreError):
                clean(open_table(root, fileio=fileio))
            clean(store)
        assert strays(store) == set()


@pytest.mark.parametrize("point", [name for name in CRASH_POINTS if name.startswith("orphans.")])
def test_a_cleaning_that_is_killed(tmp_path: Path, point: str) -> None:
    """Nobody is kept from writing by what it left; the next one ends it."""
    store = history(tmp_path)
    with unchanged(store), pytest.raises(SimulatedCrash):
        clean(open_table(tmp_path, runtime=crashing(seeded_runtime(4), point)))
    put(store, row(50))
    with unchanged(store):
        clean(store)
    assert strays(store) == set()
    assert list(Path(store.context.layout.sweeps_dir).glob("*")) == []


def test_a_stopped_expiry_is_left_to_the_next_one(tmp_path: Path) -> None:
    """Its snapshots may still come back while their floor stands: their files are named until they are gone."""
    store = history(tmp_path)
    clean(store)
    with pytest.raises(SimulatedCrash):
        open_table(tmp_path, runtime=crashing(seeded_runtime(4), "expire.data")).expire(newest(1))
    with unchanged(store):
        assert clean(store).found == ()
    store.staging.discard("gate")
    store.expire(newest(1))
    with unchanged(store):
        clean(store)
    assert strays(store) == set()
