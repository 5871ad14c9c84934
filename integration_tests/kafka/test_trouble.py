"""What goes wrong around a log: each has one clear error in bounded time, and nothing half is ever visible."""

from __future__ import annotations

import dataclasses
import re
import threading
import time

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from integration_tests.kafka.source import Source, expected, new_table, published, settings_of, with_timeout
from integration_tests.kafka.topic_reads import fold_messages, read_after, read_log_markers
from integration_tests.kafka.topics import topics_left
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.errors import (
    FixData,
    FixRequest,
    NotFound,
    TablestoreError,
)
from tablestore_engine.log.changes import SnapshotChanges
from tablestore_engine.log.kafka.bounded_reader import read_messages
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.log_lifecycle import drop_log, prepare_log, reset_log
from tablestore_engine.log.kafka.publisher import Publisher
from tablestore_engine.log.kafka.settings import LogSettings, resolve_log
from tests.doses import cases


def delete_topic(broker: BrokerInfo, name: str) -> None:
    """Delete a topic and wait until the brokers have forgotten it."""
    admin = AdminClient({"bootstrap.servers": broker.url})
    admin.delete_topics([name])[name].result()
    while name in admin.list_topics(timeout=10).topics:
        time.sleep(0.02)


def test_topic_deleted_and_made_again(broker: BrokerInfo) -> None:
    """The markers speak of another topic: TS1706, nothing is published into the new one until the log is reset."""
    source, settings = new_table(broker, 4)
    with Publisher(KafkaLog(settings)) as publisher:
        publisher.publish_pending(2, source.read)
        delete_topic(broker, settings.topic)
        with pytest.raises(FixRequest, match="TS1706"):
            prepare_log(KafkaLog(settings))
        with pytest.raises(FixRequest, match="TS1706"):  # the same open publisher notices it too
            publisher.publish_pending(4, source.read)
    assert published(source, settings) == {0: [], 1: []}
    reset_log(KafkaLog(settings), after_snapshot=0)
    with Publisher(KafkaLog(settings)) as publisher:
        publisher.publish_pending(4, source.read)
    assert published(source, settings) == expected(source)


def test_topic_deleted(broker: BrokerInfo) -> None:
    """A missing topic is TS1705 and is not made again behind the user's back."""
    source, settings = new_table(broker, 2)
    delete_topic(broker, settings.topic)
    with Publisher(KafkaLog(settings)) as publisher, pytest.raises(NotFound, match="TS1705"):
        publisher.publish_pending(2, source.read)


@pytest.mark.parametrize("chunk_rows", cases([1000, 3], 1))
def test_marker_topic_deleted(broker: BrokerInfo, chunk_rows: int) -> None:
    """Without markers the tail of the data topic says how far the log is, inside a half-published snapshot too."""
    source, settings = new_table(broker, 6)
    settings = dataclasses.replace(settings, chunk_rows=chunk_rows)

    class Stop(Exception):
        """Ends the publisher in the middle."""

    def read(snapshot_id: int) -> SnapshotChanges | None:
        changes = source.read(snapshot_id)
        if snapshot_id != 3 or changes is None:
            return changes

        def half() -> object:
            batches = iter(changes.batches)
            yield next(batches)
            raise Stop

        return dataclasses.replace(changes, batches=half())

    with Publisher(KafkaLog(settings)) as publisher, pytest.raises(Stop):
        publisher.publish_pending(6, read)
    visible = {p: len(rows) for p, rows in published(source, settings).items()}
    assert visible == ({0: 8, 1: 8} if chunk_rows == 1000 else {0: 12, 1: 8})
    delete_topic(broker, settings.marker_topic)
    with Publisher(KafkaLog(settings)) as publisher:
        publisher.publish_pending(6, source.read)
    assert published(source, settings) == expected(source)
    assert read_log_markers(KafkaLog(settings))[-1].snapshot_id == 6


def test_markers_and_rows_lost(broker: BrokerInfo) -> None:
    """With neither markers nor rows the progress is not guessed: TS1707."""
    source, settings = new_table(broker, 2)
    delete_topic(broker, settings.marker_topic)
    with Publisher(KafkaLog(settings)) as publisher, pytest.raises(FixRequest, match="TS1707"):
        publisher.publish_pending(2, source.read)


@pytest.mark.parametrize("side", cases(["client", "broker"], 1))
def test_oversize_row(broker: BrokerInfo, side: str) -> None:
    """A row above the limit is named by key and size, nothing of its snapshot is visible, a raised limit heals it."""
    limit = {"kafka.message.max.bytes": "20000"} if side == "client" else {}
    source, settings = new_table(broker, 3, **limit)
    if side == "broker":
        _set_topic_limit(broker, settings.topic, 20_000)
    with Publisher(KafkaLog(settings)) as publisher:
        publisher.publish_pending(1, source.read)
        source.pad = 60_000
        with pytest.raises(FixData, match="TS1709") as caught:
            publisher.publish_pending(3, source.read)
        assert re.search(r'key {"id":200\d}: key and value have 6007\d bytes', str(caught.value))
    assert published(source, settings) == expected(source, range(1, 2))
    if side == "broker":
        _set_topic_limit(broker, settings.topic, 2_000_000)
    healed = settings_of(source, broker.url)
    with Publisher(KafkaLog(healed)) as publisher:
        publisher.publish_pending(3, source.read)
    assert published(source, healed) == expected(source)


def _set_topic_limit(broker: BrokerInfo, topic: str, size: int) -> None:
    admin = AdminClient({"bootstrap.servers": broker.url})
    change = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()


def test_one_topic_for_two_tables(broker: BrokerInfo) -> None:
    """A second table is refused at its creation and at publishing: TS1704."""
    _, settings = new_table(broker, 1)
    other = Source()
    other.grow(1)
    stolen = dataclasses.replace(settings_of(other, broker.url), topic=settings.topic)
    with pytest.raises(FixRequest, match="TS1704"):
        prepare_log(KafkaLog(stolen))
    with Publisher(KafkaLog(stolen)) as publisher, pytest.raises(FixRequest, match="TS1704"):
        publisher.publish_pending(1, other.read)


def test_two_tables_claim_one_topic_at_once(broker: BrokerInfo) -> None:
    """Of four tables that claim the same topic at the same time exactly one gets it."""
    topic = f"contested-{Source().uuid}"
    claims = [dataclasses.replace(settings_of(Source(), broker.url), topic=topic) for _ in range(4)]
    outcomes: list[str] = []

    def claim(settings: LogSettings) -> None:
        try:
            prepare_log(KafkaLog(settings))
        except FixRequest as error:
            outcomes.append(error.code)
        else:
            outcomes.append(settings.table_uuid)

    threads = [threading.Thread(target=claim, args=(settings,)) for settings in claims]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winner = read_log_markers(KafkaLog(claims[0]))[-1].table_uuid
    assert sorted(outcomes) == sorted(["TS1704"] * 3 + [winner])


def test_topic_with_foreign_rows_is_refused(broker: BrokerInfo) -> None:
    """An existing topic with rows but no markers belongs to someone else: TS1704."""
    _, settings = new_table(broker, 1)
    delete_topic(broker, settings.marker_topic)
    producer = Producer({"bootstrap.servers": broker.url})
    producer.produce(settings.topic, b"{}")
    producer.flush()
    with pytest.raises(FixRequest, match="TS1704"):
        prepare_log(KafkaLog(settings))


def test_wrong_partition_count(broker: BrokerInfo) -> None:
    """A topic with another number of partitions than buckets is TS1703."""
    _, settings = new_table(broker, 1)
    with pytest.raises(FixRequest, match="TS1703") as caught:
        prepare_log(KafkaLog(dataclasses.replace(settings, partitions=3)))
    assert "expected 3 partition(s), got 2" in str(caught.value)


def test_replication_that_the_cluster_cannot_give(broker: BrokerInfo) -> None:
    """Three replicas on one broker are refused by it: TS1717 with the option to change."""
    source = Source()
    with pytest.raises(FixRequest, match="TS1717") as caught:
        prepare_log(KafkaLog(settings_of(source, broker.url, **{"log.system.replication": "3"})))
    assert "log.system.replication" in str(caught.value)


def test_rolled_back_table(broker: BrokerInfo) -> None:
    """A table behind its log, or with another commit at P, is TS1708: going on would skip snapshots."""
    source, settings = new_table(broker, 4)
    with Publisher(KafkaLog(settings)) as publisher:
        publisher.publish_pending(4, source.read, find_commit=source.find_commit)
    with Publisher(KafkaLog(settings)) as publisher:
        with pytest.raises(FixRequest, match="TS1708"):
            publisher.publish_pending(3, source.read)
        with pytest.raises(FixRequest, match="TS1708"):
            publisher.publish_pending(4, source.read, find_commit=lambda _: "other:1")
    assert published(source, settings) == expected(source)


def test_log_that_begins_later(broker: BrokerInfo) -> None:
    """A table that gets its log at snapshot 3 publishes from 4 on."""
    source = Source()
    source.grow(4)
    settings = settings_of(source, broker.url)
    prepare_log(KafkaLog(settings), after_snapshot=3)
    with Publisher(KafkaLog(settings)) as publisher:
        assert publisher.publish_pending(4, source.read).snapshots == (4,)
    assert published(source, settings) == expected(source, range(4, 5))


@pytest.mark.parametrize("are_markers_lost", cases([False, True], 1))
def test_hybrid_read_at_every_snapshot(broker: BrokerInfo, are_markers_lost: bool) -> None:
    """Behind every snapshot S the rest of the log is exactly the messages of S+1 …, with no gap and no repeat.

    Where the marker of S is gone the read starts earlier and leaves out by header s what S contains.
    """
    source, settings = new_table(broker, 8)
    with Publisher(KafkaLog(settings)) as publisher:
        publisher.publish_pending(6, source.read)
    if are_markers_lost:
        delete_topic(broker, settings.marker_topic)
    with Publisher(KafkaLog(settings)) as publisher:
        publisher.publish_pending(8, source.read)
    for snapshot_id in range(9):
        rest: dict[int, list[tuple[int | None, int | None]]] = {0: [], 1: []}
        for message in read_after(KafkaLog(settings), snapshot_id):
            rest[message.partition].append((message.snapshot_id, message.sequence))
        wanted = expected(source, range(snapshot_id + 1, 9))
        assert {p: len(rows) for p, rows in rest.items()} == {p: len(rows) for p, rows in wanted.items()}
        assert all(rows == sorted(rows) for rows in rest.values())


def test_fold_gives_the_table(broker: BrokerInfo) -> None:
    """The last message of each key, without deleted keys, is the table."""
    source, settings = new_table(broker, 4)
    with Publisher(KafkaLog(settings)) as publisher:
        publisher.publish_pending(4, source.read)
    alive = {message.key for message in fold_messages(read_messages(KafkaLog(settings)))}
    assert alive == {b'{"id":%d}' % (n * 1000 + i) for n in range(1, 5) for i in range(5)}


def test_drop_log_deletes_both_topics(broker: BrokerInfo) -> None:
    """After drop_log neither topic exists, and dropping again is no error."""
    _, settings = new_table(broker, 1)
    drop_log(KafkaLog(settings))
    drop_log(KafkaLog(settings))
    assert not topics_left(AdminClient({"bootstrap.servers": broker.url}), settings.topic)


def test_refused_log_in_names_the_settings_and_no_secret(broker: BrokerInfo) -> None:
    """A broker without SASL refuses it: an error in bounded time, without the password."""
    settings = resolve_log(
        {
            "log.system": "kafka",
            "kafka.topic": "t",
            "changelog-producer": "lookup",
            "tablestore.table-uuid": "u",
        },
        {
            "kafka.bootstrap.servers": broker.url,
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.username": "me",
            "kafka.sasl.password": "hunter2",
        },
        table="demo.t",
        is_keyed=True,
    )
    assert settings is not None
    with pytest.raises(TablestoreError, match=r"TS1702|TS1713") as caught:
        prepare_log(KafkaLog(with_timeout(settings, 3.0)))
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in repr(settings)
    assert "hunter2" not in settings.client.redact("said hunter2")
