"""Rows of a change on their way to an eventual log: a client in memory that acknowledges, refuses, or is slow."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException

from tablestore_engine.format.schema import new_schema
from tablestore_engine.log.decode import decode_keys
from tablestore_engine.log.kafka import prepublish_producer as module
from tablestore_engine.log.kafka.client_config import ClientConfig
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.prepublish_producer import (
    PrepublishedSpan,
    PrepublishProducer,
    PrepublishRows,
)
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.log.message_envelope import ChangelogMode
from tablestore_engine.runtime.outside_world import Runtime

CLIENT = {"bootstrap.servers": "nowhere:1", "sasl.password": "s3cret"}
SETTINGS = LogSettings("d.t", "u", "topic", 2, ChangelogMode.UPSERT, ClientConfig(CLIENT), is_eventual=True)
SCHEMA = new_schema(
    pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.string())]), primary_keys=["id"]
)


@dataclass
class _Message:
    at: int

    def offset(self) -> int:
        """As Message."""
        return self.at


@dataclass
class _Client:
    """Offsets from 100 on, every other one somebody else's; the call `breaks_at` is refused."""

    sent: list[dict[str, object]] = field(default_factory=list)
    waiting: list[Callable[[], None]] = field(default_factory=list)
    queue: int = 3
    breaks_at: int = -1
    purged: int = 0

    def produce(self, topic, value, key, partition, *, on_delivery, headers):  # type: ignore[no-untyped-def]
        """As Producer."""
        if len(self.waiting) >= self.queue:
            raise BufferError
        number = len(self.sent)
        self.sent.append({"key": key, "value": value, "partition": partition, **dict(headers)})
        error = KafkaError(KafkaError._MSG_TIMED_OUT) if number == self.breaks_at else None
        self.waiting.append(lambda: on_delivery(error, _Message(100 + 2 * number)))

    def poll(self, _: float) -> None:
        """As Producer."""
        while self.waiting:
            self.waiting.pop(0)()

    flush = poll

    def purge(self) -> None:
        """As Producer."""
        self.purged += 1


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> _Client:
    """The one that every producer is."""
    made = _Client()
    monkeypatch.setattr(module, "make_producer", lambda *_: made)
    return made


def _rows(*kinds: int) -> pa.Table:
    ids = list(range(len(kinds)))
    return pa.table({"id": ids, "v": [f"v{i}" for i in ids], "_ROW_KIND": pa.array(kinds, pa.int8())})


def _early() -> PrepublishRows:
    ids = iter("0123456789")
    runtime = Runtime(new_uuid=lambda: next(ids) * 32, on_crash_point=lambda _: None)
    return PrepublishRows(KafkaLog(SETTINGS, runtime), PrepublishProducer(SETTINGS))


def test_rows_go_out_with_who_sent_them(client: _Client) -> None:
    """-U is left out, -D is a tombstone; no header names a snapshot; the answer says where they lie."""
    span = _early()("me:7", 1, SCHEMA, [_rows(0, 1, 2), _rows(3)])
    assert span == PrepublishedSpan("0" * 16, 1, 100, 105, 3)
    assert [one["k"] for one in client.sent] == [b"+I", b"+U", b"-D"]
    assert [one["q"] for one in client.sent] == [b"0", b"1", b"2"]
    assert {one["c"] for one in client.sent} == {b"me:7"}
    assert {one["a"] for one in client.sent} == {b"0" * 16}
    assert all("s" not in one and one["partition"] == 1 for one in client.sent)
    assert client.sent[2]["value"] is None
    keys = [one["key"] for one in client.sent]
    assert decode_keys([key for key in keys if isinstance(key, bytes)], SCHEMA).to_pydict() == {
        "id": [0, 2, 0]
    }


def test_every_call_has_its_own_token(client: _Client) -> None:
    """A task that runs twice can be told from itself."""
    early = _early()
    first, second = (early("me:7", 0, SCHEMA, [_rows(0)]) for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.token != second.token
    assert len(client.sent) == 2


def test_a_change_without_messages_is_whole(client: _Client) -> None:
    """Nothing to wait for."""
    assert _early()("me:7", 0, SCHEMA, []) == PrepublishedSpan("0" * 16, 0)
    assert client.sent == []


@pytest.mark.parametrize("at", [0, 3, 7])
def test_a_message_that_is_not_acknowledged_ends_it_for_the_write(client: _Client, at: int) -> None:
    """No error: the answer is None, what waits is given up, and the rest of the write is not tried."""
    client.breaks_at = at
    early = _early()
    assert early("me:7", 0, SCHEMA, [_rows(*[0] * 8)]) is None
    assert client.purged == 1
    count = len(client.sent)
    assert early("me:7", 1, SCHEMA, [_rows(0)]) is None
    assert len(client.sent) == count


def test_a_client_that_cannot_be_made_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where certificates are not on a worker."""

    def refuse(*_: object) -> None:
        raise KafkaException(KafkaError(KafkaError._INVALID_ARG))

    monkeypatch.setattr(module, "make_producer", refuse)
    assert _early()("me:7", 0, SCHEMA, [_rows(0)]) is None


def test_it_travels_to_a_worker(client: _Client) -> None:
    """With settings alone; there it makes a client of its own. A bucket that the topic has not is left out."""
    early = _early()
    assert early("me:7", 0, SCHEMA, [_rows(0)]) is not None
    there = pickle.loads(pickle.dumps(early))
    assert there.log == KafkaLog(SETTINGS)
    assert there.producer is not early.producer
    assert there("me:7", 5, SCHEMA, [_rows(0)]) is None
    assert "s3cret" not in repr(there)


@pytest.mark.parametrize(
    "key", [b"", b"{}", b'{"other":1}', b'{"id":1,"x":2}', b'{"id":null}', b'{"id":"x"}']
)
def test_a_key_that_no_row_can_have_is_left_out(key: bytes) -> None:
    """Of a column that was renamed, of another type, or no key of ours at all: its row is a tombstone."""
    assert decode_keys([b'{"id":1}', key, b'{"id":2}'], SCHEMA).to_pydict() == {"id": [1, 2]}
