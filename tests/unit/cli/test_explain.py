"""`tablestore explain model` over a dbt that prints a given log and ends with a given status."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tablestore_engine.cli import explain
from tablestore_engine.cli.main import main


def fake_dbt(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *lines: tuple[str, str, dict[str, str]], status: int = 0
) -> None:
    """`lines`: level, text and data of dbt's log."""
    log = [json.dumps({"info": {"level": level, "msg": text}, "data": data}) for level, text, data in lines]
    program = folder / "dbt"
    program.write_text(f"#!/bin/sh\nprintf '%s\\n' {shlex.join(['no JSON', *log])}\nexit {status}\n")
    program.chmod(0o700)
    monkeypatch.setattr(explain, "dbt_program", lambda: program)


def test_lines_of_the_adapter_are_printed_by_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Other lines of dbt are not, nor those of the debug level."""
    ours = {"name": "Tablestore", "base_msg": "demo.means: changes of demo.orders: deltas"}
    fake_dbt(
        tmp_path, monkeypatch,
        ("info", "Running with dbt", {}), ("info", "", ours), ("debug", "", ours),
        ("warn", "", {"name": "Tablestore", "base_msg": "demo.means: tip: add count(*)"}),
    )  # fmt: skip
    assert main(["explain", "model", "means"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "demo.means", "  changes of demo.orders: deltas", "  warning: tip: add count(*)",
    ]  # fmt: skip
    assert main(["explain", "model", "means", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"model": "demo.means", "line": "changes of demo.orders: deltas", "is_warning": False},
        {"model": "demo.means", "line": "tip: add count(*)", "is_warning": True},
    ]


def test_model_of_another_kind_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """TS1993, where dbt ends well and the adapter has explained nothing."""
    fake_dbt(tmp_path, monkeypatch, ("info", "Concurrency: 2 threads", {}))
    assert main(["explain", "model", "plain"]) == 1
    error = capsys.readouterr().err
    assert "TS1993" in error
    assert "plain has no model by changed_keys" in error


def test_error_of_dbt_is_shown_and_ends_with_status_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever the adapter has explained before."""
    ours = {"name": "Tablestore", "base_msg": "demo.means: changes of demo.orders: deltas"}
    fake_dbt(
        tmp_path, monkeypatch, ("info", "", ours), ("error", "TS1871: a column is the time", {}), status=2
    )
    assert main(["explain", "model", "means"]) == 1
    told = capsys.readouterr()
    assert "TS1871: a column is the time" in told.err
    assert told.out == ""
