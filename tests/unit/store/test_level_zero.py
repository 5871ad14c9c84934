"""level_zero: files that other writers left in level 0 become a run, vectors and changelog."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.store.bucket_world import Row, World, make_schema

INSERT, BEFORE, AFTER, DELETE = range(4)
COLUMNS = {"id": "INT", "v": "STRING", "at": "INT"}


def _row(key: int, value: str, at: int = 0) -> Row:
    return {"id": key, "v": value, "at": at}


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Keys 1, 2, 3 stored with at = 5."""
    made = World(tmp_path, make_schema(COLUMNS))
    made.upsert([_row(key, "old", 5) for key in (1, 2, 3)])
    return made


def test_insert_update_delete(world: World) -> None:
    """All kinds of rows in two files: the newest number of each key counts, and the changelog is exact."""
    world.add_level_zero(
        [(10, INSERT, _row(1, "a")), (11, DELETE, _row(2, "x")), (12, INSERT, _row(4, "new"))]
    )
    world.add_level_zero([(13, AFTER, _row(1, "b")), (14, BEFORE, _row(4, "new"))])
    change = world.compact_level_zero()
    assert world.changelog(change) == [
        (BEFORE, _row(1, "old", 5)),
        (AFTER, _row(1, "b")),
        (DELETE, _row(2, "old", 5)),
    ]
    assert world.rows() == [_row(1, "b"), _row(3, "old", 5)]
    assert sorted(meta.level for meta in change.removed) == [0, 0]
    (meta,) = change.added
    assert (meta.level, meta.file_source, meta.min_sequence_number, meta.max_sequence_number) == (
        18,
        1,
        13,
        13,
    )


def test_equal_numbers_lose_to_the_later_commit(world: World) -> None:
    """A writer that prepared beside us used numbers we used too; its rows were committed later and win."""
    world.add_level_zero([(0, INSERT, _row(1, "theirs"))])
    world.compact_level_zero()
    assert world.rows()[0] == _row(1, "theirs")


def test_sequence_field_protects_stored_rows(tmp_path: Path) -> None:
    """With a sequence field an older row from level 0 loses, in level 0 and against stored rows."""
    world = World(tmp_path, make_schema(COLUMNS, options={"sequence.field": "at"}))
    world.upsert([_row(key, "old", 5) for key in (1, 2, 3)])
    world.add_level_zero([(10, INSERT, _row(1, "older", 4)), (11, INSERT, _row(2, "newest", 9))])
    world.add_level_zero([(12, INSERT, _row(2, "newer", 7))])
    change = world.compact_level_zero()
    assert (change.updated, change.unchanged) == (1, 1)
    assert world.rows() == [_row(1, "old", 5), _row(2, "newest", 9), _row(3, "old", 5)]


def test_only_deletes_of_absent_keys(world: World) -> None:
    """Level 0 that changes nothing is removed all the same, without data or changelog."""
    world.add_level_zero([(10, DELETE, _row(9, "x"))])
    change = world.compact_level_zero()
    assert (len(change.removed), change.added, change.changelog, change.deletion_vectors) == (1, (), (), None)


def test_into_an_empty_bucket(tmp_path: Path) -> None:
    """A bucket that only other writers filled gets its first run on the top level."""
    world = World(tmp_path, make_schema(COLUMNS))
    world.add_level_zero([(0, INSERT, _row(1, "a")), (1, INSERT, _row(2, "b"))])
    change = world.compact_level_zero()
    assert change.added[0].level == 19
    assert [kind for kind, _ in world.changelog(change)] == [INSERT, INSERT]
    assert world.rows() == [_row(1, "a"), _row(2, "b")]
