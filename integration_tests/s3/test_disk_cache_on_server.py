"""The disk cache of object stores on a real server: a new process asks for less, and sees what is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from integration_tests.s3.fault_proxy import FaultProxy
from integration_tests.s3.warehouses import address
from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.fileio.object_cache import uncached

NAME = "demo.t"
KEYED = WriteSpec(TableSpec(primary_key=("id",)))
_CHILD = (
    "import sys; from tablestore_engine.api import Engine; "
    "print(sorted(Engine(sys.argv[1]).table('demo.t').scan().to_arrow()['id'].to_pylist()))"
)


@pytest.fixture
def place(
    bucket: str, proxy: FaultProxy, credentials: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    """A warehouse with a disk cache of its own, and a table of two commits."""
    monkeypatch.setenv("TABLESTORE_CACHE", str(tmp_path))
    made = address(bucket, f"disk-{tmp_path.name}", proxy.url, cache_mb=64)
    with Engine(made) as engine:
        for first in (0, 5):
            engine.write(NAME, rows(first), KEYED)
    proxy.forget()
    return made


def rows(first: int) -> pa.Table:
    """Ten keys."""
    return pa.table({"id": range(first, first + 10), "text": ["x"] * 10})


def asked(proxy: FaultProxy, part: str) -> list[str]:
    """Paths that were read since the last look."""
    found = [one.path for one in proxy.requests if one.method == "GET" and part in one.path]
    proxy.forget()
    return found


def read_in_a_process(place: str) -> str:
    """The keys, as a process of its own reads them."""
    command = [sys.executable, "-c", _CHILD, place]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.nightly  # by day tests/unit/fileio/test_disk_cache.py; what verify sees, below
def test_new_process_does_not_fetch_metadata_again(place: str, proxy: FaultProxy, tmp_path: Path) -> None:
    """No manifest, list or index file is read; with the cache switched off, or damaged, all are."""
    expected = str(list(range(15)))
    assert read_in_a_process(place) == expected
    assert asked(proxy, "/manifest/") == []
    assert read_in_a_process(place.replace("cache_mb=64", "cache_mb=0")) == expected
    needed = asked(proxy, "/manifest/")
    assert len(needed) >= 3
    for entry in (tmp_path / "objects").iterdir():
        entry.write_bytes(entry.read_bytes()[:-1] + b"\0")
    assert read_in_a_process(place) == expected
    assert sorted(asked(proxy, "/manifest/")) == sorted(needed)
    assert read_in_a_process(place) == expected
    assert asked(proxy, "/manifest/") == []


def test_verify_sees_what_the_store_has(place: str, proxy: FaultProxy) -> None:
    """A manifest that was deleted behind the engine is named, although this machine still has its bytes."""
    with Engine(place) as engine:
        table = engine.table(NAME)
        assert table.verify() == ()
        read = asked(proxy, "/manifest/")
        assert read
        gone = read[0].rpartition("/")[2]
        uncached(table.store.fileio).delete(f"{table.store.context.layout.location}/manifest/{gone}")
        assert gone in " ".join(table.verify())
    with Engine(place) as engine:
        assert engine.table(NAME).scan().to_arrow().num_rows == 15
