"""Staged snapshots: invisible until published, published as they were tested, never over somebody else's commit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.errors import NotFound, RetryError
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.schema_change import add_column
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.store.commit.commit import Committer
from tablestore_engine.store.commit.snapshot_claim import Destination
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.write_request import WriteRequest
from tests.doubles.faults import SimulatedCrash, crashing, seeded_runtime
from tests.unit.store.table_world import (
    as_table,
    changes,
    changes_of,
    make_table,
    open_table,
    put,
    row,
    rows_of,
)


def main_files(root: Path) -> dict[str, bytes]:
    """Main's snapshot and schema folders."""
    folders = (root / "demo.db/t/snapshot", root / "demo.db/t/schema")
    return {
        path.name: path.read_bytes() for folder in folders if folder.is_dir() for path in folder.iterdir()
    }


def test_a_staged_snapshot_is_read_by_its_name_only(tmp_path: Path) -> None:
    """Main does not change by a byte; the branch reads as if it were published."""
    store = make_table(tmp_path)
    put(store, row(1))
    before = main_files(tmp_path)
    report = put(store, row(1, "b"), row(2), stage="run1")
    assert (report.staged, report.snapshot_id, report.inserted, report.updated) == ("run1", 2, 1, 1)
    assert main_files(tmp_path) == before
    assert rows_of(store) == [row(1)]
    assert rows_of(store.on_staged("run1")) == [row(1, "b"), row(2)]
    assert store.on_staged("run1").verify() == ()


def test_publishing_is_the_claim_of_that_very_snapshot(tmp_path: Path) -> None:
    """After publishing, main's file is the staged one, the branch is gone, the changelog is there."""
    store = make_table(tmp_path)
    put(store, row(1))
    put(store, row(1, "b"), stage="run1")
    staged = store.staging.get("run1").snapshot
    report = store.staging.publish("run1")
    assert (report.snapshot_id, report.updated) == (2, 1)
    published = store.snapshots.get(2)
    assert replace(published, time_millis=0) == replace(staged, time_millis=0)
    assert rows_of(open_table(tmp_path)) == [row(1, "b")]
    assert changes_of(store, 2) == changes(("-U", row(1)), ("+U", row(1, "b")))
    assert store.staging.list_all() == ()
    assert not (tmp_path / "demo.db/t/branch/branch-ts_staged_run1").exists()
    assert store.verify() == ()


def test_the_time_of_a_snapshot_is_that_of_its_publication(tmp_path: Path) -> None:
    """Between staging and publishing readers see the rows before: so does who asks for that time later."""
    now = [1_000]
    clock = replace(seeded_runtime(5), now_ms=lambda: now[0])
    store = make_table(tmp_path, runtime=clock)
    put(store, row(1))
    now[0] = 2_000
    put(store, row(1, "b"), stage="run1")
    now[0] = 5_000
    store.staging.publish("run1")
    assert [store.snapshots.get_by_timestamp(one).id for one in (1_000, 4_999, 5_000)] == [1, 1, 2]
    put(store, row(1, "c"), stage="run2")
    now[0] = 3_000  # a clock that went back: times of snapshots never do
    store.staging.publish("run2")
    assert store.snapshots.get(3).time_millis == 5_000


def test_the_first_snapshot_can_be_staged(tmp_path: Path) -> None:
    """A table without snapshots: staged snapshot 1, no base."""
    store = make_table(tmp_path)
    put(store, row(1), stage="first")
    assert store.latest() is None
    assert store.staging.get("first").base_id is None
    assert store.staging.publish("first").snapshot_id == 1
    assert rows_of(store) == [row(1)]


def test_a_moved_base_cannot_be_published(tmp_path: Path) -> None:
    """Main got another snapshot: TS1308, main stays, and staging again plans on the new base."""
    store = make_table(tmp_path)
    put(store, row(1))
    put(store, row(1, "b"), stage="run1", commit_user="job", commit_identifier=1)
    put(store, row(3))
    with pytest.raises(RetryError, match="TS1308"):
        store.staging.publish("run1")
    assert rows_of(store) == [row(1), row(3)]
    report = put(store, row(1, "b"), stage="run1", commit_user="job", commit_identifier=1)
    assert report.snapshot_id == 3
    store.staging.publish("run1")
    assert rows_of(store) == [row(1, "b"), row(3)]
    assert store.verify() == ()


def test_a_rewritten_base_cannot_be_published(tmp_path: Path) -> None:
    """Rolled back and committed anew under the same id: the base is another one, so TS1308."""
    store = make_table(tmp_path)
    put(store, row(1))
    put(store, row(2))
    put(store, row(9), stage="run1")
    store.rollback(1)
    put(store, row(3))
    with pytest.raises(RetryError, match="TS1308"):
        store.staging.publish("run1")


def test_staging_and_publishing_again_change_nothing(tmp_path: Path) -> None:
    """The same identity is staged once; publishing after a crash in between only removes the branch."""
    store = make_table(tmp_path)
    put(store, row(1))
    first = put(store, row(2), stage="run1", commit_user="job", commit_identifier=1)
    again = put(open_table(tmp_path), row(2), stage="run1", commit_user="job", commit_identifier=1)
    assert (again.snapshot_id, again.inserted) == (first.snapshot_id, 1)
    store.snapshots.claim(store.staging.get("run1").snapshot)  # as if the process died after the claim
    assert store.staging.publish("run1").snapshot_id == 2
    assert store.snapshots.list_ids() == (1, 2)
    assert store.staging.list_all() == ()
    published = put(store, row(2), stage="run2", commit_user="job", commit_identifier=1)
    assert (published.snapshot_id, store.staging.list_all()) == (2, ())


def test_another_commit_replaces_a_staged_snapshot_of_that_name(tmp_path: Path) -> None:
    """Staging under a used name starts over, outcomes included."""
    store = make_table(tmp_path)
    put(store, row(1))
    put(store, row(2), stage="run")
    store.staging.record_outcome("run", "test.unique", "pass")
    put(store, row(3), stage="run")
    assert store.staging.list_all()[0].outcomes == ()
    assert rows_of(store.on_staged("run")) == [row(1), row(3)]


def test_a_staged_schema_change_comes_with_its_snapshot(tmp_path: Path) -> None:
    """Main keeps its schema until publishing; then both appear. A schema taken meanwhile stops it."""
    store = make_table(tmp_path)
    put(store, row(1))
    wider = replace(add_column(store.schema, "extra", parse_type("STRING")), id=1)
    store.write(WriteRequest(as_table([{**row(2), "extra": "e"}], wider), new_schema=wider, stage="run"))
    assert store.schema.id == 0
    assert store.on_staged("run").schema.field_names == ("id", "name", "n", "extra")
    store.staging.publish("run")
    assert open_table(tmp_path).schema.id == 1
    assert rows_of(open_table(tmp_path)) == [{**row(1), "extra": None}, {**row(2), "extra": "e"}]

    wider = replace(add_column(open_table(tmp_path).schema, "more", parse_type("INT")), id=2)
    other = replace(add_column(open_table(tmp_path).schema, "other", parse_type("INT")), id=2)
    store = open_table(tmp_path)
    store.write(WriteRequest(as_table([], wider), new_schema=wider, stage="late"))
    store.context.schemas.claim(other)
    with pytest.raises(RetryError):
        open_table(tmp_path).staging.publish("late")
    assert open_table(tmp_path).snapshots.list_ids() == (1, 2)


def test_outcomes_survive_and_are_listed(tmp_path: Path) -> None:
    """The last outcome of each test is kept beside the staged snapshot, for other processes too."""
    store = make_table(tmp_path)
    put(store, row(1), stage="b")
    put(store, row(2), stage="a", properties={"model": "orders"})
    for status in ("fail", "pass"):
        store.staging.record_outcome("a", "test.unique_id", status, "1 row")
    store.staging.record_outcome("a", "test.not_null", "pass")
    listed = open_table(tmp_path).staging.list_all()
    assert [one.name for one in listed] == ["b", "a"]
    assert {one.test_id: one.status for one in listed[1].outcomes} == {
        "test.unique_id": "pass",
        "test.not_null": "pass",
    }
    assert (listed[1].snapshot.properties or {})["model"] == "orders"
    assert [one.details for one in listed[1].outcomes] == ["", "1 row"]


def test_missing_names_are_not_found(tmp_path: Path) -> None:
    """Publishing, reading and judging what is not staged raise NotFound; discarding it is fine."""
    store = make_table(tmp_path)
    put(store, row(1), stage="x")
    store.staging.discard("x")
    store.staging.discard("x")
    with pytest.raises(NotFound, match="TS1316"):
        store.staging.publish("x")
    with pytest.raises(NotFound, match="TS1316"):
        store.staging.record_outcome("x", "t", "pass")
    with pytest.raises(NotFound, match="TS1317"):
        store.on_staged("x")


# ---- compactions while rows wait ---------------------------------------------------------------------------


def staged_upsert(root: Path, *, buckets: int = 1) -> TableStore:
    """A table with some runs, and a staged update, insert and delete."""
    store = make_table(root, options={"bucket": str(buckets)})
    for turn in range(3):
        put(store, *[row(number, f"turn {turn}") for number in range(6)])
    kinds = pa.array([0, 0, 3], pa.int8())
    rows = as_table([row(1, "staged"), row(9, "staged"), row(2)], store.schema)
    properties = {"model": "orders"}
    request = WriteRequest(rows, kinds=kinds, stage="gate", properties=properties)
    report = store.write(replace(request, commit_user="job", commit_identifier=4))
    assert (report.inserted, report.updated, report.deleted) == (1, 1, 1)
    return store


STAGED = [row(0, "turn 2"), row(1, "staged"), *[row(n, "turn 2") for n in (3, 4, 5)], row(9, "staged")]
DIFFERENCE = changes(
    ("-U", row(1, "turn 2")), ("+U", row(1, "staged")), ("+I", row(9, "staged")), ("-D", row(2, "turn 2"))
)


@pytest.mark.parametrize("buckets", [1, 4])
def test_a_compaction_does_not_make_a_stage_unpublishable(tmp_path: Path, buckets: int) -> None:
    """Rows wait, all buckets are compacted: publishing puts exactly the tested rows on top, with their changelog,
    identity and properties, once.
    """
    store = staged_upsert(tmp_path, buckets=buckets)
    tested = sorted(rows_of(store.on_staged("gate")), key=repr)
    store.compact(full=True)
    newest = store.snapshots.find_latest_id()
    assert newest is not None
    assert newest > 3
    report = store.staging.publish("gate")
    assert rows_of(open_table(tmp_path)) == tested == sorted(STAGED, key=repr)
    assert (report.snapshot_id, report.inserted, report.updated, report.deleted) == (newest + 1, 1, 1, 1)
    assert changes_of(store, newest + 1) == DIFFERENCE
    published = store.snapshots.get(newest + 1)
    assert (published.commit_user, published.commit_identifier) == ("job", 4)
    assert (published.properties or {})["model"] == "orders"
    assert store.staging.list_all() == ()
    assert store.verify() == ()


def test_a_compaction_elsewhere_leaves_the_staged_files(tmp_path: Path) -> None:
    """The compacted partition is another one: the published snapshot has the very data files that the tests read."""
    columns = {"id": "INT", "dt": "STRING"}
    store = make_table(tmp_path, keys=("id", "dt"), partitions=("dt",), columns=columns)
    for number in range(3):
        put(store, {"id": number, "dt": "old"})
    put(store, {"id": 1, "dt": "new"}, stage="gate")
    staged = store.plan_scan(store.staging.get("gate").snapshot)
    files = {file.meta.file_name for file in staged.files if file.partition == ("new",)}
    store.compact(full=True)
    store.staging.publish("gate")
    assert {file.meta.file_name for file in store.plan_scan().files if file.partition == ("new",)} == files
    assert len(rows_of(store)) == 4
    assert store.verify() == ()


def test_appended_rows_wait_through_a_compaction(tmp_path: Path) -> None:
    """An append-only table: its files were joined meanwhile, the staged ones are added."""
    store = make_table(tmp_path, keys=())
    for number in range(3):
        put(store, row(number))
    put(store, row(9), stage="gate")
    store.compact(full=True)
    assert store.latest() != store.staging.get("gate").base
    store.staging.publish("gate")
    assert rows_of(store) == [row(0), row(1), row(2), row(9)]
    assert store.verify() == ()


def test_a_staged_schema_change_waits_through_a_compaction(tmp_path: Path) -> None:
    """Columns that the stage brings appear with its rows, on the compacted table."""
    for buckets in ("1", "8"):
        store = make_table(tmp_path / buckets, options={"bucket": buckets})
        for turn in range(3):
            put(store, row(1, f"turn {turn}"))
        wider = replace(add_column(store.schema, "extra", parse_type("INT")), id=1)
        rows = as_table([{**row(1, "x"), "extra": 1}, {**row(2), "extra": 2}], wider)
        store.write(WriteRequest(rows, new_schema=wider, stage="gate"))
        store.compact(full=True)
        store.staging.publish("gate")
        assert rows_of(store) == [{**row(1, "x"), "extra": 1}, {**row(2), "extra": 2}]
        assert store.verify() == ()


def test_rows_that_changed_in_a_compaction_or_beside_it_are_tested_again(tmp_path: Path) -> None:
    """A commit of rows between the compactions, or compaction of another history: TS1308, and the stage stays."""
    store = staged_upsert(tmp_path)
    store.compact(full=True)
    put(store, row(50))
    store.compact(full=True)
    with pytest.raises(RetryError, match="TS1308"):
        store.staging.publish("gate")
    assert [one.name for one in store.staging.list_all()] == ["gate"]
    assert rows_of(store.on_staged("gate")) == sorted(STAGED, key=repr)


@pytest.mark.parametrize("point", ["commit.manifests", "commit.claimed", "stage.published"])
def test_publishing_after_a_compaction_survives_a_kill(tmp_path: Path, point: str) -> None:
    """Killed anywhere, publishing again completes it: the rows are there once."""
    store = staged_upsert(tmp_path)
    store.compact(full=True)
    dying = open_table(tmp_path, runtime=crashing(seeded_runtime(3), point))
    with pytest.raises(SimulatedCrash):
        dying.staging.publish("gate")
    fresh = open_table(tmp_path)
    fresh.staging.publish("gate")
    assert rows_of(fresh) == sorted(STAGED, key=repr)
    assert [one.commit_user for one in fresh.snapshots.list_all()].count("job") == 1
    assert fresh.verify() == ()


def test_a_compaction_beside_publishing_is_taken_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compaction takes the snapshot number in the instant of the claim: publishing goes on behind it."""
    store = staged_upsert(tmp_path)
    real = Committer.claim

    def claim(
        self: Committer, destination: Destination, snapshot: Snapshot, schema: TableSchema | None
    ) -> bool:
        monkeypatch.setattr(Committer, "claim", real)
        open_table(tmp_path).compact(full=True)
        return real(self, destination, snapshot, schema)

    monkeypatch.setattr(Committer, "claim", claim)
    store.staging.publish("gate")
    assert rows_of(open_table(tmp_path)) == sorted(STAGED, key=repr)


def test_a_staged_write_again_after_a_crash_reports_its_stage(tmp_path: Path) -> None:
    """The first run died behind its claim; the second finds the stage and says its name, so that gates know it."""
    store = make_table(tmp_path)
    put(store, row(1))
    identity = {"commit_user": "job", "commit_identifier": 1}
    with pytest.raises(SimulatedCrash):
        put(
            open_table(tmp_path, runtime=crashing(seeded_runtime(3), "stage.claimed")),
            row(2),
            stage="gate",
            **identity,
        )
    again = put(open_table(tmp_path), row(2), stage="gate", **identity)
    assert (again.staged, again.snapshot_id, again.inserted) == ("gate", 2, 1)
    store.staging.publish("gate")
    assert put(store, row(2), stage="gate", **identity).staged is None
