"""Which schema a table has: the one its newest snapshot names, whatever other files lie in the folder."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from tablestore_engine.errors import OutcomeUnknown, RetryError
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.schema_change import add_column, describe_column, drop_column, rename_column
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.write_request import WriteMode, WriteRequest
from tests.doubles.faults import (
    Fault,
    FaultKind,
    FaultyFileIO,
    SimulatedCrash,
    crashing,
    seeded_runtime,
)
from tests.unit.store.table_world import as_table, make_table, open_table, put, row, rows_of

_SEEDS = itertools.count(50_000)


def wider(store: TableStore, name: str = "extra") -> TableSchema:
    """The next schema, with one more column."""
    return replace(add_column(store.schema, name, parse_type("INT")), id=store.schema.id + 1)


def other_columns(store: TableStore) -> TableSchema:
    """What a full refresh with other columns makes: `name` is another column now."""
    changed = drop_column(add_column(store.schema, "name2", parse_type("STRING")), "name")
    return replace(rename_column(changed, "name2", "name"), id=store.schema.id + 1)


def newest_file(store: TableStore) -> TableSchema:
    """The schema that engines see which take the newest file."""
    return store.context.schemas.get(store.context.schemas.list_ids()[-1])


def die_between_claims(root: Path, schema: TableSchema, **request: object) -> None:
    """A commit with a new schema that is killed when the schema is claimed and the snapshot is not."""
    dying = open_table(root, runtime=crashing(seeded_runtime(next(_SEEDS)), "commit.schema"))
    rows = as_table([dict.fromkeys(schema.field_names) | {"id": 7}], schema)
    with pytest.raises(SimulatedCrash):
        dying.write(WriteRequest(rows, new_schema=schema, **request))  # type: ignore[arg-type]


def test_a_schema_without_its_snapshot_changes_nothing(tmp_path: Path) -> None:
    """Killed between the claims of a full refresh: every reader sees the old columns and values, not NULL in them."""
    store = make_table(tmp_path)
    put(store, row(1, "kept"))
    die_between_claims(tmp_path, other_columns(store), mode=WriteMode.OVERWRITE_TABLE)
    for handle in (store, open_table(tmp_path)):
        assert handle.schema.id == 0
        assert rows_of(handle) == [row(1, "kept")]
    assert open_table(tmp_path).verify() == ()


def test_the_next_commit_builds_on_what_readers_see(tmp_path: Path) -> None:
    """After such a kill rows are written with the old schema, for engines that take the newest file too."""
    store = make_table(tmp_path)
    put(store, row(1, "kept"))
    die_between_claims(tmp_path, other_columns(store), mode=WriteMode.OVERWRITE_TABLE)
    assert newest_file(store).fields != store.schema.fields
    put(open_table(tmp_path), row(2, "new"))
    assert rows_of(open_table(tmp_path)) == [row(1, "kept"), row(2, "new")]
    assert newest_file(open_table(tmp_path)).fields == store.schema.fields


def test_a_claim_that_cannot_be_made_leaves_the_schema(tmp_path: Path) -> None:
    """The schema is created, the snapshot is not (disk errors): the table keeps its schema, and the newest file is a
    copy of it at once.
    """
    store = make_table(tmp_path)
    put(store, row(1))
    fault = Fault(FaultKind.BEFORE, "create_exclusive", "/snapshot/snapshot-2", times=99)
    failing = open_table(tmp_path, fileio=FaultyFileIO(LocalFileIO(str(tmp_path)), [fault]))
    schema = wider(store)
    with pytest.raises(OutcomeUnknown, match="TS1306"):
        failing.write(WriteRequest(as_table([{**row(2), "extra": 1}], schema), new_schema=schema))
    assert open_table(tmp_path).schema.id == 0
    assert newest_file(open_table(tmp_path)).field_names == ("id", "name", "n")


def test_the_same_command_again_takes_the_next_number(tmp_path: Path) -> None:
    """After a kill between the claims, and with junk of others in the way, the command converges."""
    store = make_table(tmp_path)
    put(store, row(1))
    for _ in range(2):
        die_between_claims(tmp_path, wider(store), commit_user="job", commit_identifier=1)
    schema = wider(open_table(tmp_path))
    rows = as_table([{**row(2), "extra": 5}], schema)
    request = WriteRequest(rows, new_schema=schema, commit_user="job", commit_identifier=1)
    assert open_table(tmp_path).write(request).snapshot_id == 2
    again = open_table(tmp_path)
    assert rows_of(again) == [{**row(1), "extra": None}, {**row(2), "extra": 5}]
    assert newest_file(again).field_names == again.schema.field_names == ("id", "name", "n", "extra")
    assert again.verify() == ()


def test_a_schema_of_another_engine_counts_at_once(tmp_path: Path) -> None:
    """Java's ALTER is a file without a snapshot: it is the table's schema, and no commit of ours takes it back."""
    store = make_table(tmp_path)
    put(store, row(1))
    assert store.context.schemas.claim(wider(store, "java"))
    assert open_table(tmp_path).schema.field_names == ("id", "name", "n", "java")
    put(open_table(tmp_path), {**row(2), "java": 3})
    assert rows_of(store) == [{**row(1), "java": None}, {**row(2), "java": 3}]
    assert newest_file(store).field_names == ("id", "name", "n", "java")


def test_a_change_beside_another_engines_change_is_planned_again(tmp_path: Path) -> None:
    """Java alters while our schema change runs: TS1307, nothing of Java's change is lost."""
    store = make_table(tmp_path)
    put(store, row(1))
    mine = wider(store, "mine")
    assert store.context.schemas.claim(wider(store, "java"))
    with pytest.raises(RetryError, match="TS1307"):
        open_table(tmp_path).write(WriteRequest(as_table([], mine), new_schema=mine))
    altered = open_table(tmp_path).alter(lambda schema: add_column(schema, "mine", parse_type("INT")))
    assert altered.field_names == ("id", "name", "n", "java", "mine")


def test_an_alteration_is_a_snapshot_of_its_own(tmp_path: Path) -> None:
    """ALTER TABLE: one snapshot without rows that names the new schema; nothing to change, no snapshot."""
    store = make_table(tmp_path)
    put(store, row(1))
    altered = store.alter(lambda schema: add_column(schema, "extra", parse_type("INT")))
    snapshot = store.snapshots.get(2)
    assert (snapshot.schema_id, snapshot.delta_record_count, snapshot.changelog_manifest_list) == (
        altered.id,
        0,
        None,
    )
    assert rows_of(store, 1) == [row(1)]
    assert rows_of(store) == [{**row(1), "extra": None}]
    assert store.alter(lambda schema: schema) == altered
    assert store.snapshots.list_ids() == (1, 2)
    assert store.verify() == ()


def test_a_killed_alteration_changes_nothing(tmp_path: Path) -> None:
    """Killed between its claims, ALTER has not happened; made again it happens once."""
    store = make_table(tmp_path)
    put(store, row(1))
    dying = open_table(tmp_path, runtime=crashing(seeded_runtime(5), "commit.schema"))
    with pytest.raises(SimulatedCrash):
        dying.alter(lambda schema: drop_column(schema, "name"))
    assert open_table(tmp_path).schema.id == 0
    open_table(tmp_path).alter(lambda schema: drop_column(schema, "name"))
    assert rows_of(open_table(tmp_path)) == [{"id": 1, "n": 0}]


def test_a_table_without_snapshots_is_altered_without_one(tmp_path: Path) -> None:
    """There are no rows that a schema could misread; the first commit names the altered schema."""
    store = make_table(tmp_path)
    store.alter(lambda schema: add_column(schema, "extra", parse_type("INT")))
    assert store.latest() is None
    put(store, {**row(1), "extra": 2})
    assert rows_of(open_table(tmp_path)) == [{**row(1), "extra": 2}]


def test_a_rollback_takes_the_schema_back(tmp_path: Path) -> None:
    """The schema is that of the snapshot that is the newest again, in the newest file too."""
    store = make_table(tmp_path)
    put(store, row(1))
    store.alter(lambda schema: add_column(schema, "extra", parse_type("INT")))
    store.rollback(1)
    assert store.schema.field_names == newest_file(store).field_names == ("id", "name", "n")
    altered = store.alter(lambda schema: add_column(schema, "other", parse_type("INT")))
    assert altered.id == store.context.schemas.list_ids()[-1] == 3
    assert rows_of(open_table(tmp_path)) == [{**row(1), "other": None}]


def test_a_staged_schema_is_nobodys_until_it_is_published(tmp_path: Path) -> None:
    """Publishing is killed between the claims: main keeps its schema; publishing again completes it."""
    store = make_table(tmp_path)
    put(store, row(1))
    schema = wider(store)
    store.write(WriteRequest(as_table([{**row(2), "extra": 1}], schema), new_schema=schema, stage="gate"))
    dying = open_table(tmp_path, runtime=crashing(seeded_runtime(5), "commit.schema"))
    with pytest.raises(SimulatedCrash):
        dying.staging.publish("gate")
    assert open_table(tmp_path).schema.id == 0
    assert rows_of(open_table(tmp_path)) == [row(1)]
    open_table(tmp_path).staging.publish("gate")
    assert rows_of(open_table(tmp_path)) == [{**row(1), "extra": None}, {**row(2), "extra": 1}]


def test_a_refused_publishing_leaves_the_schema(tmp_path: Path) -> None:
    """Main changed its rows before a staged schema change is published: TS1308; readers and writers keep the schema."""
    store = make_table(tmp_path)
    put(store, row(1))
    schema = wider(store)
    store.write(WriteRequest(as_table([{**row(2), "extra": 1}], schema), new_schema=schema, stage="gate"))
    fault = Fault(FaultKind.BEFORE, "create_exclusive", "/snapshot/snapshot-2", times=99)
    failing = open_table(tmp_path, fileio=FaultyFileIO(LocalFileIO(str(tmp_path)), [fault]))
    with pytest.raises(OutcomeUnknown):
        failing.staging.publish("gate")
    put(open_table(tmp_path), row(3))
    with pytest.raises(RetryError, match="TS1308"):
        open_table(tmp_path).staging.publish("gate")
    fresh = open_table(tmp_path)
    assert rows_of(fresh) == [row(1), row(3)]
    assert newest_file(fresh).field_names == ("id", "name", "n")


def test_comments_on_main_do_not_lose_what_is_staged(tmp_path: Path) -> None:
    """persist_docs of a gated model: describing a column while rows wait does not make them unpublishable."""
    store = make_table(tmp_path)
    put(store, row(1))
    put(store, row(2), stage="gate")
    store.alter(lambda schema: describe_column(schema, "name", "what it is called"))
    store.staging.publish("gate")
    assert rows_of(store) == [row(1), row(2)]
    assert store.schema.field("name").description == "what it is called"
    assert store.verify() == ()


def test_comments_that_a_stage_brings_and_main_got_meanwhile(tmp_path: Path) -> None:
    """A gated model whose comment changed: the staged schema has it, persist_docs puts it on main too; both agree."""
    store = make_table(tmp_path)
    put(store, row(1))
    changed = replace(describe_column(store.schema, "name", "new"), id=1)
    store.write(WriteRequest(as_table([row(2)], changed), new_schema=changed, stage="gate"))
    store.alter(lambda schema: describe_column(schema, "name", "new"))
    store.staging.publish("gate")
    assert rows_of(open_table(tmp_path)) == [row(1), row(2)]
    assert open_table(tmp_path).schema.field("name").description == "new"
    assert put(store, row(9), computed_from=store.snapshots.find_latest_id()).inserted == 1
    before = store.snapshots.find_latest_id()
    store.alter(lambda schema: describe_column(schema, "name", "newer"))
    assert put(store, row(10), computed_from=before).inserted == 1
    assert store.verify() == ()
