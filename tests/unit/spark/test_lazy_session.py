"""A session that is started ahead is started once, and its failure is said to who needs it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from tablestore_engine.errors import FixRequest
from tablestore_engine.runtime.scratch import ScratchPlace
from tablestore_engine.spark import lazy_session
from tablestore_engine.spark.lazy_session import LazySession
from tablestore_engine.spark.session import SparkSettings


def _session(folder: Path) -> LazySession:
    return LazySession(SparkSettings(), ScratchPlace(str(folder)))


def test_who_needs_it_waits_for_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """start_ahead returns while the start is on its way; get returns its session, and nothing starts twice."""
    may_end, starts, session = threading.Event(), list[str](), object()

    def open_slowly(*_: Any) -> object:
        starts.append(threading.current_thread().name)
        may_end.wait()
        return session

    monkeypatch.setattr(lazy_session, "open_session", open_slowly)
    lazy = _session(tmp_path)
    lazy.start_ahead()
    assert not lazy.is_started
    threading.Timer(0.01, may_end.set).start()
    assert lazy.get() is session
    lazy.start_ahead()
    assert starts == ["spark start"]


def test_a_failure_is_raised_where_the_session_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread of the start says nothing."""
    tried = threading.Semaphore(0)

    def fail(*_: Any) -> object:
        tried.release()
        raise FixRequest("TS1504", "Spark did not start", why="no Java", fix="install one")

    monkeypatch.setattr(lazy_session, "open_session", fail)
    lazy = _session(tmp_path)
    lazy.start_ahead()
    assert tried.acquire(timeout=60)
    with pytest.raises(FixRequest, match="TS1504"):
        lazy.get()
