"""The two topics of a table: creating, checking, deleting.

CHANGE     creation, partitions and identity of a topic; a topic that was created again
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tablestore_engine.errors import FixRequest, RetryError, TablestoreError
from tablestore_engine.log.kafka.kafka_client import code_of, said
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.leader_wait import MOVING, refresh_by
from tablestore_engine.log.kafka.log_errors import translate
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.log.kafka.topic_identity import check_topic_id, missing_topic
from tablestore_engine.log.kafka.topic_settings import data_config, marker_config, settle_settings

_APPEAR_SECONDS = 15
_BROKERS_DEFAULT = -1
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
    """`topic_id` tells a topic from a later one with the same name; `replicas` of the partition with the fewest.

    `allowed`: operations that this user may do with it, empty when the brokers do not tell.
    """

    topic_id: str
    partitions: int
    replicas: int = 1
    allowed: frozenset[str] = frozenset()


@dataclass(frozen=True)
class LogTopics:
    """Both topics; None is one that does not exist."""

    data: TopicFacts | None
    marker: TopicFacts | None


def find_topics(log: KafkaLog) -> LogTopics:
    """Both topics as the brokers know them. Raises what `translate` gives."""
    settings = log.settings
    try:
        found = log.wait.ask(lambda seconds: _ask_topics(log, seconds), refresh_by(log.admin))
    except KafkaException as error:
        raise translate(error, settings, doing=f"describing topic {settings.topic}") from error
    return LogTopics(found[settings.topic], found[settings.marker_topic])


def find_settled_topics(log: KafkaLog) -> LogTopics:
    """As find_topics; but a topic counts as missing only when the controller does not know it either.

    A broker may learn of a topic later than another: what it does not know yet would be taken for deleted.
    """
    settings = log.settings
    try:
        return log.wait.ask(lambda seconds: _ask_settled(log, seconds))
    except KafkaException as error:
        raise translate(error, settings, doing=f"looking for topic {settings.topic}") from error


def _ask_settled(log: KafkaLog, seconds: float) -> LogTopics:
    """Raises KafkaException for a topic that the controller alone knows."""
    settings, topics = log.settings, find_topics(log)
    missing = [one.topic for one in _missing(settings, topics)]
    if not missing:
        return topics
    tried = log.admin.create_topics(
        [NewTopic(name, 1) for name in missing], request_timeout=seconds, validate_only=True
    )
    for name, future in tried.items():
        try:
            future.result()
        except KafkaException as error:
            if code_of(error) == KafkaError.TOPIC_ALREADY_EXISTS:
                late = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, f"a broker does not know {name} yet")
                raise KafkaException(late) from error
            if code_of(error) in MOVING:
                raise
            # no right to create it, or a policy: what the broker said is all there is
    return topics


def _ask_topics(log: KafkaLog, seconds: float) -> Mapping[str, TopicFacts | None]:
    """Raises KafkaException, what `translate` gives for a missing right."""
    settings = log.settings
    names = (settings.topic, settings.marker_topic)
    asked = log.admin.describe_topics(
        TopicCollection(list(names)), request_timeout=seconds, include_authorized_operations=True
    )
    found: dict[str, TopicFacts | None] = {}
    for name in names:
        try:
            description = asked[name].result()
        except KafkaException as error:
            if code_of(error) in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
                found[name] = None
                continue
            if code_of(error) in MOVING:
                raise
            raise translate(error, settings, doing=f"describing topic {name}", topic=name) from error
        found[name] = TopicFacts(
            str(description.topic_id),
            len(description.partitions),
            min(len(partition.replicas) for partition in description.partitions),
            frozenset(operation.name for operation in description.authorized_operations or ()),
        )
    return found


def create_topics(log: KafkaLog) -> tuple[LogTopics, frozenset[str]]:
    """Both topics, and the names of those that this call made. Raises FixRequest TS1703, TS1717, RetryError TS1720."""
    created: frozenset[str] = frozenset()
    settings, deadline = log.settings, _appear_by(log)
    while missing := _missing(settings, topics := find_topics(log)):
        if log.runtime.now_ms() > deadline:
            raise _does_not_appear(settings, f"topic {' and '.join(one.topic for one in missing)}")
        # asked again at each look: a topic that was being deleted at the first look was not missing then
        created |= _create(log, missing, made_before=created)
        log.runtime.sleep(0.02)
    _check_partitions(settings, topics)
    return topics, created


def _appear_by(log: KafkaLog) -> int:
    return log.runtime.now_ms() + _APPEAR_SECONDS * 1000


def _missing(settings: LogSettings, topics: LogTopics) -> list[NewTopic]:
    missing = []
    if topics.data is None:
        missing.append(_new_topic(settings.topic, settings.partitions, settings, data_config(settings)))
    if topics.marker is None:
        missing.append(_new_topic(settings.marker_topic, settings.shards, settings, marker_config(settings)))
    return missing


def _does_not_appear(settings: LogSettings, what: str) -> RetryError:
    return RetryError(
        "TS1720",
        f"{what} of {settings.table} was created but does not appear",
        why=f"expected it within {_APPEAR_SECONDS} s",
        fix="repeat the command; look at the controller's log if it stays so",
    )


def check_topics(settings: LogSettings, topics: LogTopics, topic_id: str) -> None:
    """Raises NotFound TS1705, FixRequest TS1703, TS1706 when this is not the topic `topic_id`; TS1750."""
    if topics.data is None:
        raise missing_topic(settings, settings.topic)
    _check_partitions(settings, topics)
    check_topic_id(settings, topics.data.topic_id, topic_id)
    check_rights(settings, topics)


def check_use(log: KafkaLog, topics: LogTopics) -> None:
    """Before anything is committed that these topics are to carry: rights and settings; the table's retention reaches
    its topic. Raises TS1750, TS1753, and what `translate` gives.
    """
    settings = log.settings
    check_rights(settings, topics)
    known = {settings.topic: topics.data, settings.marker_topic: topics.marker}
    try:
        settle_settings(log, {name: facts.replicas for name, facts in known.items() if facts is not None})
    except KafkaException as error:
        raise translate(error, settings, doing="checking the settings of its topics") from error


def check_rights(settings: LogSettings, topics: LogTopics) -> None:
    """What a producer would meet behind the commit. Raises FixRequest TS1750."""
    for name, facts in ((settings.topic, topics.data), (settings.marker_topic, topics.marker)):
        if facts is not None and facts.allowed and not {"READ", "WRITE"} <= facts.allowed:
            refused = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, f"topic {name} is closed to us")
            raise translate(KafkaException(refused), settings, doing="looking at the rights to its topics")


def delete_topics(log: KafkaLog, names: Collection[str], before: LogTopics) -> None:
    """Missing ones are fine. The marker topic goes last: as long as it is there it says whose the other one is.

    Returns when the brokers no longer show those of `before`, after 15 s in any case.
    """
    settings = log.settings
    for name in (settings.topic, settings.marker_topic):
        _delete(log, [name] if name in names else [])
    # the controller answers before each broker knows; a table made again at once would take them for its own
    deadline = _appear_by(log)
    while names and _is_shown(before, find_topics(log), settings, names):
        if log.runtime.now_ms() > deadline:
            return
        log.runtime.sleep(0.02)


def _is_shown(before: LogTopics, now: LogTopics, settings: LogSettings, names: Collection[str]) -> bool:
    """Whether one of these very topics is still there; a later one with its name does not count."""
    pairs = ((settings.topic, before.data, now.data), (settings.marker_topic, before.marker, now.marker))
    return any(
        name in names and old is not None and new is not None and old.topic_id == new.topic_id
        for name, old, new in pairs
    )


def _delete(log: KafkaLog, names: Collection[str]) -> None:
    if not names:
        return
    settings = log.settings
    for name, future in log.admin.delete_topics(
        list(names), operation_timeout=settings.client.timeout_s
    ).items():
        try:
            future.result()
        except KafkaException as error:
            if code_of(error) != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise translate(error, settings, doing=f"deleting topic {name}", topic=name) from error


def _check_partitions(settings: LogSettings, topics: LogTopics) -> None:
    facts, wanted = topics.data, settings.partitions
    if facts is not None and facts.partitions != wanted:
        raise FixRequest(
            "TS1703",
            f"topic {settings.topic} does not fit {settings.table}",
            why=f"expected {wanted} partition(s), got {facts.partitions}: each is a bucket of the table",
            fix="for a new table choose another 'kafka.topic'; partitions added to a topic in use cannot be "
            f"removed: delete {settings.topic} and {settings.marker_topic}, then `tablestore publish "
            "--reset 0` makes both again and sends every snapshot (--reset N: those after N)",
        )
    check_shards(settings, topics)


def check_shards(settings: LogSettings, topics: LogTopics) -> None:
    """The marker topic has a partition for each shard: whoever publishes by another number is refused. Raises
    FixRequest TS1776.
    """
    facts = topics.marker
    if facts is None or facts.partitions == settings.shards:
        return
    raise FixRequest(
        "TS1776",
        f"topic {settings.marker_topic} does not fit {settings.table}",
        why=f"expected {settings.shards} partition(s), got {facts.partitions}: each is for one of the "
        "'log.publish.shards' that share the topic, which cannot change",
        fix="for a new table choose another 'kafka.topic', or the number of shards that the topic was made for; "
        f"partitions that another program added cannot be removed: delete {settings.marker_topic}, then `tablestore "
        "publish --reset N` makes it again, and what is after snapshot N is sent",
    )


def _new_topic(name: str, partitions: int, settings: LogSettings, config: dict[str, str]) -> NewTopic:
    replication = _BROKERS_DEFAULT if settings.replication is None else settings.replication
    return NewTopic(name, partitions, replication, config=config)


def _create(log: KafkaLog, wanted: list[NewTopic], made_before: frozenset[str]) -> frozenset[str]:
    """Both or none: a dry run first, and what was made goes again when the other one fails."""
    _ask_create(log, wanted, made=set(), only_try=True)
    made: set[str] = set()
    try:
        _ask_create(log, wanted, made=made, only_try=False)
    except TablestoreError:
        _delete(log, made | made_before)
        raise
    return frozenset(made)


def _ask_create(log: KafkaLog, wanted: list[NewTopic], *, made: set[str], only_try: bool) -> None:
    """Adds to `made` what this call made. Raises FixRequest TS1717 and what `translate` gives."""
    settings = log.settings
    asked = log.admin.create_topics(
        wanted, operation_timeout=settings.client.timeout_s, validate_only=only_try
    )
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
                    why=settings.client.redact(said(error)),
                    fix="correct 'log.system.replication', 'log.retention' or 'kafka.topic'",
                ) from error
            raise translate(error, settings, doing=f"creating topic {name}", topic=name) from error
        made.add(name)


def reach_partitions(log: KafkaLog) -> None:
    """Let the data topic have a partition for each bucket. REQUIRES that it is this table's, and has fewer.

    Keys whose bucket changed have their older messages in another partition. Raises FixRequest TS1717, RetryError
    TS1720.
    """
    settings = log.settings
    wanted = NewPartitions(settings.topic, settings.partitions)
    for future in log.admin.create_partitions([wanted], operation_timeout=settings.client.timeout_s).values():
        try:
            future.result()
        except KafkaException as error:
            if _partitions_of(log) >= settings.partitions:
                continue  # another process was quicker
            if code_of(error) not in _REFUSED:
                doing = f"adding partitions to {settings.topic}"
                raise translate(error, settings, doing=doing, topic=settings.topic) from error
            raise FixRequest(
                "TS1717",
                f"the brokers refuse to give topic {settings.topic} {settings.partitions} partitions",
                why=settings.client.redact(said(error)),
                fix="look at the brokers' policies, then `tablestore publish` sends what is pending",
            ) from error
    deadline = _appear_by(log)
    while _partitions_of(log) < settings.partitions:
        if log.runtime.now_ms() > deadline:
            raise _does_not_appear(settings, f"a partition of topic {settings.topic}")
        log.runtime.sleep(0.02)


def _partitions_of(log: KafkaLog) -> int:
    data = find_topics(log).data
    return 0 if data is None else data.partitions
