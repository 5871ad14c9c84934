"""`tablestore demo` as a stranger runs it, shorter: its own claims, and the commands that it suggests at the end."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration_tests.demo.suggestions import type_suggestions
from tablestore_demo.demo_place import S3
from tablestore_demo.project_folder import BROKER
from tablestore_engine.cli.main import main
from tablestore_engine.devservers.kafka_broker import stop_broker
from tablestore_engine.devservers.s3_server import find_s3_server

BIN = Path(sys.executable).parent
DAYS = 2
ROUND = re.compile(
    r"day +(\d+) +\d+ events  snapshot +(\d+)  \+(\d+) +~(\d+) +-(\d+) +topic +(\d+) \(\+(\d+)\)"
)


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BIN / command[0]), *command[1:]], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """The project that a demo of two days leaves, and what it printed."""
    place = tmp_path_factory.mktemp("demo")
    done = _run(["tablestore", "demo", "--days", str(DAYS), "--folder", "project"], place)
    assert done.returncode == 0, done.stdout + done.stderr
    yield place / "project", done.stdout
    stop_broker(place / "project" / BROKER)


def test_topic_grows_by_what_snapshots_change(demo: tuple[Path, str]) -> None:
    """One line per day; the topic's growth is inserted + updated + deleted, and sums up to its length."""
    rounds = [[int(number) for number in match] for match in ROUND.findall(demo[1])]
    assert [one[0] for one in rounds] == list(range(1, DAYS + 1))
    total = 0
    for _, _, inserted, updated, deleted, length, grown in rounds:
        assert grown == inserted + updated + deleted
        total += grown
        assert length == total


def test_unit_tests_of_the_table_and_of_the_topic_run(demo: tuple[Path, str]) -> None:
    """Before the first day is written, with rows of a table that is not there yet."""
    assert "2 unit tests passed before it: " in demo[1]
    assert {"events_of_a_day_in_the_table", "events_of_a_day_in_the_topic"} <= set(
        re.findall(r"\w+", demo[1])
    )


def test_red_day_moves_nothing_and_another_reader_agrees(demo: tuple[Path, str]) -> None:
    """The poisoned day names its red test and leaves snapshot and topic; Paimon's reader counts the same rows."""
    text = demo[1]
    last = ROUND.findall(text)[-1]
    assert "dbt build is red: no_delay_over_a_day" in text
    assert f"snapshot is still {last[1]}, the topic still has {last[5]} messages" in text
    assert "dbt build is green" in text
    travel = re.search(r"Time travel: (\d+) flights at snapshot \d+, (\d+) now", text)
    assert travel is not None
    assert int(travel[1]) < int(travel[2])
    assert f"Rust reader: {travel[2]} flights" in text
    assert text.count("█") > DAYS


@pytest.mark.nightly
def test_suggested_commands_work(demo: tuple[Path, str]) -> None:
    """The lines under `Now yours`, typed into one shell one after the other, all succeed, and each says something."""
    assert type_suggestions(demo[1]) >= 7


@pytest.mark.parametrize("days", ["0", "365"])
def test_days_outside_of_the_year_are_refused(
    days: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The feed has 365 days and the red one follows the last; nothing is made."""
    assert main(["demo", "--days", days, "--folder", str(tmp_path / "never")]) != 0
    assert "TS1857" in capsys.readouterr().err
    assert not (tmp_path / "never").exists()


@pytest.mark.nightly  # by day s3/test_dbt_build.py builds over an object store, and the demo runs in a folder
@pytest.mark.parametrize("words", [(), ("--cluster",)], ids=["s3", "cluster"])
def test_demo_on_an_object_store_holds_a_red_day_back(words: tuple[str, ...], tmp_path: Path) -> None:
    """Tables on an S3 server, on demand queries on a cluster; Paimon's reader counts the objects."""
    command = [
        "tablestore",
        "demo",
        "--warehouse",
        "s3",
        "--days",
        "1",
        "--no-kafka",
        "--folder",
        "project",
        *words,
    ]
    done = _run(command, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tables in s3://tablestore/warehouse" in done.stdout
    assert "snapshot is still 1" in done.stdout
    assert not (tmp_path / "project" / "warehouse").exists()
    travel = re.search(r"Time travel: (\d+) flights at snapshot \d+, (\d+) now", done.stdout)
    assert travel is not None
    assert f"Rust reader: {travel[2]} flights" in done.stdout
    assert find_s3_server(tmp_path / "project" / S3) is None


@pytest.mark.parametrize("words", [("--warehouse", "s3"), ("--cluster",)])
def test_servers_for_the_stream_demo_are_refused(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has servers of its own; nothing is made."""
    assert main(["demo", "--stream", *words, "--folder", str(tmp_path / "never")]) != 0
    assert "TS1857" in capsys.readouterr().err
    assert not (tmp_path / "never").exists()
