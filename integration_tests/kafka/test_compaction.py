"""Compacting a table with a log: what it brings into sight is sent once, what changes no row needs no broker."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.errors import TablestoreError
from tablestore_engine.log.decode import decode_rows
from tests.unit.store.test_changelog import foreign_level_zero


def _engine(folder: Path, url: str) -> Engine:
    return Engine(str(folder), log={"kafka.bootstrap.servers": url, "kafka.default.api.timeout.ms": "3000"})


def _write(engine: Engine, *ids: int, value: str) -> None:
    engine.write("d.t", pa.table({"id": list(ids), "v": [value] * len(ids)}), WriteSpec())


def _replayed(engine: Engine) -> dict[int, str]:
    table = engine.table("d.t")
    return {row["id"]: row["v"] for row in decode_rows(table.log_messages(), table.schema).to_pylist()}


def _stored(engine: Engine) -> dict[int, str]:
    return {row["id"]: row["v"] for row in engine.table("d.t").scan().to_arrow().to_pylist()}


def test_the_log_follows_a_compaction(broker: BrokerInfo, tmp_path: Path) -> None:
    """Level 0 of another writer: refused without brokers, before anything changes; with them its rows are sent, once. A
    fold afterwards needs none, and the next write sends its own rows only.
    """
    options = {"log.system": "kafka", "kafka.topic": f"compact-{uuid.uuid4().hex}"}
    table = TableSpec(primary_key=("id",), options=options)
    with _engine(tmp_path, broker.url) as engine, _engine(tmp_path, "127.0.0.1:1") as alone:
        engine.write("d.t", pa.table({"id": [1, 2], "v": ["a", "a"]}), WriteSpec(table=table))
        _write(engine, 2, value="b")
        rows = [{"id": 2, "v": "theirs"}, {"id": 3, "v": "theirs"}]
        foreign_level_zero(engine.table("d.t").store, rows, [0, 0])
        with pytest.raises(TablestoreError, match="TS17"):
            alone.table("d.t").compact()
        assert engine.table("d.t").latest_snapshot_id() == 3

        sent = engine.table("d.t").compact()
        assert sent.snapshot_ids == (4,)
        assert sent.log is not None
        assert sent.log.name == options["kafka.topic"]
        assert _replayed(engine) == _stored(engine) == {1: "a", 2: "theirs", 3: "theirs"}
        count = engine.count_log_messages("d.t")

        folded = alone.table("d.t").compact(full=True)
        assert folded.snapshot_ids == (5,)
        assert folded.log is None
        assert engine.count_log_messages("d.t") == count

        _write(engine, 1, value="c")
        assert engine.count_log_messages("d.t") == count + 1
        assert _replayed(engine) == _stored(engine) == {1: "c", 2: "theirs", 3: "theirs"}
        assert engine.table("d.t").verify() == ()
