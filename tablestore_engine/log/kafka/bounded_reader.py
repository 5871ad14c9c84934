"""Reading a table's topic: for the demo, `tablestore changelog` and tests.

Steps      1 the end is the last decided offset (LSO) at the start of the call 2 read up to it, then stop
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from tablestore_engine.log.decode import LogMessage
from tablestore_engine.log.kafka.kafka_client import make_consumer
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.log_errors import translate
from tablestore_engine.log.kafka.message_headers import (
    CALL,
    COMMIT,
    KIND,
    KIND_OF_HEADER,
    SEQUENCE,
    SNAPSHOT,
    number_of,
    read_headers,
)

_SLICE = 50_000
_TAIL = 16


def read_messages(
    log: KafkaLog, start: Mapping[int, int] | None = None, *, isolation: str = "read_committed"
) -> Iterator[LogMessage]:
    """Messages in offset order of each partition, from `start` (absent: the beginning) to what is decided now."""
    settings = log.settings
    with closing(make_consumer(settings.client, isolation=isolation)) as consumer:
        try:
            for partition in range(settings.partitions):
                place = TopicPartition(settings.topic, partition)
                low, high = log.read_span(consumer, place)
                begin = max(low, (start or {}).get(partition, low))
                for at in range(begin, high, _SLICE):
                    span = (at, min(at + _SLICE, high))
                    for message in log.read_range(consumer, place, span):
                        yield to_message(message)
        except KafkaException as error:
            raise translate(error, settings, doing="reading the topic") from error


def find_tails(log: KafkaLog, consumer: Consumer) -> Mapping[int, tuple[int, LogMessage | None]]:
    """{own partition: (next offset, newest message with our headers or None)}. Raises KafkaException."""
    tails: dict[int, tuple[int, LogMessage | None]] = {}
    for partition in log.settings.own_partitions:
        place = TopicPartition(log.settings.topic, partition)
        low, high = log.read_span(consumer, place)
        newest, look = None, _TAIL
        while newest is None and high > low:
            begin = max(low, high - look)
            found = map(to_message, log.read_range(consumer, place, (begin, high)))
            newest = next((m for m in reversed(list(found)) if m.snapshot_id is not None), None)
            if begin == low:
                break
            look *= 8
        tails[partition] = (high, newest)
    return tails


def to_message(message: Message) -> LogMessage:
    """The message with our headers read; those of foreign producers have none."""
    key, value = message.key(), message.value()
    headers = read_headers(message)
    commit, kind, early = headers.get(COMMIT), headers.get(KIND), headers.get(CALL)
    return LogMessage(
        partition=message.partition() or 0,
        offset=message.offset() or 0,
        key=key if isinstance(key, bytes) else None,
        value=value if isinstance(value, bytes) else None,
        snapshot_id=number_of(headers.get(SNAPSHOT)),
        commit=None if commit is None else commit.decode("utf-8", "replace"),
        kind=KIND_OF_HEADER.get(kind) if kind is not None else None,
        sequence=number_of(headers.get(SEQUENCE)),
        timestamp_ms=message.timestamp()[1],
        early=None if early is None else early.decode("ascii", "replace"),
    )
