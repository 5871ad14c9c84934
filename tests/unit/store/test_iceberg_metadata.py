"""Iceberg metadata lists each state of a table as our own scan plan has it, whatever is done with the table."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from tablestore_engine.errors import RetryError, TablestoreError
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.schema_change import add_column, rename_column, set_options
from tablestore_engine.format.type_text import parse_type
from tablestore_engine.iceberg import manifest_plan
from tablestore_engine.store.clone import clone_table
from tablestore_engine.store.expiry.expire_tag import delete_tag
from tablestore_engine.store.iceberg_metadata import iceberg_sync
from tablestore_engine.store.iceberg_metadata.iceberg_cleanup import KEPT_VERSIONS
from tablestore_engine.store.orphan_files.clean_orphans import OrphanRequest
from tablestore_engine.store.table_store import TableStore
from tests.doubles.memory_store import MemoryFileIO
from tests.unit.store.expiry_world import newest
from tests.unit.store.iceberg_world import (
    ICEBERG,
    assert_complete,
    avro,
    data_files,
    hinted,
    iceberg_table,
    listed,
    manifests,
    metadata,
    metadata_files,
    metadata_folder,
    planned,
    snapshot_ids,
    sync,
    unnamed,
)
from tests.unit.store.orphan_world import AT_ONCE, UUID, clean, found
from tests.unit.store.table_world import acting, delete, make_table, open_table, overwrite, put, row

VERSIONS = ("2", "3")


def history(store: TableStore, commits: int, seed: int = 0) -> None:
    """Upserts, deletes, a compaction now and then; each with its metadata."""
    chance = random.Random(seed)
    for number in range(commits):
        ids = chance.sample(range(30), 4)
        if number and number % 4 == 3:
            delete(store, {"id": ids[0]}, {"id": ids[1]})
        elif number % 7 == 6:
            store.compact(full=True)
        else:
            put(store, *(row(one, f"{number}") for one in ids))
        sync(store)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("buckets", ["1", "3"])
def test_each_snapshot_is_listed_as_the_scan_plan_has_it(tmp_path: Path, version: str, buckets: str) -> None:
    """Upserts, deletes and compactions, in both versions of the format."""
    options = {"metadata.iceberg.format-version": version, "bucket": buckets, "num-levels": "4"}
    store = iceberg_table(tmp_path, options=options)
    history(store, 20)
    assert_complete(open_table(tmp_path))
    assert metadata(store)["format-version"] == int(version)
    assert unnamed(store) == set()


def test_a_partitioned_table_without_a_key_is_listed(tmp_path: Path) -> None:
    """NULL and strange values; an overwrite takes files away."""
    store = make_table(
        tmp_path,
        keys=(),
        partitions=("name",),
        options={**ICEBERG, "deletion-vectors.enabled": "true"},
    )
    put(store, row(1, "a"), row(2, "b/c=d é%"), row(3, " "), {"id": 4, "name": None, "n": 1})
    sync(store)
    overwrite(store, row(5, "a"))
    sync(store)
    assert_complete(open_table(tmp_path))
    [spec] = metadata(store)["partition-specs"]
    assert [one["name"] for one in spec["fields"]] == ["name"]


def test_missed_snapshots_are_listed_by_the_next_sync(tmp_path: Path) -> None:
    """A writer that died before it wrote metadata leaves nothing behind for good."""
    store = iceberg_table(tmp_path)
    for number in range(5):
        put(store, row(number))
    report = sync(store)
    assert report is not None
    assert report.added == (1, 2, 3, 4, 5)
    assert_complete(open_table(tmp_path))
    assert sync(open_table(tmp_path)).added == ()  # type: ignore[union-attr]
    assert metadata_files(store) & {"v1.metadata.json", "v2.metadata.json"} == {"v1.metadata.json"}


def test_a_staged_snapshot_is_never_listed(tmp_path: Path) -> None:
    """Only its publication lists it."""
    store = iceberg_table(tmp_path)
    put(store, row(1))
    sync(store)
    put(store, row(2), stage="gate")
    sync(store)
    assert snapshot_ids(metadata(store)) == [1]
    store.staging.publish("gate")
    sync(store)
    assert snapshot_ids(metadata(store)) == [1, 2]
    assert_complete(open_table(tmp_path))


def test_old_manifests_are_kept_and_their_number_is_bounded(tmp_path: Path) -> None:
    """A commit that only adds writes one manifest; many small ones become one."""
    store = make_table(tmp_path, keys=(), options={**ICEBERG, "compaction.min.file-num": "1000"})
    counts = []
    before: set[str] = set()
    for number in range(3 * manifest_plan.MANIFESTS_MAX):
        put(store, row(number))
        sync(store)
        [newest_one] = [one for one in metadata(store)["snapshots"] if one["snapshot-id"] == number + 1]
        paths = {one["manifest_path"] for one in manifests(store, newest_one)}
        counts.append(len(paths))
        if number in range(1, 10):
            assert before < paths
        before = paths
    assert max(counts) == manifest_plan.MANIFESTS_MAX
    assert_complete(open_table(tmp_path))


def test_row_ids_are_given_once(tmp_path: Path) -> None:
    """Ids of two files never overlap, and a file keeps its ids in a manifest that is written anew."""
    store = iceberg_table(tmp_path, options={"bucket": "3"})
    history(store, 12, seed=3)
    value = metadata(store)
    first: dict[str, tuple[int, int]] = {}
    for snapshot in value["snapshots"]:
        assert snapshot["first-row-id"] + snapshot["added-rows"] <= value["next-row-id"]
        for manifest in manifests(store, snapshot):
            if manifest["content"] == 0:
                assert manifest["first_row_id"] is not None
                for entry in avro(store.fileio, manifest["manifest_path"]):
                    file = entry["data_file"]
                    ids = (file["first_row_id"], file["first_row_id"] + file["record_count"])
                    assert first.setdefault(file["file_path"], ids) == ids
    ranges = sorted(first.values())
    assert all(one[1] <= two[0] for one, two in itertools.pairwise(ranges))


def test_schemas_of_all_listed_snapshots_are_there(tmp_path: Path) -> None:
    """ALTER TABLE writes metadata by itself."""
    store = iceberg_table(tmp_path)
    put(store, row(1))
    sync(store)
    store.alter(lambda schema: add_column(schema, "extra", parse_type("INT")))
    store.alter(lambda schema: rename_column(schema, "name", "label"))
    value = metadata(store)
    assert [one["schema-id"] for one in value["schemas"]] == [0, 1, 2]
    assert value["current-schema-id"] == 2
    assert [one["name"] for one in value["schemas"][2]["fields"]] == ["id", "label", "n", "extra"]
    assert_complete(open_table(tmp_path))


# ---- what takes states away ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
def test_expired_snapshots_are_not_listed_and_their_files_are_gone(tmp_path: Path, version: str) -> None:
    """Neither in the metadata nor on disk; what is listed is complete."""
    store = iceberg_table(tmp_path, options={"metadata.iceberg.format-version": version})
    history(store, 12)
    store.expire(newest(2))
    assert_complete(open_table(tmp_path))
    assert unnamed(store) == set()
    paths = {path for number in store.snapshots.list_ids() for path in listed(store, number)}
    assert paths <= data_files(store)


def test_an_expiry_writes_metadata_before_it_deletes(tmp_path: Path) -> None:
    """While files go, no listed state needs one of them."""
    store = iceberg_table(tmp_path)
    history(store, 6)
    seen: list[list[int]] = []
    runtime = acting("expire.hidden", lambda: seen.append(snapshot_ids(metadata(store))))
    open_table(tmp_path, runtime=runtime).expire(newest(1))
    assert seen == [list(open_table(tmp_path).snapshots.list_ids())]
    assert len(seen[0]) == 1


def test_an_expiry_without_its_metadata_deletes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else Iceberg readers would look for files that are gone."""
    store = iceberg_table(tmp_path)
    history(store, 6)
    before = store.snapshots.list_ids()

    def fails(*_: object) -> None:
        raise RetryError("TS1371", "no", why="a test", fix="none")

    monkeypatch.setattr("tablestore_engine.store.expiry.expire_snapshots.sync_iceberg", fails)
    with pytest.raises(RetryError):
        store.expire(newest(1))
    assert open_table(tmp_path).snapshots.list_ids() == before
    assert_complete(open_table(tmp_path))


def test_tags_are_refs_and_keep_their_state_listed(tmp_path: Path) -> None:
    """Also after its snapshot expired, until the tag goes."""
    store = iceberg_table(tmp_path)
    history(store, 8)
    store.tags.create("month", 2)
    sync(store)
    assert metadata(store)["refs"]["month"] == {"snapshot-id": 2, "type": "tag"}
    store.expire(newest(2))
    assert_complete(open_table(tmp_path))
    plan = store.plan_scan(store.tags.get("month").snapshot)
    expected = {file.path: frozenset(file.deleted or ()) for file in plan.files}
    assert listed(store, 2) == expected
    delete_tag(store.context, "month")
    assert "month" not in metadata(store)["refs"]
    assert_complete(open_table(tmp_path))
    assert unnamed(store) == set()


def test_a_tag_of_an_expired_snapshot_is_described_when_metadata_begins(tmp_path: Path) -> None:
    """The option came later than the tag's snapshot went."""
    store = make_table(tmp_path)
    for number in range(5):
        put(store, row(1, f"{number}"))
    store.tags.create("old", 1)
    store.expire(newest(1))
    store.alter(lambda schema: set_options(schema, ICEBERG))
    value = metadata(store)
    assert value["refs"]["old"]["snapshot-id"] == 1
    plan = store.plan_scan(store.tags.get("old").snapshot)
    assert listed(store, 1) == {file.path: frozenset(file.deleted or ()) for file in plan.files}
    assert_complete(open_table(tmp_path))


def test_a_rollback_takes_states_away_and_their_numbers_come_again(tmp_path: Path) -> None:
    """The new snapshot of a number is not the old one's files."""
    store = iceberg_table(tmp_path)
    history(store, 6)
    last = metadata(store)["last-sequence-number"]
    store.rollback(2)
    assert_complete(open_table(tmp_path))
    put(store, row(1, "other"))
    sync(store)
    assert_complete(open_table(tmp_path))
    assert metadata(store)["last-sequence-number"] > last


def test_numbers_that_came_again_before_the_metadata_are_seen(tmp_path: Path) -> None:
    """A rollback that died before its metadata, and commits without any."""
    store = iceberg_table(tmp_path)
    history(store, 5)
    for number in (5, 4):
        store.fileio.delete(store.context.layout.snapshot_path(number))
    store.snapshots.write_hints(3)
    for number in range(3):
        put(open_table(tmp_path), row(40 + number))
    sync(open_table(tmp_path))
    assert_complete(open_table(tmp_path))


def test_old_versions_go(tmp_path: Path) -> None:
    """A bounded number of them stays."""
    store = iceberg_table(tmp_path)
    for number in range(KEPT_VERSIONS + 5):
        put(store, row(number % 3, f"{number}"))
        sync(store)
    kept = sorted(
        int(name[1:].partition(".")[0])
        for name in metadata_files(store)
        if name[0] == "v" and name[1].isdigit()
    )
    assert kept == list(range(5, KEPT_VERSIONS + 6))
    assert len(metadata(store)["metadata-log"]) == KEPT_VERSIONS


def test_the_number_of_listed_states_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest ones, and tags; files of the others go."""
    monkeypatch.setattr(iceberg_sync, "STATES_MAX", 3)
    store = iceberg_table(tmp_path, options={"tablestore.expire-grace": "0"})
    put(store, row(0))
    store.tags.create("first")
    for number in range(6):
        put(store, row(number))
        sync(store)
    assert snapshot_ids(metadata(store)) == [1, 5, 6, 7]
    assert listed(store, 6) == planned(store, 6)
    assert unnamed(store) == set()


# ---- two writers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["iceberg.files", "iceberg.claimed"])
def test_two_writers_leave_the_newest_state(tmp_path: Path, point: str) -> None:
    """One commits and writes metadata while the other is about to claim, or to write the hint."""
    store = iceberg_table(tmp_path)
    put(store, row(1))

    def other() -> None:
        put(open_table(tmp_path), row(2))
        sync(open_table(tmp_path))

    sync(open_table(tmp_path, runtime=acting(point, other)))
    assert_complete(open_table(tmp_path))
    assert unnamed(store) == set()


def test_a_writer_that_always_loses_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is claimed over another writer's version."""
    store = iceberg_table(tmp_path)
    put(store, row(1))
    monkeypatch.setattr(iceberg_sync._Sync, "run", lambda _: None)
    with pytest.raises(RetryError, match="TS1371"):
        sync(store)


# ---- places and other writers ----------------------------------------------------------------------------------


def test_hadoop_catalog_has_its_own_folder(tmp_path: Path) -> None:
    """As Paimon names it; a change of the place takes the old metadata away."""
    store = iceberg_table(tmp_path, options={"metadata.iceberg.storage": "hadoop-catalog"})
    put(store, row(1))
    sync(store)
    folder = f"{tmp_path}/iceberg/demo/t/metadata"
    assert snapshot_ids(metadata(store, folder)) == [1]
    assert metadata(store, folder)["location"] == f"{tmp_path}/iceberg/demo/t"
    store.alter(lambda schema: set_options(schema, ICEBERG))
    assert_complete(open_table(tmp_path))
    assert store.fileio.list(folder) == []
    store.alter(lambda schema: set_options(schema, {"metadata.iceberg.storage": "disabled"}))
    assert metadata_files(store) == set()


def test_a_moved_table_is_described_anew(tmp_path: Path) -> None:
    """Paths in metadata are absolute."""
    store = iceberg_table(tmp_path)
    history(store, 4)
    version = hinted(store)["last-sequence-number"]
    (tmp_path / "demo.db/t").rename(tmp_path / "demo.db/t2")
    moved = TableStore(store.fileio, f"{tmp_path}/demo.db/t2", store.runtime)
    sync(moved)
    assert_complete(moved)
    newest_id = moved.snapshots.find_latest_id()
    assert newest_id is not None
    assert all(path.startswith(f"{moved.location}/") for path in listed(moved, newest_id))
    assert metadata(moved)["last-sequence-number"] > version
    clean(moved)
    assert unnamed(moved) == set()


def test_a_clone_has_its_own_metadata(tmp_path: Path) -> None:
    """None of the source's."""
    store = iceberg_table(tmp_path)
    history(store, 4)
    clone_table(store.context, TableLayout(f"{tmp_path}/demo.db/copy"))
    copy = TableStore(store.fileio, f"{tmp_path}/demo.db/copy", store.runtime)
    sync(copy)
    assert_complete(copy)
    assert metadata(copy)["table-uuid"] != metadata(store)["table-uuid"]


def test_metadata_of_another_writer_is_followed_by_ours(tmp_path: Path) -> None:
    """Its version stays, ours has the next number and lists what the table has."""
    store = iceberg_table(tmp_path)
    put(store, row(1))
    theirs = (
        b'{"format-version": 2, "table-uuid": "x", "location": "y", "last-updated-ms": 1, "snapshots": []}'
    )
    store.fileio.write(f"{metadata_folder(store)}/v7.metadata.json", theirs)
    report = sync(store)
    assert report is not None
    assert report.version == 8
    assert_complete(open_table(tmp_path))


@pytest.mark.parametrize("kind", [".metadata.json", "-m0.avro", "snap-"])
def test_damaged_metadata_is_written_anew(tmp_path: Path, kind: str) -> None:
    """Iceberg metadata can always be made from the table."""
    store = iceberg_table(tmp_path)
    history(store, 5)
    for path in Path(metadata_folder(store)).iterdir():
        if kind in path.name:
            path.write_bytes(b"damage" + path.read_bytes())
    put(open_table(tmp_path), row(50))
    sync(open_table(tmp_path))
    fresh = open_table(tmp_path)
    newest_id = fresh.snapshots.find_latest_id()
    assert newest_id is not None
    assert listed(fresh, newest_id) == planned(fresh, newest_id)


def test_metadata_on_an_object_store() -> None:
    """No folders, no renames."""
    fileio = MemoryFileIO("s3://bucket/w", itertools.count(1_700_000_000_000).__next__)
    store = iceberg_table("s3://bucket/w", fileio=fileio)
    history(store, 6)
    assert_complete(open_table("s3://bucket/w", fileio=fileio))
    store.expire(newest(2))
    assert_complete(open_table("s3://bucket/w", fileio=fileio))
    assert unnamed(store) == set()


# ---- orphan files ----------------------------------------------------------------------------------------------


def test_orphan_cleaning_takes_dead_metadata_and_nothing_else(tmp_path: Path) -> None:
    """Files of writers that died before their claim."""
    store = iceberg_table(tmp_path)
    history(store, 6)
    before = metadata_files(store)
    assert not found(store).found
    dead = {f"{UUID}-m0.avro", f"dv-{UUID}.puffin", f"snap-9-9-{UUID}.avro", f"delete-{UUID}.parquet"}
    for name in dead:
        store.fileio.write(f"{metadata_folder(store)}/{name}", b"x")
    store.fileio.write(f"{metadata_folder(store)}/notes.txt", b"x")
    assert clean(store).by_kind["iceberg"][0] == len(dead)
    assert metadata_files(store) == before | {"notes.txt"}
    assert_complete(open_table(tmp_path))


def test_orphan_cleaning_looks_at_metadata_that_is_switched_off(tmp_path: Path) -> None:
    """What a table that writes none any more has left."""
    store = iceberg_table(tmp_path)
    history(store, 3)
    kept = {path.name: path.read_bytes() for path in Path(metadata_folder(store)).iterdir()}
    store.alter(lambda schema: set_options(schema, {"metadata.iceberg.storage": "disabled"}))
    for name, data in kept.items():
        (Path(metadata_folder(store)) / name).write_bytes(data)
    clean(store)
    assert metadata_files(store) == set()


def test_a_claim_whose_files_are_being_cleaned_is_refused(tmp_path: Path) -> None:
    """A writer that slept longer than the grace period."""
    store = iceberg_table(tmp_path)
    put(store, row(1))
    request = OrphanRequest(grace_ms=AT_ONCE, delete=True)
    runtime = acting("iceberg.files", lambda: open_table(tmp_path).orphans(request))
    slow = open_table(tmp_path, runtime=runtime)
    try:
        sync(slow)
    except TablestoreError as error:
        assert error.code == "TS1328"  # noqa: PT017 - it may also win against the cleaning
    sync(open_table(tmp_path))
    assert_complete(open_table(tmp_path))
