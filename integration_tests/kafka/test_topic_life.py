"""Topics from their making to their end: what new ones get, what existing ones must have, what goes with a table."""

from __future__ import annotations

import dataclasses
import json
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from confluent_kafka.cimpl import NewTopic

from integration_tests.kafka.secure import LoggedTable
from integration_tests.kafka.source import Source, expected, new_table, published, settings_of
from integration_tests.kafka.topics import topics_left
from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.errors import FixRequest
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.log_lifecycle import drop_log, prepare_log, reset_log
from tablestore_engine.log.kafka.publisher import Publisher
from tablestore_engine.runtime.outside_world import Runtime
from tests.doses import cases


@pytest.fixture(scope="module")
def admin(broker: BrokerInfo) -> AdminClient:
    """Whoever runs the brokers."""
    return AdminClient({"bootstrap.servers": broker.url})


def config_of(admin: AdminClient, topic: str) -> Mapping[str, str]:
    """As the brokers apply it."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    return {
        key: str(entry.value) for key, entry in admin.describe_configs([resource])[resource].result().items()
    }


def alter(admin: AdminClient, topic: str, key: str, value: str) -> None:
    """An administrator changes a topic."""
    change = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
    for done in admin.incremental_alter_configs([resource]).values():
        done.result()


def make_topic(admin: AdminClient, name: str, partitions: int = 2, **config: str) -> str:
    """A topic of somebody else; its id."""
    settings = {key.replace("_", "."): text for key, text in config.items()}
    admin.create_topics([NewTopic(name, partitions, 1, config=settings)])[name].result()
    while name not in topics_of(admin, name):  # a busy broker says so a moment later
        time.sleep(0.01)
    return id_of(admin, name)


def id_of(admin: AdminClient, name: str) -> str:
    """What tells it from a later one of the same name."""
    return str(admin.describe_topics(TopicCollection([name]))[name].result().topic_id)


def topics_of(admin: AdminClient, name: str) -> set[str]:
    """Topics whose name has this in it."""
    return {topic for topic in admin.list_topics(timeout=10).topics if name in topic}


def test_ends_in_a_topic_that_the_broker_does_not_know_yet(broker: BrokerInfo, admin: AdminClient) -> None:
    """A broker may learn of a new topic after others: what it says meanwhile is no answer, and is asked for again."""
    settings = settings_of(Source(), broker.url)
    missing = [settings.topic]

    def learn(seconds: float) -> None:
        if missing:
            make_topic(admin, missing.pop())

    # a clock that stands still: how busy the broker is decides nothing
    log = KafkaLog(settings, Runtime(now_ms=lambda: 0, sleep=learn)).connected()
    assert log.find_ends(log.data_places) == dict.fromkeys(log.data_places, 0)
    assert not missing


def test_what_a_new_table_gets(broker: BrokerInfo, admin: AdminClient) -> None:
    """As many partitions as buckets, its retention, deleted by time; markers are compacted; no unclean election."""
    _, settings = new_table(broker, 1, **{"bucket": "3", "log.retention": "2 d"})
    data, marker = config_of(admin, settings.topic), config_of(admin, settings.marker_topic)
    wanted = {"cleanup.policy": "delete", "retention.ms": "172800000", "message.timestamp.type": "CreateTime"}
    assert {key: data[key] for key in wanted} == wanted
    assert marker["cleanup.policy"] == "compact"
    assert {data["unclean.leader.election.enable"], marker["unclean.leader.election.enable"]} == {"false"}
    topics = admin.list_topics(timeout=10).topics
    assert (len(topics[settings.topic].partitions), len(topics[settings.marker_topic].partitions)) == (3, 1)


MISFITS = [
    ("data", "cleanup.policy", "compact"),
    ("data", "cleanup.policy", "compact,delete"),
    ("marker", "cleanup.policy", "delete"),
    ("marker", "cleanup.policy", "compact,delete"),
    ("data", "min.insync.replicas", "2"),
    ("marker", "min.insync.replicas", "2"),
]


@pytest.mark.parametrize("misfit", cases(MISFITS, 1), ids="-".join)
def test_a_topic_that_was_changed(
    broker: BrokerInfo, admin: AdminClient, tmp_path: Path, misfit: tuple[str, str, str]
) -> None:
    """TS1753 before a row is committed, with the command that heals it; healed, all of it is published, once."""
    which, key, value = misfit
    table = LoggedTable(tmp_path, f"changed-{uuid.uuid4().hex}")
    log = {"kafka.bootstrap.servers": broker.url}
    table.write(log)
    table.write(log, publish=False)
    name = table.topic if which == "data" else f"{table.topic}__snapshots"
    before = config_of(admin, name)[key]
    alter(admin, name, key, value)
    for call in (table.write, table.publish):
        with pytest.raises(FixRequest, match="TS1753") as refused:
            call(log)
        assert f"--entity-name {name} --add-config {key}={before}" in refused.value.fix
    assert (table.rows, table.published(log)) == ([1, 2], [1])
    alter(admin, name, key, before)
    table.publish(log)
    assert table.published(log) == [1, 2]


def test_a_compacted_topic_of_somebody_else_is_not_claimed(broker: BrokerInfo, admin: AdminClient) -> None:
    """TS1753 at the table's making: no marker is written, and the topic is as it was."""
    settings = settings_of(Source(), broker.url)
    made = make_topic(admin, settings.topic, cleanup_policy="compact")
    with pytest.raises(FixRequest, match="TS1753"):
        prepare_log(KafkaLog(settings))
    assert id_of(admin, settings.topic) == made
    assert topics_of(admin, settings.topic) == {settings.topic}
    alter(admin, settings.topic, "cleanup.policy", "delete")
    assert prepare_log(KafkaLog(settings)).is_ours is False


def test_a_retention_that_somebody_changed_is_the_tables_again(
    broker: BrokerInfo, admin: AdminClient
) -> None:
    """The next publisher sets what log.retention says; without the option a topic keeps what it has."""
    for option, after in (({"log.retention": "2 d"}, "172800000"), ({}, "86400000")):
        source, settings = new_table(broker, 1, **option)
        alter(admin, settings.topic, "retention.ms", "86400000")
        with Publisher(KafkaLog(settings)) as publisher:
            publisher.publish_pending(1, source.read)
        assert config_of(admin, settings.topic)["retention.ms"] == after


def delete(admin: AdminClient, topic: str) -> None:
    """An administrator does; it is gone then."""
    admin.delete_topics([topic])[topic].result()
    while topic in topics_of(admin, topic):
        time.sleep(0.01)


def test_markers_that_go_under_an_open_publisher(broker: BrokerInfo, admin: AdminClient) -> None:
    """The look before a commit makes the marker topic again, from what the rows say; each snapshot is there once."""
    source, settings = new_table(broker, 2)
    with Publisher(KafkaLog(settings)) as publisher:
        publisher.publish_pending(1, source.read)
        delete(admin, settings.marker_topic)
        publisher.check(2)
        assert topics_of(admin, settings.marker_topic) == {settings.marker_topic}
        publisher.publish_pending(2, source.read)
    assert published(source, settings) == expected(source)


@pytest.mark.nightly  # by day tests/unit/warehouse/test_log_status.py; test_trouble.py
def test_lost_markers_of_an_eventual_log_are_told_before_a_commit(
    broker: BrokerInfo, admin: AdminClient, tmp_path: Path
) -> None:
    """An engine that has published before, and a new one: TS1707, nothing written; the way out that the error names."""
    topic = f"lost-{uuid.uuid4().hex}"
    log = {"kafka.bootstrap.servers": broker.url}
    options = {"log.system": "kafka", "kafka.topic": topic, "log.consistency": "eventual"}
    spec = WriteSpec(table=TableSpec(primary_key=("id",), options=options))
    with Engine(str(tmp_path), log=log) as engine, Engine(str(tmp_path), log=log) as other:
        engine.write("d.t", pa.table({"id": [1]}), spec)
        delete(admin, f"{topic}__snapshots")
        for one in (engine, other):
            with pytest.raises(FixRequest, match="TS1707") as refused:
                one.write("d.t", pa.table({"id": [2]}), spec)
        assert "publish --reset N" in refused.value.fix
        assert engine.table("d.t").latest_snapshot_id() == 1
        engine.table("d.t").reset_log(1)
        engine.write("d.t", pa.table({"id": [2]}), spec)
        assert {json.loads(one.key or b"")["id"] for one in engine.table("d.t").log_messages()} == {1, 2}


def test_a_drop_leaves_a_topic_that_somebody_made_meanwhile(broker: BrokerInfo, admin: AdminClient) -> None:
    """Ours was deleted and another one has its name: that one stays, our markers go."""
    _, settings = new_table(broker, 1)
    admin.delete_topics([settings.topic])[settings.topic].result()
    while topics_of(admin, settings.topic) != {settings.marker_topic}:
        pass
    theirs = make_topic(admin, settings.topic)
    drop_log(KafkaLog(settings))
    assert id_of(admin, settings.topic) == theirs
    assert topics_of(admin, settings.topic) == {settings.topic}


def test_a_drop_leaves_the_log_of_another_table(broker: BrokerInfo, admin: AdminClient) -> None:
    """Both topics were deleted and another table claimed the name: its log stays whole."""
    _, settings = new_table(broker, 1)
    drop_log(KafkaLog(settings))
    other = Source()
    other.grow(2)
    theirs = dataclasses.replace(settings_of(other, broker.url), topic=settings.topic)
    prepare_log(KafkaLog(theirs))
    with Publisher(KafkaLog(theirs)) as publisher:
        publisher.publish_pending(2, other.read)
        drop_log(KafkaLog(settings))
    assert published(other, theirs) == expected(other)


def test_a_drop_without_markers_deletes_no_rows(broker: BrokerInfo, admin: AdminClient) -> None:
    """Nothing says any more whose rows they are."""
    source, settings = new_table(broker, 1)
    with Publisher(KafkaLog(settings)) as publisher:
        publisher.publish_pending(1, source.read)
    admin.delete_topics([settings.marker_topic])[settings.marker_topic].result()
    while settings.marker_topic in topics_of(admin, settings.topic):
        pass
    drop_log(KafkaLog(settings))
    assert topics_of(admin, settings.topic) == {settings.topic}


@pytest.mark.parametrize("is_managed", [True, False], ids=["made by us", "made by another"])
def test_a_dropped_table_takes_only_what_was_made_for_it(
    broker: BrokerInfo, admin: AdminClient, tmp_path: Path, is_managed: bool
) -> None:
    """DROP TABLE: our two topics go; a topic that was there before stays, with its rows and markers."""
    table = LoggedTable(tmp_path, f"life-{uuid.uuid4().hex}")
    log = {"kafka.bootstrap.servers": broker.url}
    if not is_managed:
        make_topic(admin, table.topic, 1)
    table.write(log)
    table.drop(log)
    left = set() if is_managed else {table.topic, f"{table.topic}__snapshots"}
    assert topics_left(admin, table.topic, left) == left


def test_a_new_beginning_looks_at_the_topics_too(broker: BrokerInfo, admin: AdminClient) -> None:
    """`--reset` on a topic that became compacted: TS1753, no marker of the new beginning."""
    source, settings = new_table(broker, 2)
    with Publisher(KafkaLog(settings)) as publisher:
        publisher.publish_pending(2, source.read)
    alter(admin, settings.topic, "cleanup.policy", "compact")
    with pytest.raises(FixRequest, match="TS1753"):
        reset_log(KafkaLog(settings), after_snapshot=0)
    alter(admin, settings.topic, "cleanup.policy", "delete")
    with Publisher(KafkaLog(settings)) as publisher:
        assert publisher.publish_pending(2, source.read).snapshots == ()
