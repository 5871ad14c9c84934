"""`tablestore connect start`: what is taken from the last start of a source, without Connect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tablestore_engine.cli import connect
from tablestore_engine.devservers.kafka_connect import LastStart, find_last_start, write_last_start
from tablestore_engine.postgres.database_source import parse_source
from tablestore_engine.spi import DatabaseSource

from .conftest import Run

URL = "postgresql://app@db.example:5433/shop?sslmode=require"
LAST = LastStart(parse_source("shop", URL, ["public.orders"]), "127.0.0.1:9092")


class Started:
    """Instead of Connect: what it would have been started with."""

    def __init__(self) -> None:
        self.calls: list[tuple[DatabaseSource, str]] = []

    def __call__(self, source: DatabaseSource, brokers: str, **_: object) -> None:
        """As start_connect."""
        self.calls.append((source, brokers))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """Records calls of start_connect."""
    record = Started()
    monkeypatch.setattr(connect, "start_connect", record)
    return record


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The data folder of a source that was started once, and stopped."""
    made = tmp_path / "shop-data"
    made.mkdir(mode=0o700)
    write_last_start(made, LAST)
    return made


def start(run: Run, folder: Path, *words: str) -> str:
    """What it says on stderr; nothing runs afterwards, so the status is 1."""
    done = run("connect", "start", "shop", "--data-dir", str(folder), *words)
    assert done.status == 1
    return done.err


def test_start_takes_database_tables_and_brokers_of_the_last_start(
    run: Run, started: Started, folder: Path
) -> None:
    """And says so; the file is this user's alone."""
    assert f"shop: public.orders of {URL}, as in its last start" in start(run, folder)
    assert started.calls == [(LAST.source, LAST.brokers)]
    assert (folder / "last-start.json").stat().st_mode & 0o777 == 0o600


def test_words_of_the_command_line_come_first(
    run: Run, started: Started, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables keep the database; a database means all of its tables. Brokers: option, variable, last start."""
    start(run, folder, "--table", "crm.*")
    monkeypatch.setenv("TABLESTORE_KAFKA", "127.0.0.1:2")
    assert "last start" not in start(run, folder, "--database", "postgresql://b@other/c")
    start(run, folder, "--bootstrap", "127.0.0.1:3")
    assert started.calls == [
        (parse_source("shop", URL, ["crm.*"]), LAST.brokers),
        (parse_source("shop", "postgresql://b@other/c"), "127.0.0.1:2"),
        (LAST.source, "127.0.0.1:3"),
    ]


@pytest.mark.parametrize(
    "text", [None, "{", "[]", '{"brokers": "x"}', json.dumps({"source": 1, "brokers": "x"})]
)
def test_first_start_needs_the_address(run: Run, started: Started, folder: Path, text: str | None) -> None:
    """So does one whose record is missing or damaged: nothing is guessed."""
    file = folder / "last-start.json"
    file.unlink() if text is None else file.write_text(text)
    assert "TS1475 source shop needs the address of its database: --database" in start(run, folder)
    assert started.calls == []


def test_record_of_another_source_is_not_taken(run: Run, started: Started, folder: Path) -> None:
    """A folder that another source has used names no database of this one."""
    assert find_last_start("other", folder) is None
    done = run("connect", "start", "other", "--data-dir", str(folder))
    assert "TS1475 source other needs the address" in done.err
    assert started.calls == []


def test_sync_of_a_stopped_source_names_the_start_that_suffices(
    run: Run, folder: Path, tmp_path: Path
) -> None:
    """Without the address where it is recorded."""
    words = ("sync", "shop", "--into", "demo", "--data-dir")
    assert run(*words, str(folder)).err.rstrip().endswith("next: tablestore connect start shop")
    assert "connect start shop --database" in run(*words, str(tmp_path / "none")).err
