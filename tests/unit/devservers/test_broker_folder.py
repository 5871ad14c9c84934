"""The data folder of the development broker: topics hold rows, so it is for this user alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tablestore_engine.devservers import kafka_broker
from tablestore_engine.errors import FixRequest


def test_the_data_folder_is_for_this_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """start_broker makes it 0700, whatever the umask, before anything is put into it."""

    def no_java() -> None:
        raise FixRequest("TS1902", "no Java here", why="the test ends before the JVM", fix="none")

    monkeypatch.setattr(kafka_broker, "find_java", no_java)
    before = os.umask(0)
    try:
        with pytest.raises(FixRequest, match="TS1902"):
            kafka_broker.start_broker(tmp_path / "a" / "broker")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / part).stat().st_mode) for part in ("a", "a/broker")]
    assert modes == [0o700, 0o700]
