"""A clone has the rows of its source and nothing else of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pypaimon_rust.datafusion import SQLContext

from tablestore_engine.api import Engine, TableSpec, WriteMode, WriteSpec
from tablestore_engine.errors import FixRequest, NotFound
from tablestore_engine.format.schema_change import set_options

KEYED = WriteSpec(table=TableSpec(primary_key=("id", "p"), partition_by=("p",), options={"bucket": "2"}))


def _write(engine: Engine, name: str, ids: list[int], value: str) -> None:
    rows = pa.table({"id": ids, "p": [number % 3 for number in ids], "v": [value] * len(ids)})
    engine.write(name, rows, KEYED)


def _rows(engine: Engine, name: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in engine.table(name).scan().to_arrow().to_pylist())


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    """demo.a with files of several commits, deletion vectors and partitions."""
    made = Engine(str(tmp_path))
    for round_ in range(4):
        _write(made, "demo.a", list(range(round_ * 5, 20)), f"round {round_}")
    return made


def test_a_clone_has_the_rows_and_a_life_of_its_own(engine: Engine) -> None:
    """The same rows and snapshot id; writes, a fold and the drop of one table are nothing to the other."""
    before = _rows(engine, "demo.a")
    engine.clone("demo.a", "dev.a")
    source, clone = engine.table("demo.a"), engine.table("dev.a")
    assert _rows(engine, "dev.a") == before
    assert clone.snapshot_ids() == source.snapshot_ids()[-1:]
    assert clone.schema.options["tablestore.table-uuid"] != source.schema.options["tablestore.table-uuid"]
    _write(engine, "dev.a", [1, 100], "theirs")
    assert _rows(engine, "demo.a") == before
    engine.table("demo.a").compact(full=True)
    engine.drop_table("demo.a")
    assert len(_rows(engine, "dev.a")) == len(before) + 1
    assert engine.table("dev.a").verify() == ()


def test_another_reader_opens_the_clone(engine: Engine, tmp_path: Path) -> None:
    """Apache Paimon's Rust reader sees the rows under the clone's name."""
    engine.clone("demo.a", "demo.b")
    engine.drop_table("demo.a")
    context = SQLContext()
    context.register_catalog("paimon", {"warehouse": str(tmp_path)})
    (batch,) = context.sql("select count(*), max(v) from paimon.demo.b")
    assert [column[0].as_py() for column in batch.columns] == [20, "round 3"]


def test_a_clone_takes_the_place_of_what_is_there(engine: Engine) -> None:
    """A table or a view of the name goes; when the source is missing it stays."""
    _write(engine, "demo.b", [7], "old")
    with pytest.raises(NotFound):
        engine.clone("demo.nothing", "demo.b")
    assert len(_rows(engine, "demo.b")) == 1
    engine.clone("demo.a", "demo.b")
    assert len(_rows(engine, "demo.b")) == 20
    engine.create_view("demo.c", "select 1 as one")
    engine.clone("demo.a", "demo.c")
    assert len(_rows(engine, "demo.c")) == 20
    assert [one.kind for one in engine.relations("demo")] == ["table"] * 3


def test_a_clone_onto_itself_is_refused(engine: Engine) -> None:
    """Else the drop of the target would be the drop of the source."""
    with pytest.raises(FixRequest, match="TS1080"):
        engine.clone("demo.a", "demo.a")
    assert len(_rows(engine, "demo.a")) == 20


def test_an_empty_table_is_cloned_too(engine: Engine) -> None:
    """Its columns are there, and a first write finds them."""
    engine.create_table("demo.e", pa.schema([("id", pa.int64())]))
    engine.clone("demo.e", "dev.e")
    assert _rows(engine, "dev.e") == []
    engine.write("dev.e", pa.table({"id": [1]}), WriteSpec(mode=WriteMode.APPEND))
    assert _rows(engine, "dev.e") == [(1,)]
    assert _rows(engine, "demo.e") == []


def test_a_clone_has_no_log(engine: Engine) -> None:
    """The topic stays the source's: two tables would write one."""
    schema = engine.table("demo.a").schema
    engine._warehouse.catalog.alter_table(
        engine.table("demo.a").identifier,
        lambda old: set_options(old, {"log.system": "kafka", "kafka.topic": "t"}),
    )
    engine.clone("demo.a", "demo.b")
    assert not any(key.startswith(("log.", "kafka.")) for key in engine.table("demo.b").schema.options)
    assert schema.primary_keys == engine.table("demo.b").schema.primary_keys
