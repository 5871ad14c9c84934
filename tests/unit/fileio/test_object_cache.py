"""Immutable objects in memory: which files, how many bytes, and never an answer about the present."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from tablestore_engine.errors import NotFound
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.fileio.object_cache import (
    WHOLE_BYTES_MAX,
    CachedFileIO,
    ObjectMemory,
    is_immutable,
    uncached,
)
from tests.doubles.request_counts import CountingFileIO
from tests.unit.fileio.port_promises import PortPromises

UUID = "0a0b0c0d-1111-4222-8333-444455556666"


@pytest.fixture
def root(tmp_path: Path) -> str:
    """A folder of its own."""
    return str(tmp_path / "root")


@pytest.fixture
def counter(root: str) -> CountingFileIO:
    """The store."""
    return CountingFileIO(LocalFileIO(root))


@pytest.fixture
def fileio(counter: CountingFileIO) -> CachedFileIO:
    """The store with a memory."""
    return CachedFileIO(counter)


class TestCachedPromises(PortPromises):
    """All promises of a store without folders."""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"data-{UUID}-0.parquet", True),
        (f"changelog-{UUID}-0.parquet", True),
        (f"manifest-{UUID}-crc32-0a0b0c0d", True),
        (f"manifest-list-{UUID}-3", True),
        (f"index-manifest-{UUID}", True),
        (f"index-{UUID}-0", True),
        ("snapshot-7", False),
        ("schema-0", False),
        ("LATEST", False),
        (f"sweep-{UUID}", False),
        (f"floor-7-{UUID}", False),
        (f"branch-{UUID}", False),
        ("data-1.parquet", False),
    ],
)
def test_only_files_whose_names_hold_a_uuid_are_immutable(name: str, expected: bool) -> None:
    """Snapshots and schemas come again under the same name after DROP and CREATE."""
    assert is_immutable(f"/w/d.db/t/any/{name}") == expected


def test_a_written_file_is_not_asked_for(fileio: CachedFileIO, counter: CountingFileIO, root: str) -> None:
    """Written at once or as a stream, read whole or by ranges."""
    fileio.write(f"{root}/manifest-{UUID}", b"abc")
    with fileio.open_output(f"{root}/data-{UUID}-0.parquet") as sink:
        sink.write(b"0123456789")
    counter.restart()
    assert fileio.read(f"{root}/manifest-{UUID}") == b"abc"
    with fileio.open_input(f"{root}/data-{UUID}-0.parquet") as source:
        assert source.size() == 10
        source.seek(3)
        assert source.read(2) == b"34"
    assert fileio.read(f"{root}/data-{UUID}-0.parquet") == b"0123456789"
    assert counter.total == 0


def test_a_read_file_is_asked_for_once(fileio: CachedFileIO, counter: CountingFileIO, root: str) -> None:
    """By read and by open_input."""
    counter.inner.write(f"{root}/index-{UUID}-0", b"abc")
    for _ in range(2):
        assert fileio.read(f"{root}/index-{UUID}-0") == b"abc"
        with fileio.open_input(f"{root}/index-{UUID}-0") as source:
            assert source.read() == b"abc"
    assert counter.total == 1


def test_of_a_large_file_the_end_is_remembered(
    fileio: CachedFileIO, counter: CountingFileIO, root: str
) -> None:
    """The footer needs no request; the begin, and the file as a whole, need one."""
    data = bytes(range(256)) * (WHOLE_BYTES_MAX // 256 + 1)
    with fileio.open_output(f"{root}/data-{UUID}-0.parquet") as sink:
        for at in range(0, len(data), 100_000):
            sink.write(data[at : at + 100_000])
    counter.restart()
    with fileio.open_input(f"{root}/data-{UUID}-0.parquet") as source:
        assert source.size() == len(data)
        source.seek(len(data) - 1_000)
        assert source.read() == data[-1_000:]
        assert counter.total == 0
        source.seek(5)
        assert source.read(10) == data[5:15]
    assert fileio.read(f"{root}/data-{UUID}-0.parquet") == data
    assert counter.total == 2


def test_a_failed_write_is_not_remembered(fileio: CachedFileIO, root: str) -> None:
    """Neither a taken name, nor a stream that broke off."""
    path = f"{root}/manifest-{UUID}"
    fileio.write(path, b"first")
    with pytest.raises(FileExistsError):
        fileio.write(path, b"second")
    assert fileio.read(path) == b"first"

    def fail() -> None:
        with fileio.open_output(f"{root}/data-{UUID}-0.parquet") as sink:
            sink.write(b"half")
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        fail()
    with pytest.raises(NotFound, match="TS1201"):
        fileio.read(f"{root}/data-{UUID}-0.parquet")


def test_what_may_change_is_asked_for_each_time(
    fileio: CachedFileIO, counter: CountingFileIO, root: str
) -> None:
    """Hints, snapshots, listings, and that a name is missing."""
    with pytest.raises(NotFound, match="TS1201"):
        fileio.read(f"{root}/manifest-{UUID}")
    counter.inner.write(f"{root}/manifest-{UUID}", b"now")
    assert fileio.read(f"{root}/manifest-{UUID}") == b"now"
    for text in (b"1", b"2"):
        counter.inner.replace(f"{root}/snapshot/LATEST", text)
        assert fileio.read(f"{root}/snapshot/LATEST") == text
    fileio.delete(f"{root}/manifest-{UUID}")
    assert not fileio.exists_file(f"{root}/manifest-{UUID}")
    with pytest.raises(NotFound, match="TS1201"):
        uncached(fileio).read(f"{root}/manifest-{UUID}")


def test_memory_is_bounded_and_the_least_used_leave_first(counter: CountingFileIO, root: str) -> None:
    """Three files of 40 bytes in 100: the one that was used longest ago is asked for again."""
    fileio = CachedFileIO(counter, ObjectMemory(100))
    names = [f"{root}/manifest-{UUID}-{number}" for number in range(3)]
    fileio.write(names[0], b"0" * 40)
    fileio.write(names[1], b"1" * 40)
    fileio.read(names[0])
    fileio.write(names[2], b"2" * 40)
    counter.restart()
    assert [fileio.read(name)[:1] for name in (names[0], names[2], names[1])] == [b"0", b"2", b"1"]
    assert [one.path for one in counter.requests] == [names[1]]


def test_it_travels_to_a_worker_without_its_memory(root: str) -> None:
    """Pickled with the store alone."""
    counter = CountingFileIO(LocalFileIO(root))
    fileio = CachedFileIO(counter)
    fileio.write(f"{root}/manifest-{UUID}", b"abc")
    there = pickle.loads(pickle.dumps(fileio))
    assert isinstance(there, CachedFileIO)
    assert there.read(f"{root}/manifest-{UUID}") == b"abc"
    assert isinstance(there.inner, CountingFileIO)
    assert there.inner.by_method() == {"PUT": 1, "GET": 1}
