"""`tablestore dbt` passes each word on to dbt; the commands that are served are those of this dbt."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from dbt.cli.main import cli

from tablestore_engine.cli import dbt_command
from tablestore_engine.cli.main import main
from tablestore_engine.runtime.resident.session_place import PROCESS, KeptJvm, place_of
from tablestore_engine.runtime.server_process import write_state


def _run(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tablestore_engine.cli.main", "dbt", *words],
        cwd=tmp_path,
        env={**os.environ, "TABLESTORE_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.nightly  # by day adapter/test_loaded_dbt.py: a wrong word, a build
def test_words_go_to_dbt_as_they_are(tmp_path: Path) -> None:
    """Options that the command line of tablestore has as well: --help, --debug, --version, --json."""
    plain = subprocess.run(
        [str(Path(sys.executable).with_name("dbt")), "--help"], capture_output=True, text=True, check=False
    )
    assert _run(tmp_path, "--help").stdout == plain.stdout
    assert "Core:" in _run(tmp_path, "--debug", "--version").stdout
    refused = _run(tmp_path, "build", "--json")
    assert refused.returncode == 2
    assert "No such option" in refused.stderr + refused.stdout


def test_each_command_of_dbt_is_served_or_runs_alone() -> None:
    """A command that a later dbt adds is looked at before it is served."""
    assert set(cli.commands) == dbt_command._SERVED | dbt_command._ALONE
    assert not dbt_command._SERVED & dbt_command._ALONE


@pytest.mark.parametrize(
    ("words", "is_served"),
    [
        ((), False),
        (("build",), True),
        (("--debug", "run", "--select", "deps"), True),
        (("deps",), False),
        (("docs", "generate"), False),
        (("--target", "debug", "build"), False),
        (("unknown",), False),
    ],
)
def test_the_first_command_decides(words: tuple[str, ...], is_served: bool) -> None:
    """A value of an option with the name of a command that runs alone costs time only."""
    assert dbt_command._is_served([*words]) is is_served


def test_without_dbt_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The program that lies beside this Python is meant, no other one of the PATH."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert main(["dbt", "build"]) == 1
    assert "TS1962" in capsys.readouterr().err


def test_session_says_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """For people in a sentence, for programs as JSON."""
    monkeypatch.setenv("TABLESTORE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    assert main(["session", "start"]) == 0
    assert "starts a process that stays" in capsys.readouterr().out
    assert main(["session", "status", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["wanted"], told["pid"], told["java_pid"], told["program"]) == (True, None, None, None)
    place = place_of(tmp_path)
    for program, words in ((None, "keeps Spark (Java"), ("dbt", f"(Java process {os.getpid()}) and dbt for")):
        write_state(place.folder / PROCESS, os.getpid(), {"program": program})
        place.write_jvm(KeptJvm(os.getpid(), 1, "s", "d"))
        assert main(["session", "status"]) == 0
        assert words in capsys.readouterr().out
    (place.folder / PROCESS).unlink()
    (place.folder / "spark.json").unlink()
    assert main(["session", "stop"]) == 0
    assert "start Spark and dbt themselves" in capsys.readouterr().out
