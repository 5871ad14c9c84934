"""A topic as its readers use it: the messages after a snapshot, and the table that the messages describe."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing

from confluent_kafka import KafkaException

from tablestore_engine.format.row_kind import RowKind
from tablestore_engine.log.decode import LogMessage
from tablestore_engine.log.kafka.bounded_reader import read_messages
from tablestore_engine.log.kafka.commit_marker import CommitMarker, read_markers
from tablestore_engine.log.kafka.kafka_client import make_consumer
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.log_errors import translate


def read_log_markers(log: KafkaLog) -> tuple[CommitMarker, ...]:
    """Every marker that compaction left, oldest first; one shard after the other."""
    with closing(make_consumer(log.settings.client)) as consumer:
        try:
            found = [read_markers(shard, consumer, everything=True) for shard in log.all_shards()]
            return tuple(itertools.chain.from_iterable(found))
        except KafkaException as error:
            raise translate(error, log.settings, doing="reading the markers") from error


def read_after(log: KafkaLog, snapshot_id: int) -> Iterator[LogMessage]:
    """Messages of snapshots newer than `snapshot_id`; messages of foreign producers are not ours to judge and stay."""
    start = _plan_start(read_log_markers(log), snapshot_id)
    for message in read_messages(log, start):
        if message.snapshot_id is None or message.snapshot_id > snapshot_id:
            yield message


def _plan_start(markers: Sequence[CommitMarker], snapshot_id: int) -> Mapping[int, int]:
    """Offsets behind each shard's newest complete marker up to `snapshot_id`; what has none begins at the beginning."""
    start: dict[int, int] = {}
    for shard in {marker.shard for marker in markers}:
        mine = [marker for marker in markers if marker.shard == shard]
        known = [marker for marker in mine if marker.last and marker.snapshot_id <= snapshot_id]
        if known and known[-1].topic_id == mine[-1].topic_id:
            start |= {partition: end for partition, (_, end) in known[-1].offsets.items()}
    return start


def fold_messages(messages: Iterable[LogMessage]) -> tuple[LogMessage, ...]:
    """The table that a keyed topic describes: per key its last message, without deleted keys, in key order."""
    last: dict[bytes | None, LogMessage] = {}
    for message in messages:
        last[message.key] = message
    alive = (message for _, message in sorted(last.items(), key=lambda item: item[0] or b""))
    return tuple(
        message
        for message in alive
        if message.value is not None and message.kind not in (RowKind.DELETE, RowKind.UPDATE_BEFORE)
    )
