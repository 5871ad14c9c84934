"""Whose topic it is: claims that nobody stands behind block nobody, and what is refused leaves nothing."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import uuid
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, ResourceType

from integration_tests.kafka.source import Source, expected, new_table, published, settings_of
from integration_tests.kafka.topics import topics_left
from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.log.decode import decode_rows
from tablestore_engine.log.kafka import log_lifecycle as lifecycle
from tablestore_engine.log.kafka.commit_marker import read_markers
from tablestore_engine.log.kafka.kafka_client import make_consumer
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.kafka_producer import LogProducer
from tablestore_engine.log.kafka.log_lifecycle import prepare_log, reset_log
from tablestore_engine.log.kafka.publisher import Publisher
from tablestore_engine.log.kafka.settings import LogSettings
from tests.doses import cases, examples

_ROOT = Path(__file__).resolve().parents[2]
_TURNS = examples(2, 4)


def two_tables(broker: BrokerInfo) -> tuple[Source, LogSettings, Source, LogSettings]:
    """Two identities at one place that name the same topic, as of two first writers or of a second try."""
    first, second = Source(), Source()
    first.grow(2)
    second.grow(2)
    one = dataclasses.replace(settings_of(first, broker.url), place="/w/d.db/t")
    other = dataclasses.replace(settings_of(second, broker.url), place="/w/d.db/t", topic=one.topic)
    return first, one, second, other


def test_a_claim_without_a_table_is_taken_over(broker: BrokerInfo) -> None:
    """The first writer died behind its claim: the next one at the same place gets the topic, and publishes."""
    _, dead, source, settings = two_tables(broker)
    prepare_log(KafkaLog(dead))
    prepare_log(KafkaLog(settings))
    with Publisher(KafkaLog(settings)) as publisher:
        assert publisher.publish_pending(2, source.read).published == 2
    assert published(source, settings) == expected(source)


def test_a_topic_that_was_taken_over_goes_with_its_table(broker: BrokerInfo, tmp_path: Path) -> None:
    """The engine made it for the first writer, who died: the next one's DROP deletes both topics."""
    topic = f"inherited-{uuid.uuid4().hex}"
    dead = dataclasses.replace(
        settings_of(Source(buckets=1), broker.url), topic=topic, place=f"{tmp_path}/d.db/t"
    )
    prepare_log(KafkaLog(dead))
    with _engine(broker, tmp_path) as engine:
        engine.write("d.t", _row(1), _spec(topic))
        assert engine.table("d.t").schema.options["tablestore.managed-topic"] == "true"
        engine.drop_table("d.t")
    assert not topics_left(_admin(broker), topic)


def test_the_table_that_won_takes_its_topic_back(broker: BrokerInfo) -> None:
    """Two first writers: the one that claimed last lost the race for the name; the winner publishes all the same."""
    source, winner, _, loser = two_tables(broker)
    prepare_log(KafkaLog(winner))
    prepare_log(KafkaLog(loser))
    with Publisher(KafkaLog(winner)) as publisher:
        assert publisher.publish_pending(2, source.read).published == 2
    assert published(source, winner) == expected(source)


def test_a_claim_does_not_land_behind_what_was_published_meanwhile(
    broker: BrokerInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The winner publishes between the loser's look and its claim: TS1704, P is not set back, no row comes twice."""
    source, winner, _, loser = two_tables(broker)
    prepare_log(KafkaLog(winner))
    real = lifecycle.write_base

    def publish_first(*args: object, **more: object) -> None:
        monkeypatch.undo()
        with Publisher(KafkaLog(winner)) as publisher:
            assert publisher.publish_pending(1, source.read).published == 1
        real(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(lifecycle, "write_base", publish_first)
    with pytest.raises(FixRequest, match="TS1704"):
        prepare_log(KafkaLog(loser))
    with Publisher(KafkaLog(winner)) as publisher:
        assert publisher.publish_pending(2, source.read).snapshots == (2,)
    assert published(source, winner) == expected(source)


def test_a_claim_of_shards_lands_behind_nothing(broker: BrokerInfo, monkeypatch: pytest.MonkeyPatch) -> None:
    """One shard alone was published between the loser's look and its claim: the whole claim is given up (TS1704)."""
    source, winner, _, loser = two_tables(broker)
    winner, loser = (dataclasses.replace(one, shards=2) for one in (winner, loser))
    prepare_log(KafkaLog(winner))
    real = lifecycle.write_base

    def publish_first(*args: object, **more: object) -> None:
        monkeypatch.undo()
        with Publisher(KafkaLog(winner.of_shard(1))) as publisher:
            assert publisher.publish_pending(1, source.read).published == 1
        real(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(lifecycle, "write_base", publish_first)
    with pytest.raises(FixRequest, match="TS1704"):
        prepare_log(KafkaLog(loser))
    for shard in winner.all_shards():
        with Publisher(KafkaLog(shard)) as publisher:
            assert publisher.publish_pending(2, source.read).published == 2
    assert published(source, winner) == expected(source)


@pytest.mark.nightly  # by day the claim without a table; a claim of shards, above
def test_a_claim_of_shards_is_taken_over_by_all(broker: BrokerInfo) -> None:
    """The first writer died behind its claim; the next one has it in every shard, and a third finds it taken."""
    _, dead, source, settings = two_tables(broker)
    dead, settings = (dataclasses.replace(one, shards=2) for one in (dead, settings))
    prepare_log(KafkaLog(dead))
    for shard in settings.all_shards():  # without a claim of its own, as when its first one was overwritten
        with Publisher(KafkaLog(shard)) as publisher:
            assert publisher.publish_pending(2, source.read).published == 2
    assert published(source, settings) == expected(source)
    with pytest.raises(FixRequest, match="TS1704"):
        prepare_log(KafkaLog(dead))


@pytest.mark.parametrize("lands", cases([True, False], 1), ids=["it landed", "it did not"])
def test_a_claim_that_the_broker_answers_with_nothing_is_tried_again(
    broker: BrokerInfo, monkeypatch: pytest.MonkeyPatch, lands: bool
) -> None:
    """EndTxn of rival claims can end in an unknown server error; the next try reads, and there is one marker."""
    source = Source()
    source.grow(2)
    settings = settings_of(source, broker.url)
    real, calls = LogProducer.commit, []

    def commit(producer: LogProducer) -> None:
        calls.append(producer)
        if lands or len(calls) > 1:
            real(producer)
        if len(calls) == 1:
            raise KafkaException(KafkaError(KafkaError.UNKNOWN))

    monkeypatch.setattr(LogProducer, "commit", commit)
    prepare_log(KafkaLog(settings))
    assert len(calls) == (1 if lands else 2)
    with closing(make_consumer(settings.client)) as consumer:
        assert len(read_markers(KafkaLog(settings), consumer, everything=True)) == 1
    with Publisher(KafkaLog(settings)) as publisher:
        assert publisher.publish_pending(2, source.read).published == 2
    assert published(source, settings) == expected(source)


def test_a_topic_in_use_and_one_of_another_place_are_not_taken_over(broker: BrokerInfo) -> None:
    """TS1704: rows are published, or the table of the claim may well exist, elsewhere."""
    source, settings, _, other = two_tables(broker)
    prepare_log(KafkaLog(settings))
    with pytest.raises(FixRequest, match="TS1704"):
        prepare_log(KafkaLog(dataclasses.replace(other, place="/elsewhere/d.db/t")))
    with Publisher(KafkaLog(settings)) as publisher:
        publisher.publish_pending(1, source.read)
    with pytest.raises(FixRequest, match="TS1704"):
        prepare_log(KafkaLog(other))


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"log.system.replication": "3"}, "TS1717"),
        ({"kafka.transaction.timeout.ms": "900001"}, "TS1721"),
    ],
)
def test_a_refused_configuration_leaves_no_topic(
    broker: BrokerInfo, tmp_path: Path, options: dict[str, str], code: str
) -> None:
    """What brokers or client refuse is told by its code, without a table and without a topic."""
    topic = f"refused-{uuid.uuid4().hex}"
    with _engine(broker, tmp_path) as engine, pytest.raises(FixRequest, match=code):
        engine.write("d.t", _row(1), _spec(topic, **options))
    with _engine(broker, tmp_path) as engine:
        assert engine.find_table("d.t") is None
    assert not topics_left(_admin(broker), topic)


def test_a_changed_retention_reaches_the_topic(broker: BrokerInfo, tmp_path: Path) -> None:
    """The write that changes the option changes retention.ms, in the same process."""
    topic = f"kept-{uuid.uuid4().hex}"
    with _engine(broker, tmp_path) as engine:
        engine.write("d.t", _row(1), _spec(topic, **{"log.retention": "2 d"}))
        assert _config(broker, topic)["retention.ms"] == str(2 * 86_400_000)
        engine.write("d.t", _row(2), _spec(topic, **{"log.retention": "3 d"}))
        assert _config(broker, topic)["retention.ms"] == str(3 * 86_400_000)


def test_partitions_added_to_a_topic_in_use(broker: BrokerInfo) -> None:
    """TS1703 before anything is sent; its advice (delete both, --reset 0) gives the whole log again."""
    source, settings = new_table(broker, 2)
    with Publisher(KafkaLog(settings)) as publisher:
        publisher.publish_pending(1, source.read)
    admin = _admin(broker)
    for future in admin.create_partitions([NewPartitions(settings.topic, 3)]).values():
        future.result()
    with Publisher(KafkaLog(settings)) as publisher, pytest.raises(FixRequest, match="TS1703") as caught:
        publisher.publish_pending(2, source.read)
    assert "--reset 0" in str(caught.value)
    names = [settings.topic, settings.marker_topic]
    for future in admin.delete_topics(names).values():
        future.result()
    reset_log(KafkaLog(settings), after_snapshot=0)
    with Publisher(KafkaLog(settings)) as publisher:
        publisher.publish_pending(2, source.read)
    assert published(source, settings) == expected(source)


def test_a_drop_with_the_brokers_away_drops_nothing(broker: BrokerInfo, tmp_path: Path) -> None:
    """TS1702, and the table is whole; with the brokers back table and topics go."""
    topic = f"dropped-{uuid.uuid4().hex}"
    with _engine(broker, tmp_path) as engine:
        engine.write("d.t", _row(1), _spec(topic))
    away = {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.default.api.timeout.ms": "1000"}
    with Engine(str(tmp_path), log=away) as engine:
        with pytest.raises(RetryError, match="TS1702"):
            engine.drop_table("d.t")
        assert engine.table("d.t").scan().to_arrow().num_rows == 1
    with _engine(broker, tmp_path) as engine:
        engine.drop_table("d.t")
        engine.write("d.t", _row(2), _spec(topic))
        assert [message.snapshot_id for message in engine.table("d.t").log_messages()] == [1]


def test_a_first_write_that_is_refused_leaves_its_topic_to_the_next(
    broker: BrokerInfo, tmp_path: Path
) -> None:
    """Two rows of one key are refused behind the claim; the corrected write of the same name goes through."""
    topic = f"second-try-{uuid.uuid4().hex}"
    twice = pa.table({"id": [1, 1], "v": ["a", "b"]})
    with _engine(broker, tmp_path) as engine:
        with pytest.raises(ValueError, match="TS16"):
            engine.write("d.t", twice, _spec(topic))
        engine.write("d.t", _row(1), _spec(topic))
        assert engine.count_log_messages("d.t") == 1


@pytest.mark.nightly  # by day s3/test_races.py; tests/concurrency; two publishers at once
def test_three_processes_that_create_one_table_at_once(broker: BrokerInfo, tmp_path: Path) -> None:
    """None is refused, whoever wins the name and the topic: all rows are in the table, and once in the topic."""
    with ExitStack() as stack:
        writers = [stack.enter_context(_first_writer(broker, tmp_path, number)) for number in range(3)]
        assert [_answer(writer) for writer in writers] == ["ready"] * 3
        for turn in range(_TURNS):
            for writer in writers:
                assert writer.stdin is not None
                writer.stdin.write(f"d.t{turn} first-{tmp_path.name}-{turn}\n")
                writer.stdin.flush()
            assert [_answer(writer) for writer in writers] == ["done"] * 3
    with _engine(broker, tmp_path) as engine:
        for turn in range(_TURNS):
            table = engine.table(f"d.t{turn}")
            assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2]
            sent = decode_rows(table.log_messages(), table.schema)
            assert sorted(sent["id"].to_pylist()) == [0, 1, 2]


def _first_writer(broker: BrokerInfo, folder: Path, number: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "integration_tests.kafka.first_write_child", str(folder), broker.url]
    return subprocess.Popen(
        [*command, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=_ROOT
    )


def _answer(writer: subprocess.Popen[str]) -> str:
    assert writer.stdout is not None
    return writer.stdout.readline().strip()


def _engine(broker: BrokerInfo, folder: Path) -> Engine:
    return Engine(str(folder), log={"kafka.bootstrap.servers": broker.url})


def _spec(topic: str, **options: str) -> WriteSpec:
    logged = {"log.system": "kafka", "kafka.topic": topic, **options}
    return WriteSpec(table=TableSpec(primary_key=("id",), options=logged))


def _row(number: int) -> pa.Table:
    return pa.table({"id": [number], "v": [f"row {number}"]})


def _admin(broker: BrokerInfo) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.url})


def _config(broker: BrokerInfo, topic: str) -> Mapping[str, str]:
    admin, resource = _admin(broker), ConfigResource(ResourceType.TOPIC, topic)
    found = admin.describe_configs([resource])[resource].result()
    return {name: entry.value for name, entry in found.items()}
