"""Formats of the log on a real broker, and Avro with a real schema registry (Apicurio): what is sent and refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import product
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from integration_tests.apicurio import Registry
from integration_tests.kafka.topics import topics_left
from tablestore_engine.api import Engine, OnSchemaChange, TableSpec, WriteMode, WriteSpec
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.errors import FixData, FixRequest, PublishPending, RetryError
from tablestore_engine.runtime.outside_world import CRASH_ENV, Runtime
from tests.doses import case_rows, cases

Opened = Callable[..., AbstractContextManager[Engine]]


def spec(topic: str, **options: str) -> WriteSpec:
    """A keyed table with a log of these options."""
    named = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    given = {"log.system": "kafka", "kafka.topic": topic, "bucket": "2", **named}
    return WriteSpec(table=TableSpec(primary_key=("id",), options=given))


def avro(topic: str, **options: str) -> WriteSpec:
    """The same with Avro."""
    return spec(topic, log__format="avro", log__key__format="avro", **options)


def rows(*pairs: tuple[int, str]) -> pa.Table:
    """Of (id, v)."""
    return pa.table({"id": [key for key, _ in pairs], "v": [value for _, value in pairs]})


@pytest.fixture
def topic() -> str:
    """A name of its own."""
    return f"shop.{uuid.uuid4().hex}"


@pytest.fixture
def opened(
    broker: BrokerInfo, registry: Registry, tmp_path: Path
) -> Callable[..., AbstractContextManager[Engine]]:
    """Engines on one warehouse; `url`: another registry."""

    @contextmanager
    def enter(url: str | None = None) -> Iterator[Engine]:
        log = {"kafka.bootstrap.servers": broker.url, "schema.registry.url": url or registry.url}
        with Engine(str(tmp_path / "warehouse"), log=log) as engine:
            yield engine

    return enter


def kinds_of(engine: Engine) -> list[tuple[int, str | None, int]]:
    """(id, v, kind) of the log, by snapshot and key."""
    table = engine.table("d.t")
    snapshots = [message.snapshot_id or 0 for message in table.log_messages()]
    read = zip(snapshots, table.log_rows().to_pylist(), strict=True)
    order = sorted(read, key=lambda one: (one[0], one[1]["id"]))
    return [(row["id"], row["v"], row["_ROW_KIND"]) for _, row in order]


@pytest.mark.parametrize(
    ("value", "how"),
    [
        *case_rows(
            list(
                product(
                    ["debezium-json", "canal-json", "maxwell-json", "avro"],
                    [("json", "upsert"), ("avro", "all"), ("json", "all"), ("avro", "upsert")],
                )
            ),
            2,
        ),
        ("json", ("json", "upsert")),
        pytest.param("json", ("avro", "upsert"), marks=pytest.mark.nightly),
    ],
)
def test_a_history_comes_back_from_each_format(
    opened: Opened, topic: str, value: str, how: tuple[str, str]
) -> None:
    """Inserts, an update, a delete: the rows of the log with their kinds; tombstones in mode upsert."""
    key, mode = how
    with opened() as engine:
        made = spec(topic, log__format=value, log__key__format=key, log__changelog_mode=mode)
        engine.write("d.t", rows((1, "a"), (2, "b")), made)
        engine.write("d.t", rows((2, "c")), made)
        engine.sql("delete from d.t where id = 1")
        before = [(2, "b", 1)] if mode == "all" else []
        gone = (1, "a", 3) if mode == "all" else (1, None, 3)
        assert kinds_of(engine) == [(1, "a", 0), (2, "b", 0), *before, (2, "c", 2), gone]
        values = [message.value for message in engine.table("d.t").log_messages()]
        assert (None in values) == (mode == "upsert")


def test_plain_json_without_tombstones_is_for_logs_of_inserts(opened: Opened, topic: str) -> None:
    """Refused for a keyed table in mode all before there is one; with ignore-delete the log has no deletes, and all is
    +I.
    """
    with opened() as engine:
        refused = spec(topic, log__format="json", log__changelog_mode="all")
        with pytest.raises(FixRequest, match="TS1762"):
            engine.write("d.t", rows((1, "a")), refused)
        assert engine.find_table("d.t") is None
        made = spec(topic, log__format="json", log__ignore_delete="true")
        engine.write("d.t", rows((1, "a"), (2, "b")), made)
        engine.write("d.t", rows((2, "c")), made)
        engine.sql("delete from d.t where id = 1")
        assert kinds_of(engine) == [(1, "a", 0), (2, "b", 0), (2, "c", 0)]
        values = {message.value for message in engine.table("d.t").log_messages()}
        assert values == {b'{"id":1,"v":"a"}', b'{"id":2,"v":"b"}', b'{"id":2,"v":"c"}'}
        assert (
            engine.table("d.t").publish().log is not None
        )  # a snapshot without messages leaves nothing behind


def test_rows_do_not_leave_a_table_whose_log_cannot_say_so(opened: Opened, topic: str) -> None:
    """A table without a key and plain json: appends go on, an overwrite that removes rows and a DELETE are TS1329."""
    options = {"log.system": "kafka", "kafka.topic": topic, "log.format": "json"}
    append = WriteSpec(table=TableSpec(options=options), mode=WriteMode.APPEND)
    overwrite = WriteSpec(table=TableSpec(options=options), mode=WriteMode.OVERWRITE_TABLE)
    with opened() as engine:
        engine.write("d.t", rows((1, "a")), overwrite)
        engine.write("d.t", rows((2, "b")), append)
        table = engine.table("d.t")
        for act in (
            lambda: engine.write("d.t", rows((3, "c")), overwrite),
            lambda: engine.sql("delete from d.t where id = 1"),
            lambda: engine.sql("update d.t set v = 'x' where id = 1"),
        ):
            with pytest.raises(FixRequest, match="TS1329"):
                act()
        assert table.scan().to_arrow().num_rows == 2
        assert table.orphans(older_than_ms=0).found == ()
        assert kinds_of(engine) == [(1, "a", 0), (2, "b", 0)]


def test_other_clients_read_our_avro(opened: Opened, registry: Registry, topic: str) -> None:
    """Confluent's own deserializer, which knows the registry alone; subjects are those of the topic."""
    with opened() as engine:
        engine.write("d.t", rows((1, "a"), (2, "b")), avro(topic))
        messages = engine.table("d.t").log_messages()
    read = AvroDeserializer(SchemaRegistryClient({"url": registry.url}))
    found = {
        json.dumps(read(one.key, SerializationContext(topic, MessageField.KEY))): read(
            one.value, SerializationContext(topic, MessageField.VALUE)
        )
        for one in messages
    }
    assert found == {
        '{"id": 1}': {"before": None, "after": {"id": 1, "v": "a"}, "op": "c"},
        '{"id": 2}': {"before": None, "after": {"id": 2, "v": "b"}, "op": "c"},
    }
    assert {f"{topic}-key", f"{topic}-value"} <= set(registry.ask("GET", "/subjects"))


def test_a_table_that_grows_is_a_new_version(opened: Opened, registry: Registry, topic: str) -> None:
    """A column added by ALTER is a version once a snapshot has it, equal columns are none; old messages stay read."""
    with opened() as engine:
        engine.write("d.t", rows((1, "a")), avro(topic))
        engine.write("d.t", rows((2, "b")), avro(topic))
        versions = f"/subjects/{topic}-value/versions"
        assert registry.ask("GET", versions) == [1]
        engine.sql("alter table d.t add column n bigint")
        assert registry.ask("GET", versions) == [1], "nothing is registered before a snapshot needs it"
        engine.sql("insert into d.t values (3, 'c', 5)")
        assert registry.ask("GET", versions) == [1, 2]
        read = sorted(engine.table("d.t").log_rows().to_pylist(), key=lambda row: row["id"])
        assert [(row["id"], row["v"], row["n"]) for row in read] == [
            (1, "a", None),
            (2, "b", None),
            (3, "c", 5),
        ]
        assert registry.ask("GET", f"/subjects/{topic}-key/versions") == [1]


def test_a_change_that_the_registry_does_not_take_is_refused_before_it(
    opened: Opened, registry: Registry, topic: str
) -> None:
    """FULL asks that readers of before read what comes too: a wider number, by ALTER or by a write, is TS1769."""
    options = {"log.system": "kafka", "kafka.topic": topic, "log.format": "avro"}
    narrow, wide = (pa.table({"id": [1], "n": pa.array([1], kind)}) for kind in (pa.int32(), pa.int64()))
    made = WriteSpec(table=TableSpec(options=options), on_schema_change=OnSchemaChange.SYNC_ALL_COLUMNS)
    with opened() as engine:
        engine.write("d.t", narrow, made)
        registry.ask("PUT", f"/config/{topic}-value", {"compatibility": "FULL"})
        table = engine.table("d.t")
        with pytest.raises(FixRequest, match="TS1769"):
            engine.sql("alter table d.t alter column n type bigint")
        with pytest.raises(FixRequest, match="TS1769"):
            engine.write("d.t", wide, made)
        assert table.latest_snapshot_id() == 1
        assert engine.table("d.t").schema.field("n").type.root == "INT"
        registry.ask("PUT", f"/config/{topic}-value", {"compatibility": "BACKWARD"})
        engine.write("d.t", wide, made)
        assert sorted(engine.table("d.t").log_rows()["n"].to_pylist()) == [1, 1]
        assert registry.ask("GET", f"/subjects/{topic}-value/versions") == [1, 2]


def test_a_column_that_avro_cannot_name_is_refused_before_it(
    opened: Opened, broker: BrokerInfo, topic: str
) -> None:
    """A new table leaves neither topic nor table, an old one stays as it is: TS1763."""
    with opened() as engine:
        odd = pa.table({"id": [1], "größe": [2]})
        with pytest.raises(FixRequest, match="TS1763"):
            engine.write("d.t", odd, avro(topic))
        assert engine.find_table("d.t") is None
        assert not topics_left(AdminClient({"bootstrap.servers": broker.url}), topic)
        engine.write("d.t", rows((1, "a")), avro(topic))
        with pytest.raises(FixRequest, match="TS1763"):
            engine.sql("alter table d.t add column `größe` bigint")
        assert engine.table("d.t").schema.field_names == ("id", "v")


def test_a_registry_that_is_away_stops_the_commit(opened: Opened, broker: BrokerInfo, topic: str) -> None:
    """TS1767 with nothing written: no table and no topic of a new one, no snapshot of an old one."""
    with opened("http://127.0.0.1:1") as engine:
        with pytest.raises(RetryError, match="TS1767"):
            engine.write("d.t", rows((1, "a")), avro(topic))
        assert engine.find_table("d.t") is None
        assert not topics_left(AdminClient({"bootstrap.servers": broker.url}), topic)
    with opened() as engine:
        engine.write("d.t", rows((1, "a")), avro(topic))
    with opened("http://127.0.0.1:1") as engine:
        with pytest.raises(RetryError, match="TS1767"):
            engine.write("d.t", rows((2, "b")), avro(topic))
        assert engine.table("d.t").latest_snapshot_id() == 1
        engine.drop_table("d.t")  # needs no registry
        assert engine.find_table("d.t") is None


@pytest.mark.nightly  # by day test_pending.py: the broker goes behind the commit
def test_a_registry_that_goes_away_behind_the_commit_leaves_the_log_pending(
    opened: Opened, broker: BrokerInfo, registry: Registry, tmp_path: Path, topic: str
) -> None:
    """TS1070: the snapshot is there, its rows are sent once when the registry is back."""
    actions = {"commit.done": registry.stop}
    runtime = Runtime(on_crash_point=lambda name: actions.pop(name, lambda: None)())

    log = {
        "kafka.bootstrap.servers": broker.url,
        "schema.registry.url": registry.url,
        "kafka.socket.timeout.ms": "1000",
    }
    with Engine(str(tmp_path / "w"), log=log, runtime=runtime) as engine:
        try:
            with pytest.raises(PublishPending, match="TS1070") as pending:
                engine.write("d.t", rows((1, "a"), (2, "b")), avro(topic))
        finally:
            registry.start()
        assert "TS1767" in str(pending.value)
        assert engine.table("d.t").latest_snapshot_id() == 1
        engine.table("d.t").publish()
        assert kinds_of(engine) == [(1, "a", 0), (2, "b", 0)]
        engine.write("d.t", rows((3, "c")), avro(topic))
        assert kinds_of(engine) == [(1, "a", 0), (2, "b", 0), (3, "c", 0)]


def test_a_row_too_large_is_refused_in_each_format(opened: Opened, topic: str) -> None:
    """Before the commit, by the size of its own message, its key shown as JSON: TS1739."""
    with opened() as engine:
        made = avro(topic, kafka__message__max__bytes="2000")
        engine.write("d.t", rows((1, "x" * 1000)), made)
        with pytest.raises(FixData, match="TS1739") as caught:
            engine.write("d.t", rows((2, "x" * 2000)), made)
        assert 'key {"id":2}' in str(caught.value)
        assert engine.count_log_messages("d.t") == 1


_CHILD = """
import sys, pyarrow as pa
from tablestore_engine.api import Engine, TableSpec, WriteSpec
folder, url, registry, topic = sys.argv[1:]
options = {"log.system": "kafka", "kafka.topic": topic, "log.format": "avro", "log.key.format": "avro"}
with Engine(folder, log={"kafka.bootstrap.servers": url, "schema.registry.url": registry}) as engine:
    spec = WriteSpec(table=TableSpec(primary_key=("id",), options=options))
    engine.write("d.t", pa.table({"id": list(range(100)), "v": ["x"] * 100}), spec)
"""


@pytest.mark.parametrize("point", cases(["log.begin", "log.rows", "log.marker", "log.committed"], 1))
def test_a_killed_publisher_sends_avro_once(
    opened: Opened, broker: BrokerInfo, registry: Registry, tmp_path: Path, topic: str, point: str
) -> None:
    """Wherever it dies, the next one registers the same schema and sends what is not there: each row once."""
    folder = tmp_path / "warehouse"
    died = subprocess.run(
        [sys.executable, "-c", _CHILD, str(folder), broker.url, registry.url, topic],
        env={**os.environ, CRASH_ENV: point},
        check=False,
    )
    assert died.returncode == -signal.SIGKILL
    with opened() as engine:
        engine.table("d.t").publish()
        assert kinds_of(engine) == [(number, "x", 0) for number in range(100)]
        assert registry.ask("GET", f"/subjects/{topic}-value/versions") == [1]
