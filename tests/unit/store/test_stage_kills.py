"""A process that dies while it makes or drops a stage, at every change of a file: the stage is whole or not there."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.store.table_store import TableStore
from tests.doses import case_rows, cases
from tests.doubles.faults import DyingFileIO, SimulatedCrash
from tests.unit.store.table_world import make_table, open_table, put, row, rows_of

ORDERS = 4


def _world(root: Path, before: int, *, staged: bool) -> None:
    """`before` snapshots, and a staged one behind them."""
    store = make_table(root)
    for number in range(before):
        put(store, row(number))
    if staged:
        put(store, row(8), stage="run", commit_user="older", commit_identifier=1)


def _die_everywhere(world: Path, work: Callable[[TableStore], object], check: Callable[[Path], None]) -> int:
    """`work` by processes that die after 0, 1, 2 … changes, until one lives; how many changes it made. `check` each."""
    for number in itertools.count():
        changes, order = divmod(number, ORDERS)
        root = world.parent / f"{changes}-{order}"
        shutil.copytree(world, root)
        dying = DyingFileIO(LocalFileIO(str(root)), seed=order, changes_left=changes)
        try:
            work(open_table(root, fileio=dying))
        except SimulatedCrash:
            check(root)
            continue
        check(root)
        return changes
    raise AssertionError("unreachable")


def _check(root: Path, before: int) -> None:
    """What counts as staged is what somebody staged, readable; and the name can be used again."""
    store = open_table(root)
    assert store.verify() == ()
    for one in store.staging.list_all():
        assert one.snapshot.commit_user in ("older", "newer"), (
            "a copy of the base counts as the staged snapshot"
        )
        assert store.on_staged("run").verify() == ()
        assert rows_of(store.on_staged("run"))[:before] == [row(number) for number in range(before)]
    put(store, row(9), stage="run", commit_user="next", commit_identifier=1)
    store.staging.publish("run")
    assert rows_of(store) == [*(row(number) for number in range(before)), row(9)]


@pytest.mark.parametrize("before", cases([0, 1, 2], 1))
def test_a_stage_is_dropped_whole(tmp_path: Path, before: int) -> None:
    """Files go one by one, in any order that the file system likes: what is left of a stage counts as none."""
    _world(tmp_path / "world", before, staged=True)
    changes = _die_everywhere(
        tmp_path / "world", lambda store: store.staging.discard("run"), lambda root: _check(root, before)
    )
    assert changes >= 4


@pytest.mark.parametrize(("before", "staged"), case_rows(list(product([1, 0, 2], [True, False])), 1))
def test_a_stage_is_made_whole(tmp_path: Path, before: int, *, staged: bool) -> None:
    """Also over an older one: the copy of the base, which is written first, never counts as what was staged."""
    _world(tmp_path / "world", before, staged=staged)
    changes = _die_everywhere(
        tmp_path / "world",
        lambda store: put(store, row(9), stage="run", commit_user="newer", commit_identifier=1),
        lambda root: _check(root, before),
    )
    assert changes >= 6


def test_a_publication_takes_its_stage_away_whole(tmp_path: Path) -> None:
    """Published, dead before the stage is gone: what is left is that very snapshot, or counts as none."""

    def check(root: Path) -> None:
        store = open_table(root)
        for one in store.staging.list_all():
            assert (one.snapshot.commit_user, store.on_staged("run").verify()) == ("older", ())
            store.staging.publish("run")
        assert rows_of(store) in ([row(0)], [row(0), row(8)])

    _world(tmp_path / "world", 1, staged=True)
    assert _die_everywhere(tmp_path / "world", lambda store: store.staging.publish("run"), check) >= 6
