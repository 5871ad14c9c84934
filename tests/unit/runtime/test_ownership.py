"""Folders of other users are refused by name, ours are made for us alone. Users are arguments: no test needs root."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tablestore_engine.api import Engine
from tablestore_engine.devservers import kafka_broker
from tablestore_engine.errors import FixRequest
from tablestore_engine.runtime import scratch as process_folder
from tablestore_engine.runtime.java import cache_folder, find_java, make_in_cache
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.runtime.ownership import Users, check_owner, find_stranger, make_private
from tablestore_engine.spark import class_archive

NAMES = {0: "root", 1001: "anna", 1002: "mallory"}


def _users(owned: dict[Path, int], *, current: int = 1001) -> Users:
    """`owned` belongs to others, everything else that exists to `current`."""
    return Users(
        current=lambda: current,
        owner_of=lambda path: owned.get(path, current if os.path.lexists(path) else None),
        name_of=lambda user: NAMES.get(user, str(user)),
    )


@pytest.mark.parametrize(
    ("owner", "current", "trusted", "stranger"),
    [
        (1001, 1001, "", None),
        (None, 1001, "", None),
        (0, 1001, "", None),
        (1002, 1001, "", "mallory"),
        (1002, 0, "", "mallory"),  # root runs what it finds as root: another user's folder is no less strange
        (1002, 1001, "mallory", None),
        (1002, 1001, "anna, 1002", None),
        (1002, 1001, "mall", "mallory"),
        (1003, 1001, "", "1003"),
    ],
)
def test_who_is_a_stranger(owner: int | None, current: int, trusted: str, stranger: str | None) -> None:
    """We, root and users who are named as trusted may own a folder; everybody else is told by name."""
    name = NAMES.get(owner, str(owner)) if owner is not None else ""
    assert find_stranger(owner, name, current, trusted) == stranger


def test_the_error_says_folder_owner_and_what_to_do(tmp_path: Path) -> None:
    """A link of ours into a stranger's folder is no way around, nor is a stranger's link to a folder of ours."""
    theirs, link = tmp_path / "theirs", tmp_path / "link"
    theirs.mkdir()
    link.symlink_to(theirs)
    users = _users({theirs: 1002})
    for folder in (theirs, link):
        with pytest.raises(FixRequest) as refused:
            check_owner(folder, "cache folder", "set X", users=users, environ={})
        said = str(refused.value)
        assert refused.value.code == "TS1992"
        for part in (f"cache folder {theirs}", "user mallory", "runs as anna", "set X", "OWNERS=mallory"):
            assert part in said
    with pytest.raises(FixRequest, match="TS1992"):
        check_owner(link, "cache folder", "set X", users=_users({link: 1002}), environ={})
    check_owner(theirs, "cache folder", "", users=users, environ={"TABLESTORE_TRUSTED_OWNERS": "mallory"})
    sudo = {"SUDO_UID": "1002"}  # who called sudo could do all of it without us; without root it is only said
    check_owner(theirs, "cache folder", "", users=_users({theirs: 1002}, current=0), environ=sudo)
    with pytest.raises(FixRequest, match="TS1992"):
        check_owner(theirs, "cache folder", "", users=users, environ=sudo)
    check_owner(tmp_path / "none", "cache folder", "", users=users, environ={})


def test_new_folders_are_private_and_old_ones_keep_their_mode(tmp_path: Path) -> None:
    """Each folder that is made on the way is for this user alone, whatever the umask; those that were there stay."""
    before = os.umask(0)
    try:
        (tmp_path / "old").mkdir(mode=0o755)
        make_private(tmp_path / "old" / "a" / "b", "cache folder", "")
        make_private(tmp_path / "old" / "a" / "b", "cache folder", "")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / "old" / part).stat().st_mode) for part in ("", "a", "a/b")]
    assert modes == [0o755, 0o700, 0o700]


def test_a_strangers_cache_is_not_used(tmp_path: Path) -> None:
    """What lies in the cache is run: no path in it is given out, none is made."""
    users = _users({tmp_path: 1002})
    environ = {"TABLESTORE_CACHE": str(tmp_path)}
    with pytest.raises(FixRequest, match=r"TS1992[\s\S]*TABLESTORE_CACHE"):
        cache_folder(environ, users=users)
    with pytest.raises(FixRequest, match="TS1992"):
        make_in_cache(tmp_path, users=users)


def test_what_is_made_in_the_cache_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wrapper's folder and that of class archives, and with them the cache, are for this user alone."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("TABLESTORE_CACHE", str(cache))
    java = find_java({"PATH": "", "TABLESTORE_CACHE": str(cache)})
    assert class_archive._claim(class_archive._mark(class_archive.archive_path(java)))
    folders = [cache, *(path for path in cache.rglob("*") if path.is_dir())]
    assert {path.name for path in folders} >= {"cache", "jre", "bin", "class-archive"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}


def test_a_strangers_broker_is_neither_started_nor_stopped(tmp_path: Path) -> None:
    """The state file says which process is stopped: a stranger's says nothing to us."""
    runtime = Runtime(users=_users({tmp_path: 1002}))
    for call in (kafka_broker.start_broker, kafka_broker.stop_broker):
        with pytest.raises(FixRequest, match=r"TS1992[\s\S]*mallory"):
            call(tmp_path, runtime=runtime)
    with pytest.raises(FixRequest, match="TS1992"):
        kafka_broker.find_broker(tmp_path, runtime=runtime)
    assert list(tmp_path.iterdir()) == []


def test_a_strangers_scratch_folder_is_not_used(tmp_path: Path) -> None:
    """Logs and links to data files are not laid into a folder whose owner can exchange them."""
    with pytest.raises(FixRequest, match="TS1992"):
        process_folder.open_process_folder(tmp_path, users=_users({tmp_path: 1002}))
    assert list(tmp_path.iterdir()) == []


def test_a_strangers_warehouse_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine does not open it without a word; with the owner named as trusted it does; a missing one is fine."""
    runtime = Runtime(users=_users({tmp_path: 1002}))
    with pytest.raises(FixRequest, match=rf"TS1992 the warehouse {tmp_path} belongs to the user mallory"):
        Engine(str(tmp_path), runtime=runtime)
    Engine(str(tmp_path / "new"), runtime=runtime).close()
    monkeypatch.setenv("TABLESTORE_TRUSTED_OWNERS", "mallory")
    Engine(str(tmp_path), runtime=runtime).close()
