"""A warehouse above the current folder is taken by itself only when it is the user's own."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import pytest

from tablestore_engine.cli import sql
from tablestore_engine.cli.warehouse_choice import find_warehouse, open_engine
from tablestore_engine.cli.warehouse_folder import is_adoptable, our_users
from tablestore_engine.errors import FixRequest


def test_whose_folders_are_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own user id, with sudo also the caller's; SUDO_UID of somebody who is not root counts for nothing."""
    monkeypatch.setattr(os, "getuid", lambda: 0)
    assert our_users({"SUDO_UID": "1000"}) == {0, 1000}
    monkeypatch.setattr(os, "getuid", lambda: 5)
    assert our_users({"SUDO_UID": "1000"}) == {5}
    assert [is_adoptable(owner, frozenset({5})) for owner in (5, 0, 1000)] == [True, False, False]
    assert is_adoptable(7, frozenset()), "a system without user ids has no rule"


def test_a_strangers_warehouse_above_is_not_taken(tmp_path: Path) -> None:
    """Neither when the warehouse is theirs, nor when they own the folder it lies in; here, or named, it is."""
    warehouse, below = tmp_path / "warehouse", tmp_path / "project"
    (warehouse / "demo.db").mkdir(parents=True)
    below.mkdir()
    mine = os.getuid()

    def find(here: Path, strangers: Path, given: str | None = None) -> str:
        return find_warehouse(given, {}, here, owner_of=lambda path: mine + (path == strangers))

    for strangers in (warehouse, tmp_path):
        with pytest.raises(FixRequest, match=f"TS1930.*{warehouse}.*\n.*belongs to user {mine + 1}"):
            find(below, strangers)
        assert find(tmp_path, strangers) == str(warehouse)
        assert find(below, strangers, str(warehouse)) == str(warehouse)
    assert find(below, below) == str(warehouse)


def test_trusted_sql_reaches_the_engine(tmp_path: Path) -> None:
    """`tablestore sql --trusted-sql` opens an engine that trusts what is stored; without it, one that does not."""
    (tmp_path / "demo.db").mkdir()
    for words, wanted in (([], False), (["--trusted-sql"], True)):
        parser = argparse.ArgumentParser()
        sql.add_arguments(parser)
        arguments = parser.parse_args(["select 1", "--warehouse", str(tmp_path), *words])
        with open_engine(arguments) as engine:
            assert engine._warehouse.spark.trusted_sql is wanted
