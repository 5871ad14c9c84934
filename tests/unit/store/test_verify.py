"""verify finds each kind of damage, and none in a good table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyroaring import BitMap

from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.snapshot import CommitKind, encode_snapshot
from tablestore_engine.store.commit.commit import CommitIdentity
from tablestore_engine.store.commit.conflict_rule import ConflictScope
from tablestore_engine.store.commit.snapshot_files import Planned
from tablestore_engine.store.files.bucket_state import BucketChange
from tablestore_engine.store.metadata.snapshots import SnapshotStore
from tablestore_engine.store.table_context import committer_of
from tests.unit.store.table_world import delete, make_table, open_table, put, row


def good(root: Path) -> None:
    """Three snapshots with a vector and a changelog."""
    store = make_table(root)
    put(store, row(1), row(2))
    put(store, row(2, "b"), row(3))
    delete(store, {"id": 1})
    assert store.verify() == ()


def rewrite(root: Path, **facts: object) -> None:
    """Change facts of the newest snapshot file."""
    store = open_table(root)
    newest = store.latest()
    assert newest is not None
    store.fileio.replace(
        store.context.layout.snapshot_path(newest.id), encode_snapshot(replace(newest, **facts))
    )  # type: ignore[arg-type]


def _overwrite(path: Path, start: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    start %= len(content)
    content[start : start + len(data)] = data
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"base_manifest_list_size": 1}, "bytes long"),
        ({"total_record_count": 99}, "totalRecordCount"),
        ({"delta_record_count": 99}, "deltaRecordCount"),
        ({"changelog_record_count": 99}, "changelogRecordCount"),
        ({"index_manifest": None}, "visible twice"),
    ],
)
def test_wrong_facts_of_a_snapshot_are_found(tmp_path: Path, facts: dict[str, object], said: str) -> None:
    """Sizes, counts and a lost index manifest."""
    good(tmp_path)
    rewrite(tmp_path, **facts)
    assert said in "\n".join(open_table(tmp_path).verify())


@pytest.mark.parametrize(
    ("pattern", "damage", "said"),
    [
        ("bucket-0/data-*", lambda path: path.unlink(), "missing"),
        ("bucket-0/changelog-*", lambda path: path.write_bytes(path.read_bytes() + b"x"), "bytes long"),
        ("bucket-0/data-*", lambda path: path.write_bytes(path.read_bytes() + b"x"), "bytes long"),
        ("bucket-0/data-*", lambda path: _overwrite(path, 4, b"\0" * 200), "do not fit"),
        ("bucket-0/data-*", lambda path: _overwrite(path, -12, b"\0" * 12), "cut off"),
        ("manifest/manifest-list-*", lambda path: path.write_bytes(b"junk"), "TS11"),
        ("index/index-*", lambda path: path.write_bytes(path.read_bytes()[:-1] + b"\xff"), "TS11"),
        ("manifest/manifest-*", lambda path: path.unlink(), "TS1201"),
    ],
)
def test_damaged_files_are_found(
    tmp_path: Path, pattern: str, damage: Callable[[Path], object], said: str
) -> None:
    """A missing, longer, torn or flipped file is named."""
    good(tmp_path)
    for path in (tmp_path / "demo.db/t").glob(pattern):
        damage(path)
    assert said in "\n".join(open_table(tmp_path).verify())


def test_a_gap_in_the_ids_is_found(tmp_path: Path) -> None:
    """Snapshot 2 is missing."""
    good(tmp_path)
    store = open_table(tmp_path)
    store.fileio.delete(store.context.layout.snapshot_path(2))
    assert "gaps" in store.verify()[0]


def test_it_can_stay_with_the_metadata(tmp_path: Path) -> None:
    """deep=False does not read key columns; a lost vector stays unseen, sizes do not."""
    good(tmp_path)
    rewrite(tmp_path, index_manifest=None)
    assert open_table(tmp_path).verify(deep=False) == ()


def test_a_vector_that_points_behind_its_file(tmp_path: Path) -> None:
    """It is named together with what else is found, by metadata alone and by reading."""
    store = make_table(tmp_path)
    put(store, row(1))
    (file,) = store.plan_scan().files
    vectors = {file.meta.file_name: BitMap([7])}
    change = BucketChange(file.partition_bytes, file.bucket, deletion_vectors=vectors)
    plan = Planned(CommitKind.COMPACT, store.schema, (change,), ConflictScope())
    committer_of(store.context).commit(lambda _: plan, CommitIdentity.of(store.runtime, None, None))
    behind = f"the vector of {file.meta.file_name} points beyond its rows"
    assert [behind in problem for problem in store.verify(deep=False)] == [True]
    assert [behind in problem for problem in store.verify()] == [True, False]
    assert "TS1390" in store.verify()[1]


def test_a_snapshot_that_expires_meanwhile_is_no_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is looked at again before its missing files are reported; those of other snapshots are."""
    good(tmp_path)
    store = open_table(tmp_path)
    listed = store.context.snapshots.list_newest_first()
    oldest = store.context.snapshots.get(1)
    layout = store.context.layout
    store.fileio.delete(layout.manifest_path(oldest.delta_manifest_list))
    assert any("snapshot 1" in one for one in store.verify())
    store.fileio.delete(layout.snapshot_path(1))
    is_listed = [listed]
    monkeypatch.setattr(SnapshotStore, "list_newest_first", lambda _: is_listed[0])
    monkeypatch.setattr(SnapshotStore, "find_listed", lambda _, __: oldest)
    assert store.verify() == ()


def test_each_file_is_read_once_and_each_key_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the number of snapshots that have a file, its metadata is decoded once, its pages and its keys once."""
    store = make_table(tmp_path, options={"manifest.merge-min-count": "4"})
    for number in range(12):
        put(store, *(row(n, str(number)) for n in range(number, number + 5)))
    opened: Counter[str] = Counter()
    read, open_input = LocalFileIO.read, LocalFileIO.open_input

    def counted_read(self: LocalFileIO, path: str) -> bytes:
        opened[path] += 1
        return read(self, path)

    def counted_open(self: LocalFileIO, path: str) -> pa.NativeFile:
        opened[path] += 1
        return open_input(self, path)

    monkeypatch.setattr(LocalFileIO, "read", counted_read)
    monkeypatch.setattr(LocalFileIO, "open_input", counted_open)
    assert open_table(tmp_path).verify() == ()
    files = {
        path: count for path, count in opened.items() if "/snapshot/" not in path and "/schema/" not in path
    }
    assert len([path for path in files if "/data-" in path]) >= 12
    assert set(files.values()) == {1}, files
