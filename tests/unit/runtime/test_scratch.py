"""Where scratch lies: named, else a private temporary folder, else the warehouse that all workers see."""

from __future__ import annotations

import dataclasses
import stat
from pathlib import Path

import pytest

from dbt.adapters.tablestore.credentials import describe_warehouse
from tablestore_engine.api import Engine
from tablestore_engine.errors import FixRequest
from tablestore_engine.runtime.ownership import USERS
from tablestore_engine.runtime.scratch import ScratchPlace
from tablestore_engine.spark.session import session_scratch
from tablestore_engine.spark.spark_settings import SparkSettings
from tests.unit.adapter.test_credentials import credentials


def place(tmp_path: Path, named: str | None = None) -> ScratchPlace:
    """Of a warehouse in a folder, with a temporary folder of the test's."""
    return ScratchPlace(str(tmp_path / "wh"), named, temporary=lambda: str(tmp_path / "tmp"))


def test_the_choice(tmp_path: Path) -> None:
    """A name wins; one machine takes the temporary folder of this user; several the warehouse."""
    named = place(tmp_path, str(tmp_path / "here"))
    assert {named.parent(is_one_machine=one) for one in (True, False)} == {tmp_path / "here"}
    assert place(tmp_path).parent(is_one_machine=True) == tmp_path / f"tmp/tablestore-{USERS.current()}"
    assert place(tmp_path).parent(is_one_machine=False) == tmp_path / "wh/.tablestore"


def test_nothing_of_a_local_session_lies_in_the_warehouse(tmp_path: Path) -> None:
    """Before, scratch was made below the warehouse, which may be full or read-only; ours are private, link and all."""
    folder = session_scratch(place(tmp_path), SparkSettings("local[2]"))
    assert not (tmp_path / "wh").exists()
    assert folder.parent == tmp_path / f"tmp/tablestore-{USERS.current()}"
    assert [stat.S_IMODE(one.stat().st_mode) for one in (folder, folder.parent)] == [0o700, 0o700]
    assert session_scratch(place(tmp_path), SparkSettings("spark://other:7077")).is_relative_to(
        tmp_path / "wh"
    )


def test_a_strangers_temporary_folder_is_refused(tmp_path: Path) -> None:
    """Anybody can make a folder of our name in /tmp first: TS1992 names the owner and the setting."""
    theirs = tmp_path / f"tmp/tablestore-{USERS.current()}"
    theirs.mkdir(parents=True)
    users = dataclasses.replace(
        USERS,
        owner_of=lambda path: 4711 if path == theirs else USERS.owner_of(path),
        name_of=lambda user: f"u{user}",
    )
    with pytest.raises(FixRequest, match="TS1992") as refused:
        dataclasses.replace(place(tmp_path), users=users).open(is_one_machine=True)
    assert "u4711" in str(refused.value)
    assert "TABLESTORE_SCRATCH" in str(refused.value)
    assert list(theirs.iterdir()) == []


def test_who_names_it(tmp_path: Path) -> None:
    """An argument over the environment; in dbt the environment over the profile, which lies beside the project."""

    def chosen(scratch: str | None, environ: dict[str, str]) -> str | None:
        engine = Engine(str(tmp_path / "wh"), scratch=scratch, environ=environ)
        return engine._warehouse.session._place.named

    assert chosen(None, {}) is None
    assert chosen(None, {"TABLESTORE_SCRATCH": "/e"}) == "/e"
    assert chosen("/a", {"TABLESTORE_SCRATCH": "/e"}) == "/a"
    profile = credentials(scratch="own")
    assert describe_warehouse(profile, str(tmp_path), {}).scratch == str(tmp_path / "own")
    assert describe_warehouse(profile, str(tmp_path), {"TABLESTORE_SCRATCH": "/e"}).scratch == "/e"
    assert describe_warehouse(credentials(), str(tmp_path), {}).scratch is None
