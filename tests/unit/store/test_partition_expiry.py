"""Partitions that expire: rows, changelog, files, and everybody else who uses the table meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tablestore_engine.errors import FixRequest, Unsupported
from tablestore_engine.format.snapshot import CommitKind
from tablestore_engine.store.expiry.expire_partitions import PartitionReport
from tablestore_engine.store.expiry.expire_tag import delete_tag
from tablestore_engine.store.files.bucket_state import BucketChange
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.tasks.bucket_task import BucketTask
from tablestore_engine.store.tasks.task_runner import FileAccess, run_tasks
from tests.doubles.faults import SimulatedCrash, crashing, seeded_runtime
from tests.unit.store.expiry_world import newest, strays
from tests.unit.store.table_world import (
    Row,
    acting,
    changes,
    changes_of,
    delete,
    make_table,
    open_table,
    put,
    rows_of,
)

# the clocks of seeded runtimes begin at 2023-11-14T22:13:20
COLUMNS = {"dt": "STRING", "id": "BIGINT", "v": "INT"}
WEEK = {"partition.expiration-time": "7 d"}
OLD, OLDER, YOUNG, EDGE = "2023-11-01", "2023-10-30", "2023-11-08", "2023-11-07 22:13:21"


def at(dt: str | None, number: int, v: int = 0) -> Row:
    """A row of a partition."""
    return {"dt": dt, "id": number, "v": v}


def make(root: Path, *, keyed: bool = True, **options: str) -> TableStore:
    """A table partitioned by dt, whose partitions expire after a week."""
    keys = ("dt", "id") if keyed else ()
    said = {**WEEK, **{key.replace("__", ".").replace("_", "-"): text for key, text in options.items()}}
    return make_table(root, keys=keys, partitions=("dt",), columns=COLUMNS, options=said)


def folders(store: TableStore) -> set[str]:
    """Partitions that the newest snapshot has files in."""
    return {str(file.partition[0]) for file in store.plan_scan().files}


@pytest.mark.parametrize("keyed", [True, False])
def test_old_partitions_go_in_one_commit(tmp_path: Path, keyed: bool) -> None:
    """Their rows are deletes of one changelog, exactly; no file of theirs stays in the newest snapshot; the rest, and
    what the dry run told, is as it was.
    """
    store = make(tmp_path, keyed=keyed)
    put(store, at(OLD, 1), at(OLD, 2), at(OLDER, 1), at(YOUNG, 1), at(EDGE, 1), at("x", 1))
    put(store, at(OLD, 3, 5), at(YOUNG, 2))
    before = store.latest()
    assert before is not None
    told = store.expire_partitions(dry_run=True)
    assert store.latest() == before
    done = store.expire_partitions()
    assert told == PartitionReport((f"dt={OLDER}", f"dt={OLD}"), rows=4, timeless=1)
    assert done == PartitionReport(told.partitions, 4, timeless=1, snapshot_id=before.id + 1)
    assert done.summary() == (
        f"2 partitions expired (dt={OLDER}, dt={OLD}), 4 rows, snapshot 3; 1 without a time in their values stay"
    )
    assert rows_of(store) == sorted([at(YOUNG, 1), at(EDGE, 1), at("x", 1), at(YOUNG, 2)], key=repr)
    gone = [at(OLD, 1), at(OLD, 2), at(OLDER, 1), at(OLD, 3, 5)]
    assert changes_of(store, before.id + 1) == changes(*(("-D", one) for one in gone))
    assert folders(store) == {YOUNG, EDGE, "x"}
    kind = CommitKind.APPEND if keyed else CommitKind.OVERWRITE
    kinds = [kind, CommitKind.COMPACT] if keyed else [kind]
    assert [one.commit_kind for one in store.snapshots.list_all()][before.id :] == kinds
    assert store.verify() == ()
    assert store.expire_partitions() == PartitionReport(timeless=1)


def test_a_delete_by_hand_tells_the_same(tmp_path: Path) -> None:
    """The changelog of an expiry is that of deleting the keys, row by row."""
    expired, deleted = make(tmp_path / "a"), make(tmp_path / "b")
    rows = [at(OLD, number, number) for number in range(30)] + [at(YOUNG, 1)]
    for store in (expired, deleted):
        put(store, *rows)
    assert expired.expire_partitions().rows == 30
    delete(deleted, *rows[:30])
    assert changes_of(expired, 2) == changes_of(deleted, 2)
    assert rows_of(expired) == rows_of(deleted)


def test_values_without_a_time_stay(tmp_path: Path) -> None:
    """NULL, blank texts and what is no date never expire, and are counted."""
    store = make(tmp_path, keyed=False)
    put(store, at(None, 1), at("", 2), at("x", 3), at("2023-11-99x", 4), at(OLD, 5))
    assert store.expire_partitions(dry_run=True).timeless == 4
    assert store.expire_partitions().partitions == (f"dt={OLD}",)
    assert len(rows_of(store)) == 4


def test_so_many_at_once_and_the_oldest_first(tmp_path: Path) -> None:
    """The report says how many are left; the next call goes on."""
    store = make(tmp_path, partition__expiration_max_num="2")
    put(store, *(at(f"2023-10-0{day}", 1) for day in (3, 1, 5, 2, 4)))
    first = store.expire_partitions()
    assert first.partitions == ("dt=2023-10-01", "dt=2023-10-02")
    assert first.left == 3
    assert "; 3 more are due" in first.summary()
    assert [store.expire_partitions().left for _ in range(3)] == [1, 0, 0]
    assert rows_of(store) == []


def test_without_a_rule_nothing_expires(tmp_path: Path) -> None:
    """Asked for, the missing option is named; rules that another engine wrote and that are not built are refused."""
    plain = make_table(tmp_path / "a", keys=(), partitions=("dt",), columns=COLUMNS)
    put(plain, at(OLD, 1))
    with pytest.raises(FixRequest, match="TS1341") as refused:
        plain.expire_partitions()
    assert "partition.expiration-time" in refused.value.why
    whole = make_table(tmp_path / "b", options=WEEK)
    with pytest.raises(FixRequest, match=r"TS1341[\s\S]*no partitions"):
        whole.expire_partitions(dry_run=True)
    by_update = make(tmp_path / "c", partition__expiration_strategy="update-time")
    put(by_update, at(OLD, 1))
    with pytest.raises(Unsupported, match="TS1137"):
        by_update.expire_partitions()
    assert len(rows_of(by_update)) == 1
    assert make(tmp_path / "d").expire_partitions() == PartitionReport()


def test_old_states_keep_their_rows(tmp_path: Path) -> None:
    """Snapshots, a tag and a staged snapshot show what they showed; files go when the snapshots expire, and then only
    what the tag keeps is left.
    """
    store = make(tmp_path)
    rows = [at(OLD, 1), at(YOUNG, 1)]
    put(store, *rows)
    store.tags.create("before", 1)
    put(store, at(YOUNG, 2), stage="gate")
    store.expire_partitions()
    assert rows_of(store) == rows[1:]
    assert rows_of(store, 1) == rows
    assert len(rows_of(store.on_staged("gate"))) == 3
    store.staging.discard("gate")
    left = strays(store)  # of the stage: for orphan cleaning
    store.expire(newest(1))
    tagged = store.plan_scan(store.tags.get("before").snapshot)
    assert sorted(store.read(tagged).to_pylist(), key=repr) == rows
    delete_tag(store.context, "before")
    assert strays(store) == left
    assert not list(Path(store.location).glob(f"dt={OLD}/*/data-*"))
    assert store.verify() == ()


def test_rows_that_come_meanwhile_go_too(tmp_path: Path) -> None:
    """A writer that is quicker brings rows into a partition that goes, and into another one: planned again, the
    former are deletes as well, the latter stay.
    """
    store = make(tmp_path)
    put(store, at(OLD, 1))
    rival = acting("commit.manifests", lambda: put(open_table(tmp_path), at(OLD, 2), at(YOUNG, 1)))
    done = open_table(tmp_path, runtime=rival).expire_partitions()
    assert done.rows == 2
    assert changes_of(store, 3) == changes(("-D", at(OLD, 1)), ("-D", at(OLD, 2)))
    assert rows_of(store) == [at(YOUNG, 1)]


@pytest.mark.parametrize("point", ["write.data_files", "commit.manifests", "commit.claimed", "commit.done"])
@pytest.mark.parametrize("nth", [1, 2])
def test_a_kill_is_made_good_by_the_next_expiry(tmp_path: Path, point: str, nth: int) -> None:
    """In the commit or in the compaction behind it: rows are there or gone as a whole, told once, and in the end
    neither rows nor files of the partition are left.
    """
    store = make(tmp_path)
    put(store, at(OLD, 1), at(OLD, 2), at(YOUNG, 1))
    dying = open_table(tmp_path, runtime=crashing(seeded_runtime(7), point, nth))
    with pytest.raises(SimulatedCrash):
        dying.expire_partitions()
    assert len(rows_of(store)) in (1, 3)
    store.expire_partitions()
    assert rows_of(store) == [at(YOUNG, 1)]
    assert folders(store) == {YOUNG}
    told = [changes_of(store, number) for number in store.snapshots.list_ids()[1:]]
    assert sum((one for one in told), changes()) == changes(("-D", at(OLD, 1)), ("-D", at(OLD, 2)))
    assert store.expire_partitions() == PartitionReport()


def test_rows_of_other_writers_are_told_first(tmp_path: Path) -> None:
    """A partition emptied by a DELETE has files without rows: they go, and nothing is told again."""
    store = make(tmp_path)
    put(store, at(OLD, 1), at(YOUNG, 1))
    delete(store, at(OLD, 1))
    assert OLD in folders(store)
    done = store.expire_partitions()
    assert (done.partitions, done.rows, done.snapshot_id) == ((f"dt={OLD}",), 0, 3)
    assert folders(store) == {YOUNG}
    assert changes_of(store, 3) == changes()


def test_the_work_is_bucket_tasks(tmp_path: Path) -> None:
    """All of it is performed by the runner that the table was given, so that large work runs where that says."""
    made = make(tmp_path, bucket="2")
    put(made, *(at(OLD, number) for number in range(20)), at(YOUNG, 1))
    ran: list[BucketTask] = []

    def run(tasks: Sequence[BucketTask], access: FileAccess) -> list[BucketChange]:
        ran.extend(tasks)
        return run_tasks(tasks, access)

    given: dict[str, Any] = {"runner": run}
    TableStore(made.fileio, made.location, made.runtime, **given).expire_partitions()
    assert [type(one).__name__ for one in ran] == ["Upsert", "Upsert", "CompactRuns", "CompactRuns"]
    assert {one.state.partition[0] for one in ran} == {OLD}
    assert rows_of(made) == [at(YOUNG, 1)]
