"""Names that no file system takes, and closed folders: an own error with path and next step, everywhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableSpec, WriteMode, WriteSpec
from tablestore_engine.cli.main import main
from tablestore_engine.errors import FixRequest, StorageError
from tests.doses import cases

LONG = "x" * 300
DAILY = WriteSpec(table=TableSpec(partition_by=("day",)), mode=WriteMode.APPEND)
KEYED = WriteSpec(table=TableSpec(primary_key=("id",)))
# every command in one process: starting Python is what costs
_CHILD = """
import contextlib, io, json, os, sys, traceback
import tablestore_engine.cli.show, tablestore_engine.cli.tag, tablestore_engine.cli.verify, tablestore_engine.cli.sql
import tablestore_engine.cli.staged, tablestore_engine.cli.publish
import resource, tarfile
import pyarrow as pa
from tablestore_engine.api import Engine, WriteSpec
from tablestore_engine.cli.main import main
from tablestore_engine.spi import load_for_builds

load_for_builds()  # the folders of Python are closed to whom this becomes
commands, warehouse = json.loads(sys.argv[1]), sys.argv[2]
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)

def python(word):
    with Engine(warehouse) as engine:
        if word == "write":
            engine.write("demo.t", pa.table({"id": [7]}), WriteSpec())
        elif word == "create":
            engine.create_database("other")
        elif word == "debug":
            engine.check()
        elif word == "read":
            engine.table("demo.t").scan().to_arrow()

told = []
for words in commands:
    err = io.StringIO()
    with contextlib.redirect_stdout(err), contextlib.redirect_stderr(err):
        try:
            status = main([*words[1:], "--warehouse", warehouse]) if words[0] == "cli" else python(words[0]) or 0
        except Exception as error:
            status, _ = 1, err.write(f"{error if hasattr(error, 'code') else traceback.format_exc()}")
    told.append([status, err.getvalue()])
print(json.dumps(told))
"""
READS = (
    ("cli", "show"),
    ("cli", "show", "demo.t"),
    ("cli", "verify", "demo.t"),
    ("cli", "staged"),
    ("read",),
)
WRITES = (
    ("cli", "compact", "demo.two", "--full"),
    ("cli", "tag", "create", "demo.t", "t1"),
    ("cli", "sql", "drop table demo.t"),
    ("write",),
    ("create",),
    ("debug",),
)


@pytest.fixture
def world() -> Iterator[Path]:
    """A folder that everybody reaches (pytest's own are closed), with a warehouse that is not everybody's."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        with Engine(str(folder / "wh")) as engine:
            engine.write("demo.t", pa.table({"id": [1, 2]}), KEYED)
            for number in range(2):
                engine.write("demo.two", pa.table({"id": [number]}), KEYED)
        yield folder
        for path, folders, _ in os.walk(folder):
            for one in folders:
                (Path(path) / one).chmod(0o755)


def without_rights(warehouse: Path, commands: tuple[tuple[str, ...], ...]) -> list[tuple[int, str]]:
    """Status and output of each command."""
    words = [sys.executable, "-c", _CHILD, json.dumps(commands), str(warehouse)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=warehouse.parent)
    return [(status, text) for status, text in json.loads(done.stdout)]


def _take_rights(folder: Path, mode: int) -> None:
    """From everybody without root's rights: root's own processes are given up, others give up theirs."""
    folder.chmod(mode)


def _is_refused(status: int, said: str, path: Path) -> bool:
    return status == 1 and said.startswith(("TS1263 ", "TS1416 ")) and str(path) in said and "next:" in said


@pytest.mark.parametrize("part", cases(["wh", "wh/demo.db", "wh/demo.db/t", "wh/demo.db/t/snapshot"], 1))
def test_a_folder_that_is_closed(world: Path, part: str) -> None:
    """A warehouse, database or table that this user may not look into: TS1263 with its path from every command."""
    _take_rights(world / part, 0o000 if os.geteuid() else 0o700)
    reads = READS if part in ("wh", "wh/demo.db") else READS[1:3]
    found = without_rights(world / "wh", (*reads, ("write",)))
    for words, (status, said) in zip((*reads, ("write",)), found, strict=True):
        assert status == 1, words
        assert "TS1263 " in said, (words, said)
        assert str(world / part) in said, (words, said)
        assert "Traceback" not in said, (words, said)


def test_a_folder_that_is_not_to_be_written(world: Path) -> None:
    """Of another user, and open to all readers: commands that read work, those that write say TS1263."""
    if os.geteuid():
        for path in [*(world / "wh").rglob("*"), world / "wh"]:
            path.chmod(0o555 if path.is_dir() else 0o444)
    found = without_rights(world / "wh", (*READS, *WRITES))
    for words, (status, said) in zip((*READS, *WRITES), found, strict=True):
        if words in READS:
            assert status == 0, (words, said)
        else:
            assert _is_refused(status, said, world / "wh"), (words, said)


def test_a_disk_that_takes_no_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file system mounted read-only: the same."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "tmpfs", str(disk)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a file system")
    try:
        engine = Engine(str(disk))
        for number in range(2):
            engine.write("demo.t", pa.table({"id": [number]}), KEYED)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        acts: tuple[Callable[[], object], ...] = (
            lambda: engine.write("demo.t", pa.table({"id": [7]}), KEYED),
            lambda: engine.write("demo.new", pa.table({"id": [7]}), KEYED),
            lambda: engine.create_view("demo.v", "select 1 as one"),
            lambda: engine.drop_table("demo.t"),
            lambda: engine.rename("demo.t", "demo.u"),
            lambda: engine.clone("demo.t", "demo.u"),
            lambda: engine.create_database("other"),
            lambda: engine.drop_database("demo", cascade=True),
            lambda: engine.table("demo.t").compact(full=True),
        )
        for act in acts:
            with pytest.raises(StorageError, match="TS1263") as refused:
                act()
            assert str(disk) in refused.value.what
        assert main(["sql", "drop table demo.t", "--warehouse", str(disk)]) == 1
        assert "TS1263" in capsys.readouterr().err
        assert Engine(str(disk)).table("demo.t").scan().to_arrow().num_rows == 2
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_partition_value_that_is_too_long(tmp_path: Path) -> None:
    """A folder is named after it: TS1262, and no file of the write's other partitions stays."""
    engine = Engine(str(tmp_path))
    engine.write("demo.t", pa.table({"id": [1], "day": ["mon"]}), DAILY)
    files = sorted(tmp_path.rglob("*"))
    with pytest.raises(StorageError, match="TS1262") as refused:
        engine.write("demo.t", pa.table({"id": [1, 2, 3], "day": ["mon", LONG, "tue"]}), DAILY)
    assert "day=xxx" in refused.value.what
    assert [path for path in sorted(tmp_path.rglob("*")) if path.is_file()] == [
        path for path in files if path.is_file()
    ]
    assert engine.table("demo.t").scan().to_arrow().num_rows == 1


@pytest.mark.parametrize("name", [LONG, "é" * 200, "a" * 129])
def test_a_name_that_is_too_long(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a table or a database: TS1401 before anything is made; of the warehouse folder: TS1262."""
    engine = Engine(str(tmp_path / "wh"))
    engine.write("demo.t", pa.table({"id": [1]}), KEYED)
    acts: tuple[Callable[[], object], ...] = (
        lambda: engine.write(f"demo.{name}", pa.table({"id": [1]}), KEYED),
        lambda: engine.write(f"{name}.t", pa.table({"id": [1]}), KEYED),
        lambda: engine.create_database(name),
        lambda: engine.create_view(f"demo.{name}", "select 1 as one"),
        lambda: engine.clone("demo.t", f"demo.{name}"),
        lambda: engine.rename("demo.t", f"demo.{name}"),
        lambda: engine.find_relation(f"demo.{name}"),
    )
    for act in acts:
        with pytest.raises(FixRequest, match="TS1401"):
            act()
    for words in (("show", f"demo.{name}"), ("sql", f"drop table demo.`{name}`")):
        assert main([*words, "--warehouse", str(tmp_path / "wh")]) == 1
        assert "TS1401" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "wh/demo.db").iterdir()] == ["t"]


def test_a_warehouse_name_that_is_too_long(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In Python and on the command line; a NUL character and a link onto itself are no folders either."""
    place = str(tmp_path / LONG)
    for act in (
        lambda: Engine(place).databases(),
        lambda: Engine(place).write("demo.t", pa.table({"id": [1]}), KEYED),
    ):
        with pytest.raises(StorageError, match="TS1262"):
            act()
    assert main(["show", "--warehouse", place]) == 1
    assert capsys.readouterr().err.startswith("TS1262")
    with pytest.raises(FixRequest, match="TS1060"):
        Engine("a\0b")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(StorageError, match="TS1263"):
        Engine(str(tmp_path / "loop")).create_database("demo")
