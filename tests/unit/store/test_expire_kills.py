"""Expiry that dies: at each crash point, at each single change of a name, and under a file system that fails."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tablestore_engine.errors import TablestoreError
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.runtime.outside_world import CRASH_POINTS
from tablestore_engine.store.table_store import TableStore
from tests.doses import examples, pairs
from tests.doubles.faults import (
    DyingFileIO,
    Fault,
    FaultKind,
    FaultyFileIO,
    SimulatedCrash,
    crashing,
    seeded_runtime,
)
from tests.unit.store.expiry_world import newest, strays, visible
from tests.unit.store.table_world import delete, make_table, open_table, put, row

POINTS = [name for name in CRASH_POINTS if name.startswith("expire.")]


@dataclass(frozen=True)
class World:
    """A table to copy, and all that can be read of it."""

    root: Path
    before: dict[str, object]

    def copied(self, root: Path) -> dict[str, object]:
        """The same table below `root`."""
        shutil.copytree(self.root, root, dirs_exist_ok=True)
        return self.before


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Six snapshots with vectors and a changelog, the second one tagged."""
    root = tmp_path_factory.mktemp("world")
    store = make_table(root)
    for number in range(5):
        put(store, row(number % 3, f"v{number}"), row(7))
    delete(store, {"id": 7})
    store.tags.create("old", 2)
    return World(root, dict(visible(store)))


def check(root: Path, before: dict[str, object]) -> TableStore:
    """What a reader finds is complete and as it was, tags too; the newest snapshots are all there."""
    found = open_table(root)
    after = visible(found)
    assert after == {name: before[name] for name in after}
    assert {"snapshot 5", "snapshot 6", "tag old"} <= set(after)
    assert found.verify() == ()
    return found


def finish(root: Path, before: dict[str, object]) -> None:
    """The next expiry ends what the first one began, and nothing of it stays; a commit works before it."""
    store = open_table(root)
    put(store, row(50))
    before = {**before, **visible(store)}
    store.expire(newest(2))
    again = open_table(root)
    assert again.snapshots.list_ids() == (6, 7)
    assert visible(again) == {name: before[name] for name in ("snapshot 6", "snapshot 7", "tag old")}
    assert strays(again) == set()
    assert again.verify() == ()
    assert not list(Path(again.context.layout.expire_dir).glob("*"))


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_each_point(tmp_path: Path, world: World, point: str) -> None:
    """Reopened: the snapshots that count are whole. Run again: the rest goes."""
    before = world.copied(tmp_path)
    with pytest.raises(SimulatedCrash):
        open_table(tmp_path, runtime=crashing(seeded_runtime(1), point)).expire(newest(2))
    store = check(tmp_path, before)
    assert store.snapshots.list_ids() == (5, 6)
    assert store.snapshots.find_earliest_id() == 5
    finish(tmp_path, before)


def test_a_kill_at_each_change(tmp_path: Path, world: World) -> None:
    """Killed before the n-th change of a name, for every n."""
    changes, is_killed = 0, True
    while is_killed:
        root = tmp_path / str(changes)
        before = world.copied(root)
        fileio = DyingFileIO(LocalFileIO(str(root)), seed=changes, changes_left=changes)
        try:
            open_table(root, fileio=fileio).expire(newest(2))
            is_killed = False
        except SimulatedCrash:
            changes += 1
        check(root, before)
        finish(root, before)
    assert changes > 20


@pytest.mark.parametrize(
    ("operation", "kind"),
    pairs(
        ["read", "list", "mkdirs", "create_exclusive", "replace", "delete"],
        [FaultKind.BEFORE, FaultKind.AFTER],
    ),
)
def test_a_failing_file_system(tmp_path: Path, world: World, operation: str, kind: FaultKind) -> None:
    """The error is told, whichever call it is; the table stays whole, and the next expiry ends the work."""
    failures = 0
    for call in (1, 2, 3, 5, 8)[:: examples(2, 1)]:
        root = tmp_path / str(call)
        before = world.copied(root)
        fileio = FaultyFileIO(LocalFileIO(str(root)), faults=(Fault(kind, operation, call=call),))
        try:
            open_table(root, fileio=fileio).expire(newest(2))
        except (OSError, TablestoreError):
            failures += 1
        check(root, before)
        finish(root, before)
    assert failures
