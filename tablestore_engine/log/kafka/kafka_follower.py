"""A table's topic as those read it who follow the table: the port of log/followed_log.py over a consumer.

Steps      read: where the last call ended, the consumer goes on; else it is assigned anew → messages into a queue for
           each partition, a run of them at a time → those up to `until` are given, the others wait for the next call
Memory     a partition that has reached `until` is paused at QUEUE_MAX messages. Any other is never paused: its whole
           queue belongs to this call, which ends at `rows_max` messages
INVARIANT  messages that retention took are an error (TS1358), never a gap: auto.offset.reset is `error`.
INVARIANT  the end of a partition counts as reached by a message at or behind it, or by the broker's word: control
           records and aborted rows lie there too, and are never given.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from tablestore_engine.errors import NotFound
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.log.followed_log import LogBoundary, Messages, Place
from tablestore_engine.log.kafka.commit_marker import CommitMarker, decode_marker
from tablestore_engine.log.kafka.kafka_client import code_of, make_consumer
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.kafka_topic import check_shards, find_topics
from tablestore_engine.log.kafka.log_errors import translate
from tablestore_engine.log.kafka.message_runs import MessageRun, to_columns
from tablestore_engine.log.kafka.schema_registry import SchemaRegistry
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.log.kafka.shard_boundaries import merge_shards, to_boundaries
from tablestore_engine.log.kafka.topic_identity import check_topic_id, missing_topic
from tablestore_engine.log.message_envelope import ChangelogMode
from tablestore_engine.log.message_rows import decode_messages

QUEUE_MAX = 100_000
_TAKE = 1_000  # more at once is slower: measured
_WAIT_SECONDS = 0.02
_GONE = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})


@dataclass
class _Queue:
    """What was received of one partition; `reached`: the place behind all of it, `count`: messages."""

    reached: int
    runs: deque[MessageRun] = field(default_factory=deque)
    count: int = 0
    is_paused: bool = False

    def put(self, run: MessageRun) -> None:
        self.runs.append(run)
        self.count += len(run)
        self.reached = int(run.offsets[-1]) + 1

    def take(self, end: int, most: int) -> list[MessageRun]:
        """Those before `end`, so many at most."""
        taken = []
        while self.runs and most > 0:
            run = self.runs[0]
            fitting = min(int(np.searchsorted(run.offsets, end)), most)
            if fitting == 0:
                break
            first, rest = run.split(fitting)
            self.runs.popleft()
            if len(rest):
                self.runs.appendleft(rest)
            taken.append(first)
            self.count -= fitting
            most -= fitting
        return taken

    @property
    def following(self) -> int:
        """The place of the next message that is there, else behind all that is known."""
        return int(self.runs[0].offsets[0]) if self.runs else self.reached

    def count_before(self, end: int) -> int:
        """Messages before an offset: others are for a later call, and help nobody who waits for this one."""
        if self.reached <= end:
            return self.count
        return sum(int(np.searchsorted(run.offsets, end)) for run in self.runs)


@dataclass
class _Follow:
    consumer: Consumer
    queues: dict[int, _Queue] = field(default_factory=dict)
    given: dict[int, int] = field(default_factory=dict)  # the place behind what was given
    with_headers: bool = False  # of what is received


class KafkaFollower:
    """Of one table. Not thread-safe."""

    def __init__(self, log: KafkaLog) -> None:
        """Raises what make_admin raises, NotFound TS1705, FixRequest TS1706."""
        self._log, settings = log.connected(), log.settings
        topics = find_topics(self._log)
        if topics.data is None or topics.marker is None:
            raise missing_topic(settings, settings.topic if topics.data is None else settings.marker_topic)
        check_shards(settings, topics)
        self._data, self._met = topics.data, topics.data.partitions
        self._follow: _Follow | None = None
        self._marker_consumer: Consumer | None = None
        self._markers: tuple[list[CommitMarker], ...] = tuple([] for _ in range(settings.shards))
        self._markers_end = [0] * settings.shards
        self._boundaries: tuple[LogBoundary, ...] = ()
        self._registry: SchemaRegistry | None = None

    @property
    def log_id(self) -> str:
        return self._data.topic_id

    @property
    def is_eventual(self) -> bool:
        return self._log.settings.is_eventual

    @property
    def is_upsert(self) -> bool:
        """As FollowedLog; what ignores deletes is taken as it is."""
        return (
            self._log.settings.mode is ChangelogMode.UPSERT and not self._log.settings.formats.ignore_delete
        )

    def boundaries(self) -> Sequence[LogBoundary]:
        """As FollowedLog. Raises FixRequest TS1706 when the topic was made anew."""
        with _told(self._log.settings, "reading the markers"):
            found = [self._read_markers(shard) for shard in range(self._log.settings.shards)]
        for markers in self._markers:
            if markers:
                check_topic_id(self._log.settings, self._data.topic_id, markers[-1].topic_id)
        if any(found):
            is_one, log_id = len(self._markers) == 1, self._data.topic_id
            self._boundaries = (
                to_boundaries(self._markers[0], log_id) if is_one else merge_shards(self._markers, log_id)
            )
        return self._boundaries

    def _read_markers(self, shard: int) -> bool:
        if self._marker_consumer is None:
            self._marker_consumer = make_consumer(self._log.settings.client)
        place = TopicPartition(self._log.settings.marker_topic, shard)
        low, high = self._log.read_span(self._marker_consumer, place)
        begin = max(low, self._markers_end[shard])
        if begin < high:
            records = self._log.read_range(self._marker_consumer, place, (begin, high))
            self._markers[shard].extend(
                decode_marker(value) for value in (one.value() for one in records) if value is not None
            )
            self._markers_end[shard] = high
        return begin < high

    def ends(self) -> Place:
        with _told(self._log.settings, "asking for the ends of the topic"):
            self._meet(self._partitions)
            found = self._log.find_ends(self._places())
        return {partition: end for (_, partition), end in found.items()}

    def beginnings(self) -> Place:
        with _told(self._log.settings, "asking for the beginning of the topic"):
            self._meet(self._partitions)
            found = self._log.find_beginnings(self._places())
        return {partition: begin for (_, partition), begin in found.items()}

    def _places(self) -> list[tuple[str, int]]:
        return [(self._log.settings.topic, partition) for partition in range(self._partitions)]

    @property
    def _partitions(self) -> int:
        """Those that were there, and any that markers know."""
        newest = [markers[-1] for markers in self._markers if markers]
        named = max((partition for one in newest for partition in one.offsets), default=-1) + 1
        return max(self._data.partitions, named)

    def _meet(self, partitions: int) -> None:
        """The topic has got more: clients know those of the moment when they looked. Raises KafkaException."""
        if partitions <= self._met:
            return
        deadline = self._log.deadline_ms()
        for client in (self._log.admin, self._open().consumer):
            while len(self._look(client)) < partitions:
                if self._log.runtime.now_ms() > deadline:
                    raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"no partition {partitions - 1}"))
                self._log.runtime.sleep(_WAIT_SECONDS)
        self._met = partitions

    def _look(self, client: AdminClient | Consumer) -> Sequence[int]:
        found = client.list_topics(self._log.settings.topic, timeout=self._log.settings.client.timeout_s)
        return list(found.topics[self._log.settings.topic].partitions)

    def check_there(self, place: Place) -> None:
        beginnings, ends = self.beginnings(), self.ends()
        for partition, offset in place.items():
            if not beginnings.get(partition, 0) <= offset <= ends.get(partition, 0):
                raise self._gone(partition, offset)

    def read(self, start: Place, until: Place, rows_max: int, *, with_headers: bool = True) -> Messages:
        with _told(self._log.settings, "reading the topic"):
            follow = self._open()
            self._meet(max(until, default=-1) + 1)
            lacks_headers = with_headers and not follow.with_headers
            if lacks_headers or not self._goes_on(follow, start, until):
                follow.with_headers = with_headers
                self._assign(follow, {one: start.get(one, 0) for one in {*start, *until}})
            self._receive(follow, until, rows_max)
            taken = self._take(follow, until, rows_max)
        return to_columns(taken, {**start, **follow.given}, with_headers=with_headers)

    def _open(self) -> _Follow:
        if self._follow is None:
            self._follow = _Follow(make_consumer(self._log.settings.client, reset="error"))
        return self._follow

    def _goes_on(self, follow: _Follow, start: Place, until: Place) -> bool:
        return all(
            partition in follow.given and follow.given[partition] == start.get(partition, 0)
            for partition in {*start, *until}
        )

    def _assign(self, follow: _Follow, place: Place) -> None:
        follow.queues = {partition: _Queue(offset) for partition, offset in place.items()}
        follow.given = dict(place)
        topic = self._log.settings.topic
        follow.consumer.assign([TopicPartition(topic, one, offset) for one, offset in place.items()])

    def _receive(self, follow: _Follow, until: Place, rows_max: int) -> None:
        """Until every partition is known up to `until`, or enough messages are there. Raises KafkaException."""
        deadline = self._log.deadline_ms()
        while not self._has_enough(follow, until, rows_max):
            self._pace(follow, until)
            arrived = follow.consumer.consume(_TAKE, timeout=_WAIT_SECONDS)
            if arrived:
                self._arrived(follow, arrived)
                deadline = self._log.deadline_ms()
            elif self._log.runtime.now_ms() > deadline:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "no answer while reading the topic"))

    @staticmethod
    def _has_enough(follow: _Follow, until: Place, rows_max: int) -> bool:
        if all(follow.queues[partition].reached >= end for partition, end in until.items()):
            return True
        return sum(follow.queues[partition].count_before(end) for partition, end in until.items()) >= rows_max

    def _pace(self, follow: _Follow, until: Place) -> None:
        """Pause partitions that reached `until` and hold QUEUE_MAX messages; resume those that did not reach it."""
        for partition, queue in follow.queues.items():
            is_complete = queue.reached >= until.get(partition, 0)
            where = [TopicPartition(self._log.settings.topic, partition)]
            if queue.is_paused and not is_complete:
                follow.consumer.resume(where)
                queue.is_paused = False
            elif not queue.is_paused and is_complete and queue.count >= QUEUE_MAX:
                follow.consumer.pause(where)
                queue.is_paused = True

    def _arrived(self, follow: _Follow, arrived: Sequence[Message]) -> None:
        """Runs of one partition, cut where it changes or an event lies between."""
        if any(message.error() is not None for message in arrived):
            for message in arrived:
                if message.error() is None:
                    self._put(follow, [message])
                else:
                    self._event(follow, message)
            return
        partitions = np.fromiter((message.partition() for message in arrived), np.int64, len(arrived))
        cuts = [0, *(np.flatnonzero(np.diff(partitions)) + 1).tolist(), len(arrived)]
        for begin, end in pairwise(cuts):
            self._put(follow, arrived[begin:end])

    @staticmethod
    def _put(follow: _Follow, messages: Sequence[Message]) -> None:
        run = MessageRun.of(messages, with_headers=follow.with_headers)
        follow.queues[run.partition].put(run)

    def _event(self, follow: _Follow, message: Message) -> None:
        error, queue = message.error(), follow.queues[message.partition() or 0]
        assert error is not None
        if error.code() == KafkaError._PARTITION_EOF:
            queue.reached = max(queue.reached, message.offset() or 0)
        elif error.code() in _GONE:
            raise self._gone(message.partition() or 0, queue.reached)
        elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:  # nobody here asks its coordinator
            raise KafkaException(error)

    @staticmethod
    def _take(follow: _Follow, until: Place, rows_max: int) -> list[MessageRun]:
        """In the order of partitions; what is left over stays."""
        taken: list[MessageRun] = []
        left = rows_max
        for partition, end in sorted(until.items()):
            queue = follow.queues[partition]
            runs = queue.take(end, left)
            taken += runs
            left -= sum(map(len, runs))
            follow.given[partition] = max(follow.given[partition], min(queue.following, end))
        return taken

    def decode(self, messages: Messages, schemas: Sequence[TableSchema]) -> pa.Table:
        if not self._log.settings.client.registry:
            return decode_messages(messages, schemas, self._log.settings.formats)
        if self._registry is None:
            self._registry = SchemaRegistry(
                self._log.settings.client
            )  # it remembers the schemas that it was asked for
        return decode_messages(messages, schemas, self._log.settings.formats, self._registry.find_schema)

    def close(self) -> None:
        for consumer in (self._marker_consumer, self._follow.consumer if self._follow else None):
            if consumer is not None:
                with suppress(KafkaException, RuntimeError):
                    consumer.close()
        if self._registry is not None:
            self._registry.close()
        self._marker_consumer = self._follow = self._registry = None

    def _gone(self, partition: int, offset: int) -> NotFound:
        return NotFound(
            "TS1358",
            f"messages of topic {self._log.settings.topic} are gone that a reader of {self._log.settings.table} needs",
            why=f"partition {partition} has nothing at offset {offset} any more: retention deleted it, or records "
            "were deleted",
            fix="start again with latest-full (all rows first), or follow the table's files, which keep what consumers "
            "need; a longer log.retention prevents it",
        )


class _told:  # noqa: N801 - a context manager, read as a word
    """A client's errors in our words."""

    def __init__(self, settings: LogSettings, doing: str) -> None:
        self._settings, self._doing = settings, doing

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, KafkaException):
            if code_of(error) in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION):
                raise missing_topic(self._settings, self._settings.topic) from error
            raise translate(error, self._settings, doing=self._doing) from error
