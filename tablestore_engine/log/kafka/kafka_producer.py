"""One transactional producer and its transactions, counting what goes in and what arrives.

INVARIANT  a transaction is only committed when every message that was handed over has a good delivery report:
           a message that the client refuses does not abort a Kafka transaction by itself.
INVARIANT  rows go through produce() one by one: produce_batch() drops headers without a word.
DANGER     after any error the object is thrown away (abandon), never used for another transaction: a late request
           of the failed one could land in the next.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping

from confluent_kafka import KafkaError, KafkaException, Message

from tablestore_engine.errors import EngineBug, FixData
from tablestore_engine.log.kafka.kafka_client import (
    Reasons,
    kafka_error,
    make_producer,
)
from tablestore_engine.log.kafka.message_headers import RowHeaders, row_headers
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.log.message_envelope import EncodedRows

_ABORT_SECONDS = 10.0
_POLL_EVERY = 2048
_LEFTOVER_KEY = b"aborted"  # a compacted topic takes no record without a key; readers never see this one


def serve(
    call: Callable[[float], object], seconds: float, reasons: Reasons, ask: Callable[[], object]
) -> None:
    """Call something that runs our callbacks; a fatal error (fenced by another publisher) is a KafkaException.

    On such an error confluent-kafka raises before the callbacks that are still to run, so that the first of them
    fails with SystemError, whose cause is the KafkaException or lost. A client that failed for good refuses whatever
    it is told next with its reason: `ask` is that next thing. Else what the client said last is the reason.
    """
    try:
        call(seconds)
    except SystemError as error:
        if isinstance(error.__cause__, KafkaException):
            raise error.__cause__ from error
        told = _find_fatal(ask) or reasons.find_last()
        told = told or KafkaError(KafkaError._STATE, "the client failed and did not say why")
        raise KafkaException(told) from error


def _find_fatal(ask: Callable[[], object]) -> KafkaError | None:
    try:
        ask()
    except KafkaException as error:
        inner = kafka_error(error)
        return inner if inner is not None and inner.fatal() else None
    return None


class LogProducer:
    """Not thread-safe; one transaction at a time. Methods raise KafkaException unless they say otherwise."""

    def __init__(self, settings: LogSettings, transactional_id: str) -> None:
        self.reasons = Reasons()
        self._settings = settings
        self._failures: list[tuple[KafkaError, bytes | None, int]] = []
        self._handed = 0
        self._delivered = 0
        self._rows = 0
        self._first: dict[int, int] = {}
        self._last: dict[int, int] = {}
        self._arrived: dict[int, int] = {}
        self._marker_ends: dict[int, int] = {}
        self._producer = make_producer(settings.client, transactional_id, self._on_row, self.reasons)

    @property
    def rows(self) -> int:
        """Rows handed over in this transaction."""
        return self._rows

    @property
    def arrived(self) -> Mapping[int, int]:
        """{partition: rows} of this transaction that were acknowledged."""
        return dict(self._arrived)

    @property
    def marker_end(self) -> int:
        """The offset behind the newest marker of its own shard that this producer wrote; 0 before the first."""
        return self._marker_ends.get(self._settings.shard, 0)

    @property
    def marker_ends(self) -> Mapping[int, int]:
        """The same of every shard whose marker this producer wrote."""
        return dict(self._marker_ends)

    def init(self) -> None:
        """Fence older producers of this id and wait until their transaction is decided."""
        # with a connection and metadata at hand init takes 5 ms; without, often one 500 ms tick of librdkafka
        self._producer.list_topics(self._settings.topic, timeout=self._settings.client.timeout_s)
        self._serve(self._producer.init_transactions, self._settings.client.delivery_s)

    def begin(self) -> None:
        self._handed = self._delivered = self._rows = 0
        self._first.clear()
        self._last.clear()
        self._arrived.clear()
        self._producer.begin_transaction()

    def send(
        self, encoded: EncodedRows, partition: int, headers: RowHeaders, *, span: range, first: int
    ) -> None:
        """Hand over the messages `span` of a batch whose message 0 has number `first`. Raises FixData TS1709."""
        produce, poll, topic = self._producer.produce, self._producer.poll, self._settings.topic
        constant = headers.constant()
        keys, values, kinds = encoded.keys, encoded.values, encoded.kinds
        for index in span:
            key, value = keys[index] if keys is not None else None, values[index]
            named = row_headers(constant, kinds[index], first + index)
            while True:
                try:
                    produce(topic, value, key, partition, headers=named)
                except BufferError:  # the local queue is full: let reports come in
                    self._serve(poll, 0.1)
                except KafkaException as error:
                    self._refuse_oversize(kafka_error(error), key, len(key or b"") + len(value or b""))
                    self._explain_failed_state()
                    raise
                else:
                    break
            if index % _POLL_EVERY == 0:
                self._serve(poll, 0)
        self._handed += len(span)
        self._rows += len(span)

    def settle(self) -> Mapping[int, tuple[int, int]]:
        """Wait for all reports; {partition: (first, next)} of the rows. Raises FixData TS1709, EngineBug TS1714."""
        self._serve(self._producer.flush, self._settings.client.delivery_s + 2)
        for error, key, size in self._failures:
            self._refuse_oversize(error, key, size)
        if self._failures:
            raise KafkaException(self._failures[0][0])
        if len(self._producer):
            raise KafkaException(
                KafkaError(KafkaError._TIMED_OUT, f"{len(self._producer)} messages were not acknowledged")
            )
        if self._delivered != self._handed:
            raise EngineBug(
                "TS1714",
                f"publishing {self._settings.table} was stopped before its commit",
                why=f"expected {self._handed} delivery reports, got {self._delivered}",
                fix="please report this; nothing of the snapshot is visible",
            )
        return {partition: (self._first[partition], last + 1) for partition, last in self._last.items()}

    def send_marker(self, key: bytes, value: bytes, shard: int | None = None) -> None:
        """Write the progress record into the open transaction and wait for its report; of another shard only where a
        log is claimed.
        """
        place = self._settings.shard if shard is None else shard
        self._producer.produce(self._settings.marker_topic, value, key, place, on_delivery=self._on_marker)
        self._handed += 1
        self.settle()

    def commit(self) -> None:
        """Make the transaction visible. After an error the outcome is unknown: init a new producer, read progress."""
        self._serve(self._producer.commit_transaction, self._settings.client.delivery_s)

    def abort_leftovers(self, places: Iterable[tuple[str, int]]) -> None:
        """Abort whatever an earlier transaction of this id left open in these (topic, partition)s.

        A control record ends everything that its producer id has open in a partition: a transaction that touches
        them and is aborted takes the leftovers with it. REQUIRES init, and that nobody has seen the leftovers.
        """
        self.begin()
        for topic, partition in places:
            self._producer.produce(topic, None, _LEFTOVER_KEY, partition, on_delivery=self._on_leftover)
            self._handed += 1
        self.settle()
        self._serve(self._producer.abort_transaction, self._settings.client.delivery_s)

    def abandon(self, *, abort: bool) -> None:
        """Give the producer up; with `abort` readers need not wait for the broker's own time-out."""
        if abort:
            # a failure changes nothing: the successor's init aborts as well
            with contextlib.suppress(KafkaException):
                self._serve(self._producer.abort_transaction, _ABORT_SECONDS)
        self._producer.purge(blocking=False)

    def _serve(self, call: Callable[[float], object], seconds: float) -> None:
        # begin_transaction() changes nothing at the broker, and after a failure this object is thrown away
        serve(call, seconds, self.reasons, self._producer.begin_transaction)

    def _explain_failed_state(self) -> None:
        """An earlier message may have failed the transaction meanwhile: its report is the reason to tell."""
        self._producer.purge(blocking=False)
        self._serve(self._producer.flush, self._settings.client.timeout_s)
        for error, key, size in self._failures:
            self._refuse_oversize(error, key, size)

    def _on_row(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._on_failure(error, message)
            return
        self._delivered += 1
        partition, offset = message.partition(), message.offset()
        if partition is None or offset is None:
            return
        if partition not in self._last:
            self._first[partition] = offset
        self._arrived[partition] = self._arrived.get(partition, 0) + 1
        self._last[partition] = offset  # reports of one partition come in order

    def _on_marker(self, error: KafkaError | None, message: Message) -> None:
        self._on_leftover(error, message)
        if error is None:
            self._marker_ends[message.partition() or 0] = (message.offset() or 0) + 1

    def _on_leftover(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._on_failure(error, message)
        else:
            self._delivered += 1

    def _on_failure(self, error: KafkaError, message: Message) -> None:
        key, value = message.key(), message.value()
        size = len(key or b"") + len(value or b"")
        self._failures.append((error, key if isinstance(key, bytes) else None, size))
        # of a batch that is too large every message fails: the largest is the one to name
        self._failures.sort(key=lambda failure: -failure[2])
        del self._failures[8:]

    def _refuse_oversize(self, error: KafkaError | None, key: bytes | None, size: int) -> None:
        if error is None or error.code() != KafkaError.MSG_SIZE_TOO_LARGE:
            return
        named = (key or b"(none)")[:200].decode("utf-8", "replace")
        raise FixData(
            "TS1709",
            f"a row of {self._settings.table} is too large for topic {self._settings.topic}",
            why=f"key {named}: key and value have {size} bytes; {error.str()}",
            fix="raise max.message.bytes of the topic and 'kafka.message.max.bytes', then publish again; "
            "the snapshot has no commit marker until then",
        )
