"""Where partitions begin and end, of many at once.

Names      find_ends         behind the last offset, as readers of an isolation see it
           find_beginnings   the first offset that retention has left
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # not in its __all__

from tablestore_engine.log.kafka.client_config import ClientConfig
from tablestore_engine.log.kafka.commit_marker import NEW_TOPIC_SECONDS, PASSING
from tablestore_engine.log.kafka.kafka_client import code_of
from tablestore_engine.runtime.outside_world import Runtime

Place = tuple[str, int]


def find_ends(
    admin: AdminClient,
    places: Iterable[Place],
    client: ClientConfig,
    isolation: IsolationLevel,
    runtime: Runtime,
) -> Mapping[Place, int]:
    """The end of each partition as readers of that isolation see it. Raises KafkaException."""
    latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # its stub has no types
    return _ask(admin, {TopicPartition(*place): latest for place in places}, client, isolation, runtime)


def find_beginnings(
    admin: AdminClient, places: Iterable[Place], client: ClientConfig, runtime: Runtime
) -> Mapping[Place, int]:
    """The offset of the first message that may be there. Raises KafkaException."""
    earliest: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # its stub has no types
    wanted = {TopicPartition(*place): earliest for place in places}
    return _ask(admin, wanted, client, IsolationLevel.READ_COMMITTED, runtime)


def _ask(
    admin: AdminClient,
    wanted: dict[TopicPartition, OffsetSpec],
    client: ClientConfig,
    isolation: IsolationLevel,
    runtime: Runtime,
) -> Mapping[Place, int]:
    """A new topic may have no leader for a moment."""
    deadline = runtime.now_ms() + int(min(client.timeout_s, NEW_TOPIC_SECONDS) * 1000)
    while True:
        asked = admin.list_offsets(wanted, isolation_level=isolation, request_timeout=client.timeout_s)
        try:
            return {(place.topic, place.partition): one.result().offset for place, one in asked.items()}
        except KafkaException as error:
            if code_of(error) not in PASSING or runtime.now_ms() > deadline:
                raise
            runtime.sleep(0.05)
