"""One table's log on its brokers, as one frozen argument: what it is, who is asked, and the outside world.

CHANGE     the argument of every function on a table's log
Connected  consumers read a log as it is made, KafkaLog(settings, runtime); brokers that are asked about topics or ends
           need connected(), which has an admin client. Each operation has its own: none is kept over an error.
INVARIANT  pickled it is its settings alone: another process has clients, a clock and randomness of its own.
INVARIANT  here is what every subject needs; topics, transactions, markers and rows have modules of their own, whose
           functions take a log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from confluent_kafka import Consumer, IsolationLevel, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from tablestore_engine.log.kafka.kafka_client import make_admin
from tablestore_engine.log.kafka.leader_wait import LeaderWait
from tablestore_engine.log.kafka.partition_ends import Place, find_beginnings, find_ends
from tablestore_engine.log.kafka.partition_reader import read_range, read_span
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime


@dataclass(frozen=True)
class KafkaLog:
    """Of one publisher's shard, as its settings are; `connection`: None before connected()."""

    settings: LogSettings
    runtime: Runtime = field(default=SYSTEM, compare=False)
    connection: AdminClient | None = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[object, ...]:
        return KafkaLog, (self.settings,)

    def connected(self) -> KafkaLog:
        """The same log with a new client, whose brokers have answered. Raises as make_admin."""
        return replace(self, connection=make_admin(self.settings.client, self.settings.topic))

    @property
    def admin(self) -> AdminClient:
        """REQUIRES that the log is connected."""
        assert self.connection is not None, "the log is not connected"
        return self.connection

    @property
    def wait(self) -> LeaderWait:
        """For requests that a change of leader may spoil."""
        return LeaderWait(self.settings.client, self.runtime)

    def of_shard(self, number: int) -> KafkaLog:
        """The same log, by the same client, as another of its publishers sees it."""
        return replace(self, settings=self.settings.of_shard(number))

    def all_shards(self) -> tuple[KafkaLog, ...]:
        return tuple(replace(self, settings=one) for one in self.settings.all_shards())

    @property
    def data_places(self) -> tuple[Place, ...]:
        """Every data partition that this publisher sends."""
        return tuple((self.settings.topic, partition) for partition in self.settings.own_partitions)

    @property
    def marker_place(self) -> Place:
        """The one partition of its markers: an open transaction of another shard hides none of them."""
        return self.settings.marker_topic, self.settings.shard

    def deadline_ms(self) -> int:
        """When who waits from now on for an answer gives up."""
        return self.runtime.now_ms() + int(self.settings.client.timeout_s * 1000)

    def find_ends(
        self, places: Iterable[Place], isolation: IsolationLevel = IsolationLevel.READ_COMMITTED
    ) -> Mapping[Place, int]:
        """The end of each partition as readers of that isolation see it. Raises KafkaException."""
        return find_ends(self.admin, places, self.wait, isolation)

    def find_beginnings(self, places: Iterable[Place]) -> Mapping[Place, int]:
        """The offset of the first message that may be there. Raises KafkaException."""
        return find_beginnings(self.admin, places, self.wait)

    def read_span(self, consumer: Consumer, place: TopicPartition) -> tuple[int, int]:
        """First offset and the last decided one (LSO) + 1. Raises KafkaException."""
        return read_span(consumer, place, self.settings.client, self.runtime)

    def read_range(
        self, consumer: Consumer, place: TopicPartition, span: tuple[int, int]
    ) -> Sequence[Message]:
        """All records of one partition from span[0] up to span[1] (exclusive). Raises KafkaException."""
        return read_range(consumer, place, span, self.runtime, self.settings.client.timeout_s)
