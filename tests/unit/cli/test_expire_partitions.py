"""expire --partitions on a real warehouse."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableSpec, WriteSpec

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
