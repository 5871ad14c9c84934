"""Restoring a table with a log: its readers get the way back, once."""

from __future__ import annotations

import datetime as dt
import uuid
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, SparkSettings, TableSpec, WriteSpec
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.errors import FixRequest, TablestoreError
from tablestore_engine.log.decode import decode_rows


def _engine(folder: Path, url: str) -> Engine:
    log = {"kafka.bootstrap.servers": url, "kafka.default.api.timeout.ms": "3000"}
    return Engine(str(folder), log=log, spark=SparkSettings("local[1]"))


def _replayed(engine: Engine) -> dict[int, str]:
    """The topic folded by key."""
    table = engine.table("d.t")
    found: dict[int, str] = {}
    for row in decode_rows(table.log_messages(), table.schema).to_pylist():
        found.pop(row["id"], None)
        if row["_ROW_KIND"] in (0, 2):
            found[row["id"]] = row["v"]
    return found


def _stored(engine: Engine) -> dict[int, str]:
    return {row["id"]: row["v"] for row in engine.table("d.t").scan().to_arrow().to_pylist()}


def test_the_log_follows_a_restore(broker: BrokerInfo, tmp_path: Path) -> None:
    """A rollback of a table with a log is refused and names restore; that is refused without brokers, before anything
    changes; with them the topic gets one message for each key that differs, by API and by SQL.
    """
    options = {"log.system": "kafka", "kafka.topic": f"restore-{uuid.uuid4().hex}"}
    table = TableSpec(primary_key=("id",), options=options)
    with _engine(tmp_path, broker.url) as engine, _engine(tmp_path, "127.0.0.1:1") as alone:
        engine.write("d.t", pa.table({"id": [1, 2, 3], "v": ["a", "a", "a"]}), WriteSpec(table=table))
        engine.write("d.t", pa.table({"id": [2, 4], "v": ["b", "b"]}), WriteSpec())
        engine.sql("delete from d.t where id = 3")
        with pytest.raises(FixRequest, match="tablestore restore"):
            engine.table("d.t").rollback(1)
        with pytest.raises(TablestoreError, match="TS17"):
            alone.table("d.t").restore(snapshot=1)
        assert engine.table("d.t").latest_snapshot_id() == 3
        count = engine.count_log_messages("d.t")

        done = engine.table("d.t").restore(snapshot=1)
        assert (done.inserted, done.updated, done.deleted) == (1, 1, 1)
        assert done.log is not None
        assert engine.count_log_messages("d.t") == count + 3
        assert _replayed(engine) == _stored(engine) == {1: "a", 2: "a", 3: "a"}

        engine.sql("restore table d.t to version as of 3")
        assert _replayed(engine) == _stored(engine) == {1: "a", 2: "b", 4: "b"}
        moment = engine.table("d.t").snapshots()[0].time_millis
        engine.sql(f"restore table d.t to timestamp as of '{_iso(moment)}'")
        assert _replayed(engine) == _stored(engine) == {1: "a", 2: "a", 3: "a"}
        assert engine.table("d.t").verify() == ()


def _iso(moment: int) -> str:
    """With an offset, to the millisecond."""
    seconds, millis = divmod(moment, 1000)
    return f"{dt.datetime.fromtimestamp(seconds, dt.UTC):%Y-%m-%dT%H:%M:%S}.{millis:03d}+00:00"
