"""Which warehouse a command means."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from tablestore_engine.cli.warehouse_choice import add_brokers, add_place, find_warehouse, open_engine
from tablestore_engine.errors import FixRequest, NotFound

from .conftest import Run


def make(*folders: Path) -> None:
    """Warehouses with one database each."""
    for folder in folders:
        (folder / "demo.db").mkdir(parents=True)


def test_what_is_named_wins(tmp_path: Path) -> None:
    """--warehouse goes before the environment, and that before ./warehouse."""
    make(tmp_path / "a", tmp_path / "b", tmp_path / "warehouse")
    assert find_warehouse("a", {"TABLESTORE_WAREHOUSE": "b"}, tmp_path) == str(tmp_path / "a")
    assert find_warehouse(None, {"TABLESTORE_WAREHOUSE": "b"}, tmp_path) == str(tmp_path / "b")
    assert find_warehouse(None, {}, tmp_path) == str(tmp_path / "warehouse")


def test_found_above_and_below(tmp_path: Path) -> None:
    """From inside a project the warehouse above is found; from its parent folder the one below."""
    make(tmp_path / "project" / "warehouse")
    (tmp_path / "project" / "models" / "marts").mkdir(parents=True)
    wanted = tmp_path / "project" / "warehouse"
    assert find_warehouse(None, {}, tmp_path / "project" / "models" / "marts") == str(wanted)
    assert find_warehouse(None, {}, tmp_path) == str(wanted)


def test_a_folder_of_other_things_is_none(tmp_path: Path) -> None:
    """A folder that is only called warehouse, with code in it, is passed over."""
    make(tmp_path / "warehouse")
    (tmp_path / "code" / "warehouse").mkdir(parents=True)
    (tmp_path / "code" / "warehouse" / "module.py").write_text("")
    assert find_warehouse(None, {}, tmp_path / "code") == str(tmp_path / "warehouse")


def test_none_or_several_is_an_error(tmp_path: Path) -> None:
    """Nothing is guessed: no warehouse, two below, or a named one that is missing are refused."""
    with pytest.raises(FixRequest, match=r"TS1921.*\n.*no folder"):
        find_warehouse(None, {}, tmp_path)
    make(tmp_path / "a" / "warehouse", tmp_path / "b" / "warehouse")
    with pytest.raises(FixRequest, match="a/warehouse, b/warehouse"):
        find_warehouse(None, {}, tmp_path)
    with pytest.raises(NotFound, match="TS1920"):
        find_warehouse("c", {}, tmp_path)


def test_a_command_finds_it_by_option(run: Run, monkeypatch: pytest.MonkeyPatch, warehouse: Path) -> None:
    """Commands work from anywhere with --warehouse or the environment variable."""
    monkeypatch.chdir("/")
    assert run("show", "--warehouse", str(warehouse), "--json").json
    monkeypatch.setenv("TABLESTORE_WAREHOUSE", str(warehouse))
    assert run("snapshots", "demo.orders", "--json").json


@pytest.mark.parametrize("given", ["ftp://bucket/wh", "hdfs://n/wh"])
def test_other_stores_are_refused(given: str, tmp_path: Path) -> None:
    """--warehouse and the environment variable refuse a scheme that has no code, before a folder is looked for."""
    for named, environ in ((given, {}), (None, {"TABLESTORE_WAREHOUSE": given})):
        with pytest.raises(FixRequest) as refused:
            find_warehouse(named, environ, tmp_path)
        assert refused.value.code == "TS1060"


def test_a_file_address_is_a_folder(tmp_path: Path) -> None:
    """`file:` addresses are folders on the command line too."""
    make(tmp_path / "wh")
    assert find_warehouse(f"file://{tmp_path}/wh", {}, tmp_path / "elsewhere") == str(tmp_path / "wh")


def test_flags_win_over_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--bootstrap and --kafka-config, key by key, before TABLESTORE_KAFKA and TABLESTORE_KAFKA_CONFIG."""
    make(tmp_path / "wh")
    for name in ("environ", "flag"):
        (tmp_path / name).write_text(f"sasl.username={name}\nkafka.client.id={name}\n")
    monkeypatch.setenv("TABLESTORE_KAFKA", "env:1")
    monkeypatch.setenv("TABLESTORE_KAFKA_CONFIG", str(tmp_path / "environ"))
    parser = argparse.ArgumentParser()
    add_place(parser, name=None)
    add_brokers(parser)
    for words, brokers, user in (
        ((), "env:1", "environ"),
        (("--bootstrap", "flag:2"), "flag:2", "environ"),
        (("--kafka-config", str(tmp_path / "flag")), "env:1", "flag"),
    ):
        arguments = parser.parse_args(["--warehouse", str(tmp_path / "wh"), *words])
        with open_engine(arguments) as engine:
            assert engine._warehouse.logs.system.client == {
                "kafka.bootstrap.servers": brokers,
                "kafka.sasl.username": user,
                "kafka.client.id": user,
            }


def test_a_file_that_is_not_there_is_refused(run: Run) -> None:
    """Before anything is opened; the message names the flag."""
    done = run("publish", "demo.orders", "--kafka-config", "nowhere")
    assert (done.status, "TS1097" in done.err, "--kafka-config" in done.err) == (1, True, True)
