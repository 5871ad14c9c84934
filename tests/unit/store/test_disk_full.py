"""A disk that is really full: an own error, nothing left behind, what frees room works, and a table that goes on."""

from __future__ import annotations

import os
import random
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.cli.main import main
from tablestore_engine.errors import StorageError
from tablestore_engine.runtime.scratch import ScratchPlace
from tablestore_engine.spark.session import session_scratch
from tablestore_engine.spark.spark_settings import SparkSettings
from tablestore_engine.store.rows.row_filter import SameKeys
from tablestore_engine.store.write.write_request import WriteMode
from tests.unit.store.table_world import Row, make_table, open_table, put, row, rows_of

_FREE_BYTES = 60_000
_PAGE = 4096


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MB where we may mount one; else a plain folder (see full)."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    mounted = os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    yield folder
    if mounted:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)  # a file may be mapped still


@contextmanager
def full(folder: Path, free: int = _FREE_BYTES) -> Iterator[None]:
    """`free` bytes are left: a filler on the small disk, or a limit on the size of files, which fails alike."""
    if os.path.ismount(folder):
        filler = folder / ".filler"
        filler.write_bytes(bytes(max(0, _room(folder) - free)))
        try:
            yield
        finally:
            filler.unlink()
        return
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (free // 8, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def _room(folder: Path) -> int:
    facts = os.statvfs(folder)
    return facts.f_bavail * facts.f_frsize


def _needs_a_small_disk(folder: Path) -> None:
    if not os.path.ismount(folder):
        pytest.skip("needs the right to mount a small file system: a limit on file sizes is never freed")


def _code_of(act: Callable[[], object]) -> str | None:
    """What the disk refused it with; None when it worked."""
    try:
        act()
    except StorageError as refused:
        return refused.code
    return None


def _many(seed: int) -> list[Row]:
    """Rows that do not compress below the room that is left."""
    rng = random.Random(seed)
    return [row(n, rng.randbytes(60).hex()) for n in range(3_000)]


def _files(root: Path) -> set[str]:
    return {
        str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and path.name != ".filler"
    }


@pytest.mark.folders
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
    store.compact(full=True)
    assert rows_of(open_table(small_disk)) == rows
    put(store, row(1, "after"))
    assert open_table(small_disk).verify() == ()
    assert len(rows_of(store)) == len(rows) + 1


@pytest.mark.folders
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


@pytest.mark.folders
@pytest.mark.parametrize("act", ["put", "compact", "replace"])
def test_whatever_file_finds_no_room(small_disk: Path, act: str) -> None:
    """From no free page on, one more each time: data, vectors, manifests, lists and the snapshot itself fail in turn,
    and none of the files written before it stays.
    """
    keys = () if act == "replace" else ("id",)
    store = make_table(small_disk, keys=keys)
    for at in range(4):
        put(store, *(row(n, f"{at}") for n in range(at, 40 + at)))
    rows, files, refusals = rows_of(store), _files(small_disk), 0
    for pages in range(24):
        with full(small_disk, pages * _PAGE):
            fresh = open_table(small_disk)
            acts: dict[str, Callable[[], object]] = {
                "put": lambda table=fresh: put(table, row(3, "new"), row(500)),
                "compact": lambda table=fresh: table.compact(full=True),
                "replace": lambda table=fresh: put(
                    table, row(3, "new"), mode=WriteMode.REPLACE, replaces=SameKeys(("id",))
                ),
            }
            code = _code_of(acts[act])
            if code is None:
                break
            assert code == "TS1261"
            assert _files(small_disk) == files, f"{pages} free pages"
            assert rows_of(open_table(small_disk)) == rows
            refusals += 1
    assert refusals > 4
    assert open_table(small_disk).verify() == ()
    if act == "compact":
        assert rows_of(open_table(small_disk)) == rows


def _numbers(count: int, seed: int) -> pa.Table:
    rng = random.Random(seed)
    return pa.table({"id": range(count), "text": [rng.randbytes(40).hex() for _ in range(count)]})


def _shop(folder: Path) -> Engine:
    """demo.kept with a staged snapshot, demo.big."""
    engine = Engine(str(folder))
    spec = WriteSpec(table=TableSpec(primary_key=("id",)))
    engine.write("demo.kept", _numbers(50, 1), spec)
    engine.write("demo.kept", _numbers(20, 2), spec)
    engine.table("demo.kept").write(_numbers(5, 3), WriteSpec(table=spec.table, stage="s1"))
    engine.write("demo.big", _numbers(4_000, 4), spec)
    return engine


@pytest.mark.folders
def test_what_frees_room_works_on_a_full_disk(small_disk: Path) -> None:
    """With not one free page: rows are read, writes and compaction are TS1261, a staged snapshot and a table can be
    dropped, and what that freed is enough to go on while the disk is as full as before.
    """
    _needs_a_small_disk(small_disk)
    engine = _shop(small_disk)
    rows = engine.table("demo.kept").scan().to_arrow()
    with full(small_disk, 0):
        files = _files(small_disk)
        assert Engine(str(small_disk)).table("demo.kept").scan().to_arrow() == rows
        assert _code_of(lambda: engine.table("demo.kept").compact(full=True)) == "TS1261"
        assert _code_of(lambda: engine.write("demo.kept", _numbers(1, 5), WriteSpec())) == "TS1261"
        assert _code_of(lambda: engine.create_view("demo.v", "select 1 as one")) == "TS1261"
        assert _code_of(lambda: engine.clone("demo.kept", "demo.copy")) == "TS1261"
        assert _files(small_disk) == files
        engine.table("demo.kept").drop_staged("s1")
        engine.sql("drop table demo.big")
        assert _room(small_disk) > 200_000
        assert engine.find_table("demo.big") is None
        assert engine.staged("demo.kept") == ()
        engine.table("demo.kept").compact(full=True)
        engine.write("demo.kept", _numbers(1, 5), WriteSpec())
    again = Engine(str(small_disk)).table("demo.kept")
    assert again.scan().to_arrow().num_rows == 50
    assert again.store.verify(deep=True) == ()


@pytest.mark.folders
def test_commands_on_a_full_disk(small_disk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Commands that read work, those that write say TS1261, and `sql` drops a table: it needs no Spark for that."""
    _needs_a_small_disk(small_disk)
    _shop(small_disk)
    place = ("--warehouse", str(small_disk))
    with full(small_disk, 0):
        for words in (("show",), ("verify", "demo.kept"), ("staged",)):
            assert main([*words, *place]) == 0, capsys.readouterr()
        capsys.readouterr()
        for words in (("compact", "demo.kept", "--full"), ("tag", "create", "demo.kept", "t1")):
            assert main([*words, *place]) == 1
            assert "TS1261" in capsys.readouterr().err
        assert main(["sql", "drop table demo.big", *place]) == 0
        assert main(["compact", "demo.kept", "--full", *place]) == 0
    assert main(["verify", *place]) == 0


def test_a_session_on_a_full_disk(small_disk: Path) -> None:
    """Scratch that is named there: TS1261, and no half-made folder stays; unnamed it has its room elsewhere."""
    _needs_a_small_disk(small_disk)
    with full(small_disk, 0), pytest.raises(StorageError) as refused:
        session_scratch(ScratchPlace(str(small_disk), f"{small_disk}/scratch"), SparkSettings())
    assert refused.value.code == "TS1261"
    assert list((small_disk / "scratch").glob("*")) == []
    with full(small_disk, 0):
        assert session_scratch(ScratchPlace(str(small_disk)), SparkSettings()).is_dir()
