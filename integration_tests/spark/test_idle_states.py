"""A session that reads many states of a table: what nobody needs any more leaves the catalog and the disk."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tablestore_engine.api import (
    ChangesBetween,
    Engine,
    SparkSettings,
    TableSpec,
    TableVersion,
    WriteMode,
    WriteSpec,
)
from tablestore_engine.errors import RetryError
from tablestore_engine.spark.resolver import Resolver

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


@pytest.mark.nightly
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
        assert engine.sql("select count(*), max(id) from demo.orders where true").rows == ((number, number),)
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


def test_frame_pruned_after_its_links_were_removed_is_refused(engine: Engine) -> None:
    """Spark lists a path that is gone as no files: a frame over files whose links were removed is refused, never read
    with fewer rows.
    """
    rows = pa.table({"id": range(240), "p": [number // 10 for number in range(240)]})
    engine.write("demo.log", rows, WriteSpec(mode=WriteMode.APPEND, table=TableSpec(partition_by=("p",))))
    resolver = engine._warehouse.resolver
    with resolver.in_use():
        frame, _ = resolver.pinned_query("select id from demo.log")
        asked = frame.where("id >= 200")
        assert resolver._tables.pruner().pruned(asked).count() == 40
        for links in (engine._warehouse.session.scratch() / "files").glob("*"):
            shutil.rmtree(links)
        with pytest.raises(RetryError, match="TS1570"):
            resolver._tables.pruner().pruned(asked)


def test_frame_of_query_whose_state_is_retired_meanwhile_reads_its_state(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread moves the name on and drops idle states between analysis and hand-over: the frame still reads its
    state.
    """
    put(engine, 1, 2)
    pinned = Resolver.pinned_query

    def then_others_work(resolver: Resolver, *words: Any, **more: Any) -> object:
        found = pinned(resolver, *words, **more)
        monkeypatch.setattr(Resolver, "pinned_query", pinned)
        for number in range(3, 15):
            put(engine, number)
            engine.sql("select count(*) from demo.orders where true")
        return found

    monkeypatch.setattr(Resolver, "pinned_query", then_others_work)
    mine = engine.query("select * from demo.orders")
    assert sorted(tuple(row) for row in mine.collect()) == [(1, "1"), (2, "2")]
