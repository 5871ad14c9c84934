"""The producer half of an eventual log: rows of a change on their way to the topic before their snapshot exists.

Steps      rows → messages (log/message_envelope.py), a slice at a time → produce → all reports → PrepublishedSpan
INVARIANT  `a` is new for every call. The number of an attempt would not do: a command is run again under the
           same identity after a kill, and Spark runs tasks twice; rows of a call that nobody knows are told apart.
INVARIANT  trouble here is no failure of the write: the answer is None, and the rows go behind the commit. The first one
           ends it for the whole write: a snapshot that is not wholly here is sent wholly there.
CRASH      log.early: some are out, and nobody knows which: log/kafka/unconfirmed_records.py finds them
DANGER     a request that was given up may reach the broker late: what it brings lies behind what is known, and is
           found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tablestore_engine.errors import TablestoreError
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.log.kafka.kafka_client import Reasons, make_producer
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.message_headers import Header, RowHeaders, row_headers
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.log.message_envelope import EncodedRows, encode_rows, plan_envelope
from tablestore_engine.runtime.locks import OrderedLock, Rank

_SLICE_ROWS = 32_768
_POLL_EVERY = 2048
_WAIT_SECONDS = 0.05
_TOKEN_CHARS = 16


@dataclass(frozen=True)
class PrepublishedSpan:
    """`rows` messages with header a = `token` lie in [first, following) of a partition, maybe others between them."""

    token: str
    partition: int
    first: int = 0
    following: int = 0
    rows: int = 0

    def has(self, token: str, offset: int) -> bool:
        return token == self.token and self.first <= offset < self.following


@dataclass
class _Reports:
    """What came back for the messages of one call."""

    partition: int
    delivered: int = 0
    first: int = 0
    last: int = -1
    error: KafkaError | None = None

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        """The delivery report; those of one partition come in order."""
        if error is not None:
            self.error = self.error or error
            return
        offset = message.offset() or 0
        self.first = offset if self.delivered == 0 else min(self.first, offset)
        self.last = max(self.last, offset)
        self.delivered += 1

    def check(self) -> None:
        """Raises KafkaException when one failed."""
        if self.error is not None:
            raise KafkaException(self.error)


@dataclass
class PrepublishProducer:
    """Shared by the threads of a process; thrown away after trouble, so that nothing of it is sent later."""

    settings: LogSettings
    _producer: Producer | None = None
    _lock: OrderedLock = field(default_factory=lambda: OrderedLock("early producer", Rank.PROCESS))

    def get(self) -> Producer:
        """Made at first use. Raises FixRequest TS1721."""
        with self._lock:
            if self._producer is None:
                self._producer = make_producer(self.settings.client, None, _unasked, Reasons())
            return self._producer

    def drop(self) -> None:
        """Give it up with what it has not sent; other threads' messages fail with it."""
        with self._lock:
            producer, self._producer = self._producer, None
        if producer is not None:
            producer.purge()
            producer.poll(0)


def _unasked(_: KafkaError | None, __: Message) -> None:
    """Each message names its own report."""


@dataclass
class PrepublishRows:
    """Of one write; goes to Spark workers by pickle, where it makes a producer of its own. A ReceiveRows."""

    log: KafkaLog
    producer: PrepublishProducer
    has_failed: bool = False

    def __reduce__(self) -> tuple[object, ...]:
        return _in_worker, (self.log,)

    def __call__(
        self, commit: str, bucket: int, schema: TableSchema, batches: Iterable[pa.Table]
    ) -> PrepublishedSpan | None:
        """Where the rows lie; None when not all of them were acknowledged."""
        if self.has_failed or bucket >= self.log.settings.partitions:
            return None
        try:
            return self._send(commit, bucket, schema, batches)
        except (KafkaException, TablestoreError):
            self.has_failed = True
            self.producer.drop()
            return None

    def _send(
        self, commit: str, partition: int, schema: TableSchema, batches: Iterable[pa.Table]
    ) -> PrepublishedSpan:
        producer, envelope = (
            self.producer.get(),
            plan_envelope(schema, self.log.settings.mode, self.log.settings.formats),
        )
        token = self.log.runtime.new_uuid().replace("-", "")[:_TOKEN_CHARS]
        headers = RowHeaders(None, commit, token).constant()
        reports, sent = _Reports(partition), 0
        for batch in batches:
            for start in range(0, batch.num_rows, _SLICE_ROWS):
                encoded = encode_rows(batch.slice(start, _SLICE_ROWS), envelope)
                middle = (len(encoded) + 1) // 2
                self._produce(producer, encoded, range(middle), headers, sent, reports)
                self.log.runtime.crash_point("log.early")
                self._produce(producer, encoded, range(middle, len(encoded)), headers, sent, reports)
                sent += len(encoded)
        while reports.delivered < sent:
            producer.flush(_WAIT_SECONDS)
            reports.check()
        return PrepublishedSpan(token, partition, reports.first, reports.last + 1, sent)

    def _produce(
        self,
        producer: Producer,
        encoded: EncodedRows,
        span: range,
        headers: Sequence[Header],
        first: int,
        reports: _Reports,
    ) -> None:
        topic, partition, produce = self.log.settings.topic, reports.partition, producer.produce
        keys = encoded.keys or []
        for index in span:
            named = row_headers(headers, encoded.kinds[index], first + index)
            while True:
                try:
                    produce(
                        topic,
                        encoded.values[index],
                        keys[index],
                        partition,
                        on_delivery=reports,
                        headers=named,
                    )
                except BufferError:  # the local queue is full: messages that wait too long fail, so this ends
                    producer.poll(_WAIT_SECONDS)
                    reports.check()
                else:
                    break
            if index % _POLL_EVERY == 0:
                producer.poll(0)
                reports.check()


def _in_worker(log: KafkaLog) -> PrepublishRows:
    return PrepublishRows(log, PrepublishProducer(log.settings))
