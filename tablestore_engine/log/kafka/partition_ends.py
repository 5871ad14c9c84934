"""Where partitions begin and end, of many at once, as the brokers say it to an admin client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # not in its __all__

from tablestore_engine.log.kafka.client_config import ClientConfig
from tablestore_engine.log.kafka.partition_reader import await_leader
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
    def ask() -> Mapping[Place, int]:
        asked = admin.list_offsets(wanted, isolation_level=isolation, request_timeout=client.timeout_s)
        return {(place.topic, place.partition): one.result().offset for place, one in asked.items()}

    return await_leader(ask, client, runtime)
