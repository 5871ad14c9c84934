"""Where a resident session is written down, and whose it is; no JVM."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tablestore_engine.runtime.server_process import start_time
from tablestore_engine.runtime.session_place import HolderState, SessionPlace, place_of
from tablestore_engine.spark.resident_session import digest_of

SETTINGS = {"master": "local[2]", "conf": {"a": "1"}, "jars": []}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SessionPlace:
    """Of a working folder, in an empty cache."""
    monkeypatch.setenv("TABLESTORE_CACHE", str(tmp_path / "cache"))
    return place_of(tmp_path)


@pytest.mark.parametrize(
    ("settings", "environ", "is_same"),
    [
        (SETTINGS, {"AWS_REGION": "x", "HOME": "/a"}, True),
        (SETTINGS, {"AWS_REGION": "y"}, False),
        (SETTINGS, {"AWS_REGION": "x", "PYTHONPATH": "p"}, False),
        ({**SETTINGS, "conf": {"a": "2"}}, {"AWS_REGION": "x"}, False),
        ({**SETTINGS, "master": "local[1]"}, {"AWS_REGION": "x"}, False),
        ({**SETTINGS, "jars": ["j"]}, {"AWS_REGION": "x"}, False),
    ],
)
def test_what_a_jvm_is_started_with_decides_whose_it_is(
    settings: dict[str, object], environ: dict[str, str], is_same: bool
) -> None:
    """Settings and the environment of Java, Spark and object stores; other variables do not count."""
    assert (digest_of(settings, environ) == digest_of(SETTINGS, {"AWS_REGION": "x"})) is is_same


def test_secrets_of_the_settings_are_not_readable() -> None:
    """The digest stands in a file."""
    assert "hunter2" not in digest_of({"conf": {"password": "hunter2"}}, {"AWS_SECRET_ACCESS_KEY": "hunter2"})


def test_folders_have_sessions_of_their_own(tmp_path: Path, place: SessionPlace) -> None:
    """None before somebody asks for one; a symbolic link is the folder that it names."""
    (tmp_path / "other").mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    assert place.idle_seconds is None
    place.want(60)
    assert place.idle_seconds == 60
    assert place_of(tmp_path / "link") == place
    assert place_of(tmp_path / "other").idle_seconds is None


def test_a_state_of_a_dead_process_is_none(place: SessionPlace) -> None:
    """Nor is one of a later process that got the same id, or whose JVM is gone; a damaged file is none."""
    place.want(60)
    own = start_time(os.getpid())
    assert own is not None
    alive = HolderState(os.getpid(), own, 1, "s", "d", os.getpid(), own)
    place.publish(alive)
    assert place.holder() == alive
    for dead in (replace(alive, begun="long ago"), replace(alive, java_begun="long ago")):
        place.publish(dead)
        assert place.holder() is None
    (place.folder / "state.json").write_text("{")
    assert place.holder() is None


def test_state_of_a_dead_holder_is_dropped_while_no_command_works(place: SessionPlace) -> None:
    """A command that starts a holder has the lock; a holder that ends leaves the state of its successor."""
    place.drop_dead()  # nobody has asked for a session yet
    place.want(60)
    own = str(start_time(os.getpid()))
    alive = HolderState(os.getpid(), own, 1, "s", "d", os.getpid(), own)
    dead = replace(alive, begun="long ago")
    state = place.folder / "state.json"
    place.publish(alive)
    place.drop_dead()
    place.withdraw(dead)
    assert place.holder() == alive
    place.publish(dead)
    lock = place.try_lock()
    assert lock is not None
    with lock:
        place.drop_dead()
    assert state.exists()
    place.drop_dead()
    assert not state.exists()
    place.publish(alive)
    place.withdraw(alive)
    assert not state.exists()


def test_one_command_at_a_time(place: SessionPlace) -> None:
    """The lock is free again when its file is closed."""
    place.want(60)
    first = place.try_lock()
    assert first is not None
    assert place.try_lock() is None
    first.close()
    again = place.try_lock()
    assert again is not None
    again.close()
