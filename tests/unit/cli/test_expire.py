"""expire on a real warehouse."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.errors import FixRequest
from tablestore_engine.runtime.outside_world import SYSTEM

from .conftest import KEYED, Run, orders

AT_ONCE = {"tablestore.expire-grace": "0 ms"}


@pytest.fixture
def impatient(engine: Engine) -> Engine:
    """A table demo.now of four snapshots whose queries are known to be over at once."""
    spec = WriteSpec(table=TableSpec(KEYED.primary_key, options=AT_ONCE))
    for number in range(4):
        engine.write("demo.now", orders((number, "ann", 1.0)), spec)
    return engine


def test_fresh_snapshots_stay(run: Run, engine: Engine) -> None:
    """The options of the table decide; a query may be reading: --keep does not go below the grace period."""
    done = run("expire", "demo.orders", "--json").json
    assert (done["snapshots"], done["files"], done["first"]) == (0, 0, None)
    assert "grace" in run("expire", "demo.orders", "--keep", "1").out
    assert engine.table("demo.orders").snapshot_ids() == (1, 2, 3)


def test_dry_run_and_run(run: Run, impatient: Engine) -> None:
    """--dry-run tells what the run then does; rows stay as they are."""
    table = impatient.table("demo.now")
    rows = table.scan().to_arrow().sort_by("order_id")
    told = run("expire", "demo.now", "--keep", "2", "--dry-run", "--json").json
    assert table.snapshot_ids() == (1, 2, 3, 4)
    done = run("expire", "demo.now", "--keep", "2", "--json").json
    assert done == {**told, "dry_run": False}
    assert (done["snapshots"], done["first"], done["last"], done["reason"]) == (2, 1, 2, "the newest 2 stay")
    assert table.snapshot_ids() == (3, 4)
    assert table.scan().to_arrow().sort_by("order_id") == rows
    assert run("verify", "demo.now").status == 0


def test_older_than(run: Run, impatient: Engine) -> None:
    """A time leaves the least number of the table; with --keep that number; it needs a unit."""
    assert run("expire", "demo.now", "--older-than", "0ms").out.startswith(
        "demo.now: no snapshot expires: the newest 10"
    )
    assert "retained" in run("expire", "demo.now", "--older-than", "7d", "--keep", "1").out
    done = run("expire", "demo.now", "--older-than", "0 ms", "--keep", "3")
    assert done.out.startswith("demo.now: 1 snapshot expired (1) with ")
    assert impatient.table("demo.now").snapshot_ids() == (2, 3, 4)
    refused = run("expire", "demo.now", "--older-than", "7", "--keep", "1")
    assert refused.status == 1
    assert "TS1950" in refused.err
    assert "TS1088" in run("expire", "demo.now", "--keep", "0").err
    assert impatient.table("demo.now").snapshot_ids() == (2, 3, 4)


def test_the_same_in_python(impatient: Engine) -> None:
    """Table.expire has the same words."""
    table = impatient.table("demo.now")
    day_ms = int(timedelta(days=1).total_seconds() * 1000)
    assert table.expire(older_than_ms=day_ms, keep=1).snapshots == 0
    assert table.expire(keep=1).snapshots == 3
    with pytest.raises(FixRequest, match="TS1088"):
        table.expire(older_than_ms=-1)


@pytest.fixture
def past(warehouse: Path) -> Engine:
    """demo.past and demo.new have a staged snapshot `try` of a week ago; demo.new has nothing else."""
    week_ago = replace(SYSTEM, now_ms=lambda: SYSTEM.now_ms() - 7 * 86_400_000)
    old = Engine(str(warehouse), runtime=week_ago)
    old.write("demo.past", orders((1, "ann", 1.0)), WriteSpec(table=KEYED))
    for table in ("demo.past", "demo.new"):
        old.write(table, orders((9, "zed", 9.0)), WriteSpec(table=KEYED, stage="try"))
    return Engine(str(warehouse))


def test_python_drops_staged_snapshots_past_their_retention(past: Engine) -> None:
    """As the command does; a wrong request or a dry run drops nothing, and the report names what went."""
    table, only_staged = past.table("demo.past"), past.table("demo.new")
    with pytest.raises(FixRequest, match="TS1088"):
        table.expire(keep=0)
    (told,) = table.expire(dry_run=True).staged
    assert (told.table, told.name) == ("demo.past", "try")
    assert "would be dropped: it was written 7 d ago" in told.line
    assert [one.name for one in past.staged("demo.past")] == ["try"]
    done = table.expire()
    assert ["is dropped" in one.line for one in done.staged] == [True]
    assert (done.snapshots, past.staged("demo.past"), table.expire().staged) == (0, (), ())
    gone = only_staged.expire()
    assert ([one.name for one in gone.staged], gone.snapshots) == (["try"], 0)
    assert gone.reason == "the table had only staged rows, which are dropped"
    assert past.find_table("demo.new") is None


def test_staged_snapshots_past_their_retention_are_dropped(run: Run, past: Engine) -> None:
    """Before snapshots expire, with a line for each; --dry-run only says so. A table that is then empty is gone."""
    engine = past
    told = run("expire", "demo.past", "--dry-run")
    assert "demo.past: staged snapshot try (snapshot 2) would be dropped: it was written 7 d ago" in told.out
    assert run("expire", "demo.past", "--dry-run", "--json").json["staged"] == [
        {"table": "demo.past", "name": "try"}
    ]
    assert [one.name for one in engine.staged("demo.past")] == ["try"]
    done = run("expire", "demo.past")
    assert "staged snapshot try (snapshot 2) is dropped" in done.out
    assert "no snapshot expires" in done.out
    assert engine.staged("demo.past") == ()
    assert run("expire", "demo.past", "--json").json["staged"] == []
    gone = run("expire", "demo.new", "--json").json
    assert gone == {"table": "demo.new", "dry_run": False, "staged": [{"table": "demo.new", "name": "try"}]}
    assert engine.find_table("demo.new") is None
