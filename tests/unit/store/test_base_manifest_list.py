"""Manifests over many commits: what each commit writes does not grow with the table, and no live file is lost."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.binary_row import EMPTY_ROW
from tablestore_engine.format.data_file import DataFileMeta
from tablestore_engine.format.data_type import INT, DataField
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.manifest import FileKind, ManifestEntry, decode_manifest, merge_entries
from tablestore_engine.format.manifest_list import decode_manifest_list
from tablestore_engine.format.schema import TableSchema, new_schema
from tablestore_engine.format.snapshot import CommitKind, Snapshot
from tablestore_engine.store.commit.conflict_rule import ConflictScope
from tablestore_engine.store.commit.snapshot_files import Planned, SnapshotFiles
from tablestore_engine.store.files.bucket_state import BucketChange
from tablestore_engine.store.metadata.manifests import ManifestStore
from tests.doses import examples
from tests.doubles.faults import seeded_runtime
from tests.unit.format.manifest_samples import make_file

TARGET = 64 << 10
LIMITS = {
    "manifest.target-file-size": "64 kb",
    "manifest.full-compaction-threshold-size": "128 kb",
    "manifest.merge-min-count": "10",
    "manifest.compression": "none",
}


class CountingFileIO(LocalFileIO):
    """A local file system that notes the sizes of manifests as they are written, lists left out."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.written: list[int] = []

    def write(self, path: str, data: bytes) -> None:
        """As LocalFileIO."""
        if "/manifest/manifest-" in path and "manifest-list" not in path:
            self.written.append(len(data))
        super().write(path, data)


class Metadata:
    """The metadata of a table whose data files exist in name only."""

    def __init__(self, root: Path, options: dict[str, str] | None = None) -> None:
        self.fileio = CountingFileIO(str(root))
        self.layout = TableLayout(f"{root}/t")
        self.runtime = seeded_runtime(7)
        manifests = ManifestStore(self.fileio, self.layout, self.runtime)
        self.files = SnapshotFiles(self.fileio, self.layout, manifests, self.runtime)
        fields = [DataField(0, "id", INT.with_nullable(False))]
        self.schema: TableSchema = new_schema(
            fields, primary_keys=("id",), options={"bucket": "1", **LIMITS, **(options or {})}
        )
        self.head: Snapshot | None = None
        self.live: dict[str, DataFileMeta] = {}
        self._serial = 0
        self._read: dict[str, list[ManifestEntry]] = {}

    def new_files(self, count: int) -> list[DataFileMeta]:
        """Files that no commit has seen; names as long as ours are."""
        self._serial += count
        numbers = range(self._serial - count, self._serial)
        return [make_file(f"data-{self.runtime.new_uuid()}-{number}.parquet") for number in numbers]

    def commit(self, added: list[DataFileMeta], removed: list[DataFileMeta]) -> list[int]:
        """One snapshot more; the sizes of the manifests that its base list needed."""
        change = BucketChange(EMPTY_ROW, 0, added=tuple(added), removed=tuple(removed))
        planned = Planned(CommitKind.APPEND, self.schema, (change,), ConflictScope())
        delta = self.files.write_delta(planned)
        self.fileio.written.clear()
        self.head, _paths = self.files.write_base(self.head, planned, delta)
        for meta in removed:
            del self.live[meta.file_name]
        self.live.update({meta.file_name: meta for meta in added})
        return list(self.fileio.written)

    def base_sizes(self) -> list[int]:
        """Sizes of the manifests of the base list."""
        return [meta.file_size for meta in self._listed()[0]]

    def entries(self) -> list[ManifestEntry]:
        """All entries as they lie on disk, in the order in which readers take them."""
        return [
            entry for metas in self._listed() for meta in metas for entry in self._decoded(meta.file_name)
        ]

    def _decoded(self, name: str) -> list[ManifestEntry]:
        if name not in self._read:
            self._read[name] = decode_manifest(self.fileio.read(self.layout.manifest_path(name)), name)
        return self._read[name]

    def _listed(self) -> list[list]:
        assert self.head is not None
        names = (self.head.base_manifest_list, self.head.delta_manifest_list)
        return [
            decode_manifest_list(self.fileio.read(self.layout.manifest_path(name)), name) for name in names
        ]

    def verify(self) -> None:
        """Every live file once, as ADD (an ADD twice or in front of nothing raises), and nothing else."""
        found = merge_entries(self.entries()).values()
        assert all(entry.kind is FileKind.ADD for entry in found)
        assert sorted(entry.file.file_name for entry in found) == sorted(self.live)


def _replace_some(world: Metadata, choice: random.Random, count: int) -> list[int]:
    """A commit that replaces `count` files taken from anywhere in the table."""
    removed = choice.sample(list(world.live.values()), count)
    return world.commit(world.new_files(count), removed)


def _average_bytes(root: Path, files: int, commits: int) -> float:
    """Bytes of base manifests per commit, for a table of that many files of which each commit replaces 20."""
    world, choice = Metadata(root), random.Random(5)
    world.commit(world.new_files(files), [])
    written = [sum(_replace_some(world, choice, 20)) for _ in range(commits)]
    world.verify()
    return sum(written) / commits


@pytest.mark.nightly  # by day full manifests are not written anew, below
def test_bytes_per_commit_do_not_grow_with_the_table(tmp_path: Path) -> None:
    """Four times the files, each commit's changes all over them: the manifests written per commit stay as large."""
    small = _average_bytes(tmp_path / "small", 2_000, 250)
    large = _average_bytes(tmp_path / "large", 8_000, 250)
    assert small > 0
    assert large < 1.25 * small


def test_full_manifests_are_not_written_anew_at_every_commit(tmp_path: Path) -> None:
    """Of 300 commits to a table with 30 full manifests, nearly all write less than two manifests of full size."""
    world, choice = Metadata(tmp_path), random.Random(3)
    world.commit(world.new_files(10_000), [])
    written = [_replace_some(world, choice, 4) for _ in range(300)]
    assert len([size for size in world.base_sizes() if size >= TARGET]) >= 30
    assert sum(sum(sizes) >= 2 * TARGET for sizes in written) <= 3
    world.verify()


def test_a_table_that_only_grows_writes_a_full_manifest_once(tmp_path: Path) -> None:
    """Without removed files a full manifest stays for ever: its name is in every later base list."""
    world = Metadata(tmp_path)
    world.commit(world.new_files(2_000), [])
    world.commit(world.new_files(1), [])
    full = {meta.file_name for meta in world._listed()[0] if meta.file_size >= TARGET}
    assert len(full) > 5
    for _ in range(200):
        sizes = world.commit(world.new_files(10), [])
        assert sum(sizes) < 3 * TARGET
        assert full <= {meta.file_name for meta in world._listed()[0]}
    assert sum(size < TARGET for size in world.base_sizes()) <= 10
    world.verify()


def test_a_full_merge_leaves_manifests_without_removed_files_alone(tmp_path: Path) -> None:
    """Files removed from the end of the table: manifests of its beginning are not rewritten when they are settled."""
    world = Metadata(tmp_path)
    world.commit(world.new_files(3_000), [])
    world.commit(world.new_files(1), [])
    first = [meta.file_name for meta in world._listed()[0]][:5]
    newest = list(world.live.values())[-600:]
    world.commit([], newest)
    world.commit(world.new_files(1), [])
    names = [meta.file_name for meta in world._listed()[0]]
    assert names[:5] == first
    assert all(entry.kind is FileKind.ADD for entry in world.entries())
    world.verify()


@pytest.mark.parametrize("compression", ["zstd", "none"])
def test_manifests_roll_by_their_size_on_disk(tmp_path: Path, compression: str) -> None:
    """One commit of many files writes manifests of the target size, at most a block more, compressed or not."""
    world = Metadata(tmp_path, {"manifest.compression": compression})
    world.commit(world.new_files(5_000), [])
    world.commit(world.new_files(1), [])
    *full, last = world.base_sizes()
    assert len(full) >= 1
    assert all(TARGET <= size < TARGET + 20_000 for size in full)
    assert last < TARGET + 20_000
    world.verify()


@pytest.mark.parametrize("seed", range(examples(2, 30)))
def test_any_history_keeps_exactly_its_live_files(tmp_path: Path, seed: int) -> None:
    """Files come, change level and go in lots of every size: after each commit all live files are there, once."""
    choice = random.Random(seed)
    world = Metadata(
        tmp_path,
        {
            "manifest.target-file-size": "8 kb",
            "manifest.full-compaction-threshold-size": choice.choice(["4 kb", "16 kb", "40 kb"]),
            "manifest.merge-min-count": choice.choice(["2", "5", "12"]),
        },
    )
    for _ in range(examples(50, 80)):
        known = list(world.live.values())
        removed = choice.sample(
            known, choice.choice([0, 1, len(known) // 50, len(known) // 3]) if known else 0
        )
        moved = [replace(meta, level=meta.level + 1) for meta in removed if meta.level < 9]
        again = choice.sample(moved, len(moved) // 2)
        world.commit([*world.new_files(choice.choice([0, 1, 5, 120])), *again], removed)
        world.verify()
