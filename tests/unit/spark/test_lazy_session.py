"""The session of an engine is started once, and its failure is said to who needs it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tablestore_engine.errors import FixRequest
from tablestore_engine.runtime.scratch import ScratchPlace
from tablestore_engine.spark.lazy_session import LazySession
from tablestore_engine.spark.spark_settings import SparkSettings


def _session(folder: Path) -> LazySession:
    return LazySession(SparkSettings(), ScratchPlace(str(folder)))


def test_threads_that_need_it_at_once_start_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one waits for the start of the first."""
    asked, starts, session = threading.Barrier(2), list[str](), object()

    def open_one(*_: Any) -> object:
        starts.append("start")
        return session

    def get(_: int) -> object:
        asked.wait()
        return lazy.get()

    monkeypatch.setattr("tablestore_engine.spark.session.open_session", open_one)
    lazy = _session(tmp_path)
    assert not lazy.is_started
    with ThreadPoolExecutor(2) as threads:
        assert [*threads.map(get, range(2))] == [session, session]
    assert (starts, lazy.is_started) == (["start"], True)


def test_a_failed_start_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is raised where the session is needed; the next one who needs it may be luckier."""
    tries, session = list[str](), object()

    def fail_once(*_: Any) -> object:
        tries.append("try")
        if len(tries) == 1:
            raise FixRequest("TS1504", "Spark did not start", why="no Java", fix="install one")
        return session

    monkeypatch.setattr("tablestore_engine.spark.session.open_session", fail_once)
    lazy = _session(tmp_path)
    with pytest.raises(FixRequest, match="TS1504"):
        lazy.get()
    assert lazy.get() is session
