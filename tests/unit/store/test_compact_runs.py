"""fold: readers see the same rows with the same numbers; dead rows, their vectors and spare files are gone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tablestore_engine.errors import EngineBug
from tablestore_engine.lsm.compaction_strategy import CompactionUnit
from tablestore_engine.store.tasks.bucket_task import CompactRuns
from tests.unit.store.bucket_world import Row, World, make_schema


def _rows(*keys: int, value: str = "a") -> list[Row]:
    return [{"id": key, "v": value} for key in keys]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Three runs: keys 1–6, then 2 and 3 updated and 4 deleted, then 3 updated again."""
    made = World(tmp_path, make_schema({"id": "INT", "v": "STRING"}))
    made.upsert(_rows(1, 2, 3, 4, 5, 6))
    made.upsert(_rows(2, 3, 4, value="b"), [2, 2, 3])
    made.upsert(_rows(3, value="c"))
    return made


def test_full_fold(world: World) -> None:
    """One file on the top level with exactly the visible rows, their numbers, source COMPACT and no vector."""
    rows, numbers = world.rows(), world.numbers()
    change = world.fold(full=True)
    assert change is not None
    assert (world.rows(), world.numbers()) == (rows, numbers)
    (meta,) = change.added
    assert (meta.level, meta.row_count, meta.file_source, meta.delete_row_count) == (19, 5, 1, 0)
    assert (len(change.removed), change.changelog, dict(change.deletion_vectors or {"x": 1})) == (
        3,
        (),
        {"x": 1},
    )
    assert change.deletion_vectors == {}
    assert (change.inserted, change.updated, change.deleted) == (0, 0, 0)


def test_partial_fold_keeps_other_vectors(world: World) -> None:
    """Folding the upper runs leaves the top file and its vector as they are."""
    top, upper, newest = world.state.files
    unit = CompactionUnit(((upper.meta.file_name, newest.meta.file_name),), (), 18)
    rows = world.rows()
    change = world.take(world.run(CompactRuns(world.task_table, world.state, unit)))
    assert world.rows() == rows
    assert {name: list(dead) for name, dead in (change.deletion_vectors or {}).items()} == {
        top.meta.file_name: [1, 2, 3]
    }
    assert [meta.level for meta in change.added] == [18]


def test_dropped_files_are_not_read(tmp_path: Path) -> None:
    """A file without a visible row is removed without opening it."""
    world = World(tmp_path, make_schema({"id": "INT", "v": "STRING"}))
    world.upsert(_rows(1, 2))
    world.upsert(_rows(1, 2, value="b"))
    Path(world.state.files[0].path).unlink()
    change = world.fold(full=True)
    assert change is not None
    assert len(change.removed) == 2
    assert world.rows() == _rows(1, 2, value="b")


def test_a_run_of_deletes_only(tmp_path: Path) -> None:
    """When nothing is visible any more a full fold leaves an empty bucket."""
    world = World(tmp_path, make_schema({"id": "INT", "v": "STRING"}))
    world.upsert(_rows(1, 2))
    world.upsert(_rows(1, 2), [3, 3])
    change = world.fold(full=True)
    assert change is not None
    assert (change.added, world.state.files) == ((), ())


def test_fold_with_an_older_schema(world: World) -> None:
    """Files of an older schema are rewritten in the present one."""
    newer = make_schema({"id": "INT", "v": "STRING", "extra": "INT"})
    world.schema = type(newer)(
        1, newer.fields, newer.highest_field_id, primary_keys=("id",), options=newer.options
    )
    rows = world.rows()
    change = world.fold(full=True)
    assert change is not None
    assert change.added[0].schema_id == 1
    assert world.rows() == rows


def test_a_key_visible_twice_stops_the_fold(world: World) -> None:
    """Two visible rows of a key are corruption: the fold refuses instead of choosing."""
    world.state = type(world.state)((), bytes(12), "", 0, tuple(_bare(file) for file in world.state.files))
    with pytest.raises(EngineBug, match="TS1654"):
        world.fold(full=True)


def _bare(file):
    return replace(file, deleted=None)
