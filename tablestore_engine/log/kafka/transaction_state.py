"""Who may write a table's log, as the transaction coordinator keeps it: read from Kafka's own topic of transactions.

Steps      1 the partition of the id 2 read back from its end, widening, until a record of the id is seen
WHY        DescribeTransactions (KIP-664) is not in librdkafka; a producer of the same id would fence the one that runs.
           The records are those of Kafka's TransactionLogKey.json and TransactionLogValue.json, versions 0 and 1, whose
           fields up to `start` are the same but for how lengths are written; the topic is Kafka's since 0.11.
INVARIANT  nothing depends on it but what people are shown: without a right to read that topic it is unknown.
"""

from __future__ import annotations

import struct
from contextlib import closing
from dataclasses import dataclass

from confluent_kafka import KafkaException, TopicPartition

from tablestore_engine.log.kafka.kafka_client import make_consumer
from tablestore_engine.log.kafka.kafka_log import KafkaLog

TOPIC = "__transaction_state"
STATES = (
    "empty", "ongoing", "prepare commit", "prepare abort", "committed", "aborted", "dead", "prepare fence",
)  # fmt: skip
_OPEN = frozenset({"ongoing", "prepare commit", "prepare abort", "prepare fence"})
_FIRST_LOOK, _WIDEN, _LOOK_MAX = 256, 16, 1_000_000


@dataclass(frozen=True)
class TransactionState:
    """Of one transactional id; `started_ms` is of its newest transaction."""

    producer_id: int
    epoch: int
    state: str
    timeout_ms: int
    changed_ms: int
    started_ms: int

    @property
    def is_open(self) -> bool:
        return self.state in _OPEN


def partition_of(transactional_id: str, partitions: int) -> int:
    """By Java's hash of a text, made positive as Kafka does."""
    hashed = 0
    units = transactional_id.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        hashed = (31 * hashed + (high << 8 | low)) & 0xFFFFFFFF
    signed = hashed - (1 << 32) if hashed >= 1 << 31 else hashed
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions


def decode_key(key: bytes | None) -> str | None:
    """The transactional id of a record's key; None for what is no such key."""
    if key is None or len(key) < 4:
        return None
    version, length = struct.unpack_from(">hh", key)
    text = key[4 : 4 + length]
    return text.decode("utf-8", "replace") if version == 0 and len(text) == length else None


def decode_state(value: bytes | None) -> TransactionState | None:
    """None for a record without a value, or of a version that is not known."""
    if value is None:
        return None
    try:
        (version,) = struct.unpack_from(">h", value)
        if version not in (0, 1):
            return None
        producer_id, epoch, timeout_ms, state = struct.unpack_from(">qhib", value, 2)
        at = _skip_partitions(value, 2 + 15, is_compact=version == 1)
        changed_ms, started_ms = struct.unpack_from(">qq", value, at)
    except (struct.error, IndexError):
        return None
    name = STATES[state] if 0 <= state < len(STATES) else f"state {state}"
    return TransactionState(producer_id, epoch, name, timeout_ms, changed_ms, started_ms)


def _skip_partitions(value: bytes, at: int, *, is_compact: bool) -> int:
    """Behind the array of (topic, partitions), which may be null."""
    count, at = _length(value, at, 4, is_compact=is_compact)
    for _ in range(max(count, 0)):
        size, at = _length(value, at, 2, is_compact=is_compact)
        ids, at = _length(value, at + size, 4, is_compact=is_compact)
        at += 4 * ids
        if is_compact:
            at = _skip_tags(value, at)
    return at


def _length(value: bytes, at: int, width: int, *, is_compact: bool) -> tuple[int, int]:
    """Of an array or text: a fixed number, or in compact form a varint that is one more; and what follows."""
    if is_compact:
        number, at = _varint(value, at)
        return number - 1, at
    return struct.unpack_from(">h" if width == 2 else ">i", value, at)[0], at + width


def _skip_tags(value: bytes, at: int) -> int:
    count, at = _varint(value, at)
    for _ in range(count):
        _, at = _varint(value, at)
        size, at = _varint(value, at)
        at += size
    return at


def _varint(value: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = value[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return number, at
        shift += 7


def find_state(log: KafkaLog) -> TransactionState | None:
    """Of the id that publishes this table."""
    timeout_s = log.settings.client.timeout_s
    try:
        partitions = len(log.admin.list_topics(topic=TOPIC, timeout=timeout_s).topics[TOPIC].partitions)
        if not partitions:
            return None
        place = TopicPartition(TOPIC, partition_of(log.settings.transactional_id, partitions))
        return _read_state(log, place)
    except (
        KafkaException
    ):  # not ours to read, or the brokers went away: what is shown without it is right all the same
        return None


def _read_state(log: KafkaLog, place: TopicPartition) -> TransactionState | None:
    settings = log.settings
    with closing(make_consumer(settings.client, isolation="read_uncommitted")) as consumer:
        low, high = consumer.get_watermark_offsets(place, timeout=settings.client.timeout_s)
        look, end = _FIRST_LOOK, high
        while end > low and high - end < _LOOK_MAX:
            start = max(low, end - look)
            for record in reversed(log.read_range(consumer, place, (start, end))):
                key, value = record.key(), record.value()
                if decode_key(key if isinstance(key, bytes) else None) == settings.transactional_id:
                    return decode_state(value if isinstance(value, bytes) else None)
            end, look = start, look * _WIDEN
    return None
