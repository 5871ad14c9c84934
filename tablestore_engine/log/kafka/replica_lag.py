"""Which partitions of a table's topics take no row now, since too few replicas are in sync.

CHANGE     which partitions lack in-sync replicas
WHY        a client keeps the reason for itself: after its time-out it says that a message timed out.
INVARIANT  asked after a failure only, by a client of its own, bounded in time. Brokers that do not answer are no reason
"""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    AdminClient,
    ConfigResource,
    ResourceType,
)

from tablestore_engine.log.kafka.kafka_client import Reasons, open_admin
from tablestore_engine.log.kafka.settings import LogSettings

LATE = frozenset(
    {
        KafkaError._MSG_TIMED_OUT,
        KafkaError._TIMED_OUT,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    }
)
_LOOK_SECONDS = 3.0


def explain_replicas(settings: LogSettings) -> str | None:
    """`orders[0] has 1 replica(s) in sync of 3, min.insync.replicas is 2`; None where all partitions take rows."""
    names = (settings.topic, settings.marker_topic)
    try:
        admin = open_admin(settings.client, Reasons())
        wanted = {name: _min_in_sync(admin, name) for name in names}
        in_sync = {name: _in_sync(admin, name) for name in names}
    except KafkaException:
        return None
    return describe_lag(wanted, in_sync)


def describe_lag(
    wanted: Mapping[str, int], in_sync: Mapping[str, Mapping[int, tuple[int, int]]]
) -> str | None:
    """`in_sync`: {topic: {partition: (replicas in sync, replicas)}}."""
    found = [
        f"{name}[{partition}] has {count} replica(s) in sync of {replicas}, min.insync.replicas is {wanted[name]}"
        for name, partitions in in_sync.items()
        for partition, (count, replicas) in sorted(partitions.items())
        if count < wanted[name]
    ]
    return "; ".join(found) or None


def _min_in_sync(admin: AdminClient, name: str) -> int:
    resource = ConfigResource(ResourceType.TOPIC, name)
    found = admin.describe_configs([resource], request_timeout=_LOOK_SECONDS)[resource].result()
    return int(found["min.insync.replicas"].value) if "min.insync.replicas" in found else 1


def _in_sync(admin: AdminClient, name: str) -> Mapping[int, tuple[int, int]]:
    known = admin.list_topics(name, timeout=_LOOK_SECONDS).topics[name].partitions
    return {number: (len(one.isrs), len(one.replicas)) for number, one in known.items()}
