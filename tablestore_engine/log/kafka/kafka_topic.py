"""The two topics of a table: creating, checking, deleting.

Names      TopicFacts       id and partition count of a topic
           LogTopics        what both topics look like now
           create_topics()  make what is missing, with the settings below
           find_topics()    look at both, bounded in time
           check_topics()   right partitions, and the very topic that the markers belong to
           reach_retention()  a changed log.retention
           reach_partitions() a table that got more buckets: its topic gets as many partitions
           delete_topics()  for DROP TABLE of a table whose topics the engine made
Settings   data: one partition per bucket, CreateTime, retention from log.retention
           marker: one partition, compacted: the newest record of each snapshot stays for ever
           both: no unclean election, min.insync.replicas 2 from replication 3 on
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tablestore_engine.errors import FixRequest, NotFound, RetryError, TablestoreError
from tablestore_engine.log.kafka.kafka_client import code_of, said, translate
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.runtime.outside_world import Runtime

_APPEAR_SECONDS = 15
_REFUSED = frozenset(
    {
        KafkaError.INVALID_REPLICATION_FACTOR,
        KafkaError.INVALID_CONFIG,
        KafkaError.INVALID_PARTITIONS,
        KafkaError.POLICY_VIOLATION,
        KafkaError.TOPIC_EXCEPTION,
    }
)


@dataclass(frozen=True)
class TopicFacts:
    """`topic_id` tells a topic from a later one with the same name."""

    topic_id: str
    partitions: int


@dataclass(frozen=True)
class LogTopics:
    """Both topics; None is one that does not exist."""

    data: TopicFacts | None
    marker: TopicFacts | None


def find_topics(admin: AdminClient, settings: LogSettings) -> LogTopics:
    """Both topics as the brokers know them. Raises what `translate` gives."""
    names = (settings.topic, settings.marker_topic)
    asked = admin.describe_topics(TopicCollection(list(names)), request_timeout=settings.timeout_s)
    found: dict[str, TopicFacts | None] = {}
    for name in names:
        try:
            description = asked[name].result()
        except KafkaException as error:
            if code_of(error) not in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
                raise translate(error, settings, doing=f"describing topic {name}") from error
            found[name] = None
        else:
            found[name] = TopicFacts(str(description.topic_id), len(description.partitions))
    return LogTopics(found[settings.topic], found[settings.marker_topic])


def create_topics(
    admin: AdminClient, settings: LogSettings, runtime: Runtime
) -> tuple[LogTopics, frozenset[str]]:
    """Both topics, and the names of those that this call made. Raises FixRequest TS1703, TS1717, RetryError TS1720."""
    before = find_topics(admin, settings)
    wanted = []
    if before.data is None:
        wanted.append(_new_topic(settings.topic, settings.partitions, settings, _data_config(settings)))
    if before.marker is None:
        wanted.append(_new_topic(settings.marker_topic, 1, settings, {"cleanup.policy": "compact"}))
    created = _create(admin, settings, wanted) if wanted else frozenset()
    deadline = runtime.now_ms() + _APPEAR_SECONDS * 1000
    topics = before
    while topics.data is None or topics.marker is None:
        topics = find_topics(admin, settings)
        if runtime.now_ms() > deadline:
            raise _does_not_appear(settings, f"topic {settings.topic}")
        runtime.sleep(0.02)
    _check_partitions(settings, topics)
    return topics, created


def _does_not_appear(settings: LogSettings, what: str) -> RetryError:
    return RetryError(
        "TS1720",
        f"{what} of {settings.table} was created but does not appear",
        why=f"expected it within {_APPEAR_SECONDS} s",
        fix="repeat the command; look at the controller's log if it stays so",
    )


def check_topics(settings: LogSettings, topics: LogTopics, topic_id: str) -> None:
    """Raises NotFound TS1705, FixRequest TS1703, TS1706 when this is not the topic `topic_id`."""
    if topics.data is None:
        raise NotFound(
            "TS1705",
            f"topic {settings.topic} of {settings.table} does not exist",
            why="it was there when the table was made; someone deleted it, or the brokers are others",
            fix="correct 'kafka.bootstrap.servers', "
            "or give the log a new beginning with `tablestore publish --reset N`",
        )
    _check_partitions(settings, topics)
    check_topic_id(settings, topics.data, topic_id)


def check_topic_id(settings: LogSettings, data: TopicFacts, topic_id: str) -> None:
    """Raises FixRequest TS1706 when the topic is another one with the same name."""
    if data.topic_id != topic_id:
        raise FixRequest(
            "TS1706",
            f"topic {settings.topic} of {settings.table} is another one than before",
            why=f"expected topic id {topic_id}, got {data.topic_id}: it was deleted and made again, "
            "so what was published is gone",
            fix="give the log a new beginning with `tablestore publish --reset N`",
        )


def delete_topics(admin: AdminClient, settings: LogSettings) -> None:
    """Delete both topics; missing ones are fine."""
    _delete(admin, settings, (settings.topic, settings.marker_topic))


def _delete(admin: AdminClient, settings: LogSettings, names: Collection[str]) -> None:
    if not names:
        return
    for name, future in admin.delete_topics(list(names), operation_timeout=settings.timeout_s).items():
        try:
            future.result()
        except KafkaException as error:
            if code_of(error) != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise translate(error, settings, doing=f"deleting topic {name}") from error


def _check_partitions(settings: LogSettings, topics: LogTopics) -> None:
    for name, facts, wanted in (
        (settings.topic, topics.data, settings.partitions),
        (settings.marker_topic, topics.marker, 1),
    ):
        if facts is not None and facts.partitions != wanted:
            raise FixRequest(
                "TS1703",
                f"topic {name} does not fit {settings.table}",
                why=f"expected {wanted} partition(s), got {facts.partitions}: each is a bucket of the table",
                fix="for a new table choose another 'kafka.topic'; partitions added to a topic in use cannot be "
                f"taken away: delete {settings.topic} and {settings.marker_topic}, then `tablestore publish "
                "--reset 0` makes both anew and sends every snapshot again (--reset N: those behind N)",
            )


def _data_config(settings: LogSettings) -> dict[str, str]:
    retention = {} if settings.retention_ms is None else {"retention.ms": str(settings.retention_ms)}
    return {"cleanup.policy": "delete", "message.timestamp.type": "CreateTime", **retention}


def _new_topic(name: str, partitions: int, settings: LogSettings, config: Mapping[str, str]) -> NewTopic:
    safe = {"unclean.leader.election.enable": "false"}
    if settings.replication >= 3:
        safe["min.insync.replicas"] = "2"
    return NewTopic(name, partitions, settings.replication, config={**config, **safe})


def _create(admin: AdminClient, settings: LogSettings, wanted: list[NewTopic]) -> frozenset[str]:
    """Both or none: a dry run first, and what was made goes again when the other one fails."""
    _ask_create(admin, settings, wanted, made=set(), only_try=True)
    made: set[str] = set()
    try:
        _ask_create(admin, settings, wanted, made=made, only_try=False)
    except TablestoreError:
        _delete(admin, settings, made)
        raise
    return frozenset(made)


def _ask_create(
    admin: AdminClient, settings: LogSettings, wanted: list[NewTopic], *, made: set[str], only_try: bool
) -> None:
    """Adds to `made` what this call made. Raises FixRequest TS1717 and what `translate` gives."""
    asked = admin.create_topics(wanted, operation_timeout=settings.timeout_s, validate_only=only_try)
    for name, future in asked.items():
        try:
            future.result()
        except KafkaException as error:
            if code_of(error) == KafkaError.TOPIC_ALREADY_EXISTS:
                continue
            if code_of(error) in _REFUSED:
                raise FixRequest(
                    "TS1717",
                    f"the brokers refuse to make topic {name} for {settings.table}",
                    why=settings.redact(said(error)),
                    fix="correct 'log.system.replication', 'log.retention' or 'kafka.topic'",
                ) from error
            raise translate(error, settings, doing=f"creating topic {name}") from error
        made.add(name)


def reach_retention(admin: AdminClient, settings: LogSettings) -> None:
    """Let the data topic have the table's log.retention; nothing when it has it. Raises KafkaException."""
    if settings.retention_ms is None:
        return
    wanted = str(settings.retention_ms)
    if read_topic_config(admin, settings)["retention.ms"] != wanted:
        change = ConfigEntry("retention.ms", wanted, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, settings.topic, incremental_configs=[change])
        for future in admin.incremental_alter_configs(
            [resource], request_timeout=settings.timeout_s
        ).values():
            future.result()


def reach_partitions(admin: AdminClient, settings: LogSettings, runtime: Runtime) -> None:
    """Let the data topic have a partition for each bucket. REQUIRES that it is this table's, and has fewer.

    Keys whose bucket changed have their older messages in another partition. Raises FixRequest TS1717, RetryError
    TS1720.
    """
    wanted = NewPartitions(settings.topic, settings.partitions)
    for future in admin.create_partitions([wanted], operation_timeout=settings.timeout_s).values():
        try:
            future.result()
        except KafkaException as error:
            if _partitions_of(admin, settings) >= settings.partitions:
                continue  # another process was quicker
            if code_of(error) not in _REFUSED:
                raise translate(error, settings, doing=f"adding partitions to {settings.topic}") from error
            raise FixRequest(
                "TS1717",
                f"the brokers refuse to give topic {settings.topic} {settings.partitions} partitions",
                why=settings.redact(said(error)),
                fix="look at the brokers' policies, then `tablestore publish` sends what is pending",
            ) from error
    deadline = runtime.now_ms() + _APPEAR_SECONDS * 1000
    while _partitions_of(admin, settings) < settings.partitions:
        if runtime.now_ms() > deadline:
            raise _does_not_appear(settings, f"a partition of topic {settings.topic}")
        runtime.sleep(0.02)


def _partitions_of(admin: AdminClient, settings: LogSettings) -> int:
    data = find_topics(admin, settings).data
    return 0 if data is None else data.partitions


def read_topic_config(admin: AdminClient, settings: LogSettings) -> Mapping[str, str]:
    """The data topic's configuration as the brokers apply it. Raises KafkaException."""
    resource = ConfigResource(ResourceType.TOPIC, settings.topic)
    asked = admin.describe_configs([resource], request_timeout=settings.timeout_s)
    return {name: str(entry.value) for name, entry in asked[resource].result().items()}
