"""Work of one application, a step of which an attempt of a task is struck in; and what must hold behind it.

Steps      prepare: a keyed table of 4 buckets with a log of 3 shards → run: write, compact or publish, with the fault
           in an attempt that has done its work → check: rows, snapshots, files, and the log where one is asked
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from integration_tests.cluster.faults import Fault, strike, struck_group, struck_shard, struck_write
from tablestore_engine.api import Engine, TableSpec, WriteSpec

ROWS, CHANGED = 4_000, 1_000
KINDS = ("write", "compact", "publish")
_PLACES: dict[str, tuple[str, Callable[[Callable[[], None]], Callable[..., Any]]]] = {
    "write": ("tablestore_engine.spark.write._run_task", struck_write),
    "compact": ("tablestore_engine.spark.executors.run_group", struck_group),
    "publish": ("tablestore_engine.spark.shard_executors.run_task", struck_shard),
}


def prepare(engine: Engine, kind: str, topic: str | None) -> None:
    """d.t with what the work needs; to be called once."""
    options = {"bucket": "4"}
    if topic is not None:
        options |= {"log.system": "kafka", "kafka.topic": topic, "log.publish.shards": "3"}
    table = WriteSpec(TableSpec(primary_key=("id",), options=options))
    engine.create_database("d")
    engine.write("d.t", f"select id, concat('a', id) as v from range({ROWS})", table)
    if kind != "write":
        _change(engine, publish=kind != "publish")


def _change(engine: Engine, *, publish: bool = True) -> None:
    engine.write("d.t", f"select id, concat('b', id) as v from range({CHANGED})", WriteSpec(publish=publish))


def run(engine: Engine, kind: str, fault: Fault, mark: Path, driver: int) -> None:
    """The work, once."""
    place, struck = _PLACES[kind]
    with patch(place, struck(strike(fault, mark, driver))):
        if kind == "write":
            _change(engine)
        elif kind == "compact":
            engine.table("d.t").compact(full=True)
        else:
            engine.table("d.t").publish()


def check(engine: Engine, kind: str, *, leaves_files: bool) -> None:
    """One snapshot for the work, every row as it must be, nothing damaged, and what a struck attempt left goes.

    `leaves_files`: an attempt had written files when it was struck.
    """
    table = engine.table("d.t")
    rows = {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()}
    assert rows == {n: f"b{n}" if n < CHANGED else f"a{n}" for n in range(ROWS)}
    expected = ["APPEND", "APPEND", "COMPACT"] if kind == "compact" else ["APPEND", "APPEND"]
    assert [one.commit_kind for one in table.snapshots()] == expected
    told = table.changes(1, 2).to_pylist()
    assert len(told) == 2 * CHANGED
    assert table.verify() == ()
    found = table.orphans(delete=True, older_than_ms=0)
    if leaves_files:
        assert found.found, "the attempt that was struck has written files"
    assert not table.orphans(older_than_ms=0).found
    assert table.verify() == ()
