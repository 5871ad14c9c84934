"""Immutable objects on disk: right or not there, of one store, bounded, private, and never a reason to fail."""

from __future__ import annotations

import errno
import io
import itertools
import logging
import multiprocessing
import os
import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tablestore_engine.fileio import disk_cache
from tablestore_engine.fileio.disk_cache import DiskCache, open_disk_cache
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.fileio.object_cache import CachedFileIO, uncached
from tablestore_engine.fileio.store_address import parse_address
from tablestore_engine.fileio.stores import open_root
from tablestore_engine.runtime.outside_world import SYSTEM
from tablestore_engine.runtime.ownership import USERS
from tablestore_engine.store.files.parquet_input import ParquetInput
from tests.doubles.faults import seeded_runtime
from tests.doubles.request_counts import CountingFileIO

UUID = "0a0b0c0d-1111-4222-8333-444455556666"
PATH = f"s3://b12/wh/demo.db/t/manifest/manifest-{UUID}"
MIB = 1 << 20


def make(folder: Path, *, store: str = "s3  b12", capacity: int = MIB) -> DiskCache:
    """A cache of a process, whose clock ticks with each look."""
    ticks = itertools.count(1_700_000_000_000).__next__
    runtime = replace(seeded_runtime(), now_ms=ticks, new_uuid=SYSTEM.new_uuid)
    return DiskCache(store, folder / "objects", capacity, runtime)


@pytest.fixture(autouse=True)
def warned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Warnings of a new process."""
    monkeypatch.setattr(disk_cache, "_WARNED", [])
    return disk_cache._WARNED


@pytest.fixture
def counter(tmp_path: Path) -> CountingFileIO:
    """The store."""
    return CountingFileIO(LocalFileIO(str(tmp_path / "root")))


def files_of(cache: DiskCache) -> list[Path]:
    """The entries."""
    return sorted(cache.folder.iterdir())


def test_next_process_does_not_ask_for_what_was_written_or_read(
    tmp_path: Path, counter: CountingFileIO
) -> None:
    """Two new memories with one folder: the second needs no request, its `uncached` does."""
    root = str(tmp_path / "root")
    first = CachedFileIO(counter, disk=make(tmp_path))
    first.write(f"{root}/manifest-{UUID}", b"abc")
    counter.inner.write(f"{root}/index-{UUID}-0", b"read")
    first.read(f"{root}/index-{UUID}-0")
    counter.restart()
    second = CachedFileIO(counter, disk=make(tmp_path))
    assert second.read(f"{root}/manifest-{UUID}") == b"abc"
    assert second.read(f"{root}/index-{UUID}-0") == b"read"
    with second.open_input(f"{root}/manifest-{UUID}") as source:
        assert source.read() == b"abc"
    assert counter.total == 0
    uncached(second).read(f"{root}/manifest-{UUID}")
    assert counter.total == 1


def test_of_files_with_rows_the_footer_is_kept(tmp_path: Path, counter: CountingFileIO) -> None:
    """The next process opens it without a request and reads the rows right; no entry holds them."""
    path = str(tmp_path / "root" / f"data-{UUID}-0.parquet")
    table = pa.table({"id": range(9_000), "text": [f"a row of the user {number}" for number in range(9_000)]})
    cache = make(tmp_path)
    with CachedFileIO(counter, disk=cache).open_output(path) as sink:
        pq.write_table(table, sink, compression="NONE", use_dictionary=False, write_statistics=False)
    counter.restart()
    (entry,) = files_of(cache)
    assert b"a row of the user" not in entry.read_bytes()
    with ParquetInput(CachedFileIO(counter, disk=make(tmp_path)), path) as parquet:
        assert parquet.metadata.num_rows == 9_000
        assert counter.total == 0
        assert parquet.read(None).equals(table)


def test_small_files_with_rows_and_other_formats_are_not_kept(tmp_path: Path) -> None:
    """One request gives a small one whole: a footer would only add requests, and rows do not belong on this disk."""
    cache, small, rows = make(tmp_path), io.BytesIO(), PATH.replace("manifest/manifest", "bucket-0/changelog")
    pq.write_table(pa.table({"id": [1]}), small)
    cache.put(rows, len(small.getvalue()), small.getvalue())
    cache.put(rows, 70_000, b"x" * 70_000)
    cache.put(rows, 70_000, b"\xff\xff\xff\xffPAR1")
    cache.put(PATH, 100, b"only the end")
    assert not cache.folder.exists()


@pytest.mark.parametrize("at", [0, 25, 60, 70, -1])
def test_damaged_entry_is_deleted_and_fetched_again(tmp_path: Path, at: int) -> None:
    """A byte of the magic, the checksum, the size, the name or the data; and an entry that was cut."""
    cache = make(tmp_path)
    for damage in ("flip", "cut"):
        cache.put(PATH, 3, b"abc")
        (entry,) = files_of(cache)
        data = bytearray(entry.read_bytes())
        data[at] ^= 1
        entry.write_bytes(data if damage == "flip" else entry.read_bytes()[:at])
        assert cache.find(PATH) is None
        assert files_of(cache) == []
        cache.put(PATH, 3, b"abc")
        assert cache.find(PATH) == (3, b"abc")


def test_entry_of_another_store_or_name_does_not_count(tmp_path: Path) -> None:
    """Equal keys at two endpoints, in two buckets, of two accounts; and a file that was given another name."""
    places = [
        ("s3://b12/wh?endpoint=http://h:1", {}),
        ("s3://b12/wh?endpoint=http://h:2", {}),
        ("s3://b13/wh?endpoint=http://h:1", {}),
        ("s3://b12/wh", {}),
        ("s3://b12/wh", {"AWS_ENDPOINT_URL": "http://h:3"}),
        ("gs://b12/wh", {}),
        ("az://b12/wh?account=one", {}),
        ("az://b12/wh?account=two", {}),
    ]
    stores = [parse_address(text).store_name(environ) for text, environ in places]
    for number, store in enumerate(stores):
        cache = make(tmp_path, store=store)
        assert cache.find(PATH) is None
        cache.put(PATH, 1, bytes([number]))
    for number, store in enumerate(stores):
        assert make(tmp_path, store=store).find(PATH) == (1, bytes([number]))
    first, second, *_ = files_of(make(tmp_path))
    first.replace(second)
    assert sum(make(tmp_path, store=store).find(PATH) is None for store in stores) == 2


def test_folder_is_bounded_and_the_longest_unused_leave_first(tmp_path: Path) -> None:
    """Of 40 entries of 32 KiB in 1 MiB the one that was read again stays; another process sees the same bound."""
    cache = make(tmp_path)
    names = [f"{PATH}-{number}" for number in range(40)]
    for name in names:
        cache.put(name, 30_000, bytes(30_000))
        assert cache.find(names[0]) is not None
    assert sum(one.stat().st_size for one in files_of(cache)) <= MIB
    assert cache.find(names[-1]) is not None
    assert cache.find(names[1]) is None
    small = make(tmp_path, capacity=MIB // 2)
    small.put(f"{PATH}-more", 10, bytes(10))
    assert sum(one.stat().st_size for one in files_of(small)) <= MIB // 2
    small.put(f"{PATH}-large", MIB, bytes(MIB))
    assert small.find(f"{PATH}-large") is None


def test_number_of_entries_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small entries make a folder slow: the oldest leave."""
    monkeypatch.setattr(disk_cache, "ENTRIES_MAX", 16)
    for number in range(40):
        make(tmp_path).put(f"{PATH}-{number}", 1, b"1")
    assert len(files_of(make(tmp_path))) <= 16
    assert make(tmp_path).find(f"{PATH}-39") is not None


def test_folder_and_entries_are_private(tmp_path: Path) -> None:
    """Mode 0700 and 0600, also where the folder was open to others."""
    (tmp_path / "objects").mkdir(mode=0o755)
    cache = make(tmp_path)
    cache.put(PATH, 3, b"abc")
    (entry,) = files_of(cache)
    assert (cache.folder.stat().st_mode & 0o777, entry.stat().st_mode & 0o777) == (0o700, 0o600)


@pytest.mark.parametrize("problem", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EIO])
def test_disk_that_refuses_switches_the_cache_off_with_one_warning(
    tmp_path: Path, counter: CountingFileIO, caplog: pytest.LogCaptureFixture, problem: int
) -> None:
    """Reads and writes of the store go on; half-written files do not stay; the next write does not try again."""
    tries: list[Path] = []

    def refuse(place: Path, data: bytes) -> None:
        tries.append(place)
        place.write_bytes(data[:5])
        raise OSError(problem, "injected")

    root = str(tmp_path / "root")
    caches = [replace(make(tmp_path), write=refuse) for _ in range(2)]
    with caplog.at_level(logging.WARNING):
        for number, cache in enumerate(caches):
            fileio = CachedFileIO(counter, disk=cache)
            for file in range(3):
                fileio.write(f"{root}/manifest-{UUID}-{number}{file}", b"abc")
                assert fileio.read(f"{root}/manifest-{UUID}-{number}{file}") == b"abc"
    assert len(tries) == 2
    assert files_of(caches[0]) == []
    assert [
        one.message for one in caplog.records if "cache_mb" in one.message and "injected" in one.message
    ] == [caplog.records[0].message]
    assert len(caplog.records) == 1


def test_cache_can_be_switched_off_and_sized(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`cache_mb` of an address: 0 makes none, another number bounds it; the folder is that of TABLESTORE_CACHE."""
    monkeypatch.setenv("TABLESTORE_CACHE", str(tmp_path))
    for query, expected in (("?cache_mb=0", None), ("?cache_mb=7", 7 * MIB), ("", 256 * MIB)):
        _, fileio = open_root(f"s3://b12/wh{query}", USERS)
        assert isinstance(fileio, CachedFileIO)
        assert (fileio.disk.capacity_bytes if fileio.disk else None) == expected
        assert fileio.disk is None or fileio.disk.folder == tmp_path / "objects"


def test_folder_of_another_user_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warned: list[str]
) -> None:
    """TS1992 is a warning here: the store itself can be read."""

    def strange(*_: object) -> Path:
        raise disk_cache.TablestoreError("TS1992", "belongs to anna", why="", fix="")

    monkeypatch.setattr(disk_cache, "cache_folder", strange)
    assert open_disk_cache("s3  b12", MIB) is None
    assert "anna" in warned[0]


def test_worker_uses_the_folder_where_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pickled with the store and the size alone; a machine without the folder has no cache, and gets none."""
    monkeypatch.setenv("TABLESTORE_CACHE", str(tmp_path))
    opened = open_disk_cache("s3  b12", MIB)
    assert opened is not None
    fileio = CachedFileIO(CountingFileIO(LocalFileIO(str(tmp_path))), disk=opened)
    assert pickle.loads(pickle.dumps(fileio)).disk is None
    opened.put(PATH, 3, b"abc")
    there = pickle.loads(pickle.dumps(fileio)).disk
    assert there.find(PATH) == (3, b"abc")


def test_temporary_files_of_killed_processes_go_after_an_hour(tmp_path: Path) -> None:
    """A young one may still be written."""
    cache = make(tmp_path)
    cache.put(PATH, 3, b"abc")
    old, young = cache.folder / ".new-old", cache.folder / ".new-young"
    for place, seconds in ((old, 1_700_000_000 - 7_200), (young, 1_700_000_000)):
        place.write_bytes(b"half")

        os.utime(place, (seconds, seconds))
    make(tmp_path).put(f"{PATH}-2", 3, b"abc")
    assert (old.exists(), young.exists()) == (False, True)


def _write_again_and_again(folder: str, turns: int) -> int:
    cache = make(Path(folder))
    for _ in range(turns):
        cache.put(PATH, 3_000, b"abc" * 1_000)
        assert cache.find(PATH) == (3_000, b"abc" * 1_000)
    return turns


def test_two_processes_write_one_entry(tmp_path: Path) -> None:
    """Each read finds the whole entry, and nothing else stays in the folder."""
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        done: Iterator[int] = pool.starmap(_write_again_and_again, [(str(tmp_path), 300)] * 2)
    assert list(done) == [300, 300]
    assert len(files_of(make(tmp_path))) == 1
