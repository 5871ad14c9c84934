"""Commit markers: records of the marker topic that say which snapshot is sent, in the same transaction as its rows.

Record     key `s-<snapshot>` · value {"v":1, table uuid, snapshot, commit, chunk, last, topic_id, schema_id,
           "counts":{partition: messages of this snapshot so far}, "offsets":{partition: [first, next)}}; a claim also
           has "place": a hash of where its table lies, by which a claim without a table is taken over, and "made" when
           the engine made the topic: who takes the claim over may delete the topic with the table
Shards     of a log whose partitions several publishers share: "shard" [number, of how many]; offsets and counts are
           of the shard's own partitions, and the record lies in the partition of that number (own_partitions)
Early      of a log that had rows before their snapshots (decision 0034; "early"):
           unchecked  {partition: offset}: rows without header `s` from there up to `next` count behind this marker
                      only; a partition that is not named has none
           before, since   of a marker with repairs: P before it, and {partition: offset} from where it looked for rows
                      to repair: where to begin again when a broker lost the end of its transaction
Steps      1 the last decided offset (LSO) 2 read from LSO-16, widen ×8 until a marker is seen or the start is reached
INVARIANT  P is the snapshot of the LAST marker by offset (not the highest id): a new beginning of the log counts.
INVARIANT  `offsets` names every partition that was ever written: `next` is carried over, so that a hybrid reader
           can start behind any marker.
WHY        progress is no consumer-group offset: those vanish after a week of silence, and with the topic.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from confluent_kafka import Consumer, TopicPartition

from tablestore_engine.errors import FixRequest
from tablestore_engine.log.kafka.kafka_log import KafkaLog

_FIRST_LOOK = 16
_WIDEN = 8


@dataclass(frozen=True)
class CommitMarker:
    """`last` is False for a chunk that more chunks of the same snapshot follow; `place` says whose claim it is."""

    table_uuid: str
    snapshot_id: int
    commit: str
    topic_id: str
    schema_id: int = 0
    chunk: int = 0
    last: bool = True
    counts: Mapping[int, int] = field(default_factory=dict)
    offsets: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    place: str = ""
    made: bool = False
    early: bool = False
    unchecked: Mapping[int, int] = field(default_factory=dict)
    before: int | None = None
    since: Mapping[int, int] = field(default_factory=dict)
    shard: int = 0
    shards: int = 1

    @property
    def is_claim(self) -> bool:
        """The first marker of a topic, when nothing was published yet."""
        return self.snapshot_id == 0 and not self.commit


@dataclass(frozen=True)
class Progress:
    """`published` = P; `partial` {partition: messages} of snapshot P+1 that are visible already, by `chunks` chunks.

    `early`: the log has, or had, rows before their snapshots; `unchecked` as in the marker; `controls`: partitions
    where one control record, and nothing else of ours, follows `next_offsets`.
    """

    published: int
    commit: str | None
    topic_id: str
    next_offsets: Mapping[int, int] = field(default_factory=dict)
    partial: Mapping[int, int] = field(default_factory=dict)
    chunks: int = 0
    early: bool = False
    unchecked: Mapping[int, int] = field(default_factory=dict)
    controls: frozenset[int] = frozenset()

    def checked(self, partition: int) -> int:
        """Where rows begin that no marker answers for."""
        return self.unchecked.get(partition, self.next_offsets.get(partition, 0))


def plan_progress(newest: CommitMarker) -> Progress:
    whole = Progress(
        newest.snapshot_id,
        newest.commit,
        newest.topic_id,
        {partition: end for partition, (_, end) in newest.offsets.items()},
        early=newest.early,
        unchecked=dict(newest.unchecked),
        controls=frozenset(partition for partition, (first, end) in newest.offsets.items() if first < end),
    )
    if newest.last:
        return whole
    return replace(
        whole,
        published=newest.snapshot_id - 1,
        commit=None,
        partial=dict(newest.counts),
        chunks=newest.chunk + 1,
    )


def encode_marker(marker: CommitMarker) -> tuple[bytes, bytes]:
    """Key and value of the record."""
    value = {
        "v": 1,
        "table": marker.table_uuid,
        "snapshot": marker.snapshot_id,
        "commit": marker.commit,
        "chunk": marker.chunk,
        "last": marker.last,
        "topic_id": marker.topic_id,
        "schema_id": marker.schema_id,
        "counts": {str(p): n for p, n in sorted(marker.counts.items())},
        "offsets": {str(p): list(pair) for p, pair in sorted(marker.offsets.items())},
        **({"place": marker.place} if marker.place else {}),
        **({"made": True} if marker.made else {}),
        **({"shard": [marker.shard, marker.shards]} if marker.shards > 1 else {}),
        **_encode_early(marker),
    }
    return f"s-{marker.snapshot_id}".encode(), json.dumps(value, separators=(",", ":")).encode()


def _encode_early(marker: CommitMarker) -> Mapping[str, object]:
    if not marker.early:
        return {}
    repairs = {} if marker.before is None else {"before": marker.before, "since": _texts(marker.since)}
    return {"early": {"unchecked": _texts(marker.unchecked), **repairs}}


def _texts(offsets: Mapping[int, int]) -> dict[str, int]:
    return {str(partition): offset for partition, offset in sorted(offsets.items())}


def _offsets(texts: Mapping[str, int]) -> dict[int, int]:
    return {int(partition): offset for partition, offset in texts.items()}


def decode_marker(value: bytes) -> CommitMarker:
    """The marker of a record's value. Raises FixRequest TS1719 for a record that we did not write."""
    try:
        raw = json.loads(value)
        shard, shards = raw.get("shard", (0, 1))
        return CommitMarker(
            table_uuid=raw["table"],
            snapshot_id=raw["snapshot"],
            commit=raw["commit"],
            topic_id=raw["topic_id"],
            schema_id=raw["schema_id"],
            chunk=raw["chunk"],
            last=raw["last"],
            counts={int(p): n for p, n in raw["counts"].items()},
            offsets={int(p): (first, following) for p, (first, following) in raw["offsets"].items()},
            place=str(raw.get("place", "")),
            made=raw.get("made", False) is True,
            early="early" in raw,
            unchecked=_offsets(raw.get("early", {}).get("unchecked", {})),
            before=raw.get("early", {}).get("before"),
            since=_offsets(raw.get("early", {}).get("since", {})),
            shard=int(shard),
            shards=int(shards),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FixRequest(
            "TS1719",
            "a record of a marker topic cannot be read",
            why=f"expected a marker of version 1, got {value[:200]!r} ({error!r})",
            fix="only dbt-tablestore may write to topics that end in __snapshots",
        ) from error


def read_markers(log: KafkaLog, consumer: Consumer, *, everything: bool = False) -> tuple[CommitMarker, ...]:
    """The newest markers of the log's shard, oldest first; () when there are none. `everything` reads from the
    beginning.
    """
    place = TopicPartition(*log.marker_place)
    low, high = log.read_span(consumer, place)
    look = high - low if everything else _FIRST_LOOK
    while high > low:
        start = max(low, high - look)
        records = log.read_range(consumer, place, (start, high))
        values = [value for value in (record.value() for record in records) if value is not None]
        if values or start == low:
            return tuple(decode_marker(value) for value in values)
        look *= _WIDEN
    return ()
