"""One damaged table: commands look at all the others, name it at the end and fail."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tablestore_engine.api import Engine, WriteMode, WriteSpec
from tablestore_engine.format.checksum import checksummed_json

from .conftest import KEYED, Run, orders

DAMAGE = {
    "type": "demo.db/orders/schema/schema-0",
    "schema": "demo.db/orders/schema/schema-0",
    "snapshot": "demo.db/orders/snapshot/snapshot-3",
    "old snapshot": "demo.db/orders/snapshot/snapshot-2",
    "huge schema": "demo.db/orders/schema/schema-0",
    "huge snapshot": "demo.db/orders/snapshot/snapshot-3",
}


@pytest.fixture(params=DAMAGE)
def damaged(request: pytest.FixtureRequest, warehouse: Path) -> str:
    """What is broken of demo.orders; demo.events and the view are sound."""
    kind = str(request.param)
    file = warehouse / DAMAGE[kind]
    if kind.startswith("huge"):
        os.truncate(file, 20 << 30)  # takes no room on the disk; read whole it would end in MemoryError
    else:
        file.write_bytes(_with_unknown_type(file) if kind == "type" else b"{")
    return kind


def _with_unknown_type(file: Path) -> bytes:
    """As a release wrote it that did not check VARCHAR(0), or another engine with a type that we do not know."""
    content = json.loads(file.read_bytes())
    content["fields"][0]["type"] = "VARCHAR(0) NOT NULL"
    return checksummed_json({key: content[key] for key in content if not key.startswith("tablestore.")})


def test_verify_goes_on(run: Run, damaged: str) -> None:
    """Every table has its line, the damaged one its problem, and the exit status is 1."""
    done = run("verify", "--json")
    found = {one["table"]: one["problems"] for one in done.json}
    assert done.status == 1
    assert found["demo.events"] == []
    assert found["demo.orders"], damaged
    codes = ("TS1293",) if damaged.startswith("huge") else ("TS1109", "TS1111")
    assert all(any(code in problem for code in codes) for problem in found["demo.orders"])


def test_verify_looks_at_the_other_snapshots(run: Run, engine: Engine, warehouse: Path) -> None:
    """A snapshot file that cannot be read hides no problem of another snapshot."""
    for file in engine.table("demo.orders").scan(snapshot=1).plan().files:
        Path(file.path).unlink()
    (warehouse / DAMAGE["snapshot"]).write_bytes(b"{")
    problems = run("verify", "demo.orders", "--json").json[0]["problems"]
    assert any("snapshot-3" in one for one in problems)
    assert any(one.startswith("snapshot 1") for one in problems)


def test_show_goes_on(run: Run, damaged: str) -> None:
    """The list has all names; what cannot be read is said at the end, with its code and the next step."""
    done = run("show", "--json")
    found = {one["name"]: one for one in done.json}
    assert set(found) == {"demo.orders", "demo.events", "demo.big"}
    assert (found["demo.events"]["rows"], found["demo.events"]["problem"]) == (2, None)
    if damaged == "old snapshot":  # readers of the newest one do not need it
        assert (done.status, found["demo.orders"]["rows"]) == (0, 3)
        return
    assert (done.status, found["demo.orders"]["rows"]) == (1, None)
    assert done.err.startswith("TS1991 1 of 3 cannot be read: demo.orders")
    assert found["demo.orders"]["problem"] in done.err
    shown = run("show")
    assert shown.status == 1
    assert "demo.events" in shown.out


def test_a_damaged_table_can_be_dropped(engine: Engine, damaged: str) -> None:
    """The listing has all names; drop_table removes the damaged one alone."""
    del damaged
    assert {str(one.identifier) for one in engine.relations("demo")} == {
        "demo.orders",
        "demo.events",
        "demo.big",
    }
    engine.drop_table("demo.orders")
    assert {str(one.identifier) for one in engine.relations("demo")} == {"demo.events", "demo.big"}
    assert engine.table("demo.events").scan().to_arrow().num_rows == 2


def test_a_schema_with_a_damaged_table_can_be_dropped(engine: Engine, damaged: str) -> None:
    """DROP SCHEMA CASCADE removes all tables of it."""
    del damaged
    engine.sql("drop schema demo cascade")
    assert "demo" not in engine.databases()


def test_a_damaged_view_is_named(run: Run, warehouse: Path) -> None:
    """A view file of nobody's making: tables are listed, the view is a problem."""
    (warehouse / "demo.db/.tablestore/views/big.json").write_bytes(checksummed_json({"sql": 1}))
    done = run("show", "--json")
    assert done.status == 1
    assert {one["name"] for one in done.json if one["problem"] is None} == {"demo.orders", "demo.events"}
    assert "TS1403" in done.err


def test_staged_goes_on(run: Run, engine: Engine, warehouse: Path) -> None:
    """What waits in sound tables is listed beside a table whose staged snapshot cannot be read."""
    for name in ("demo.orders", "demo.other"):
        engine.write(name, orders((9, "zoe", 9.0)), WriteSpec(table=KEYED, mode=WriteMode.UPSERT, stage="s1"))
    *_, staged = sorted((warehouse / "demo.db/orders/branch").glob("branch-*/snapshot/snapshot-[0-9]*"))
    staged.write_bytes(b"{")
    done = run("staged", "--json")
    assert (done.status, [one["table"] for one in done.json]) == (1, ["demo.other"])
    assert done.err.startswith("TS1991 1 of 3 cannot be read: demo.orders")
    assert run("staged").out.count("demo.other") == 1
