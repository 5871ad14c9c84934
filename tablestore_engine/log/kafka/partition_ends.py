"""Where partitions begin and end, of many at once, as the brokers say it to an admin client.

Leaders    asked again while they move (leader_wait.LeaderWait).
DANGER     librdkafka 2.16 answers for a dead leader with the offset -1001, and without an error. Taken for an end
           it would say that nothing is undecided there, and nothing to be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # not in its __all__

from tablestore_engine.log.kafka.leader_wait import LeaderWait, refresh_by

Place = tuple[str, int]


def find_ends(
    admin: AdminClient,
    places: Iterable[Place],
    wait: LeaderWait,
    isolation: IsolationLevel = IsolationLevel.READ_COMMITTED,
) -> Mapping[Place, int]:
    """The end of each partition as readers of that isolation see it. Raises KafkaException."""
    latest: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # its stub has no types
    wanted = {TopicPartition(*place): latest for place in places}
    return wait.ask(lambda seconds: _ask(admin, wanted, seconds, isolation), refresh_by(admin))


def find_beginnings(admin: AdminClient, places: Iterable[Place], wait: LeaderWait) -> Mapping[Place, int]:
    """The offset of the first message that may be there. Raises KafkaException."""
    earliest: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # its stub has no types
    wanted = {TopicPartition(*place): earliest for place in places}
    committed = IsolationLevel.READ_COMMITTED
    return wait.ask(lambda seconds: _ask(admin, wanted, seconds, committed), refresh_by(admin))


def _ask(
    admin: AdminClient, wanted: dict[TopicPartition, OffsetSpec], seconds: float, isolation: IsolationLevel
) -> Mapping[Place, int]:
    asked = admin.list_offsets(wanted, isolation_level=isolation, request_timeout=seconds)
    return check_offsets(
        {(place.topic, place.partition): one.result().offset for place, one in asked.items()}
    )


def check_offsets(found: Mapping[Place, int]) -> Mapping[Place, int]:
    """Raises KafkaException for an offset that is none: the client gives it for a leader that did not answer."""
    missing = sorted(place for place, offset in found.items() if offset < 0)
    if missing:
        names = ", ".join(f"{topic}[{partition}]" for topic, partition in missing)
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"the leader of {names} gave no answer"))
    return found
