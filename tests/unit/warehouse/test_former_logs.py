"""Logs that outlive their tables, through the port: what is noted, what may be deleted, and what never is."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.errors import FixData, FixRequest, NotFound, RetryError
from tests.unit.warehouse.memory_log import MemoryLog, MemorySystem

NAME = "demo.orders"


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> MemorySystem:
    """The logs of every engine of a test. The log `a` was there before its table, so DROP leaves it."""
    made = MemorySystem({"a": MemoryLog()})
    monkeypatch.setattr("tablestore_engine.api.engine.KafkaSystem", lambda *_: made)
    return made


@pytest.fixture
def engine(tmp_path: Path, system: MemorySystem) -> Engine:
    """Its warehouse is empty."""
    return Engine(str(tmp_path / "warehouse"))


def write(engine: Engine, name: str = NAME, topic: str | None = "a", key: str = "id", **more: bool) -> None:
    """One row of a table with this log."""
    options = {} if topic is None else {"log.system": "kafka", "kafka.topic": topic}
    rows = pa.table({"id": [1], "v": ["x"]})
    engine.write(name, rows, WriteSpec(table=TableSpec(primary_key=(key,), options=options), **more))  # type: ignore[arg-type]


def left(engine: Engine, wanted: str | None = None) -> list[tuple[str, str, tuple[str, ...]]]:
    """Table, log and what would go."""
    return [(str(one.left.table), one.name, one.remains.names) for one in engine.former_logs.find(wanted)]


def test_a_log_that_a_drop_leaves_is_found_and_deleted(engine: Engine, system: MemorySystem) -> None:
    """By the table's name or its database; looking changes nothing, and a second call finds no record."""
    write(engine)
    assert left(engine) == []
    engine.drop_table(NAME)
    for wanted in (None, "demo", NAME):
        assert left(engine, wanted) == [(NAME, "a", ("a",))]
    assert left(engine, "demo.other") == left(engine, "other") == []
    assert system.logs.keys() == {"a"}
    (done,) = engine.former_logs.delete(NAME)
    assert (done.name, done.remains.names, done.remains.kept) == ("a", ("a",), "")
    assert (system.logs, left(engine)) == ({}, [])
    with pytest.raises(NotFound, match="TS1032"):
        engine.former_logs.delete(NAME)


def test_a_log_that_goes_with_its_table_is_not_noted(engine: Engine, system: MemorySystem) -> None:
    """Nor is a table without a log."""
    write(engine, topic="made")
    write(engine, "demo.bare", topic=None)
    engine.drop_table(NAME)
    engine.drop_table("demo.bare")
    assert (left(engine), system.logs.keys()) == ([], {"a"})


def test_a_drop_that_is_refused_leaves_no_former_log(engine: Engine, system: MemorySystem) -> None:
    """The table is there, so its record counts for nothing; the DROP that works removes it."""
    write(engine, topic="made")
    system.broken = {"drop"}
    with pytest.raises(RetryError, match="TS1799"):
        engine.drop_table(NAME)
    assert left(engine) == []
    with pytest.raises(NotFound, match="TS1032"):
        engine.former_logs.delete(NAME)
    system.broken = set()
    engine.drop_table(NAME)
    assert (left(engine), system.logs.keys()) == ([], {"a"})
    assert engine._warehouse.logs.left.list_all() == ()


def test_a_log_that_did_not_answer_when_its_table_was_replaced(engine: Engine, system: MemorySystem) -> None:
    """The new table takes the name all the same; the log of the old one is found by its own record."""
    write(engine, topic="made")
    system.broken = {"drop"}
    write(engine, topic="new", key="v", beside=True)
    system.broken = set()
    assert left(engine) == [(NAME, "made", ("made",))]
    engine.former_logs.delete(NAME)
    assert system.logs.keys() == {"a", "new"}
    assert engine.table(NAME).scan().to_arrow().num_rows == 1


def test_the_log_of_a_living_table_is_never_deleted(engine: Engine, system: MemorySystem) -> None:
    """A new table has the log by now: the list says so, and deleting is refused."""
    write(engine)
    engine.drop_table(NAME)
    write(engine, "shop.sales", topic="a")
    (found,) = engine.former_logs.find()
    assert (found.remains.names, found.remains.kept) == ((), "it is the log of the table shop.sales")
    with pytest.raises(FixRequest, match=r"TS1033[\s\S]*shop\.sales"):
        engine.former_logs.delete(NAME)
    assert system.logs.keys() == {"a"}
    engine.rename("shop.sales", "shop.renamed")
    with pytest.raises(FixRequest, match=r"TS1033[\s\S]*shop\.renamed"):
        engine.former_logs.delete(NAME)


def test_a_table_of_that_identity_keeps_its_log(engine: Engine, system: MemorySystem) -> None:
    """A record whose DROP died: the table, also under another name, is no former one."""
    write(engine)
    schema = engine.table(NAME).schema
    engine.rename(NAME, "demo.renamed")
    logs = engine._warehouse.logs
    logs.left.put(logs._left(engine.table("demo.renamed").identifier, schema))
    assert engine.former_logs.list_left() == ()
    engine.drop_table("demo.renamed")
    assert left(engine) == [("demo.renamed", "a", ("a",))]


def test_what_belongs_to_another_table_stays_with_its_record(engine: Engine, system: MemorySystem) -> None:
    """Until the user removes the record; the log is not asked then."""
    write(engine)
    engine.drop_table(NAME)
    system.foreign = {"a"}
    (done,) = engine.former_logs.delete(NAME)
    assert (done.remains.names, done.remains.kept) == ((), "a belongs to another table")
    system.broken = {"remains"}
    assert [str(one.table) for one in engine.former_logs.forget(NAME)] == [NAME]
    assert (left(engine), system.logs.keys()) == ([], {"a"})


def test_a_log_that_is_not_found_keeps_its_record(engine: Engine, system: MemorySystem) -> None:
    """It may be in another place than the one that was asked."""
    write(engine)
    engine.drop_table(NAME)
    log = system.logs.pop("a")
    (done,) = engine.former_logs.delete(NAME)
    assert (done.remains.names, done.remains.kept) == ((), "")
    system.logs["a"] = log
    assert left(engine) == [(NAME, "a", ("a",))]


def test_nothing_is_deleted_beside_a_table_that_cannot_be_read(
    engine: Engine, system: MemorySystem, tmp_path: Path
) -> None:
    """It could be the one that has the log."""
    write(engine)
    engine.drop_table(NAME)
    write(engine, "demo.damaged", topic=None)
    (schema,) = (tmp_path / "warehouse" / "demo.db" / "damaged" / "schema").glob("schema-*")
    schema.write_text(schema.read_text()[:-40])
    with pytest.raises(FixData):
        Engine(str(tmp_path / "warehouse")).former_logs.delete(NAME)
    assert system.logs.keys() == {"a"}


def test_a_damaged_record_is_an_error(engine: Engine, tmp_path: Path) -> None:
    """Not a log less."""
    write(engine)
    engine.drop_table(NAME)
    (record,) = (tmp_path / "warehouse" / ".tablestore" / "left-logs").iterdir()
    record.write_text(record.read_text().replace("timeMillis", "timeMilliz"))
    with pytest.raises(FixData, match="TS1160"):
        engine.former_logs.find()


def test_several_former_tables_of_a_name(engine: Engine, system: MemorySystem) -> None:
    """Each has its own identity and log; all of the name go."""
    system.logs["b"] = MemoryLog()
    for topic in ("a", "b"):
        write(engine, topic=topic)
        engine.drop_table(NAME)
    assert left(engine) == [(NAME, "a", ("a",)), (NAME, "b", ("b",))]
    engine.former_logs.delete(NAME)
    assert system.logs == {}
