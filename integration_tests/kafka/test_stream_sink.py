"""A sink of Spark whose table has a log: the commit of a batch publishes it, at the broker of the environment."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine
from tablestore_engine.datasource.source_options import parse_address, parse_write
from tablestore_engine.datasource.spark_source import TablestoreStreamWriter
from tablestore_engine.datasource.staged_write import StagedMessage, TableWrite
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.errors import TablestoreError
from tests.unit.datasource.query_world import struct

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])


def test_a_batch_is_published_with_its_commit_and_only_once(
    broker: BrokerInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the broker nothing is committed; a batch that comes again sends nothing again."""
    options = {"log.system": "kafka", "kafka.topic": f"t-{uuid.uuid4().hex[:8]}", "bucket": "1"}
    engine = Engine(str(tmp_path), log={"kafka.bootstrap.servers": broker.url}, environ={})
    engine.create_database("demo")
    engine.create_table("demo.t", SCHEMA, primary_key=("id",), options=options)
    said = {"warehouse": str(tmp_path), "table": "demo.t"}
    write = TableWrite(
        parse_address(said),
        parse_write(said),
        struct("id bigint, _row_kind string, v string"),
        replaces=False,
    )

    def commit(batch: int, *rows: tuple[int, str, str]) -> None:
        batches = [
            pa.RecordBatch.from_pylist([{"id": one, "_row_kind": kind, "v": v}]) for one, kind, v in rows
        ]
        message = StagedMessage("q", write.stage(write.folder("q", str(batch)), batches))
        TablestoreStreamWriter(write).commit([message], batch)

    monkeypatch.setenv("TABLESTORE_KAFKA", "127.0.0.1:1")
    with pytest.raises(TablestoreError) as error:
        commit(0, (1, "+I", "a"))
    assert error.value.code.startswith("TS17")
    assert engine.table("demo.t").latest_snapshot_id() is None
    monkeypatch.setenv("TABLESTORE_KAFKA", broker.url)
    for _ in range(2):
        commit(0, (1, "+I", "a"), (2, "+I", "b"))
    commit(1, (1, "-D", "a"))
    table = engine.table("demo.t")
    assert sorted((one.snapshot_id, one.kind.short_string) for one in table.log_messages() if one.kind is not None) == [
        (1, "+I"), (1, "+I"), (2, "-D"),
    ]  # fmt: skip
    assert table.scan().to_arrow().to_pylist() == [{"id": 2, "v": "b"}]
