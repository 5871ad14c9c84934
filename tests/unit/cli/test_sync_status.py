"""The status of `tablestore sync --follow` when it is stopped in the middle of a round."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tablestore_engine.api.database_sync import SyncReport, SyncSpec
from tablestore_engine.cli import sync
from tablestore_engine.errors import FixRequest
from tablestore_engine.ingest.ingest_spec import IngestReport

WHOLE, CUT = SyncReport("0/1", {}, {}, is_complete=True), SyncReport("0/1", {}, {}, is_complete=False)
FAILED = SyncReport("0/1", {}, {"d.t": FixRequest("TS1491", "d.t", why="w", fix="f")}, is_complete=False)


@pytest.mark.parametrize(
    ("rounds", "status"),
    [((CUT,), 1), ((WHOLE, CUT), 0), ((FAILED,), 1), ((WHOLE, FAILED), 1), ((WHOLE,), 0)],
    ids=["nothing whole", "whole before", "failed table", "failed table after a whole round", "whole"],
)
def test_sync_stopped_within_a_round_reports_what_it_knows(
    monkeypatch: pytest.MonkeyPatch, rounds: tuple[SyncReport, ...], status: int
) -> None:
    """0 only when a round was whole and no later one has met a table that cannot be followed."""
    assert _follow(monkeypatch, rounds)[0] == status


def test_sync_follow_prints_later_iterations_only_with_changes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line for each table, and the last line, come in the first iteration, then where something changed or failed."""
    changed = SyncReport("0/2", {"d.t": IngestReport("d.t", "kafka:t", messages=1)}, {})
    idle = SyncReport("0/3", {"d.t": IngestReport("d.t", "kafka:t")}, {})
    failed = replace(FAILED, place="0/4", is_complete=True)
    _, asked = _follow(monkeypatch, (WHOLE, idle, changed, idle, failed))
    assert [spec.names_unchanged for spec in asked] == [True, False, False, False, False]
    assert [line.split()[4].rstrip(",") for line in capsys.readouterr().out.splitlines()] == [
        "0/1",
        "0/2",
        "0/4",
    ]


def _follow(monkeypatch: pytest.MonkeyPatch, rounds: tuple[SyncReport, ...]) -> tuple[int, list[SyncSpec]]:
    """The exit status, and what each iteration was asked for."""
    stop, left = threading.Event(), list(rounds)
    asked: list[SyncSpec] = []

    def one_round(_: object, __: object, spec: SyncSpec, **___: object) -> SyncReport:
        asked.append(spec)
        report = left.pop(0)
        if not left:
            stop.set()
        return report

    @contextmanager
    def given(_: object = None) -> Iterator[threading.Event]:
        yield stop

    monkeypatch.setattr(sync, "sync_database", one_round)
    monkeypatch.setattr(sync, "_find_running", lambda _: None)
    monkeypatch.setattr(sync, "open_engine", given)
    monkeypatch.setattr(sync, "stopped_by_signals", given)
    parser = argparse.ArgumentParser()
    sync.add_arguments(parser)
    arguments = parser.parse_args(["name", "--into", "demo", "--follow", "--interval", "0"])
    arguments.json = False
    return sync.run(arguments), asked
