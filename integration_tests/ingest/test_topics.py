"""Topics of others into tables, on a real broker: formats, kills, two at once, topics that are not what they were."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from integration_tests.apicurio import Registry as RealRegistry
from integration_tests.ingest.topics import drop_topic, make_topic, send
from integration_tests.kafka.topics import topics_left
from tablestore_engine.api import Engine, IngestSpec
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.errors import FixData, FixRequest, NotFound, RetryError
from tablestore_engine.runtime.outside_world import CRASH_ENV, SYSTEM, Runtime
from tests.doses import cases, examples
from tests.unit.ingest.encoders import COLUMNS, SQL, TYPED, Event, Registry, encoders
from tests.unit.ingest.histories import fold, histories, table_of

ROW: dict[str, Any] = {**dict.fromkeys(COLUMNS), "name": "x"}
OPENED = Callable[..., Any]


def put(key: int, name: str = "x") -> Event:
    """An insert."""
    return Event("c", None, {**ROW, "id": key, "name": name})


def spec_of(name: str, topic: str, **more: Any) -> IngestSpec:
    """Of an encoder."""
    columns = {} if name in TYPED else {one: SQL[kind] for one, kind in COLUMNS.items()}
    decimals = None if name in TYPED else "base64"
    made = IngestSpec(
        format=encoders(Registry())[name][0],
        into="d.t",
        topic=topic,
        key=("id",),
        columns=columns,
        decimals=decimals,
    )
    return replace(made, **more)


@pytest.fixture
def opened(broker: BrokerInfo, tmp_path: Path) -> OPENED:
    """Engines on one warehouse."""

    @contextmanager
    def enter(runtime: Runtime = SYSTEM, folder: str = "w", **log: str) -> Iterator[Engine]:
        settings_of = {"kafka.bootstrap.servers": broker.url, **log}
        with Engine(str(tmp_path / folder), log=settings_of, runtime=runtime) as engine:
            yield engine

    return enter


def encode(name: str, events: list[Event], registry: Registry | None = None) -> list[Any]:
    """Messages of events."""
    made = encoders(registry or Registry())[name][1]
    return [one for event in events for one in made(event, COLUMNS)]


@pytest.mark.parametrize("name", cases([one for one in encoders(Registry()) if "avro" not in one], 2))
@given(events=histories(most=40), rows_max=st.integers(1, 30), number=st.integers(0, 1 << 60))
@settings(
    max_examples=examples(3, 6), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_histories_of_each_format(
    broker: BrokerInfo, opened: OPENED, name: str, events: list[Event], rows_max: int, number: int
) -> None:
    """The table is what the history leaves; half is ingested first, then the rest."""
    topic = make_topic(broker.url)
    messages = encode(name, events)
    with opened(folder=f"{name}-{number}-{topic}".replace(" ", "")) as engine:
        for part in (messages[: len(messages) // 2], messages[len(messages) // 2 :]):
            send(broker.url, topic, part)
            report = engine.ingest(spec_of(name, topic, rows_max=rows_max))
            assert report.messages == len(part)
        found = table_of(engine)
    wanted = fold(events)
    flags = {key: row["flag"] for key, row in wanted.items()}
    assert {key: {**row, "flag": flags.get(key)} for key, row in found.items()} == wanted


@pytest.mark.nightly  # by day kafka/test_registry.py
def test_avro_with_a_registry(broker: BrokerInfo, registry: RealRegistry, opened: OPENED) -> None:
    """Schemas are asked for where the profile says; one that is not there is a message that cannot be read."""
    from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

    topic = make_topic(broker.url)
    client = SchemaRegistryClient({"url": registry.url})

    class Numbers(Registry):
        def number(self, schema: object) -> int:
            return int(
                client.register_schema(
                    f"{topic}-{len(json.dumps(schema))}", Schema(json.dumps(schema), "AVRO")
                )
            )

    events = [put(1), put(2), Event("d", put(1).after, None)]
    send(broker.url, topic, encode("debezium-avro", events, Numbers()))
    spec = spec_of("debezium-avro", topic)
    with opened(**{"schema.registry.url": registry.url}) as engine:
        assert engine.ingest(spec).deletes == 1
        assert table_of(engine) == fold(events)
        send(broker.url, topic, [(None, b"\0\0\0\x7f\x7fxx")])
        with pytest.raises(FixData, match="TS1421") as caught:
            engine.ingest(spec)
        assert "partition 0, offset 4" in str(caught.value)


POINTS = ["write.data_files", "commit.manifests", "commit.claimed", "commit.done"]


@pytest.mark.parametrize("nth", cases([1, 2, 3, 4], 1))
@pytest.mark.parametrize("point", cases(POINTS, 2))
def test_a_killed_ingest_goes_on(
    broker: BrokerInfo, opened: OPENED, tmp_path: Path, point: str, nth: int
) -> None:
    """kill -9 at each step of each commit, of dead letters too: all rows once, each dead letter once."""
    topic = make_topic(broker.url)
    events = [put(key, f"n{key}") for key in range(6)]
    messages: list[Any] = encode("debezium-json", events)
    messages[2:2] = [(b"k", b"broken")]
    messages[5:5] = [(b"k", b"broken too")]
    send(broker.url, topic, messages)
    spec = spec_of("debezium-json", topic, on_error="dead_letter", rows_max=4)
    told = json.dumps(
        {"format": spec.format, "into": spec.into, "topic": topic, "key": ["id"], "columns": dict(spec.columns),
         "decimals": "base64", "on_error": "dead_letter", "rows_max": 4}
    )  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "integration_tests.ingest.child", str(tmp_path / "w"), broker.url, told],
        env={**os.environ, CRASH_ENV: f"{point}:{nth}"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    with opened() as engine:
        engine.ingest(spec)
        assert table_of(engine) == fold(events)
        letters = engine.table("d.t__dead_letters").scan().to_arrow().to_pylist()
        assert sorted((one["place"], one["value"]) for one in letters) == [(2, b"broken"), (5, b"broken too")]
        for name, rows in (("d.t", 6), ("d.t__dead_letters", 2)):
            told_rows = engine.table(name).changes(0).to_pylist()
            assert len(told_rows) == rows, "nothing came twice"
        assert engine.ingest(spec).messages == 0


def test_of_two_at_once_one_is_refused(broker: BrokerInfo, opened: OPENED) -> None:
    """The second commits while the first is about to: TS1471, nothing twice; the loser finds nothing left to do."""
    topic = make_topic(broker.url)
    send(broker.url, topic, encode("debezium-json", [put(1)]))
    spec = spec_of("debezium-json", topic)
    with opened() as engine:
        engine.ingest(spec)
    send(broker.url, topic, encode("debezium-json", [put(2), put(3)]))

    def other(name: str) -> None:
        if name == "commit.manifests" and not hits:
            hits.append(name)
            with opened() as second:
                assert second.ingest(spec).upserts == 2

    hits: list[str] = []
    with opened(Runtime(on_crash_point=other)) as first:
        with pytest.raises(RetryError, match="TS1471"):
            first.ingest(spec)
        assert first.ingest(spec).messages == 0
        assert len(first.table("d.t").changes(0)) == 3
        assert first.table("d.t").latest_snapshot_id() == 2


@pytest.mark.nightly  # by day of two at once one is refused
def test_two_that_follow_take_turns(broker: BrokerInfo, opened: OPENED) -> None:
    """Whoever is overtaken begins again where the table is; in the end each row is there once."""
    topic = make_topic(broker.url)
    spec = spec_of("debezium-json", topic, rows_max=3, interval_s=0.05)
    stop, said = threading.Event(), []  # type: ignore[var-annotated]
    with opened() as one, opened() as two:
        threads = [
            threading.Thread(target=lambda e=e: e.ingest(spec, follow=True, stop=stop, say=said.append))
            for e in (one, two)
        ]
        for thread in threads:
            thread.start()
        events = [put(key) for key in range(60)]
        for begin in range(0, 60, 5):
            send(broker.url, topic, encode("debezium-json", events[begin : begin + 5]))
        _await(lambda: len(table_of(one)) == 60)
        stop.set()
        for thread in threads:
            thread.join(60)
        assert table_of(one) == fold(events)
        assert len(one.table("d.t").changes(0)) == 60


def _await(holds: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(1200):
        if holds():
            return
        pause.wait(0.1)
    raise AssertionError("it did not come")


@pytest.mark.nightly  # by day adapter/test_run_stream.py; tests/unit/ingest/test_ingest_run.py
def test_sigterm_ends_a_follower_behind_a_batch(broker: BrokerInfo, opened: OPENED, tmp_path: Path) -> None:
    """The command ends by itself with what it has done; a later run goes on there."""
    topic = make_topic(broker.url)
    send(broker.url, topic, encode("debezium-json", [put(1), put(2)]))
    command = [
        sys.executable,
        "-m",
        "tablestore_engine.cli.main",
        "ingest",
        "debezium-json",
        "--topic",
        topic,
    ]
    command += ["--into", "d.t", "--key", "id", "--infer", "--warehouse", str(tmp_path / "w"), "--json"]
    command += ["--bootstrap", broker.url, "--follow", "--interval", "0.1"]
    (tmp_path / "w").mkdir()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process, opened() as engine:
        _await(lambda: len(table_of(engine)) == 2)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert json.loads(out)["upserts"] == 2
        send(broker.url, topic, encode("debezium-json", [put(3)]))
        assert engine.ingest(spec_of("debezium-json", topic, columns={}, infer=True)).upserts == 1


@pytest.mark.nightly  # by day tests/unit/ingest/test_topic_source.py: TS1424
def test_a_topic_made_anew_is_refused(broker: BrokerInfo, opened: OPENED) -> None:
    """Its offsets mean other messages: TS1424, and nothing is written."""
    topic = make_topic(broker.url)
    spec = spec_of("debezium-json", topic)
    send(broker.url, topic, encode("debezium-json", [put(1)]))
    with opened() as engine:
        engine.ingest(spec)
        drop_topic(broker.url, topic)
        topics_left(AdminClient({"bootstrap.servers": broker.url}), topic)
        with pytest.raises(NotFound, match="TS1430"):
            engine.ingest(spec)
        make_topic(broker.url, name=topic)
        send(broker.url, topic, encode("debezium-json", [put(2)]))
        with pytest.raises(FixRequest, match="TS1424"):
            engine.ingest(spec)
        assert list(table_of(engine)) == [1]


def test_what_retention_took_is_an_error(broker: BrokerInfo, opened: OPENED) -> None:
    """Not a gap: TS1425 names partition and offset. A first run begins with what is left."""
    topic = make_topic(broker.url)
    spec = spec_of("debezium-json", topic)
    send(broker.url, topic, encode("debezium-json", [put(key) for key in range(5)]))
    with opened() as engine:
        engine.ingest(spec)
        send(broker.url, topic, encode("debezium-json", [put(key) for key in range(5, 9)]))
        admin = AdminClient({"bootstrap.servers": broker.url})
        asked = admin.delete_records([TopicPartition(topic, 0, 7)])
        for one in asked.values():
            one.result(30)
        with pytest.raises(NotFound, match="TS1425") as caught:
            engine.ingest(spec)
        assert "partition 0 has nothing at offset 5" in str(caught.value)
        assert len(table_of(engine)) == 5
    with opened(folder="other") as engine:
        engine.ingest(spec)
        assert sorted(table_of(engine)) == [7, 8]


def test_only_what_is_committed_is_read(broker: BrokerInfo, opened: OPENED) -> None:
    """Of transactions: those given up are never seen, one that is open holds the end back."""
    topic = make_topic(broker.url)
    spec = spec_of("debezium-json", topic)
    producer = Producer({"bootstrap.servers": broker.url, "transactional.id": topic})
    producer.init_transactions(30)
    for key, ends in ((1, "commit"), (2, "abort"), (3, "commit"), (4, "open")):
        producer.begin_transaction()
        for name, value in encode("debezium-json", [put(key)]):
            producer.produce(topic, value, name, 0)
        producer.flush(30)
        if ends == "commit":
            producer.commit_transaction(30)
        elif ends == "abort":
            producer.abort_transaction(30)
    with opened() as engine:
        assert engine.ingest(spec).messages == 2
        assert sorted(table_of(engine)) == [1, 3]
        producer.commit_transaction(30)
        assert engine.ingest(spec).messages == 1
        assert engine.ingest(spec).messages == 0


def test_several_partitions(broker: BrokerInfo, opened: OPENED) -> None:
    """Each in its own order, one that the topic gets later from its beginning; a key in two of them is TS1428."""
    topic = make_topic(broker.url, partitions=2)
    spec = spec_of("debezium-json", topic)
    send(broker.url, topic, encode("debezium-json", [put(1, "a"), put(3)]), 1)
    send(broker.url, topic, encode("debezium-json", [put(2), put(2, "z")]), 0)
    with opened() as engine:
        assert engine.ingest(spec).upserts == 4
        admin = AdminClient({"bootstrap.servers": broker.url})
        from confluent_kafka.cimpl import NewPartitions

        for one in admin.create_partitions([NewPartitions(topic, 3)]).values():
            one.result(30)
        _await(lambda: len(admin.list_topics(topic, timeout=10).topics[topic].partitions) == 3)
        send(broker.url, topic, encode("debezium-json", [put(9)]), 2)
        assert engine.ingest(spec).upserts == 1
        assert {key: row["name"] for key, row in table_of(engine).items()} == {1: "a", 2: "z", 3: "x", 9: "x"}
        send(broker.url, topic, encode("debezium-json", [put(5)]), 0)
        send(broker.url, topic, encode("debezium-json", [put(5)]), 1)
        with pytest.raises(FixData, match="TS1428") as caught:
            engine.ingest(spec)
        assert "id=5" in str(caught.value)


def test_brokers_that_are_away(opened: OPENED) -> None:
    """TS1433 names them; a user who names none is told so: TS1436."""
    spec = spec_of("debezium-json", "orders")
    with opened(
        **{"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.default.api.timeout.ms": "1000"}
    ) as engine:
        with pytest.raises(RetryError, match="TS1433"):
            engine.ingest(spec)
        assert engine.find_table("d.t") is None
