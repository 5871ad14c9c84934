"""Ask brokers again while leadership moves: a new topic has no leader yet, or the leader died and has no successor.

Each try    waits a second, the next one twice as long: a client goes on asking a leader that is dead until its time is
            over, and only then looks for another
CHANGE     the wait for a new leader
Refresh     an admin client learns of other leaders, and of another controller, when it asks for metadata
INVARIANT   in all ClientConfig.timeout_s, 10 s at most; then the last error is raised.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from tablestore_engine.log.kafka.client_config import ClientConfig
from tablestore_engine.log.kafka.kafka_client import code_of
from tablestore_engine.runtime.outside_world import Runtime

# A busy broker may need some for a leader; a topic that is missing is found by its metadata before.
_SECONDS_MAX = 10.0
_FIRST_LOOK = 1.0
_PAUSE = 0.05
MOVING = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,  # at this moment: the client connects again by itself
        KafkaError._DESTROY_BROKER,  # the connection to a bootstrap address ended when its node became known
        KafkaError._NOENT,  # librdkafka's answer to list_offsets while none of the partitions asked has a leader
    }
)
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class LeaderWait:
    """How long to wait is the client's `timeout_s`."""

    client: ClientConfig
    runtime: Runtime

    def ask(self, ask: Callable[[float], Answer], refresh: Callable[[float], object] | None = None) -> Answer:
        """The answer; both get the seconds that they may take. `refresh`: asks for metadata before the next try.

        Raises KafkaException.
        """
        now_ms = self.runtime.now_ms
        deadline = now_ms() + int(min(self.client.timeout_s, _SECONDS_MAX) * 1000)
        look = _FIRST_LOOK
        while True:
            left = (deadline - now_ms()) / 1000
            try:
                return ask(max(min(look, left), _PAUSE))
            except KafkaException as error:
                if code_of(error) not in MOVING or now_ms() >= deadline:
                    raise
            if refresh is not None:
                with suppress(KafkaException):  # the next try says what is wrong
                    refresh(look)
            self.runtime.sleep(_PAUSE)
            look *= 2


def refresh_by(admin: AdminClient) -> Callable[[float], object]:
    return lambda seconds: admin.list_topics(timeout=seconds)
