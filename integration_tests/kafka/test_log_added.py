"""A log that an existing table gets later: everything that was committed before goes into it first."""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient

from tablestore_engine.api import Engine, SparkSettings, TableSpec, WriteSpec
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.log.decode import decode_rows
from tablestore_engine.store.table_store import TableStore
from tests.doses import cases


def _with_log() -> WriteSpec:
    options = {"log.system": "kafka", "kafka.topic": f"later-{uuid.uuid4().hex}"}
    return WriteSpec(table=TableSpec(primary_key=("id",), options=options))


def _row(number: int, value: str) -> pa.Table:
    return pa.table({"id": [number], "v": [value]})


def _engine_at(folder: Path, url: str, **log: str) -> Engine:
    log = {"kafka.bootstrap.servers": url, "kafka.socket.timeout.ms": "1000", **log}
    return Engine(str(folder), log=log, spark=SparkSettings("local[1]"))


def _engine(folder: Path, url: str, **log: str) -> Engine:
    """A table `d.t` of two snapshots, without a log; `log`: more settings of its clients."""
    engine = _engine_at(folder, url, **log)
    for value in ("a", "b"):
        engine.write("d.t", _row(1, value), WriteSpec(table=TableSpec(primary_key=("id",))))
    return engine


def test_a_log_added_later_holds_the_whole_table(broker: BrokerInfo, tmp_path: Path) -> None:
    """The first write that names it makes the topics; replaying them from the beginning gives the table."""
    with _engine(tmp_path, broker.url) as engine:
        engine.write("d.t", _row(2, "c"), _with_log())
        table = engine.table("d.t")
        rows = decode_rows(table.log_messages(), table.schema).to_pylist()
        assert {row["id"]: row["v"] for row in rows} == {1: "b", 2: "c"}
        assert table.schema.options["tablestore.managed-topic"] == "true"


def test_without_brokers_the_table_stays_without_a_log(tmp_path: Path) -> None:
    """Topics come before the schema that names them: an error leaves rows and options as they were."""
    with _engine(tmp_path, "127.0.0.1:1", **{"kafka.default.api.timeout.ms": "1000"}) as engine:
        with pytest.raises(RetryError, match="TS1702"):
            engine.write("d.t", _row(2, "c"), _with_log())
        table = engine.table("d.t")
        assert table.latest_snapshot_id() == 2
        assert "log.system" not in table.schema.options


@pytest.mark.parametrize("stage", [None, "gate"])
def test_a_table_whose_first_snapshots_expired_gets_no_log(
    broker: BrokerInfo, tmp_path: Path, stage: str | None
) -> None:
    """Its log could not begin with all its rows: TS1083 before anything, no topic; a new table of its rows may."""
    with _engine(tmp_path, broker.url) as engine:
        table, spec = engine.table("d.t"), _with_log()
        (Path(table.store.location) / "snapshot" / "snapshot-1").unlink()
        with pytest.raises(FixRequest, match="TS1083") as caught:
            engine.write("d.t", _row(2, "c"), replace(spec, stage=stage))
        assert "the first that is missing is 1" in str(caught.value)
        assert table.latest_snapshot_id() == 2
        assert table.staged() == ()
        assert "log.system" not in table.schema.options
        topic = spec.table.options["kafka.topic"]
        assert not [name for name in _topics(broker) if topic in name]
        engine.write("d.new", table.scan().to_arrow(), spec)
        assert engine.count_log_messages("d.new") == 1


@pytest.mark.parametrize("stage", cases([None, "gate"], 1))
def test_a_log_begins_with_the_rows_of_now(broker: BrokerInfo, tmp_path: Path, stage: str | None) -> None:
    """latest-full, of a table whose first snapshot expired: each row once as +I, in the snapshot that was the newest
    then, and behind it what came since, of other writers too; a clone of the table begins nothing.
    """
    with _engine(tmp_path, broker.url) as engine, _engine_at(tmp_path, broker.url) as other:
        table = engine.table("d.t")
        engine.write("d.t", pa.table({"id": [2, 3], "v": ["x", "y"]}), WriteSpec())
        engine.sql("delete from d.t where id = 3")
        (Path(table.store.location) / "snapshot" / "snapshot-1").unlink()
        engine.write("d.t", _row(4, "new"), replace(_starting("latest-full"), stage=stage))
        if stage is not None:
            other.write("d.t", _row(1, "other"), WriteSpec())
            with pytest.raises(RetryError, match="TS1308"):
                engine.table("d.t").publish_staged(stage)
            engine.write("d.t", _row(4, "new"), replace(_starting("latest-full"), stage=stage))
            engine.table("d.t").publish_staged(stage)
        start = int(table.schema.options["tablestore.log-start-snapshot"])
        messages = table.log_messages()
        first = [one for one in messages if one.snapshot_id == start]
        assert {one.kind for one in first} == {RowKind.INSERT}
        assert len(first) == 2
        rows = decode_rows(messages, table.schema).to_pylist()
        now = {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()}
        assert {row["id"]: row["v"] for row in rows} == now
        other.write("d.t", _row(1, "z"), WriteSpec())
        assert engine.count_log_messages("d.t") == len(messages) + 1
        engine.sql("delete from d.t where id = 1")
        assert table.log_messages()[-1].kind is RowKind.DELETE


def test_a_log_begins_with_what_comes_next(broker: BrokerInfo, tmp_path: Path) -> None:
    """latest: of rows that are there already the topic has nothing, of the write that brings the log it has all."""
    with _engine(tmp_path, broker.url) as engine:
        engine.write("d.t", _row(2, "c"), _starting("latest"))
        engine.write("d.t", _row(1, "d"), WriteSpec())
        table = engine.table("d.t")
        rows = decode_rows(table.log_messages(), table.schema).to_pylist()
        assert [(row["id"], row["v"]) for row in rows] == [(2, "c"), (1, "d")]
        assert "tablestore.log-start-snapshot" not in table.schema.options


def test_a_beginning_that_was_cut_short(
    broker: BrokerInfo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the topics and the commit that names them: the next try begins with the rows of its own day, the
    snapshots between the two tries are not sent besides.
    """
    with _engine(tmp_path, broker.url) as engine:
        spec = _starting("latest-full")
        with monkeypatch.context() as dying:
            dying.setattr(TableStore, "write", _die)
            with pytest.raises(KeyboardInterrupt):
                engine.write("d.t", _row(2, "lost"), spec)
        engine.write("d.t", pa.table({"id": [5, 6], "v": ["e", "f"]}), WriteSpec())
        engine.write("d.t", _row(2, "c"), spec)
        table = engine.table("d.t")
        found = Counter((one.snapshot_id, one.kind) for one in table.log_messages())
        assert found == {(3, RowKind.INSERT): 3, (4, RowKind.INSERT): 1}
        assert table.latest_snapshot_id() == 4


def _die(*_: object) -> None:
    raise KeyboardInterrupt


def _starting(start: str) -> WriteSpec:
    spec = _with_log()
    assert spec.table is not None
    options = {**spec.table.options, "tablestore.log-start": start}
    return replace(spec, table=replace(spec.table, options=options))


def _topics(broker: BrokerInfo) -> set[str]:
    return set(AdminClient({"bootstrap.servers": broker.url}).list_topics(timeout=10).topics)


@pytest.mark.parametrize("mode", ["auto", "all"])
def test_a_log_without_a_changelog_is_refused_before_anything(tmp_path: Path, mode: str) -> None:
    """changelog-producer none: TS1737 for a new table and a log added later; no broker is asked, nothing is left."""
    none = {"changelog-producer": "none"}
    logged = {**none, "log.system": "kafka", "kafka.topic": "t", "log.changelog-mode": mode}
    with Engine(str(tmp_path), log={"kafka.bootstrap.servers": "127.0.0.1:1"}) as engine:
        with pytest.raises(FixRequest, match="TS1737"):
            engine.write("d.t", _row(1, "a"), WriteSpec(table=TableSpec(primary_key=("id",), options=logged)))
        assert engine.find_table("d.t") is None
        engine.write("d.t", _row(1, "a"), WriteSpec(table=TableSpec(primary_key=("id",), options=none)))
        with pytest.raises(FixRequest, match="TS1737"):
            engine.write("d.t", _row(2, "b"), _with_log())
        assert engine.table("d.t").latest_snapshot_id() == 1
        assert "log.system" not in engine.table("d.t").schema.options
