"""The marker that a log begins with: who writes it, over what, and where it may lie.

Shards     a claim is one transaction over the marker partitions of all shards: a topic is claimed as a whole, or not.
           Who begins anew (reset, take-over) does it for its own shard, by its own transactional id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace

from confluent_kafka import KafkaError, KafkaException

from tablestore_engine.log.kafka.commit_marker import (
    CommitMarker,
    Progress,
    encode_marker,
    plan_progress,
    read_markers,
)
from tablestore_engine.log.kafka.kafka_client import make_consumer
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.kafka_producer import LogProducer
from tablestore_engine.log.kafka.kafka_topic import TopicFacts
from tablestore_engine.log.kafka.settings import LogSettings


@dataclass(frozen=True)
class Claim:
    """`is_ours`: the engine made the topic. `over`: the newest marker. `behind`: {shard: the offset that its marker
    has to get}; it names the shards that are begun, none of them only the producer's own, wherever its marker lies.
    """

    is_ours: bool = False
    behind: Mapping[int, int] | None = None
    over: CommitMarker | None = None


def write_base(
    log: KafkaLog, producer: LogProducer, data: TopicFacts, *, after_snapshot: int, claim: Claim
) -> None:
    """What the topic holds already lies before this marker, so its offsets are the ends of now. Early rows that no
    marker has answered for stay unchecked: whoever publishes next takes back what no snapshot has.

    Raises KafkaException, with a code of FENCED when it does not lie where `claim` says.
    """
    shards = (log.settings.shard,) if claim.behind is None else tuple(claim.behind)
    markers = {number: _base_of(log.of_shard(number), data, after_snapshot, claim) for number in shards}
    producer.begin()
    for number, marker in markers.items():
        producer.send_marker(*encode_marker(marker), number)
    if claim.behind is not None and producer.marker_ends != {
        number: offset + 1 for number, offset in claim.behind.items()
    }:
        producer.abandon(abort=True)
        raise KafkaException(KafkaError(KafkaError._FENCED, "another process wrote a marker meanwhile"))
    producer.commit()


def _base_of(log: KafkaLog, data: TopicFacts, after_snapshot: int, claim: Claim) -> CommitMarker:
    settings, ends = log.settings, log.find_ends(log.data_places)
    marker = CommitMarker(
        settings.table_uuid,
        after_snapshot,
        "",
        data.topic_id,
        offsets={partition: (end, end) for (_, partition), end in ends.items()},
        place=place_hash(settings),
        made=claim.is_ours,
        early=settings.is_eventual or (claim.over is not None and claim.over.early),
        shard=settings.shard,
        shards=settings.shards,
    )
    return replace(marker, unchecked=_still_unchecked(marker, claim.over)) if marker.early else marker


def _still_unchecked(base: CommitMarker, over: CommitMarker | None) -> Mapping[int, int]:
    """Of a marker that begins a log anew: from where the one before it answers; from the beginning if that is lost."""
    known = Progress(0, None, "") if over is None or over.topic_id != base.topic_id else plan_progress(over)
    found = {partition: known.checked(partition) for partition in base.offsets}
    return {partition: at for partition, at in found.items() if at < base.offsets[partition][1]}


def newest_marker(log: KafkaLog) -> CommitMarker | None:
    """None when there is none, or no reader sees it yet. Raises KafkaException."""
    with closing(make_consumer(log.settings.client)) as consumer:
        markers = read_markers(log, consumer)
    return markers[-1] if markers else None


def is_left_claim(settings: LogSettings, newest: CommitMarker) -> bool:
    """Whether the newest marker only claims the topic, for another table at the place of this one."""
    is_same_place = bool(newest.place) and newest.place == place_hash(settings)
    return newest.is_claim and is_same_place and newest.table_uuid != settings.table_uuid


def place_hash(settings: LogSettings) -> str:
    """Where the table lies, as a claim shows it: no path leaves this machine."""
    return hashlib.sha256(settings.place.encode()).hexdigest()[:32] if settings.place else ""
