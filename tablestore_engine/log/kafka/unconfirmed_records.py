"""Records of an eventual log that no commit marker confirms: which may stay where they are, and which have to be read.

Words      early row: sent before its snapshot. Unconfirmed: an early row that is not trusted: its attempt lost, died,
           still runs, or belongs to another process. Checked: how far a marker answers for early rows.
Rule       the rows of snapshots P+1 … latest are trusted when this process sent all of them, all were acknowledged, and
           all lie behind the newest marker's `next`: nothing that was sent for an earlier snapshot lies behind them.
           One that is not makes none of them trusted: sent again, each lies behind the ones before it.
INVARIANT  an offset counts as known only if it was acknowledged: as many acknowledged rows as there are offsets between
           the first and the last leave no place for anybody else's.
INVARIANT  what is not known is read; what cannot be trusted is looked up in the table. Nothing is guessed from headers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Protocol

from confluent_kafka import TopicPartition

from tablestore_engine.log.kafka.bounded_reader import to_message
from tablestore_engine.log.kafka.commit_marker import Progress
from tablestore_engine.log.kafka.kafka_client import make_consumer
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.prepublish_producer import PrepublishedSpan
from tablestore_engine.log.sink import PrepublishedCommit

Span = tuple[int, int]
Reads = Mapping[int, Sequence[Span]]
_SLICE = 5_000

# ---- choices -----------------------------------------------------------------------------------------------


def find_trusted(
    progress: Progress,
    ends: Mapping[int, int],
    pending: Iterable[tuple[int, str]],
    known: Mapping[int, PrepublishedCommit],
) -> tuple[PrepublishedSpan, ...] | None:
    """The rows of all `pending` snapshots (id, commit); None when one of them has to be sent."""
    if progress.partial:
        return None
    found: list[PrepublishedSpan] = []
    for snapshot_id, commit in pending:
        mine = known.get(snapshot_id)
        if mine is None or mine.commit != commit:
            return None
        found += [one for one in mine.answers if isinstance(one, PrepublishedSpan)]
    for one in found:
        begin = progress.next_offsets.get(one.partition, 0)
        if one.rows and not begin <= one.first < one.following <= ends.get(one.partition, 0):
            return None
    return tuple(found)


def plan_reads(progress: Progress, ends: Mapping[int, int], spans: Iterable[PrepublishedSpan]) -> Reads:
    """Offsets from what is checked up to `ends` that trusted rows do not fill exactly; () where none is left."""
    mine: dict[int, list[PrepublishedSpan]] = {}
    for one in spans:
        if one.rows:
            mine.setdefault(one.partition, []).append(one)
    reads: dict[int, Sequence[Span]] = {}
    for partition, end in ends.items():
        begin = progress.checked(partition)
        gaps = list(_gaps(begin, end, mine.get(partition, ())))
        has_control = partition in progress.controls and partition not in progress.unchecked
        if gaps and not (has_control and sum(last - first for first, last in gaps) == 1):
            reads[partition] = gaps
    return reads


def _gaps(begin: int, end: int, spans: Iterable[PrepublishedSpan]) -> Iterator[Span]:
    """What lies beside groups of spans that overlap and have a row on each of their offsets."""
    at = begin
    for first, following, rows in _groups(spans):
        if rows == following - first:
            if at < first:
                yield at, first
            at = max(at, following)
    if at < end:
        yield at, end


def _groups(spans: Iterable[PrepublishedSpan]) -> Iterator[tuple[int, int, int]]:
    """(first, following, rows) of spans that overlap: tasks of one commit may share a partition."""
    group: tuple[int, int, int] | None = None
    for one in sorted(spans, key=lambda span: span.first):
        if group is not None and one.first < group[1]:
            group = (group[0], max(group[1], one.following), group[2] + one.rows)
            continue
        if group is not None:
            yield group
        group = (one.first, one.following, one.rows)
    if group is not None:
        yield group


@dataclass
class OwnOffsets:
    """Since `ends` was asked: how many offsets of each partition are this publisher's.

    Each transaction leaves one control record behind its rows: it counts once rows follow it.
    """

    ends: Mapping[int, int]
    counts: dict[int, int] = field(default_factory=dict)

    def add(self, rows: Mapping[int, int]) -> None:
        """Rows of one transaction that were acknowledged."""
        for partition, count in rows.items():
            known = self.counts.get(partition)
            self.counts[partition] = count if known is None else known + 1 + count

    def fill(self, partition: int, following: int) -> bool:
        """Whether nobody else has an offset up to `following`, the one behind the newest row."""
        return following - self.ends.get(partition, 0) == self.counts.get(partition, 0)


def plan_unchecked(progress: Progress, following: Mapping[int, int], own: OwnOffsets) -> Mapping[int, int]:
    """For a marker with these `next`: {partition: from where} it does not answer for early rows before it."""
    found: dict[int, int] = {}
    for partition, end in following.items():
        checked = progress.checked(partition)
        is_known = checked >= own.ends.get(partition, 0) and own.fill(partition, end)
        if checked < end and not is_known:
            found[partition] = checked
    return found


# ---- looking -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PrepublishedMessage:
    """A visible early row: where it lies, its key, and header `a`."""

    offset: int
    key: bytes
    token: str


class PrepublishedTopic(Protocol):
    def find_ends(self) -> Mapping[int, int]:
        """{partition: the offset behind the last decided record}."""

    def read_early(self, partition: int, span: Span) -> Iterator[PrepublishedMessage]:
        """Visible early rows in a span of offsets, in order."""


@dataclass(frozen=True)
class KafkaTopic:
    """On the brokers; methods raise KafkaException."""

    log: KafkaLog

    def find_ends(self) -> Mapping[int, int]:
        """As readers of committed messages see them: behind an open transaction of a stranger nothing is decided."""
        found = self.log.find_ends(self.log.data_places)
        return {partition: end for (_, partition), end in found.items()}

    def read_early(self, partition: int, span: Span) -> Iterator[PrepublishedMessage]:
        """A slice of records in memory at a time."""
        place, (first, end) = TopicPartition(self.log.settings.topic, partition), span
        with closing(make_consumer(self.log.settings.client)) as consumer:
            for at in range(first, end, _SLICE):
                part = (at, min(at + _SLICE, end))
                for record in self.log.read_range(consumer, place, part):
                    message = to_message(record)
                    if message.early is not None and message.snapshot_id is None and message.key is not None:
                        yield PrepublishedMessage(message.offset, message.key, message.early)


@dataclass
class UnconfirmedRecords:
    """Keys of unconfirmed records by partition; `until`: how far each partition that was read is looked through."""

    keys: dict[int, dict[bytes, None]] = field(default_factory=dict)
    until: dict[int, int] = field(default_factory=dict)
    is_all: bool = True

    def __len__(self) -> int:
        return sum(len(keys) for keys in self.keys.values())

    def forget(self, partition: int, keys: Iterable[bytes]) -> None:
        """These were sent meanwhile: their newest message is right."""
        mine = self.keys.get(partition)
        if mine:
            for key in keys:
                mine.pop(key, None)


def gather(
    topic: PrepublishedTopic, reads: Reads, trusted: Sequence[PrepublishedSpan], *, keys_max: int
) -> UnconfirmedRecords:
    """At most so many keys: then `is_all` is False, and the rest begins at `until`."""
    found, calls = UnconfirmedRecords(), {one.token: one for one in trusted}
    for partition, spans in reads.items():
        keys = found.keys.setdefault(partition, {})
        for span in spans:
            for message in topic.read_early(partition, span):
                call = calls.get(message.token)
                if call is not None and call.has(message.token, message.offset):
                    continue
                keys[message.key] = None
                if len(found) >= keys_max:
                    found.until[partition], found.is_all = message.offset + 1, False
                    return found
            found.until[partition] = span[1]
    return found
