"""A table with a log gets another key: a new table with a log of its own takes its place, or nothing changes."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.catalog.table_swap import TableSwap
from tablestore_engine.errors import FixRequest, PublishPending, RetryError
from tablestore_engine.spi import Outcome, Publication, Staged, Verdict, stage_properties
from tests.doses import cases
from tests.unit.warehouse.memory_log import MemoryLog, MemorySystem
from tests.unit.warehouse.table_swap_world import NAME, NEW, deaths, leftovers, meaning, rows
from tests.unit.warehouse.test_table_swaps import publish


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> MemorySystem:
    """The logs of every engine of a test; a killed process leaves them as they are."""
    made = MemorySystem()
    monkeypatch.setattr("tablestore_engine.api.engine.KafkaSystem", lambda *_: made)
    return made


def spec(key: str, topic: str | None, **more: object) -> WriteSpec:
    """A table with this key and log."""
    options = {} if topic is None else {"log.system": "kafka", "kafka.topic": topic}
    return replace(WriteSpec(table=TableSpec(primary_key=(key,), options=options)), **more)  # type: ignore[arg-type]


def old(engine: Engine, topic: str | None = "a") -> None:
    """The table that is there: key id, one row, in its log."""
    engine.write(NAME, rows(1), spec("id", topic))


def sent(system: MemorySystem, topic: str) -> list[object]:
    """Keys of the messages of a log."""
    return [ast.literal_eval((one.value or b"").decode())["id"] for one in system.logs[topic].messages]


def stage(engine: Engine, topic: str | None = "b") -> None:
    """The new table waits beside, green."""
    properties = stage_properties(Staged(NAME, "run", "", gates=("t",), owner="model.shop.orders"))
    engine.write(NAME, rows(2, 3), spec("day", topic, stage="run", beside=True, properties=properties))
    (item,) = engine.gate.read_book("d").staged
    engine.gate.record(item, Outcome("t", Verdict.GREEN, (item.as_read,)))


@pytest.mark.parametrize("is_staged", [False, True], ids=["at once", "gated"])
@pytest.mark.parametrize(("topic", "new"), [("a", "b"), (None, "b"), ("a", None)])
def test_new_table_has_its_own_log_and_all_its_rows_in_it(
    tmp_path: Path, system: MemorySystem, topic: str | None, new: str | None, is_staged: bool
) -> None:
    """The new log has every row of the new table, the log of the old one goes with it, and nothing is left over."""
    engine = Engine(str(tmp_path))
    old(engine, topic)
    if is_staged:
        stage(engine, new)
        assert meaning(engine)[1] == (("id",), rows(1).to_pylist())
        assert {name: sent(system, name) for name in system.logs} == {
            **({topic: [1]} if topic else {}),
            **({new: []} if new else {}),
        }
        assert [one.state for one in publish(engine)] == ["published"]
    else:
        engine.write(NAME, rows(2, 3), spec("day", new, beside=True))
    assert meaning(engine) == NEW
    assert {name: sent(system, name) for name in system.logs} == ({new: [2, 3]} if new else {})
    assert leftovers(tmp_path) == []
    engine.write(NAME, rows(4), WriteSpec())
    assert {name: sent(system, name) for name in system.logs} == ({new: [2, 3, 4]} if new else {})


@pytest.mark.parametrize("is_staged", [False, True], ids=["at once", "gated"])
def test_same_log_for_another_key_is_refused_before_anything_changes(
    tmp_path: Path, system: MemorySystem, is_staged: bool
) -> None:
    """TS1081: its consumers could not tell rows of two keys apart. A table that waits beside stays, too."""
    engine = Engine(str(tmp_path))
    old(engine)
    stage(engine, "b")
    before = meaning(engine), leftovers(tmp_path), {name: sent(system, name) for name in system.logs}
    with pytest.raises(FixRequest, match="TS1081"):
        engine.write(NAME, rows(2), spec("day", "a", beside=True, stage="other" if is_staged else None))
    assert (
        meaning(engine),
        leftovers(tmp_path),
        {name: sent(system, name) for name in system.logs},
    ) == before


def test_red_table_leaves_no_log(tmp_path: Path, system: MemorySystem) -> None:
    """What was made for it goes when it is dropped; the old log is as it was."""
    engine = Engine(str(tmp_path))
    old(engine)
    stage(engine)
    engine.gate.drop(engine.gate.read_book("d").staged[0])
    assert {name: sent(system, name) for name in system.logs} == {"a": [1]}
    old(engine)
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("trouble", ["check", "publish"])
def test_gated_change_waits_until_the_old_log_has_all_changes(
    tmp_path: Path, system: MemorySystem, trouble: str
) -> None:
    """A log of the user's own stays and ends with its table's last row; while a log is in trouble nothing changes."""
    engine = Engine(str(tmp_path))
    old_with_pending_row(engine, system)
    stage(engine)
    before = meaning(engine)
    system.broken = {trouble}
    (done,) = publish(engine)
    assert (done.state, done.waits_for_log, meaning(engine)) == ("refused", True, before)
    system.broken = set()
    assert [one.state for one in publish(engine)] == ["published"]
    assert (meaning(engine), logs_of(system)) == (NEW, {"a": [1, 5], "b": [2, 3]})


def test_change_at_once_needs_all_changes_in_the_old_log(tmp_path: Path, system: MemorySystem) -> None:
    """The same without tests: the error is that of the log, and what was made beside is gone, with its log."""
    engine = Engine(str(tmp_path))
    old_with_pending_row(engine, system)
    before = meaning(engine)
    system.broken = {"publish"}
    with pytest.raises(RetryError, match="TS1799"):
        engine.write(NAME, rows(2, 3), spec("day", "b", beside=True))
    assert (meaning(engine), logs_of(system), leftovers(tmp_path)) == (before, {"a": [1]}, [])
    system.broken = set()
    engine.write(NAME, rows(2, 3), spec("day", "b", beside=True))
    assert (meaning(engine), logs_of(system)) == (NEW, {"a": [1, 5], "b": [2, 3]})


def old_with_pending_row(engine: Engine, system: MemorySystem) -> None:
    """In a log that somebody else made; its second row is not sent yet."""
    system.logs["a"] = MemoryLog()
    old(engine)
    engine.write(NAME, rows(5), WriteSpec(publish=False))


def test_new_log_that_cannot_be_made_changes_nothing(tmp_path: Path, system: MemorySystem) -> None:
    """It is made before the first row is written."""
    engine = Engine(str(tmp_path))
    old(engine)
    system.broken = {"prepare"}
    with pytest.raises(RetryError, match="TS1799"):
        engine.write(NAME, rows(2, 3), spec("day", "b", beside=True))
    assert meaning(engine)[1] == (("id",), rows(1).to_pylist())
    assert {name: sent(system, name) for name in system.logs} == {"a": [1]}
    assert leftovers(tmp_path) == []


def test_new_log_that_fails_behind_the_change_of_places_is_pending(
    tmp_path: Path, system: MemorySystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name means the new table; its next write sends all of its rows, once. An old log that is away is noted."""
    engine = Engine(str(tmp_path))
    old(engine)
    take_place = TableSwap.take_place

    def then_break(place: TableSwap) -> None:
        take_place(place)
        system.broken = {"publish", "drop"}

    monkeypatch.setattr(TableSwap, "take_place", then_break)
    with pytest.raises(PublishPending, match="TS1070"):
        engine.write(NAME, rows(2, 3), spec("day", "b", beside=True))
    assert (meaning(engine), logs_of(system)) == (NEW, {"a": [1], "b": []})
    assert [str(one.table) for one in engine.former_logs.list_left()] == [NAME]
    engine.former_logs.forget(NAME)
    assert leftovers(tmp_path) == [".tablestore", ".tablestore/left-logs"]
    system.broken = set()
    engine.write(NAME, rows(4), WriteSpec())
    assert logs_of(system) == {"a": [1], "b": [2, 3, 4]}


def logs_of(system: MemorySystem) -> Mapping[str, list[object]]:
    """All of them."""
    return {name: sent(system, name) for name in system.logs}


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
def test_gated_change_killed_anywhere_gives_each_log_the_rows_of_one_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: MemorySystem, is_after: bool
) -> None:
    """While the name means the old table, its log has its rows and the new one none; whoever publishes next finishes
    both, and no log ever has rows of two tables.
    """

    def prepare(engine: Engine) -> None:
        system.logs.clear()
        old(engine)
        stage(engine)

    for folder, calls in deaths(tmp_path, monkeypatch, prepare=prepare, act=publish, is_after=is_after):
        if meaning(Engine(str(folder))) != NEW:
            assert logs_of(system) == {"a": [1], "b": []}, calls
        assert logs_of(system).get("a", [1]) == [1]
        assert logs_of(system)["b"] in ([], [2, 3])
        publish(Engine(str(folder)))
        assert meaning(Engine(str(folder))) == NEW, calls
        assert logs_of(system) == {"b": [2, 3]}, calls
        assert leftovers(folder) == [], calls


@pytest.mark.parametrize("is_after", cases([False, True], 1), ids=["before", "after"])
def test_change_at_once_killed_anywhere_gives_each_log_the_rows_of_one_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: MemorySystem, is_after: bool
) -> None:
    """The same without tests: the next run begins again, or writes into the table that has its place."""

    def prepare(engine: Engine) -> None:
        system.logs.clear()
        old(engine)

    def act(engine: Engine) -> None:
        engine.write(NAME, rows(2, 3), spec("day", "b", beside=True))

    for folder, calls in deaths(tmp_path, monkeypatch, prepare=prepare, act=act, is_after=is_after):
        is_new = meaning(Engine(str(folder))) == NEW
        assert logs_of(system).get("a", [1]) == [1], calls
        assert logs_of(system).get("b", []) in ([], [2, 3]), calls
        engine = Engine(str(folder))
        if is_new:
            engine.table(NAME).publish()
        else:
            act(engine)
        assert meaning(Engine(str(folder))) == NEW, calls
        assert logs_of(system) == {"b": [2, 3]}, calls
        assert leftovers(folder) == [], calls


def test_publication_of_a_group_with_an_unready_log_changes_nothing(
    tmp_path: Path, system: MemorySystem
) -> None:
    """The log of the table that waits for its place is checked before any member of the group is claimed."""
    engine = Engine(str(tmp_path))
    old(engine)
    properties = stage_properties(Staged("d.child", "with", "", gates=("t",)))
    engine.write("d.child", pa.table({"id": [1]}), spec("id", None, stage="with", properties=properties))
    stage_beside(engine)
    system.broken = {"check"}
    done: list[Publication] = publish(engine)
    assert {one.state for one in done} == {"refused"}
    assert engine.table("d.child").latest_snapshot_id() is None
    assert meaning(engine)[1] == (("id",), rows(1).to_pylist())


def stage_beside(engine: Engine) -> None:
    """The new table and the child, read by one green test."""
    properties = stage_properties(Staged(NAME, "run", "", gates=("t",)))
    engine.write(NAME, rows(2, 3), spec("day", "b", stage="run", beside=True, properties=properties))
    items = engine.gate.read_book("d").staged
    for item in items:
        engine.gate.record(item, Outcome("t", Verdict.GREEN, tuple(one.as_read for one in items)))
