"""More buckets for a table with a log: its topic gets as many partitions, and no message comes twice or is lost."""

from __future__ import annotations

import uuid
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.errors import FixRequest, PublishPending, TablestoreError
from tablestore_engine.log.decode import decode_rows
from tablestore_engine.log.kafka.kafka_sink import KafkaSink


def _engine(folder: Path, url: str) -> Engine:
    return Engine(str(folder), log={"kafka.bootstrap.servers": url, "kafka.socket.timeout.ms": "1000"})


def _engine_without_brokers(folder: Path) -> Engine:
    log = {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.default.api.timeout.ms": "1000"}
    return Engine(str(folder), log=log)


def _rows(first: int, after: int, value: str) -> pa.Table:
    return pa.table({"id": list(range(first, after)), "v": [value] * (after - first)})


def _made(engine: Engine, buckets: int) -> None:
    options = {
        "log.system": "kafka",
        "kafka.topic": f"rescale-{uuid.uuid4().hex}",
        "bucket": str(buckets),
    }
    engine.write("d.t", _rows(0, 40, "a"), WriteSpec(table=TableSpec(primary_key=("id",), options=options)))


def _check(engine: Engine, buckets: int) -> None:
    """The topic folded in the order of snapshots is the table; messages of later snapshots use all partitions."""
    table = engine.table("d.t")
    messages = sorted(table.log_messages(), key=lambda one: one.snapshot_id or 0)
    found: dict[int, str] = {}
    for row in decode_rows(messages, table.schema).to_pylist():
        found[row["id"]] = row["v"]
    assert found == {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()}
    newest = max(one.snapshot_id or 0 for one in messages)
    assert {one.partition for one in messages if one.snapshot_id == newest} == set(range(buckets))
    assert table.verify() == ()


def test_a_topic_follows_its_buckets(broker: BrokerInfo, tmp_path: Path) -> None:
    """From 2 to 5: the rescale sends nothing, the next write goes to five partitions, in another process too."""
    with _engine(tmp_path, broker.url) as engine, _engine(tmp_path, broker.url) as other:
        _made(engine, 2)
        other.write("d.t", _rows(10, 20, "b"), WriteSpec())
        before = engine.count_log_messages("d.t")
        report = engine.table("d.t").rescale(5)
        assert not report.is_empty
        assert engine.count_log_messages("d.t") == before == 50
        other.write("d.t", _rows(0, 60, "c"), WriteSpec())
        _check(engine, 5)
        with pytest.raises(FixRequest, match="TS1344"):
            engine.table("d.t").rescale(3)


def test_brokers_that_are_away(broker: BrokerInfo, tmp_path: Path) -> None:
    """Without brokers nothing is rescaled."""
    with _engine(tmp_path, broker.url) as engine, _engine_without_brokers(tmp_path) as alone:
        _made(engine, 1)
        with pytest.raises(TablestoreError, match="TS17"):
            alone.table("d.t").rescale(2)
        assert engine.table("d.t").schema.bucket_count == 1


@pytest.mark.nightly  # by day test_pending.py; the topic above
def test_a_publication_that_fails_behind_it(
    broker: BrokerInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rescale is committed, the log is pending and says so; the next publication gives the topic its partitions."""
    with _engine(tmp_path, broker.url) as engine:
        _made(engine, 1)
        table = engine.table("d.t")
        with monkeypatch.context() as broken:
            publish, calls = KafkaSink.publish, []

            def fail(self: KafkaSink, *rest: object) -> object:
                calls.append(rest)
                if len(calls) > 1:  # the first one sends what was pending before
                    raise FixRequest("TS1711", "the brokers went away", why="test", fix="none")
                return publish(self, *rest)  # type: ignore[arg-type]

            broken.setattr(KafkaSink, "publish", fail)
            with pytest.raises(PublishPending, match="TS1070"):
                table.rescale(3)
        assert table.schema.bucket_count == 3
        table.publish()
        engine.write("d.t", _rows(0, 60, "c"), WriteSpec())
        _check(engine, 3)
