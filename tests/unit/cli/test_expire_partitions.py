"""expire --partitions on a real warehouse."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableSpec, WriteMode, WriteSpec

from .conftest import Run

OPTIONS = {"partition.expiration-time": "7 d", "tablestore.expire-on-commit": "false"}


@pytest.fixture
def days(engine: Engine) -> str:
    """A table demo.days with rows of long ago, of today, and of no day; today's text."""
    today = str(datetime.now(UTC).date())
    rows = pa.table({"dt": ["2020-01-02", "2020-01-01", "2020-01-01", today, "soon"], "id": [1, 2, 3, 4, 5]})
    engine.write("demo.days", rows, WriteSpec(table=TableSpec(("dt", "id"), ("dt",), options=OPTIONS)))
    return today


def test_dry_run_and_run(run: Run, engine: Engine, days: str) -> None:
    """--dry-run tells what the run then does; a second one finds nothing; the changes are in the changelog."""
    told = run("expire", "demo.days", "--partitions", "--dry-run", "--json").json
    assert engine.table("demo.days").latest_snapshot_id() == 1
    assert told == {
        "table": "demo.days",
        "dry_run": True,
        "partitions": ["dt=2020-01-01", "dt=2020-01-02"],
        "rows": 3,
        "left": 0,
        "timeless": 1,
        "snapshot": None,
    }
    assert "2 partitions would expire" in run("expire", "demo.days", "--partitions", "--dry-run").out
    done = run("expire", "demo.days", "--partitions", "--json").json
    assert done == {**told, "dry_run": False, "snapshot": 2}
    assert set(engine.table("demo.days").scan().to_arrow().column("dt").to_pylist()) == {days, "soon"}
    again = run("expire", "demo.days", "--partitions")
    assert again.out == "demo.days: no partition is due; 1 without a time in their values stay\n"
    assert "-D" in run("changelog", "demo.days", "--since", "1").out
    assert run("verify", "demo.days").status == 0


def test_what_does_not_go_together(run: Run, days: str) -> None:
    """Words about snapshots, and tables without the option, are refused; nothing changes."""
    assert days
    for words in (("--keep", "3"), ("--older-than", "7d")):
        refused = run("expire", "demo.days", "--partitions", *words)
        assert (refused.status, "TS1951" in refused.err) == (1, True)
    refused = run("expire", "demo.orders", "--partitions")
    assert (refused.status, "TS1341" in refused.err) == (1, True)
    assert "demo.days" in run("show", "demo.days").out


def test_partitions_are_dropped_and_marked(run: Run, engine: Engine) -> None:
    """partition drop and mark-done: what a filter chooses, as text and as JSON; a dry run changes nothing."""
    rows = pa.table({"id": [1, 2], "day": ["mon2", "tue2"]})
    engine.write("demo.events", rows, WriteSpec(mode=WriteMode.APPEND))
    before = engine.table("demo.events").latest_snapshot_id()
    dry = run("partition", "drop", "demo.events", "--where", "day = 'mon2'", "--dry-run")
    assert dry.out == "demo.events: 1 partition would be dropped (day=mon2), 1 rows\n"
    assert run("partition", "mark-done", "demo.events", "--where", "day = 'mon2'", "--json").json == {
        "table": "demo.events",
        "marked": ["day=mon2"],
    }
    assert engine.table("demo.events").latest_snapshot_id() == before
    done = run("partition", "drop", "demo.events", "--where", "day = 'mon2'", "--json").json
    assert (done["partitions"], done["rows"]) == (["day=mon2"], 1)
    assert run("partition", "mark-done", "demo.events").out == "demo.events: no partition marked as done\n"
    assert "TS1215" in run("partition", "drop", "demo.events", "--where", "id = 1").err


def test_a_write_marks_its_partitions(engine: Engine) -> None:
    """partition.end-input-to-done: the file is there after the write; a server that does not answer is reported."""
    options = {"partition.end-input-to-done": "true"}
    spec = WriteSpec(mode=WriteMode.APPEND, table=TableSpec(partition_by=("day",), options=options))
    rows = pa.table({"id": [1], "day": ["mon"]})
    assert not engine.write("demo.done", rows, spec).has_trouble
    place = engine.table("demo.done").store.location
    assert (Path(place) / "day=mon" / "_SUCCESS").exists()
    http = {
        "partition.mark-done-action": "http-report",
        "partition.mark-done-action.http.url": "http://127.0.0.1:1",
    }
    asked = TableSpec(partition_by=("day",), options={**options, **http})
    report = engine.write("demo.told", rows, WriteSpec(mode=WriteMode.APPEND, table=asked))
    assert "TS1219" in str(report.partitions_trouble)
    assert len(engine.table("demo.told")) == 1
