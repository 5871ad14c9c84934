"""Staged snapshots: invisible until published, published bit for bit, never over somebody else's commit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tablestore_engine.errors import NotFound, RetryError
from tablestore_engine.format.schema_change import add_column
from tablestore_engine.format.types import parse_type
from tablestore_engine.store.write import WriteRequest
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
    assert store.snapshots.get(2) == staged
    assert rows_of(open_table(tmp_path)) == [row(1, "b")]
    assert changes_of(store, 2) == changes(("-U", row(1)), ("+U", row(1, "b")))
    assert store.staging.list_all() == ()
    assert not (tmp_path / "demo.db/t/branch/branch-ts_staged_run1").exists()
    assert store.verify() == ()


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
    assert store.staging.get("run").outcomes == {}
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
    store.schemas.claim(other)
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
    assert listed[1].outcomes == {"test.unique_id": "pass", "test.not_null": "pass"}
    assert (listed[1].snapshot.properties or {})["model"] == "orders"
    assert [one.details for one in store.staging.read_outcomes("a")] == ["", "1 row"]


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
