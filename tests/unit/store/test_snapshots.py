"""Finding snapshots: hints are checked, ids and times answer, a claim never replaces."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablestore_engine.errors import NotFound
from tests.unit.store.table_world import make_table, open_table, put, row


@pytest.mark.parametrize("hint", [b"", b"1", b"2", b"9", b"rubbish", None])
def test_a_wrong_hint_never_hides_or_invents_a_snapshot(tmp_path: Path, hint: bytes | None) -> None:
    """Whatever LATEST and EARLIEST say, three snapshots are 1 to 3."""
    store = make_table(tmp_path)
    for number in range(3):
        put(store, row(number))
    for path in (store.context.layout.latest_hint, store.context.layout.earliest_hint):
        store.fileio.delete(path) if hint is None else store.fileio.replace(path, hint)
    fresh = open_table(tmp_path).snapshots
    assert fresh.find_latest_id() == 3
    assert fresh.find_earliest_id() in ((1, 2) if hint == b"2" else (1,))
    assert fresh.list_ids() == (1, 2, 3)


def test_an_empty_table_has_no_snapshot(tmp_path: Path) -> None:
    """None, not an error; asking for one by id or time is NotFound."""
    snapshots = make_table(tmp_path).snapshots
    assert (snapshots.find_latest(), snapshots.find_latest_id(), snapshots.find_earliest_id()) == (
        None,
        None,
        None,
    )
    with pytest.raises(NotFound, match="TS1302"):
        snapshots.get(1)
    with pytest.raises(NotFound, match="TS1303"):
        snapshots.get_by_timestamp(10**15)


def test_time_travel_takes_the_newest_at_or_before(tmp_path: Path) -> None:
    """Exactly at, between and after commits; before the first is NotFound."""
    store = make_table(tmp_path)
    for number in range(3):
        put(store, row(number))
    first, second, third = (one.time_millis for one in store.snapshots.list_all())
    assert store.snapshots.get_by_timestamp(second).id == 2
    assert store.snapshots.get_by_timestamp(third - 1).id == 2
    assert store.snapshots.get_by_timestamp(third + 10**9).id == 3
    assert store.snapshots.find_by_timestamp(first - 1) is None
    with pytest.raises(NotFound, match="TS1303"):
        store.snapshots.get_by_timestamp(first - 1)


def test_a_claim_never_replaces(tmp_path: Path) -> None:
    """The second claim of an id is False and the first content stays."""
    store = make_table(tmp_path)
    put(store, row(1))
    snapshot = store.snapshots.get(1)
    assert not store.snapshots.claim(snapshot)
    assert store.snapshots.get(1) == snapshot


def test_a_listing_sees_a_snapshot_that_was_made_anew(tmp_path: Path) -> None:
    """After a rollback the same id holds other content, which the memory must not hide."""
    store = make_table(tmp_path)
    put(store, row(1))
    put(store, row(2), properties={"long": "x" * 50})
    before = store.snapshots.list_all()[-1]
    store.rollback(1)
    put(open_table(tmp_path), row(3))
    assert store.snapshots.list_all()[-1] != before
