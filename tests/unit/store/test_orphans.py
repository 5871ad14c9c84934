"""Orphan files: what nobody names goes, everything that anybody can read stays, and what is in doubt stops the work."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tablestore_engine.errors import FixData, RetryError
from tablestore_engine.fileio.base import FileStatus
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.runtime.moments import DAY_MS
from tablestore_engine.store.clone import clone_table
from tablestore_engine.store.orphan_files.clean_orphans import IS_YOUNG, OrphanRequest
from tablestore_engine.store.orphan_files.table_files import IS_LINK, IS_STRANGERS, IS_UNKNOWN, kind_of
from tablestore_engine.store.table_store import TableStore
from tests.doubles.faults import (
    SimulatedCrash,
    crashing,
    seeded_runtime,
)
from tests.unit.store.expiry_world import strays
from tests.unit.store.orphan_world import UUID, clean, files_of, found, history, unchanged
from tests.unit.store.table_world import (
    acting,
    make_table,
    open_table,
    put,
    row,
    rows_of,
)


def test_what_nobody_names_goes_and_all_the_rest_reads_as_before(tmp_path: Path) -> None:
    """Snapshots, an expired one's tag, a stage and changelogs; the dry run tells it and changes nothing."""
    store = history(tmp_path)
    lost = strays(store)
    assert lost
    told, before = found(store), files_of(store)
    assert files_of(store) == before
    with unchanged(store):
        done = clean(store)
    assert {one.name for one in told.found if one.kind != "folder"} == lost
    assert done.found == told.found
    assert (told.is_deleted, done.is_deleted) == (False, True)
    assert done.size_bytes == sum(size for _, size in done.by_kind.values()) > 0
    assert {kind for kind, _ in done.by_kind.items()} >= {"data", "changelog", "manifest", "index"}
    assert strays(store) == set()
    assert clean(store).found == ()
    store.staging.publish("gate")
    assert rows_of(store)


@pytest.mark.folders
def test_fresh_files_stay_for_a_day(tmp_path: Path) -> None:
    """Who is still writing has time; the clock of the table decides, to the millisecond."""
    store = history(tmp_path)
    now = int(time.time() * 1000)
    at = replace(seeded_runtime(5), now_ms=lambda: now + DAY_MS // 2)
    report = open_table(tmp_path, runtime=at).orphans(OrphanRequest(delete=True))
    assert report.found == ()
    assert report.left[IS_YOUNG] == len(strays(store))
    late = replace(seeded_runtime(6), now_ms=lambda: now + 2 * DAY_MS)
    with unchanged(store):
        assert open_table(tmp_path, runtime=late).orphans(OrphanRequest(delete=True)).found
    assert strays(store) == set()


def test_a_commit_that_ends_between_the_passes_is_safe(tmp_path: Path) -> None:
    """Its files were orphans when they were listed first, and are named when names are read again."""
    store = history(tmp_path)
    written, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        written.set()
        assert go_on.wait(60)

    writer = open_table(tmp_path, runtime=acting("commit.manifests", wait))
    thread = threading.Thread(target=lambda: put(writer, row(2, "between")))
    thread.start()
    assert written.wait(60)

    def first_pass_is_over() -> str:
        go_on.set()
        thread.join(60)
        return UUID

    runtime = replace(seeded_runtime(31), new_uuid=first_pass_is_over)
    done = clean(open_table(tmp_path, runtime=runtime))
    assert done.found
    assert "between" in [one["name"] for one in rows_of(store)]
    assert store.verify() == ()
    assert strays(store) == set()


@pytest.mark.parametrize("stage", [None, "gate"])
def test_a_writer_that_slept_through_a_cleaning_is_refused(tmp_path: Path, stage: str | None) -> None:
    """Slower than the grace: between his files and his claim all of them went. He is told, and the table is whole."""
    store = make_table(tmp_path)
    put(store, row(1))
    runtime = acting("commit.manifests", lambda: clean(open_table(tmp_path)))
    with pytest.raises(RetryError, match="TS1328"):
        put(open_table(tmp_path, runtime=runtime), row(2), stage=stage)
    assert [one["id"] for one in rows_of(store)] == [1]
    assert store.staging.list_all() == ()
    assert store.verify() == ()


@pytest.mark.folders
def test_a_claim_on_its_way_is_waited_for(tmp_path: Path) -> None:
    """While its temporary file is there and young, nothing but old temporary files goes; a dead one goes itself."""
    store = history(tmp_path)
    (waiting := Path(store.context.layout.snapshot_dir) / f".snapshot-9.{UUID}.tmp").write_bytes(b"{}")
    before, now = files_of(store), int(time.time() * 1000)
    old = now - 2 * DAY_MS
    for path in Path(store.location).rglob("*"):
        if path != waiting:
            os.utime(path, (old / 1000, old / 1000))
    clock = replace(seeded_runtime(5), now_ms=lambda: now)
    with pytest.raises(RetryError, match=r"TS1327[\s\S]*snapshot-9"):
        open_table(tmp_path, runtime=clock).orphans(OrphanRequest(delete=True))
    assert files_of(store) == before
    os.utime(waiting, (old / 1000, old / 1000))
    with unchanged(store):
        open_table(tmp_path, runtime=clock).orphans(OrphanRequest(delete=True))
    assert not waiting.exists()
    assert strays(store) == set()


@pytest.mark.folders
def test_what_is_not_the_tables_is_passed_by(tmp_path: Path) -> None:
    """Links, folders behind links, other names, other users' files, other folders; empty bucket folders go."""
    store = history(tmp_path)
    clean(store)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / f"data-{UUID}-0.parquet").write_bytes(b"mine")
    root = Path(store.location)
    (root / f"bucket-0/data-{UUID}-1.parquet").symlink_to(outside / f"data-{UUID}-0.parquet")
    (root / "bucket-7").symlink_to(outside)
    for name in ("bucket-0/notes.txt", f"bucket-0/data-{UUID}-2.parquet.bak", "manifest/README"):
        (root / name).write_bytes(b"mine")
    (root / "mine").mkdir()
    (root / f"mine/data-{UUID}-3.parquet").write_bytes(b"mine")
    (root / f"bucket-0/data-{UUID}-4.parquet").write_bytes(b"theirs")
    (root / "bucket-5").mkdir()

    def is_stranger(status: FileStatus) -> bool:
        return status.name.endswith("-4.parquet")

    before = files_of(store)
    done = clean(store, is_stranger=is_stranger)
    assert [(one.kind, one.name) for one in done.found] == [("folder", "bucket-5")]
    assert dict(done.left) == {IS_LINK: 1, IS_STRANGERS: 1, IS_UNKNOWN: 3}
    assert files_of(store) == before
    assert (outside / f"data-{UUID}-0.parquet").read_bytes() == b"mine"


def test_names_that_engines_give() -> None:
    """Ours, Java's and Python's; a name with something behind it is somebody's copy."""
    for name, kind in {
        f"data-{UUID}-0.zstd.parquet": "data",
        f"data-{UUID}-0.orc.index": "data",
        f"changelog-{UUID}-3.avro": "changelog",
        f"manifest-list-{UUID}-1": "manifest",
        f"manifest-{UUID}-crc32-0a1b2c3d": "manifest",
        f"index-manifest-{UUID}-0": "manifest",
        f"index-{UUID}-2": "index",
        f"stat-{UUID}-0": "statistics",
        f".data-{UUID}-0.parquet.{UUID}.tmp": "temporary",
        f"data-{UUID}-0.parquet~": None,
        f"copy-of-data-{UUID}-0.parquet": None,
        "data-1.parquet": None,
    }.items():
        assert kind_of(name) == kind, name


@pytest.mark.parametrize("pattern", ["manifest-list-*", "manifest-[0-9a-f]*", "index-manifest-*"])
def test_a_missing_metadata_file_stops_everything(tmp_path: Path, pattern: str) -> None:
    """It is named, and nothing is deleted: files of the same table that nobody names would be a guess."""
    store = history(tmp_path)
    needed = {path for path in files_of(store) if Path(path).name not in strays(store)}
    lost = next(
        path
        for path in sorted(Path(store.location).glob(f"manifest/{pattern}"))
        if f"manifest/{path.name}" in needed
    )
    lost.unlink()
    before = files_of(store)
    with pytest.raises(FixData, match=rf"TS1325[\s\S]*{lost.name}"):
        clean(store)
    assert files_of(store) == before


def test_snapshots_that_are_missing_stop_everything(tmp_path: Path) -> None:
    """All of them though a hint says that there were some, or one in the middle: never taken for none."""
    store = history(tmp_path)
    folder = Path(store.context.layout.snapshot_dir)
    (folder / "snapshot-5").unlink()
    before = files_of(store)
    with pytest.raises(FixData, match="TS1325"):
        clean(store)
    for path in folder.glob("snapshot-*"):
        path.unlink()
    with pytest.raises(FixData, match="TS1325"):
        clean(store)
    assert files_of(store) == {path for path in before if not path.startswith("snapshot/snapshot-")}


def test_a_table_whose_first_write_died(tmp_path: Path) -> None:
    """Nothing was ever committed: all that the write left goes."""
    store = make_table(tmp_path)
    with contextlib.suppress(SimulatedCrash):
        put(open_table(tmp_path, runtime=crashing(seeded_runtime(3), "commit.manifests")), row(1))
    assert strays(store)
    clean(store)
    assert files_of(store) == {"schema/schema-0"}
    put(store, row(1))
    assert rows_of(store) == [row(1)]


def test_changelogs_that_outlive_their_snapshots_keep_their_files(tmp_path: Path) -> None:
    """As other engines keep them, a copy of the snapshot; without its changelog list it is damage."""
    store = make_table(tmp_path)
    for number in range(4):
        put(store, row(1, f"v{number}"))
    first = store.snapshots.get(1)
    kept = (Path(store.context.layout.snapshot_dir) / "snapshot-1").read_bytes()
    names = {path.name for path in Path(store.location).rglob("changelog-*.parquet")}
    (folder := Path(store.context.layout.changelog_dir)).mkdir()
    (folder / "changelog-1").write_bytes(kept)
    (Path(store.context.layout.snapshot_dir) / "snapshot-1").unlink()
    (Path(store.context.layout.manifest_dir) / first.base_manifest_list).unlink()
    with unchanged(store):
        clean(store)
    assert {path.name for path in Path(store.location).rglob("changelog-*.parquet")} == names
    assert first.changelog_manifest_list is not None
    (Path(store.context.layout.manifest_dir) / first.changelog_manifest_list).unlink()
    with pytest.raises(FixData, match="TS1325"):
        clean(store)


def test_a_write_that_waits_for_its_place_in_a_stage_keeps_its_files(tmp_path: Path) -> None:
    """Killed between its turn and the stage's snapshot: the next writer puts it there, and reads it."""
    store = make_table(tmp_path)
    put(store, row(1))
    put(store, row(2), stage="gate", builds_on_stage=True)
    dying = open_table(tmp_path, runtime=crashing(seeded_runtime(8), "stage.claimed"))
    with pytest.raises(SimulatedCrash):
        put(dying, row(3, "waits"), stage="gate", builds_on_stage=True)
    clean(store)
    put(open_table(tmp_path), row(4), stage="gate", builds_on_stage=True)
    assert [one["name"] for one in rows_of(store.on_staged("gate"))] == ["a", "a", "waits", "a"]
    store.staging.publish("gate")
    clean(store)
    assert strays(store) == set()
    assert store.verify() == ()


def test_a_clone_and_its_source_keep_theirs(tmp_path: Path) -> None:
    """Each has names of its own for the bytes that they share."""
    store = history(tmp_path)
    copy = TableStore(LocalFileIO(str(tmp_path)), f"{tmp_path}/demo.db/copy", seeded_runtime(77))
    clone_table(store.context, TableLayout(copy.location))
    rows = rows_of(copy)
    with unchanged(store):
        assert clean(copy).found == ()
        clean(store)
    assert rows_of(copy) == rows
    assert copy.verify() == ()
