"""A session that reads many states of a table: what nobody needs any more leaves the catalog and the disk."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tablestore_engine.api import ChangesBetween, Engine, SparkSettings, TableSpec, TableVersion, WriteSpec

KEYED = WriteSpec(table=TableSpec(primary_key=("id",), options={"bucket": "1"}))


@pytest.fixture
def engine(spark: SparkSession, tmp_path: Path) -> Engine:
    """A warehouse of its own in the shared session."""
    return Engine(str(tmp_path / "warehouse"), spark=SparkSettings("local[2]"))


def put(engine: Engine, *ids: int) -> None:
    """One commit, which leaves dead rows behind."""
    engine.write("demo.orders", pa.table({"id": list(ids), "v": [str(one) for one in ids]}), KEYED)


def held(engine: Engine) -> int:
    """Hidden tables and folders of links that are there."""
    session = engine.spark
    tables = session.sql("show tables in tablestore_hidden").count()
    scratch = engine._warehouse.session.scratch()
    return tables + sum(1 for place in ("files", "words", "changes") for _ in (scratch / place).glob("*"))


def test_states_that_were_read_go(engine: Engine) -> None:
    """After a hundred commits, each read, with changes and past states, no more is held than after sixty; rows are
    right all the time, and a frame that somebody has still reads its state.
    """
    put(engine, 1, 2)
    mine = engine.query("select * from demo.orders")
    counts: list[int] = []
    for number in range(3, 103):
        before = engine.table("demo.orders").latest_snapshot_id()
        put(engine, number, number - 1)
        assert engine.sql("select count(*), max(id) from demo.orders").rows == ((number, number),)
        versions = {"demo__changes_start_to_now.orders": TableVersion(changes=ChangesBetween(before, None))}
        changed = engine.sql("select count(*) from demo__changes_start_to_now.orders", versions=versions)
        assert changed.rows[0][0] == 3
        past = engine.sql(f"select count(*) from demo.orders version as of {before}").rows
        assert past == ((number - 1,),)
        written = engine.sql(f"select count(*) from demo__changes_{before}_to_now.orders").rows
        assert written == ((3,),)
        counts.append(held(engine))
    assert max(counts[60:]) <= max(counts[:60])
    assert sorted(tuple(row) for row in mine.collect()) == [(1, "1"), (2, "2")]
    assert engine.sql("select count(*) from demo.orders version as of 1").rows == ((2,),)
