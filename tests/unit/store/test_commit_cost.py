"""What a commit asks of the file system does not grow with the history of the table: counted, never timed."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tablestore_engine.fileio.base import FileStatus
from tablestore_engine.fileio.local import LocalFileIO
from tests.doubles.faults import FaultyFileIO
from tests.unit.store.table_world import grow, make_table, open_table, put, row


@dataclass
class CountingFileIO(FaultyFileIO):
    """Also counts the names that come out of listings: one call may bring thousands."""

    listed: int = field(default=0)

    def list(self, path: str) -> Sequence[FileStatus]:
        """As FileIO."""
        found = super().list(path)
        self.listed += len(found)
        return found

    def take_cost(self) -> Counter[str]:
        """Calls by kind, and names listed, since the last look."""
        cost = Counter(operation for operation, _ in self.calls)
        cost["names listed"] = self.listed
        self.calls.clear()
        self.listed = 0
        return cost


def _costs_at(root: Path, snapshots: int) -> list[Counter[str]]:
    """Of a commit and the expiry behind it, through a new handle and through the same one again.

    The table is the same whatever its history: one row, changed once.
    """
    history = make_table(root)
    put(history, row(1), row(2), commit_user="history", commit_identifier=1)
    put(history, row(1, n=5), commit_user="history", commit_identifier=2)
    grow(history, snapshots)
    io = CountingFileIO(LocalFileIO(str(root)))
    store = open_table(root, fileio=io)
    costs = []
    for n in (6, 7):
        report = put(store, row(1, n=n))
        store.expire()
        costs.append(io.take_cost())
        assert report.snapshot_id == snapshots + n - 5
    return costs


def test_a_commit_costs_the_same_at_any_snapshot(tmp_path: Path) -> None:
    """At 1,000 as many calls of each kind, and names listed, as at 10: for a new process, and for one that stays."""
    assert _costs_at(tmp_path / "long", 1_000) == _costs_at(tmp_path / "short", 10)


def _cost_in(root: Path, buckets: int) -> Counter[str]:
    """Of one changed row in a table whose every bucket has files and deletion vectors."""
    store = make_table(root, options={"bucket": str(buckets), "deletion-vectors.enabled": "true"})
    for n in (1, 2):
        put(store, *(row(key, n=n) for key in range(buckets * 8)))
    io = CountingFileIO(LocalFileIO(str(root)))
    store = open_table(root, fileio=io)
    put(store, row(1, n=3))  # whatever a new handle reads once
    io.take_cost()
    put(store, row(1, n=4))
    return io.take_cost()


def test_a_commit_costs_the_same_in_any_number_of_buckets(tmp_path: Path) -> None:
    """A claim looks at what it brings (decision 0024), not at the index files of buckets that it leaves alone."""
    assert _cost_in(tmp_path / "wide", 40) == _cost_in(tmp_path / "narrow", 4)


@pytest.mark.folders
def test_a_commit_looks_at_its_table_a_bounded_number_of_times(tmp_path: Path) -> None:
    """What one commit and its expiry ask through a handle that stays open, which an object store bills one by one.

    Most of `exists_file` is the claim's look at its own files (decision 0024).
    """
    cost = _costs_at(tmp_path, 10)[1]
    asked = {kind: cost[kind] for kind in ("read", "exists", "exists_file", "list", "names listed")}
    assert asked == {"read": 15, "exists": 0, "exists_file": 13, "list": 7, "names listed": 3}


@pytest.mark.folders
def test_a_commit_syncs_each_file_and_each_folder_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An update in two buckets: files, then their folders, then the claim and LATEST, each with its folder."""
    store = make_table(tmp_path, options={"bucket": "2", "deletion-vectors.enabled": "true"})
    for n in (1, 2):
        put(store, *(row(key, n=n) for key in range(16)))
    synced: list[str] = []
    real = os.fsync

    def spy(handle: int) -> None:
        synced.append(os.path.relpath(os.readlink(f"/proc/self/fd/{handle}"), store.snapshots.layout.root))
        real(handle)

    monkeypatch.setattr(os, "fsync", spy)
    put(store, *(row(key, n=3) for key in range(16)))
    kinds = Counter(re.sub(r"[0-9a-f]{8}-.*|-[0-9]+\..*", "", one) for one in synced)
    assert kinds == {
        **dict.fromkeys(["bucket-0", "bucket-1", "index", "manifest"], 1),
        **{f"bucket-{n}/{kind}-": 1 for n in (0, 1) for kind in ("data", "changelog")},
        "index/index-": 2,
        "manifest/manifest-": 2,
        "manifest/manifest-list-": 3,
        "manifest/index-manifest-": 1,
        "snapshot/.snapshot": 1,
        "snapshot/.LATEST.": 1,
        "snapshot": 2,
    }
    assert sum(kinds.values()) == 20
    for bucket in ("bucket-0", "bucket-1"):
        files = [at for at, one in enumerate(synced) if one.startswith(f"{bucket}/")]
        assert max(files) < synced.index(bucket) < synced.index("snapshot")
