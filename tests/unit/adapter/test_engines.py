"""The one engine of a warehouse and process, as dbt opens it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.tablestore import connections
from dbt.adapters.tablestore.credentials import EngineSettings


def test_publishing_that_takes_long_stands_in_dbts_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine is shared, and its lines about publishing are dbt's log lines."""
    lines: list[str] = []
    monkeypatch.setattr(connections.logger, "info", lines.append)
    settings = EngineSettings(str(tmp_path), "local[1]", (), (("kafka.bootstrap.servers", "a:1"),))
    engine = connections.get_engine(settings)
    assert connections.get_engine(settings) is engine
    engine._warehouse.logs.system.say("d.t: publishing snapshot 1: 5 rows, 1 rows/s")
    assert lines == ["d.t: publishing snapshot 1: 5 rows, 1 rows/s"]
