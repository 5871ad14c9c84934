"""A disk that is really full: an own error, nothing left behind, and a table that works on."""

from __future__ import annotations

import os
import random
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tablestore_engine.errors import StorageError
from tablestore_engine.store.row_filter import SameKeys
from tablestore_engine.store.write import WriteMode
from tests.unit.store.table_world import Row, make_table, open_table, put, row, rows_of

_FREE_BYTES = 60_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MB where we may mount one; else a plain folder (see full)."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    mounted = os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    yield folder
    if mounted:
        subprocess.run(["umount", str(folder)], check=True)


@contextmanager
def full(folder: Path) -> Iterator[None]:
    """Nearly no room left: a filler on the small disk, or a limit on the size of files, which fails alike."""
    if os.path.ismount(folder):
        facts = os.statvfs(folder)
        filler = folder / ".filler"
        filler.write_bytes(bytes(facts.f_bavail * facts.f_frsize - _FREE_BYTES))
        yield
        filler.unlink()
        return
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FREE_BYTES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def _many(seed: int) -> list[Row]:
    """Rows that do not compress below the room that is left."""
    rng = random.Random(seed)
    return [row(n, rng.randbytes(60).hex()) for n in range(3_000)]


def _files(root: Path) -> set[str]:
    return {
        str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and path.name != ".filler"
    }


@pytest.mark.parametrize("buckets", ["1", "4"])
def test_a_full_disk(small_disk: Path, buckets: str) -> None:
    """The write is TS1261 with the path; files and rows are as before; then compaction and writes go on."""
    store = make_table(
        small_disk, options={"bucket": buckets, "target-file-size": "40 kb", "parquet.row-group-rows": "100"}
    )
    put(store, *(row(n) for n in range(0, 200, 2)))
    put(store, *(row(n, "b") for n in range(0, 200, 5)))
    rows, files = rows_of(store), _files(small_disk)
    with full(small_disk):
        with pytest.raises(StorageError) as refused:
            put(store, *_many(1))
        assert refused.value.code == "TS1261"
        assert str(small_disk) in refused.value.what
        assert _files(small_disk) == files
        assert rows_of(open_table(small_disk)) == rows
    store.compact()
    assert rows_of(open_table(small_disk)) == rows
    put(store, row(1, "after"))
    assert open_table(small_disk).verify() == ()
    assert len(rows_of(store)) == len(rows) + 1


def test_a_full_disk_while_rows_are_replaced(small_disk: Path) -> None:
    """Without vectors a file that loses rows is written anew; when the new rows find no room, that one goes too."""
    store = make_table(small_disk, keys=(), options={"deletion-vectors.enabled": "false"})
    put(store, *(row(n) for n in range(-20, 30)))
    rows, files = rows_of(store), _files(small_disk)
    with full(small_disk):
        with pytest.raises(StorageError) as refused:
            put(store, *_many(2), mode=WriteMode.REPLACE, replaces=SameKeys(("id",)))
        assert refused.value.code == "TS1261"
        assert _files(small_disk) == files
        assert rows_of(open_table(small_disk)) == rows
