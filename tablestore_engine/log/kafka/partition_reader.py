"""One partition by a consumer: where it begins and ends, and the records between two offsets.

EOF        before the wanted end is none: a replica that has just become the leader knows the last acknowledged offset
           later than its records. Taken for the end it would hide the newest marker
INVARIANT  silence is no end: what is read ends by a record, by the broker's word, or by an error after the time-out.
"""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from tablestore_engine.log.kafka.client_config import ClientConfig
from tablestore_engine.log.kafka.leader_wait import LeaderWait
from tablestore_engine.runtime.outside_world import Runtime

_TAKE = 1_000  # more at once is slower: measured
_POLL_SECONDS = 0.02  # consume() waits for a full batch or this long, even when the end is already there


def read_span(
    consumer: Consumer, place: TopicPartition, client: ClientConfig, runtime: Runtime
) -> tuple[int, int]:
    """First offset and the last decided one (LSO) + 1. Raises KafkaException."""
    wait = LeaderWait(client, runtime)
    return wait.ask(lambda seconds: consumer.get_watermark_offsets(place, timeout=seconds))


def read_range(
    consumer: Consumer, place: TopicPartition, span: tuple[int, int], runtime: Runtime, timeout_s: float
) -> Sequence[Message]:
    """All records of one partition from span[0] up to span[1] (exclusive). Raises KafkaException."""
    start, end = span
    consumer.assign([TopicPartition(place.topic, place.partition, start)])
    records: list[Message] = []
    deadline = runtime.now_ms() + int(timeout_s * 1000)
    try:
        while runtime.now_ms() < deadline:
            for message in consumer.consume(_TAKE, timeout=_POLL_SECONDS):
                error = message.error()
                code = None if error is None else error.code()
                if code == KafkaError._PARTITION_EOF:
                    if (message.offset() or 0) >= end:
                        return records
                    continue
                if code == KafkaError.GROUP_AUTHORIZATION_FAILED:
                    continue  # its group's coordinator, whom nobody here asks for anything
                if error is not None:
                    raise KafkaException(error)
                if (message.offset() or 0) < end:
                    records.append(message)
                if (message.offset() or 0) >= end - 1:
                    return records
                deadline = runtime.now_ms() + int(timeout_s * 1000)
    finally:
        consumer.unassign()
    raise KafkaException(
        KafkaError(KafkaError._TIMED_OUT, f"no answer while reading {place.topic} from offset {start}")
    )
