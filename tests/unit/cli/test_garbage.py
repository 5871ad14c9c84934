"""gc on a real warehouse: what expire and orphans would do, and that only --yes does it."""

from __future__ import annotations

import os
from pathlib import Path

from tablestore_engine.api import Engine, TableSpec, WriteSpec

from .conftest import KEYED, Run, orders

OLD = 1_600_000_000
AT_ONCE = ("--keep", "1", "--orphan-age", "0ms")


def _dirty(engine: Engine, warehouse: Path) -> None:
    """demo.now has three old snapshots and orphan files of a dropped stage; beside it the folder of a dropped table."""
    spec = WriteSpec(TableSpec(KEYED.primary_key, options={"tablestore.expire-grace": "0 ms"}))
    for number in range(4):
        engine.write("demo.now", orders((number, "ann", 1.0)), spec)
    engine.write("demo.now", orders((9, "eve", 9.0)), WriteSpec(stage="no"))
    engine.table("demo.now").drop_staged("no")
    folder = warehouse / "demo.db" / ".tablestore-dropped-1600000000000-x"
    folder.mkdir()
    (folder / "data").write_bytes(b"12345")
    for path in (folder / "data", folder):
        os.utime(path, (OLD, OLD))


def _files(warehouse: Path) -> list[Path]:
    return sorted(path for path in warehouse.rglob("*") if path.is_file())


def test_gc_is_a_dry_run_without_yes(run: Run, engine: Engine, warehouse: Path) -> None:
    """It prints what it would delete, of every table, and no file changes; --yes then deletes just that."""
    _dirty(engine, warehouse)
    before = _files(warehouse)
    planned = run("gc", *AT_ONCE, "--json").json
    assert _files(warehouse) == before
    said = run("gc", *AT_ONCE)
    assert "demo.now: 3 snapshots would expire (1 to 3)" in said.out
    assert "would be deleted (--yes)" in said.out
    assert said.err == "nothing was deleted: run it again with --yes\n"
    assert _files(warehouse) == before
    done = run("gc", *AT_ONCE, "--yes", "--json").json
    assert (planned["dry_run"], done["dry_run"]) == (True, False)
    assert [one["table"] for one in done["tables"]] == ["demo.events", "demo.now", "demo.orders"]
    assert done["folders"] == planned["folders"] != []
    now = {one["table"]: one for one in done["tables"]}["demo.now"]
    was = {one["table"]: one for one in planned["tables"]}["demo.now"]
    assert now["expire"] == {**was["expire"], "dry_run": False}
    assert now["orphans"] == {**was["orphans"], "deleted": True}
    assert not any(Path(path).exists() for path in was["orphans"]["paths"])
    assert done["bytes"] == planned["bytes"] > 0
    assert engine.table("demo.now").snapshot_ids() == (4,)
    assert run("verify").status == 0
    assert run("gc", *AT_ONCE, "--json").json["bytes"] == 0


def test_gc_of_one_table_leaves_the_others(run: Run, engine: Engine, warehouse: Path) -> None:
    """A name limits it; folders of dropped tables are those of the warehouse."""
    _dirty(engine, warehouse)
    done = run("gc", "demo.now", *AT_ONCE, "--yes", "--json").json
    assert [one["table"] for one in done["tables"]] == ["demo.now"]
    assert done["folders"] == []
    assert len(run("gc", "demo", "--json").json["tables"]) == 3
    assert "TS1414" in run("gc", "demo.none").err
    assert "TS1925" in run("gc", "none").err
    for flag in ("--older-than", "--orphan-age"):
        assert f"{flag} 7 has no unit" in run("gc", flag, "7").err


def test_gc_goes_on_past_a_table_that_fails(run: Run, engine: Engine, warehouse: Path) -> None:
    """The damaged one is named with its code at the end and keeps its files, the other is cleaned, the status is 1."""
    _dirty(engine, warehouse)
    min((warehouse / "demo.db/events/manifest").glob("manifest-list-*")).unlink()
    kept = _files(warehouse / "demo.db/events")
    done = run("gc", *AT_ONCE, "--yes", "--json")
    assert done.status == 1
    assert list(done.json["problems"]) == ["demo.events"]
    assert done.err.startswith("TS1940 gc left something out of demo.events")
    assert _files(warehouse / "demo.db/events") == kept
    assert engine.table("demo.now").snapshot_ids() == (4,)
