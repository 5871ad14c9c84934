"""Where a resident session is written down, and whose it is; no JVM."""

from __future__ import annotations

import itertools
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.runtime.resident.session_place import PROCESS, KeptJvm, SessionPlace, place_of
from tablestore_engine.runtime.server_process import write_state
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
    kept = KeptJvm(os.getpid(), 1, "s", "d")
    place.write_jvm(kept)
    assert place.jvm() is None
    write_state(place.folder / PROCESS, os.getpid(), {"program": "dbt"})
    assert (place.jvm(), place.process(), place.program()) == (kept, os.getpid(), "dbt")
    for file in (place.folder / PROCESS, place.folder / "spark.json"):
        alive = file.read_text()
        for text in (json.dumps({**json.loads(alive), "started": "long ago"}), "{"):
            file.write_text(text)
            assert place.jvm() is None
        file.write_text(alive)
    assert place.jvm() == kept


def test_end_of_a_jvm_removes_what_it_has_left(place: SessionPlace) -> None:
    """A program that ignores SIGTERM is killed; without one there is nothing to do."""
    place.want(60)
    place.end_jvm()
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as jvm:
        assert jvm.stdout is not None
        jvm.stdout.readline()
        place.write_jvm(KeptJvm(jvm.pid, 1, "s", "d"))
        (place.make_scratch() / "spark.log").touch()
        late = itertools.count(step=60_000)
        place.end_jvm(Runtime(now_ms=lambda: next(late), sleep=lambda _: None))
        assert jvm.wait() == -signal.SIGKILL
    assert {one.name for one in place.folder.iterdir()} == {"wanted.json"}
    assert stat.S_IMODE(place.make_scratch().stat().st_mode) == 0o700


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
