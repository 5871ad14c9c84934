"""orphans on a real warehouse."""

from __future__ import annotations

import os
from pathlib import Path

from tablestore_engine.api import Engine, WriteSpec

from .conftest import Run, orders

OLD = 1_600_000_000


def _discarded(engine: Engine) -> None:
    engine.write("demo.orders", orders((9, "eve", 9.0)), WriteSpec(stage="no"))
    engine.table("demo.orders").drop_staged("no")


def test_they_are_shown_and_only_then_deleted(run: Run, engine: Engine, warehouse: Path) -> None:
    """Fresh ones are somebody's; without --delete nothing goes; with it what was shown goes, and rows stay."""
    _discarded(engine)
    rows = engine.table("demo.orders").scan().to_arrow().sort_by("order_id")
    young = run("orphans", "demo.orders")
    assert (young.status, "no orphan files; " in young.out, "younger" in young.out) == (0, True, True)
    shown = run("orphans", "demo.orders", "--older-than", "0ms", "--json").json["tables"][0]
    assert shown["files"] == len(shown["paths"]) > 2
    assert all(Path(path).exists() for path in shown["paths"])
    told = run("orphans", "demo.orders", "--older-than", "0ms", "--files").out
    assert all(path in told for path in shown["paths"])
    done = run("orphans", "demo.orders", "--older-than", "0ms", "--delete", "--json").json["tables"][0]
    assert {**done, "deleted": False} == shown
    assert not any(Path(path).exists() for path in shown["paths"])
    assert engine.table("demo.orders").scan().to_arrow().sort_by("order_id") == rows
    assert run("verify").status == 0


def test_all_goes_on_past_a_damaged_table(run: Run, engine: Engine, warehouse: Path) -> None:
    """Its files stay, it is named, the others are cleaned; folders of dropped tables and dead clones go too."""
    _discarded(engine)
    lost = min((warehouse / "demo.db/events/manifest").glob("manifest-list-*"))
    lost.unlink()
    before = sorted((warehouse / "demo.db/events").rglob("*"))
    for name in (".tablestore-dropped-1600000000000-x", ".tablestore-clone-y", ".mine"):
        folder = warehouse / "demo.db" / name
        folder.mkdir()
        (folder / "data").write_bytes(b"12345")
        os.utime(folder / "data", (OLD, OLD))
        os.utime(folder, (OLD, OLD))
    done = run("orphans", "--all", "--older-than", "1h", "--delete", "--json")
    assert done.status == 1
    assert "TS1991" in done.err
    assert "TS1325" in done.json["problems"]["demo.events"]
    assert lost.name in done.json["problems"]["demo.events"]
    assert sorted((warehouse / "demo.db/events").rglob("*")) == before
    assert [one["size_bytes"] for one in done.json["folders"]] == [5, 5]
    assert sorted(path.name for path in (warehouse / "demo.db").glob(".*")) == [".mine", ".tablestore"]
    assert run("orphans", "demo.orders", "--older-than", "0ms", "--delete").status == 0


def test_what_it_does_not_understand(run: Run, engine: Engine) -> None:
    """No table and no --all, both, a time without a unit, a table that is not there."""
    for words in ((), ("demo.orders", "--all"), ("demo.orders", "--older-than", "7")):
        refused = run("orphans", *words)
        assert refused.status == 1
        assert "TS1985" in refused.err
    assert "TS1414" in run("orphans", "demo.none").err
