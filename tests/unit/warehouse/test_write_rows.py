"""Engine.write and Table.write are one write path: every field of the spec takes effect, and both can be stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableSpec, WriteReport, WriteSpec
from tablestore_engine.errors import Stopped

ROWS = pa.table({"id": [1, 2], "v": ["a", "b"]})
KEYED = TableSpec(primary_key=("id",))
HANG_SECONDS = 60

Write = Callable[[Engine, pa.Table, WriteSpec], WriteReport]


def write_by_engine(engine: Engine, rows: pa.Table, spec: WriteSpec) -> WriteReport:
    """Engine.write."""
    return engine.write("d.t", rows, spec)


def write_by_table(engine: Engine, rows: pa.Table, spec: WriteSpec) -> WriteReport:
    """Table.write."""
    return engine.table("d.t").write(rows, spec)


both_ways = pytest.mark.parametrize("write", [write_by_engine, write_by_table])


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """d.t with two rows, without Spark."""
    made = Engine(str(tmp_path / "w"))
    made.write("d.t", ROWS, WriteSpec(table=KEYED))
    return made


@both_ways
def test_write_beside_replaces_the_table(engine: Engine, write: Write) -> None:
    """Another key is another table: its identity is new, and the report names the table, not its waiting place."""
    before = engine.table("d.t").store.identity
    report = write(engine, ROWS, WriteSpec(table=TableSpec(primary_key=("v",)), beside=True))
    after = engine.table("d.t")
    assert after.schema.primary_keys == ("v",)
    assert after.store.identity != before
    assert str(report.table) == "d.t"


@both_ways
def test_write_of_a_stopped_thread_is_refused(engine: Engine, write: Write) -> None:
    """The write before stop() is there, the one after it is not."""
    ended: list[BaseException] = []

    def work() -> None:
        write(engine, ROWS.slice(0, 1), WriteSpec(always=True))
        engine.stop(threading.current_thread())
        try:
            write(engine, ROWS, WriteSpec(always=True))
        except Stopped as stopped:
            ended.append(stopped)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(HANG_SECONDS)
    assert [one.code for one in ended if isinstance(one, Stopped)] == ["TS1091"]
    assert engine.table("d.t").snapshot_ids() == (1, 2)


@pytest.mark.parametrize(
    "commit",
    [
        lambda engine: engine.table("d.t").compact(full=True),
        lambda engine: engine.table("d.t").rescale(2),
        lambda engine: engine.table("d.t").restore(snapshot=1),
        lambda engine: engine.truncate("d.t"),
    ],
    ids=["compact", "rescale", "restore", "truncate"],
)
def test_other_commits_of_a_stopped_thread_are_refused(
    engine: Engine, commit: Callable[[Engine], object]
) -> None:
    """They run in the same way as a write."""
    ended: list[BaseException] = []

    def work() -> None:
        engine.stop(threading.current_thread())
        try:
            commit(engine)
        except Stopped as stopped:
            ended.append(stopped)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(HANG_SECONDS)
    assert len(ended) == 1
    assert engine.table("d.t").snapshot_ids() == (1,)
