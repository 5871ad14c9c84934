"""When waiting for a connector ends, without a connector."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablestore_engine.devservers import connector_check
from tablestore_engine.devservers.connector_check import ConnectorCheck
from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.postgres.connect_rest import ConnectInfo, ConnectorStatus
from tablestore_engine.postgres.database_source import parse_source
from tablestore_engine.runtime.outside_world import Runtime

SOURCE = parse_source("shop", "postgresql://app@localhost/shop")
INFO = ConnectInfo(SOURCE, "127.0.0.1:1", "http://127.0.0.1:2", 3, "/nowhere", "/nowhere/connect.log")
RUNNING = ConnectorStatus("RUNNING", "RUNNING")


class World:
    """Answers in turn, each a second behind the one before."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: ConnectorStatus | None) -> None:
        self.now_ms, self.process = 0, INFO
        self.check = ConnectorCheck(INFO, Runtime(now_ms=lambda: self.now_ms), silent_seconds=3)
        self._answers = iter(answers)
        monkeypatch.setattr(connector_check, "connector_status", lambda _: self._answer())
        monkeypatch.setattr(connector_check, "find_connect", lambda *_, **__: self.process)

    def _answer(self) -> ConnectorStatus | None:
        self.now_ms += 1000
        return next(self._answers)


def test_an_answer_that_is_late_is_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only silence without a break is: four seconds of it, where three are given."""
    world = World(monkeypatch, *[None] * 3, RUNNING, *[None] * 4)
    for _ in range(7):
        world.check()
    with pytest.raises(RetryError, match=r"TS1467.*\n.*has not answered for 3 s"):
        world.check()


def test_a_process_that_has_ended_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one in its place is not the one that was asked for."""
    for process in (None, ConnectInfo(SOURCE, INFO.brokers, INFO.url, 4, str(Path("/nowhere")), INFO.log)):
        world = World(monkeypatch, None)
        world.process = process  # type: ignore[assignment] # None: nobody
        with pytest.raises(RetryError, match=r"TS1467.*\n.*process has ended"):
            world.check()


def test_a_failed_task_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what it said."""
    world = World(monkeypatch, ConnectorStatus("RUNNING", "FAILED", "no such slot"))
    with pytest.raises(FixRequest, match=r"TS1467.*\n.*no such slot"):
        world.check()
