"""`tablestore demo --stream` as a stranger runs it, shorter, in the folder of one that was killed."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration_tests.demo.suggestions import type_suggestions
from tablestore_demo.project_folder import BROKER
from tablestore_demo.stream_command import end_left_servers
from tablestore_engine.devservers.kafka_broker import stop_broker

pytestmark = pytest.mark.nightly  # test_demo.py runs the short demo
COMMAND = [
    str(Path(sys.executable).parent / "tablestore"),
    "demo",
    "--stream",
    "--rounds",
    "2",
    "--folder",
    "project",
]
ROUND = re.compile(
    r"(\d+) events so far  flights (.+)  totals \+(\d+) +~(\d+) +-(\d+) +topic +(\d+) \(\+(\d+)\)"
)


def processes(word: str) -> list[str]:
    """Command lines with it, of processes that run."""
    told = subprocess.run(
        ["ps", "-A", "-ww", "-o", "args="], capture_output=True, text=True, check=True
    ).stdout
    return [line for line in told.splitlines() if word in line]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """By a whole demo; the one before it was killed, with its servers running."""
    place = tmp_path_factory.mktemp("live")
    first = subprocess.Popen(COMMAND, cwd=place, stdout=subprocess.PIPE, text=True)
    assert first.stdout is not None
    while "flights are planned" not in first.stdout.readline():
        assert first.poll() is None
    first.kill()
    first.wait()
    first.stdout.close()
    left = (place / "project" / ".postgres").read_text()
    assert processes(left)
    try:
        done = subprocess.run(COMMAND, cwd=place, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert not processes(left)
        assert not Path(left).exists()
        assert not processes(str(place / "project" / "connect"))
        yield done.stdout
    finally:
        end_left_servers(place / "project")
        stop_broker(place / "project" / BROKER)


def test_the_topic_grows_by_what_the_totals_changed(printed: str) -> None:
    """A line for each round, the one behind the red test and the last one too; events come in all the time."""
    rounds = ROUND.findall(printed)
    assert len(rounds) == 4
    total = 0
    for _, _, inserted, updated, deleted, length, grown in rounds:
        assert int(inserted) + int(updated) + int(deleted) == int(grown)
        total += int(grown)
        assert total == int(length)
    events = [int(one[0]) for one in rounds]
    assert events == sorted(events)
    assert events[-1] > events[0]


def test_a_red_test_holds_models_and_topic_back(printed: str) -> None:
    """It names the test and what has not moved; then all three agree."""
    before = ROUND.findall(printed.partition("In PostgreSQL somebody")[0])[-1]
    assert "dbt build is red: no_delay_over_a_day" in printed
    assert re.search(
        rf"flights stay at snapshot \d+, totals at \d+, the topic has {before[5]} messages", printed
    )
    assert "PostgreSQL, the table and the topic agree" in printed


def test_suggested_commands_work(printed: str) -> None:
    """Without PostgreSQL, broker and Connect, which have ended."""
    assert type_suggestions(printed) >= 6
