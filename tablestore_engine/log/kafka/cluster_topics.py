"""Which topics the brokers have, and where they begin.

find_cluster: the id of the brokers' cluster, and the topics that this user may see. first_offsets, count_messages: of
topics of one partition. delete_topics returns when they are gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException

from tablestore_engine.errors import RetryError
from tablestore_engine.log.kafka.client_config import ClientConfig, profile_config
from tablestore_engine.log.kafka.kafka_client import code_of, make_admin
from tablestore_engine.log.kafka.leader_wait import LeaderWait
from tablestore_engine.log.kafka.partition_ends import find_beginnings, find_ends
from tablestore_engine.runtime.outside_world import Runtime

_GONE_SECONDS, _POLL_SECONDS = 30.0, 0.1


def find_cluster(profile: Mapping[str, str]) -> tuple[str, frozenset[str]]:
    """Raises RetryError TS1464, FixRequest TS1436, TS1701."""
    client = profile_config(profile)
    with _told(client, "which cluster they are"):
        found = make_admin(client).list_topics(timeout=client.timeout_s)
        return str(found.cluster_id), frozenset(found.topics)


def first_offsets(profile: Mapping[str, str], topics: Iterable[str], runtime: Runtime) -> dict[str, int]:
    """Raises RetryError TS1464, FixRequest TS1436, TS1701."""
    client, places = profile_config(profile), [(one, 0) for one in topics]
    if not places:
        return {}
    with _told(client, "where topics begin"):
        admin = make_admin(client)
        found = find_beginnings(admin, places, LeaderWait(client, runtime))
        return {topic: offset for (topic, _), offset in found.items()}


def count_messages(profile: Mapping[str, str], topics: Iterable[str], runtime: Runtime) -> dict[str, int]:
    """Of topics of one partition that lost none: how many there are.

    Raises RetryError TS1464, FixRequest TS1436, TS1701.
    """
    client, places = profile_config(profile), [(one, 0) for one in topics]
    if not places:
        return {}
    with _told(client, "where topics end"):
        found = find_ends(make_admin(client), places, LeaderWait(client, runtime))
        return {topic: offset for (topic, _), offset in found.items()}


def delete_topics(profile: Mapping[str, str], topics: Iterable[str], runtime: Runtime) -> None:
    """Raises RetryError TS1464, FixRequest TS1436, TS1701."""
    client, names = profile_config(profile), list(topics)
    if not names:
        return
    with _told(client, "whether topics are deleted"):
        admin = make_admin(client)
        for one in admin.delete_topics(names, operation_timeout=client.timeout_s).values():
            try:
                one.result()
            except KafkaException as error:
                if code_of(error) != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise
        deadline = runtime.now_ms() + int(_GONE_SECONDS * 1000)
        while set(names) & set(admin.list_topics(timeout=client.timeout_s).topics):
            if runtime.now_ms() > deadline:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "deleted topics are there still"))
            runtime.sleep(_POLL_SECONDS)


@contextmanager
def _told(client: ClientConfig, what: str) -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        raise RetryError(
            "TS1464",
            f"the brokers did not say {what}",
            why=client.redact(str(error)),
            fix="check the brokers, and repeat",
        ) from error
