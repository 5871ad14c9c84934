"""A writer that dies anywhere: Iceberg metadata is a state of the table, at most one commit behind, and catches up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tablestore_engine.fileio.base import find
from tablestore_engine.store.expiry.expire_tag import delete_tag
from tablestore_engine.store.table_store import TableStore
from tests.doses import cases
from tests.doubles.faults import SimulatedCrash, counting, crashing, seeded_runtime
from tests.unit.store.expiry_world import newest
from tests.unit.store.iceberg_world import (
    assert_complete,
    data_files,
    hinted,
    iceberg_table,
    listed,
    metadata,
    planned,
    snapshot_ids,
    sync,
    unnamed,
)
from tests.unit.store.orphan_world import clean
from tests.unit.store.table_world import delete, open_table, put, row

_COMMIT = ("write.data_files", "commit.manifests", "commit.claimed", "commit.done")
_SYNC = ("iceberg.files", "iceberg.claimed")
Command = Callable[[TableStore], object]


def commit(store: TableStore) -> None:
    """As a warehouse does it."""
    put(store, row(1, "new"), row(9))
    sync(store)


def expire(store: TableStore) -> None:
    """A commit and what it takes away."""
    commit(store)
    store.expire(newest(1))


def roll_back(store: TableStore) -> None:
    """To the second snapshot."""
    store.rollback(2)


def untag(store: TableStore) -> None:
    """A tag of an expired snapshot."""
    delete_tag(store.context, "old")


SCENARIOS: dict[str, Command] = {"commit": commit, "expire": expire, "roll_back": roll_back, "untag": untag}
PASSED: dict[str, Mapping[str, int]] = {  # how often a command passes each crash point
    "commit": dict.fromkeys((*_COMMIT, *_SYNC), 1),
    "expire": {
        **dict.fromkeys((*_COMMIT, "expire.hidden", "expire.data", "expire.metadata", "expire.snapshots"), 1),
        **dict.fromkeys(_SYNC, 2),
    },
    "roll_back": dict.fromkeys(("rollback.kept", *_SYNC), 1),
    "untag": dict.fromkeys(_SYNC, 1),
}
KILLS = [
    pytest.param(
        *(scenario, point, nth), marks=[] if scenario in ("commit", "roll_back") else pytest.mark.nightly
    )
    for scenario, points in PASSED.items()
    for point, count in points.items()
    for nth in range(1, count + 1)
]


def prepare(root: Path, scenario: str) -> TableStore:
    """Five snapshots with their metadata; for `untag` only a tag has the first of them."""
    store = iceberg_table(root, options={"bucket": "2"})
    for number in range(4):
        put(store, *(row(one, f"{number}") for one in range(number, number + 4)))
        sync(store)
    delete(store, {"id": 2})
    sync(store)
    if scenario == "untag":
        store.tags.create("old", 1)
        store.expire(newest(2))
    return store


def assert_right(store: TableStore, at_least: int) -> None:
    """Each listed state that the table has is as our plan has it, and its files are there."""
    for value in (metadata(store), hinted(store)):
        assert value["current-snapshot-id"] >= at_least
        for number in set(snapshot_ids(value)) & set(store.snapshots.list_ids()):
            assert listed(store, number, value) == planned(store, number)
            assert listed(store, number, value).keys() <= data_files(store)


@pytest.mark.parametrize(("scenario", "point", "nth"), KILLS)
def test_a_kill_leaves_a_right_state_and_the_next_sync_is_complete(
    tmp_path: Path, scenario: str, point: str, nth: int
) -> None:
    """What is listed can be read; the newest listed state is never older than before, but for a rollback."""
    before = prepare(tmp_path, scenario).snapshots.find_latest_id() or 0
    runtime = crashing(seeded_runtime([*PASSED[scenario]].index(point)), point, nth)
    with pytest.raises(SimulatedCrash):
        SCENARIOS[scenario](open_table(tmp_path, runtime=runtime))
    reopened = open_table(tmp_path)
    assert_right(reopened, 2 if scenario == "roll_back" else before)
    sync(reopened)
    assert_complete(open_table(tmp_path))
    clean(open_table(tmp_path))
    assert_complete(open_table(tmp_path))
    assert unnamed(open_table(tmp_path)) == set()


@pytest.mark.parametrize("scenario", cases(sorted(SCENARIOS), 2))
def test_a_scenario_is_killed_at_every_point_that_it_passes(tmp_path: Path, scenario: str) -> None:
    """No point between a claim and its metadata is missed."""
    prepare(tmp_path, scenario)
    passed: Counter[str] = Counter()
    SCENARIOS[scenario](open_table(tmp_path, runtime=counting(seeded_runtime(1), passed)))
    assert passed == PASSED[scenario]


def test_a_table_whose_first_metadata_was_not_claimed_has_none(tmp_path: Path) -> None:
    """No reader finds half of it."""
    store = iceberg_table(tmp_path, runtime=crashing(seeded_runtime(1), "iceberg.files"))
    put(store, row(1))
    with pytest.raises(SimulatedCrash):
        sync(store)
    assert find(store.fileio, f"{store.location}/metadata/version-hint.text") is None
    clean(open_table(tmp_path))
    sync(open_table(tmp_path))
    assert_complete(open_table(tmp_path))
    assert unnamed(open_table(tmp_path)) == set()
