"""The warehouse of the adapter's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.tablestore.messages import TerminalMessages
from tablestore_engine.api import Engine


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """An empty warehouse with the database demo."""
    made = Engine(str(tmp_path))
    made.create_database("demo")
    return made


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the publish coordinator says in dbt's log."""
    lines: list[str] = []
    for level in ("info", "warning"):
        monkeypatch.setattr(TerminalMessages, level, lambda _self, text: lines.append(text))
    return lines
