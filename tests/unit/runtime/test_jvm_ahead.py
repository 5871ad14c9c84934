"""A JVM that was begun ahead is taken by who would have started the same one; any other one ends. By a program that
speaks as Spark's gateway does.
"""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
from pathlib import Path

import pytest

from tablestore_engine.runtime import jvm_ahead
from tablestore_engine.runtime.jvm_ahead import JvmStart
from tablestore_engine.runtime.session_place import JVM_START, SessionPlace, place_of

# Port 4660 and the secret `open`, then it waits for the end of its input; what it was given goes to its output.
_LISTENS = r"""#!/bin/sh
echo "arguments: $*; $PLANTED"
printf '\0\0\022\064\0\0\0\004open' > "$_PYSPARK_DRIVER_CONN_INFO_PATH.new"
mv "$_PYSPARK_DRIVER_CONN_INFO_PATH.new" "$_PYSPARK_DRIVER_CONN_INFO_PATH"
exec cat
"""


@pytest.fixture
def working(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the commands, which is the current one."""
    (tmp_path / "scratch").mkdir()
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.setenv("TABLESTORE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(folder)
    new_process(monkeypatch)
    return folder


def new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process of its own would know: nothing."""
    monkeypatch.setattr(jvm_ahead, "_ASKED", [])
    monkeypatch.setattr(jvm_ahead, "_BEGUN", [])


def make_start(tmp_path: Path, script: str = _LISTENS) -> JvmStart:
    """Of a program with this text."""
    program = tmp_path / "program"
    program.write_text(script)
    program.chmod(0o755)
    return JvmStart(str(program), ("a", "b c"), {"PLANTED": "here"}, str(tmp_path / "scratch"))


def begun(working: Path, start: JvmStart, monkeypatch: pytest.MonkeyPatch) -> subprocess.Popen[bytes]:
    """The process that the second command has begun, after the first one has kept its start."""
    jvm_ahead.begin(working)
    jvm_ahead.keep(start)
    new_process(monkeypatch)
    jvm_ahead.begin(working)
    return jvm_ahead._BEGUN[0].process


def test_the_second_command_takes_the_jvm(
    working: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With arguments, environment, port and secret; its output lies where the session has it; its input ends it."""
    start = make_start(tmp_path)
    process = begun(working, start, monkeypatch)
    taken = jvm_ahead.take(start, tmp_path / "log")
    assert taken is not None
    assert (taken.process, taken.port, taken.secret) == (process, 4660, "open")
    assert (tmp_path / "log").read_text() == "arguments: a b c; here\n"
    assert jvm_ahead.take(start, tmp_path / "other") is None
    assert taken.process.stdin is not None
    taken.process.stdin.close()
    assert taken.process.wait() == 0


@pytest.mark.parametrize("change", ["arguments", "environment", "variable", "folder", "nothing ahead"])
def test_who_would_start_another_one_takes_none(
    working: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Other arguments or variables, another folder, a session that nothing may be begun for: it ends, and is reaped."""
    start: JvmStart | None = make_start(tmp_path)
    assert start is not None
    process = begun(working, start, monkeypatch)
    if change == "arguments":
        start = dataclasses.replace(start, arguments=("a",))
    elif change == "environment":
        start = dataclasses.replace(start, environment={})
    elif change == "variable":
        monkeypatch.setenv("SPARK_PLANTED", "1")
    elif change == "folder":
        monkeypatch.chdir(tmp_path)
    else:
        start = None
    assert jvm_ahead.take(start, tmp_path / "log") is None
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "log").exists()


def test_a_jvm_that_nobody_takes_ends_with_the_process(
    working: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while it starts. What it would write its port into stays, for a JVM that cannot write does not end."""
    process = begun(working, make_start(tmp_path), monkeypatch)
    folder = jvm_ahead._BEGUN[0].connection.parent
    jvm_ahead._end_what_was_not_taken()
    assert process.returncode == -signal.SIGKILL
    assert jvm_ahead._BEGUN == []
    assert folder.is_dir()
    assert folder.parent == place_of(working).folder


def test_a_jvm_that_dies_is_not_waited_for(
    working: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session starts its own, and says what is wrong."""
    start = make_start(tmp_path, "#!/bin/sh\nexit 3\n")
    begun(working, start, monkeypatch)
    assert jvm_ahead.take(start, tmp_path / "log") is None


@pytest.mark.parametrize(
    "trouble", ["no record", "damaged", "no scratch", "no program", "resident", "not kept"]
)
def test_nothing_begins_where_it_is_not_known_how(
    working: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    """And nothing is raised: the session's own start says what is wrong."""
    place, start = place_of(working), make_start(tmp_path)
    jvm_ahead.begin(working)
    if trouble != "no record":
        jvm_ahead.keep(start)
    if trouble == "damaged":
        (place.folder / JVM_START).write_text('{"program": 1')
    elif trouble == "no scratch":
        (tmp_path / "scratch").rmdir()
    elif trouble == "no program":
        Path(start.program).unlink()
    elif trouble == "resident":
        place.want(60)
    elif trouble == "not kept":
        jvm_ahead.keep(None)
    new_process(monkeypatch)
    jvm_ahead.begin(working)
    assert jvm_ahead._BEGUN == []
    assert jvm_ahead.take(start, tmp_path / "log") is None


def test_only_who_may_begin_keeps_a_start(working: Path, tmp_path: Path) -> None:
    """A program that is no dbt command leaves what dbt's commands have written; the file is this user's alone."""
    start, place = make_start(tmp_path), place_of(working)
    jvm_ahead.keep(start)
    assert not place.folder.exists()
    jvm_ahead.begin(working)
    jvm_ahead.keep(start)
    kept = place.folder / JVM_START
    assert kept.stat().st_mode & 0o077 == 0
    assert json.loads(kept.read_text())["arguments"] == ["a", "b c"]


def test_a_cache_of_somebody_else_begins_nothing(working: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TS1992 is for the session's own start to say."""
    monkeypatch.setattr(jvm_ahead, "place_of", _refuse)
    jvm_ahead.begin(working)
    assert (jvm_ahead._ASKED, jvm_ahead._BEGUN) == ([], [])


def _refuse(working: Path) -> SessionPlace:
    raise PermissionError(str(working))
