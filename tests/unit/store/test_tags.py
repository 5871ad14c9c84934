"""Tags and rollback."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablestore_engine.errors import FixRequest, NotFound
from tests.unit.store.table_world import make_table, open_table, put, row, rows_of


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


def test_a_tag_never_moves_silently(tmp_path: Path) -> None:
    """The same again is fine; another snapshot is TS1319 unless asked for; missing ones are NotFound."""
    store = make_table(tmp_path)
    with pytest.raises(NotFound, match="TS1320"):
        store.tags.create("x")
    put(store, row(1))
    put(store, row(2))
    store.tags.create("x", 1)
    store.tags.create("x", 1)
    with pytest.raises(FixRequest, match="TS1319"):
        store.tags.create("x", 2)
    store.tags.create("x", 2, replace=True)
    assert store.tags.list_all() == {"x": 2}
    with pytest.raises(NotFound, match="TS1302"):
        store.tags.create("y", 9)
    with pytest.raises(NotFound, match="TS1321"):
        store.tags.delete("y")


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
