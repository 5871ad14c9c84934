"""Where a warehouse lies: folders, `file:` addresses, object stores, and stores that there is no code for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablestore_engine.api import Engine
from tablestore_engine.cli.main import main
from tablestore_engine.errors import FixRequest
from tablestore_engine.fileio import stores
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.runtime.ownership import Users
from tablestore_engine.spi import local_folder


@pytest.mark.parametrize("text", ["hdfs://n/wh", "ftp://h/wh", "s3:wh", "file://host/wh"])
def test_stores_without_code_are_refused(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address of another store is refused by its scheme, and no folder of that name is made."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FixRequest, match=text.partition(":")[0]) as refused:
        Engine(text)
    assert refused.value.code == "TS1060"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}", "file://localhost{}"])
def test_local_addresses_are_one_folder(form: str, tmp_path: Path) -> None:
    """A plain path and its `file:` forms name the same warehouse, blanks included."""
    folder = tmp_path / "my warehouse"
    given = form.format(str(folder).replace(" ", "%20") if form.startswith("file:") else folder)
    with Engine(given) as engine:
        engine.create_database("demo")
        assert engine.warehouse == str(folder)
    assert (folder / "demo.db").is_dir()


def test_relative_folders_stay_relative() -> None:
    """A folder below, a home folder and a drive-like single letter are no schemes; a colon can be written with ./."""
    assert local_folder("warehouse") == "warehouse"
    assert local_folder("./a:b") == "./a:b"
    assert local_folder("~/wh") == "~/wh"
    assert local_folder("file:wh") == "wh"


class _Other(LocalFileIO):
    """A FileIO of another scheme."""


def test_a_scheme_is_a_line_of_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another store's scheme gives its FileIO to the engine; who needs a folder of this machine is told."""

    def open_other(address: str, users: Users) -> tuple[str, FileIO]:
        assert users.current() >= 0
        root = str(tmp_path / address.removeprefix("other://"))
        return root, _Other(root)

    monkeypatch.setattr(stores, "STORES", {**stores.STORES, "other": open_other})
    with Engine("other://wh") as engine:
        engine.create_database("demo")
        assert isinstance(engine._warehouse.catalog.fileio, _Other)
    assert (tmp_path / "wh/demo.db").is_dir()
    with pytest.raises(FixRequest, match="TS1060"):
        local_folder("other://wh")


def test_the_doctor_makes_no_folder_of_an_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It once took another scheme for a folder below the current one."""
    monkeypatch.chdir(tmp_path)
    assert main(["doctor", "--warehouse", "ftp://b"]) == 1
    assert "TS1060" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_schemes_are_looked_at_in_one_place() -> None:
    """No other module of engine or adapter takes an address of files apart, or makes a FileIO."""
    top = Path(stores.__file__).parents[2]
    code = [
        path
        for name in ("tablestore_engine", "tablestore_demo", "dbt")
        for path in (top / name).rglob("*.py")
        if path.parent.name != "devservers"  # addresses of servers
    ]
    own = {
        "stores.py",
        "store_address.py",
        "object_store.py",
        "object_clients.py",
        "local.py",
        "external_folders.py",
        "scratch_folder.py",
        "spark_errors.py",
        "database_source.py",
        "page_server.py",  # the address of the page
        "snapshot_connector.py",
        "demo_postgres.py",
        "demo_place.py",
        "hadoop_connector.py",
        "command_list.py",
        "s3.py",
        "warehouse_names.py",
        "reader_process.py",
        "reader_program.py",
        "done_rule.py",  # the address that done partitions are reported to
        "done_partitions.py",
    }  # what readers of others and Spark are given, and Spark says; where a database is; s3; completion
    words = ("urllib.parse", "LocalFileIO", '"file:', '"s3', "://{")
    found = [path.name for path in code if path.name not in own and any(w in path.read_text() for w in words)]
    assert found == []
