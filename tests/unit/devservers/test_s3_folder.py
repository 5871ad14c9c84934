"""The data folder of the development S3 server: what is refused before anything in it changes."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tablestore_engine.devservers import s3_server
from tablestore_engine.devservers.s3_server import find_s3_server, start_s3_server, stop_s3_server
from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.runtime.ownership import Users

CALLS = (start_s3_server, find_s3_server, stop_s3_server)


@pytest.fixture(autouse=True)
def _no_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start that gets as far as its program ends there."""

    def refuse(**_: object) -> Path:
        raise RetryError("TS1917", "no program", why="the test ends before the server", fix="none")

    monkeypatch.setattr(s3_server, "ensure_gateway", refuse)


def test_new_folder_is_private(tmp_path: Path) -> None:
    """A start makes it 0700, whatever the umask, before anything is put into it."""
    before = os.umask(0)
    try:
        with pytest.raises(RetryError, match="TS1917"):
            start_s3_server(tmp_path / "a" / "s3")
    finally:
        os.umask(before)
    assert [stat.S_IMODE((tmp_path / part).stat().st_mode) for part in ("a", "a/s3")] == [0o700, 0o700]
    assert [path.name for path in (tmp_path / "a" / "s3").iterdir()] == [".lock"]


@pytest.mark.parametrize("call", CALLS)
def test_folder_with_other_files_is_refused(call: Callable[..., object], tmp_path: Path) -> None:
    """TS1929, with nothing added: a home folder or a project is no data folder."""
    (tmp_path / "thesis.txt").write_text("")
    with pytest.raises(FixRequest, match=r"TS1929[\s\S]*thesis\.txt"):
        call(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("call", CALLS)
def test_folder_of_another_user_is_refused(call: Callable[..., object], tmp_path: Path) -> None:
    """TS1992: its state file would say which process is signalled, its keys are known to its owner."""
    users = Users(current=lambda: 1001, owner_of=lambda _: 1002, name_of=lambda user: f"user{user}")
    with pytest.raises(FixRequest, match=r"TS1992[\s\S]*user1002"):
        call(tmp_path, runtime=Runtime(users=users))
    assert list(tmp_path.iterdir()) == []


def test_start_that_failed_can_be_repeated(tmp_path: Path) -> None:
    """The lock and the first bytes of the keys that a killed start leaves are no other files."""
    for name in (".lock", ".credentials.sh"):
        (tmp_path / name).write_text("")
    with pytest.raises(RetryError, match="TS1917"):
        start_s3_server(tmp_path)


def test_state_of_another_process_is_not_trusted(tmp_path: Path) -> None:
    """A state file whose pid belongs to a later process is no server, and stop signals nobody."""
    (tmp_path / "credentials.sh").write_text("")
    (tmp_path / "s3.json").write_text(
        f'{{"pid": {os.getpid()}, "started": "1", "url": "http://127.0.0.1:1", "ready": true}}'
    )
    assert find_s3_server(tmp_path) is None
    assert not stop_s3_server(tmp_path)


def test_keys_are_made_once_and_kept(tmp_path: Path) -> None:
    """Ids come from the runtime; a second call reads the file, which is 0600 whatever the umask."""
    ids = iter(f"0000000{n}-aaaa-4bbb-8ccc-dddddddddddd" for n in range(9))
    runtime = Runtime(new_uuid=lambda: next(ids))
    before = os.umask(0)
    try:
        keys = s3_server._ensure_keys(tmp_path, runtime)
    finally:
        os.umask(before)
    assert keys == s3_server._ensure_keys(tmp_path, runtime)
    assert keys.access_key == "TS00000000AAAA4BBB8C"
    assert re.fullmatch(r"00000001[a-d0-9]{24}", keys.secret_key)
    assert keys.secret_key not in repr(keys)
    assert stat.S_IMODE((tmp_path / "credentials.sh").stat().st_mode) == 0o600


def test_damaged_keys_are_an_error(tmp_path: Path) -> None:
    """New keys would lock out clients without a word, so a file without keys is TS1929."""
    (tmp_path / "credentials.sh").write_text("export AWS_ACCESS_KEY_ID=a\n")
    with pytest.raises(FixRequest, match=r"TS1929[\s\S]*AWS_SECRET_ACCESS_KEY"):
        s3_server._ensure_keys(tmp_path, Runtime())
