"""A log that an existing table gets later: everything that was committed before goes into it first."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.log.decode import decode_rows
from tablestore_engine.log.dev_broker import BrokerInfo


def _with_log() -> WriteSpec:
    options = {"log.system": "kafka", "kafka.topic": f"later-{uuid.uuid4().hex}"}
    return WriteSpec(table=TableSpec(primary_key=("id",), options=options))


def _row(number: int, value: str) -> pa.Table:
    return pa.table({"id": [number], "v": [value]})


def _engine(folder: Path, url: str) -> Engine:
    """A table `d.t` of two snapshots, without a log."""
    engine = Engine(str(folder), log={"kafka.bootstrap.servers": url, "kafka.socket.timeout.ms": "1000"})
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
    with _engine(tmp_path, "127.0.0.1:1") as engine:
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
