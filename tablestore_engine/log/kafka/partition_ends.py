"""Where partitions begin and end, of many at once, as the brokers say it to an admin client.

INVARIANT  asked once: who asks of a topic that may be new waits for its leaders (partition_reader.await_leader).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # not in its __all__

Place = tuple[str, int]


def find_ends(
    admin: AdminClient, places: Iterable[Place], timeout_s: float, isolation: IsolationLevel
) -> Mapping[Place, int]:
    """The end of each partition as readers of that isolation see it. Raises KafkaException."""
    latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # its stub has no types
    return _ask(admin, {TopicPartition(*place): latest for place in places}, timeout_s, isolation)


def find_beginnings(admin: AdminClient, places: Iterable[Place], timeout_s: float) -> Mapping[Place, int]:
    """The offset of the first message that may be there. Raises KafkaException."""
    earliest: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # its stub has no types
    wanted = {TopicPartition(*place): earliest for place in places}
    return _ask(admin, wanted, timeout_s, IsolationLevel.READ_COMMITTED)


def _ask(
    admin: AdminClient, wanted: dict[TopicPartition, OffsetSpec], timeout_s: float, isolation: IsolationLevel
) -> Mapping[Place, int]:
    asked = admin.list_offsets(wanted, isolation_level=isolation, request_timeout=timeout_s)
    return {(place.topic, place.partition): one.result().offset for place, one in asked.items()}
