"""Branches of a table: what they share with main stays, whoever expires, cleans up, deletes or is killed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from tablestore_engine.errors import FixRequest, NotFound, RetryError, TablestoreError
from tablestore_engine.format.data_type import DataType
from tablestore_engine.format.layout import MAIN_BRANCH
from tablestore_engine.format.schema_change import add_column
from tablestore_engine.store.alter import SchemaChange
from tablestore_engine.store.branches.branch_changes import create_branch, delete_branch, fast_forward
from tablestore_engine.store.branches.branch_list import list_user_branches
from tablestore_engine.store.expiry.expire_tag import delete_tag
from tablestore_engine.store.table_store import TableStore
from tests.doubles.faults import SimulatedCrash, crashing, seeded_runtime
from tests.unit.store.expiry_world import newest, visible, written
from tests.unit.store.orphan_world import clean
from tests.unit.store.table_world import Row, acting, delete, open_table, put, row, rows_of

States = dict[str, list[Row]]


def every_state(store: TableStore) -> States:
    """Rows of each snapshot and tag of main and of all branches, as a new process reads them."""
    found: States = {}
    for name in (MAIN_BRANCH, *list_user_branches(store.context)):
        fresh = open_table(Path(store.location).parent.parent)
        one = fresh if name == MAIN_BRANCH else fresh.on_branch(name)
        found |= {f"{name}: {state}": rows for state, rows in visible(one).items()}
    return found


def main_and_branch(root: Path) -> TableStore:
    """Main with snapshots 1 to 8, compacted; branch dev, made from snapshot 3, with 4 commits of its own."""
    store = written(root, 4)
    create_branch(store.context, "dev", snapshot=3)
    dev = store.on_branch("dev")
    for number in range(3):
        put(dev, row(10 + number, "dev"), row(number, "dev"))
    delete(dev, {"id": 2})
    for number in range(4):
        put(store, row(20 + number, "main"), row(number, "main"))
    store.compact(full=True)
    return store


def left(states: States, gone: Callable[[str], bool]) -> States:
    """Without those that were to go."""
    return {name: rows for name, rows in states.items() if not gone(name)}


def test_a_branch_has_its_own_line_and_main_has_its_own(tmp_path: Path) -> None:
    """Both write beside each other: neither sees the other's rows, and both are whole."""
    store = main_and_branch(tmp_path)
    dev = store.on_branch("dev")
    assert {one["id"] for one in rows_of(dev)} >= {10, 11, 12}
    assert not {one["id"] for one in rows_of(dev)} & {20, 21, 22, 23}
    assert not {one["id"] for one in rows_of(store)} & {10, 11, 12}
    assert dev.snapshots.list_ids() == (3, 4, 5, 6, 7)
    assert store.verify() == ()
    assert dev.verify() == ()


@pytest.mark.parametrize("keep", [1, 2])
def test_expiry_of_main_keeps_what_a_branch_needs(tmp_path: Path, keep: int) -> None:
    """All states of the branch read as before, also after orphan files are deleted."""
    store = main_and_branch(tmp_path)
    before = every_state(store)
    assert store.expire(newest(keep)).snapshots
    assert every_state(store) == left(
        before, lambda name: name.startswith("main") and name not in every_state(store)
    )
    clean(store)
    assert every_state(store) == left(
        before, lambda name: name.startswith("main") and name not in every_state(store)
    )
    assert store.on_branch("dev").verify() == ()


def test_expiry_of_a_branch_keeps_what_main_needs_and_the_other_way_round(tmp_path: Path) -> None:
    """The branch has lost its first snapshots: its numbers say nothing about the files that it shares."""
    store = main_and_branch(tmp_path)
    create_branch(store.context, "late", snapshot=6)
    before = every_state(store)
    assert store.on_branch("dev").expire(newest(1)).snapshots
    assert every_state(store) == left(
        before, lambda name: name in {f"dev: snapshot {n}" for n in range(3, 7)}
    )
    put(store, row(30))
    before = every_state(store)
    assert store.expire(newest(1)).snapshots
    newest_id = store.snapshots.find_latest_id()
    kept = left(before, lambda name: name.startswith("main") and name != f"main: snapshot {newest_id}")
    assert every_state(store) == kept
    clean(store)
    assert every_state(store) == kept


def test_deleting_a_tag_keeps_what_a_branch_made_from_it_needs(tmp_path: Path) -> None:
    """The tag's snapshot has expired; the branch is a copy of it."""
    store = written(tmp_path, 5)
    store.tags.create("old", 1)
    store.expire(newest(1))
    create_branch(store.context, "dev", tag="old")
    before = every_state(store)
    delete_tag(store.context, "old")
    assert every_state(store) == left(before, lambda name: name == "main: tag old")
    assert rows_of(store.on_branch("dev"))


def test_deleting_a_branch_frees_its_files_and_no_others(tmp_path: Path) -> None:
    """Main reads as before; files of the branch alone are orphan files."""
    store = main_and_branch(tmp_path)
    before = left(every_state(store), lambda name: name.startswith("dev"))
    delete_branch(store.context, "dev")
    assert list_user_branches(store.context) == ()
    report = clean(store)
    assert len(report.found) > 0
    assert every_state(store) == before
    assert store.verify() == ()
    with pytest.raises(NotFound, match="TS1346"):
        store.on_branch("dev")


# ---- kills -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["branch.copied", "branch.schema", "branch.created"])
def test_a_killed_creation_is_repeated_or_deleted(tmp_path: Path, point: str) -> None:
    """Before its end there is no branch; cleaning up harms nobody; the same call ends it."""
    store = written(tmp_path, 5)
    before = every_state(store)
    killed = open_table(tmp_path, runtime=crashing(seeded_runtime(7), point))
    with pytest.raises(SimulatedCrash):
        create_branch(killed.context, "dev", snapshot=2)
    assert left(every_state(store), lambda name: name.startswith("dev")) == before
    store.expire(newest(2))
    clean(store)
    assert left(every_state(store), lambda name: name.startswith("dev")) == left(
        before, lambda name: name not in every_state(store)
    )
    if list_user_branches(store.context):
        assert rows_of(store.on_branch("dev")) == before["main: snapshot 2"]
        return
    delete_branch(store.context, "dev")
    create_branch(store.context, "dev", snapshot=4)
    assert rows_of(store.on_branch("dev")) == before["main: snapshot 4"]


def run_all(steps: Iterable[Callable[[TableStore], object]], store: TableStore) -> None:
    """One after the other."""
    for step in steps:
        step(store)


@pytest.mark.parametrize(
    ("point", "nth"),
    [
        ("branch.hidden", 1),
        ("expire.hidden", 1),
        ("expire.hidden", 2),
        ("orphans.begun", 1),
        ("orphans.looked", 1),
    ],
)
def test_a_kill_at_any_point_loses_no_row_of_another_branch(tmp_path: Path, point: str, nth: int) -> None:
    """Deleting a branch, expiry of main and of a branch, cleaning: each killed once, then run to the end."""
    store = main_and_branch(tmp_path)
    create_branch(store.context, "other", snapshot=2)
    put(store.on_branch("other"), row(50, "other"))
    before = every_state(store)
    killed = open_table(tmp_path, runtime=crashing(seeded_runtime(11), point, nth))
    steps: tuple[Callable[[TableStore], object], ...] = (
        lambda one: one.expire(newest(1)),
        lambda one: one.on_branch("other").expire(newest(1)),
        lambda one: delete_branch(one.context, "dev"),
        clean,
    )
    with pytest.raises(SimulatedCrash):
        run_all(steps, killed)
    for step in steps:
        try:
            step(open_table(tmp_path))
        except NotFound as gone:
            assert gone.code == "TS1346"  # noqa: PT017 - the branch was deleted before the kill
    last = store.snapshots.find_latest_id()
    found = every_state(store)
    assert found == left(before, lambda name: name not in {f"main: snapshot {last}", "other: snapshot 3"})
    assert store.verify() == ()


@pytest.mark.parametrize(
    ("point", "nth"),
    [
        ("branch.forward_schema", 1),
        *product(["branch.forward", "commit.claimed", "commit.done"], [1, 2, 3]),
    ],
)
def test_a_killed_fast_forward_is_at_a_snapshot_of_the_branch_and_continues(
    tmp_path: Path, point: str, nth: int
) -> None:
    """Main has the first snapshots of the branch, whole; the same call brings the others."""
    store = written(tmp_path, 4)
    create_branch(store.context, "dev", snapshot=4)
    dev = store.on_branch("dev")
    put(dev, row(10, "dev"))
    dev.alter(_added())
    put(dev, row(11, "dev"))
    states = {number: rows_of(dev, number) for number in dev.snapshots.list_ids()}
    killed = open_table(tmp_path, runtime=crashing(seeded_runtime(3), point, nth))
    with pytest.raises(SimulatedCrash):
        fast_forward(killed.context, "dev")
    number = store.snapshots.find_latest_id()
    assert number is not None
    assert rows_of(open_table(tmp_path), number) == states[number]
    fast_forward(open_table(tmp_path).context, "dev")
    fresh = open_table(tmp_path)
    assert {number: rows_of(fresh, number) for number in range(4, 8)} == states
    assert fresh.schema == replace(dev.schema, time_millis=fresh.schema.time_millis)
    assert fresh.verify() == ()
    put(fresh, row(12, more=1))
    assert {one["id"] for one in rows_of(fresh)} >= {10, 11, 12}


def _added() -> SchemaChange:
    return lambda schema: add_column(schema, "more", DataType("INT"))


# ---- beside each other -----------------------------------------------------------------------------------------


def test_a_commit_to_main_is_never_lost_to_a_fast_forward(tmp_path: Path) -> None:
    """Before it, and between its look and its claim: both are refused, and main is as its writer left it."""
    store = written(tmp_path, 4)
    create_branch(store.context, "dev", snapshot=4)
    put(store.on_branch("dev"), row(10, "dev"))
    racing = open_table(tmp_path, runtime=acting("branch.forward", lambda: put(store, row(20, "main"))))
    for one in (racing, store):
        with pytest.raises(RetryError, match="TS1363"):
            fast_forward(one.context, "dev")
    assert {one["id"] for one in rows_of(store)} & {10, 20} == {20}
    assert store.verify() == ()


def test_a_branch_of_a_snapshot_that_expires_meanwhile_is_not_made(tmp_path: Path) -> None:
    """The expiry has not seen the branch: it must not stay."""
    store = written(tmp_path, 5)
    racing = open_table(tmp_path, runtime=acting("branch.copied", lambda: store.expire(newest(1))))
    with pytest.raises(NotFound, match="TS1302"):
        create_branch(racing.context, "dev", snapshot=2)
    assert list_user_branches(store.context) == ()
    assert clean(store) is not None
    assert store.verify() == ()


def test_an_empty_branch_becomes_the_table_only_of_an_empty_table(tmp_path: Path) -> None:
    """Its snapshot 1 is not main's."""
    store = written(tmp_path, 3)
    create_branch(store.context, "empty")
    assert rows_of(store.on_branch("empty")) == []
    with pytest.raises(FixRequest, match="TS1364"):
        fast_forward(store.context, "empty")
    put(store.on_branch("empty"), row(1))
    with pytest.raises(RetryError, match="TS1363"):
        fast_forward(store.context, "empty")


@pytest.mark.parametrize("name", ["", "main", "17", "a/b", "ts_staged_x", "dev"])
def test_names_that_a_branch_cannot_have(tmp_path: Path, name: str) -> None:
    """Those of Paimon's rule, those of staged snapshots, and one that is there."""
    store = written(tmp_path, 3)
    create_branch(store.context, "dev")
    with pytest.raises(TablestoreError, match=r"TS1107|TS1350"):
        create_branch(store.context, name)
