"""What the demo does to a folder that was there before."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablestore_demo import stream_command
from tablestore_demo.project_folder import BROKER, MARKER
from tablestore_engine.errors import FixRequest


def test_somebody_elses_folder_is_not_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """TS1851 before a broker or a Connect in it is stopped; in a folder of ours both are, and it is empty then."""
    stopped: list[str] = []
    monkeypatch.setattr(stream_command, "run_broker", lambda _, action: stopped.append(action))
    monkeypatch.setattr(stream_command, "stop_connect", lambda *_: stopped.append("connect"))
    for name in (BROKER, "connect"):
        (tmp_path / name).mkdir()
    with pytest.raises(FixRequest, match="TS1851"):
        stream_command.clear_all(tmp_path)
    assert stopped == []
    (tmp_path / MARKER).touch()
    stream_command.clear_all(tmp_path)
    assert stopped == ["connect", "stop"]
    assert [path.name for path in tmp_path.iterdir()] == [MARKER]
