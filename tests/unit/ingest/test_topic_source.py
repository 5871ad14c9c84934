"""A topic as a source, its brokers played: a topic that is made anew meanwhile, partitions that come later."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from tablestore_engine.errors import FixRequest
from tablestore_engine.log.kafka import topic_source
from tablestore_engine.log.kafka.topic_source import TopicSource
from tablestore_engine.runtime.outside_world import Runtime

TOPIC = "shop.orders"


@dataclass
class Brokers:
    """One topic: its id, the messages of each partition; `asked`: how often its id was asked for."""

    topic_id: str = "one"
    messages: list[list[bytes]] = field(default_factory=lambda: [[]])
    asked: int = 0
    places: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)

    def describe_topics(self, _: object, **__: object) -> dict[str, Future[Any]]:
        """As the admin client."""
        self.asked += 1
        answer: Future[Any] = Future()
        answer.set_result(SimpleNamespace(topic_id=self.topic_id, partitions=self.messages))
        return {TOPIC: answer}

    def assign(self, places: list[TopicPartition]) -> None:
        """As the consumer."""
        self.places, self.ends = {one.partition: one.offset for one in places}, {}

    def consume(self, _: int, timeout: float) -> list[Any]:
        """As the consumer: what is there, one of each partition, or its end, once."""
        found = [self._next(partition) for partition in self.places]
        return [one for one in found if one is not None]

    def _next(self, partition: int) -> Any:
        at, there = self.places[partition], self.messages[partition]
        if at >= len(there):
            said, self.ends[partition] = self.ends.get(partition), at
            return None if said == at else Message(partition, at, None)
        self.places[partition] += 1
        return Message(partition, at, there[at])


@dataclass
class Message:
    """Of a consumer; one without a value is the end of a partition."""

    number: int
    at: int
    text: bytes | None

    def __len__(self) -> int:
        return len(self.text or b"")

    def partition(self) -> int:
        """Its number."""
        return self.number

    def offset(self) -> int:
        """Its place."""
        return self.at

    def key(self) -> None:
        """None of them has one."""

    def value(self) -> bytes | None:
        """Its text."""
        return self.text

    def error(self) -> Any:
        """Of the end."""
        return None if self.text is not None else SimpleNamespace(code=lambda: -191)


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    """In place of the clients."""
    made = Brokers()
    monkeypatch.setattr(topic_source, "make_admin", lambda client, topic: made)
    monkeypatch.setattr(topic_source, "make_consumer", lambda settings, reset: made)
    return made


def opened(now: list[int]) -> TopicSource:
    """With a clock."""
    return TopicSource(TOPIC, {"kafka.bootstrap.servers": "x:1"}, Runtime(now_ms=lambda: now[0]))


def start(source: TopicSource) -> str:
    """Before all of it."""
    return source._text({0: 0})


def test_a_topic_that_is_made_anew_while_it_is_followed(brokers: Brokers) -> None:
    """TS1424 before any of its messages is given; while nothing comes it is asked for every few seconds."""
    now = [0]
    source = opened(now)
    brokers.messages[0] = [b"a", b"b"]
    raw = source.read(start(source), 10, 1 << 20, 0)
    assert raw.values == [b"a", b"b"]
    asked = brokers.asked
    for _ in range(3):
        now[0] += 100
        assert len(source.read(raw.reached, 10, 1 << 20, 0)) == 0
    assert brokers.asked == asked, "not each time"
    brokers.topic_id, brokers.messages[0] = "two", [b"x", b"y", b"z"]
    with pytest.raises(FixRequest, match="TS1424"):
        source.read(raw.reached, 10, 1 << 20, 0)


def test_a_topic_that_is_made_anew_and_silent(brokers: Brokers) -> None:
    """It is noticed as well, some seconds later."""
    now = [0]
    source = opened(now)
    raw = source.read(start(source), 10, 1 << 20, 0)
    brokers.topic_id = "two"
    now[0] += 100
    source.read(raw.reached, 10, 1 << 20, 0)
    now[0] += 10_000
    with pytest.raises(FixRequest, match="TS1424"):
        source.read(raw.reached, 10, 1 << 20, 0)


def test_a_partition_that_comes_later(brokers: Brokers) -> None:
    """It is followed from its beginning, without a new start."""
    now = [0]
    source = opened(now)
    brokers.messages[0] = [b"a"]
    raw = source.read(start(source), 10, 1 << 20, 0)
    assert source.is_one_line()
    brokers.messages = [[b"a"], [b"p"]]
    now[0] += 10_000
    raw = source.read(raw.reached, 10, 1 << 20, 0)
    raw = source.read(raw.reached, 10, 1 << 20, 0)
    assert raw.values == [b"p"]
    assert not source.is_one_line()


def test_a_topic_that_never_pauses(brokers: Brokers, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read for so long at most, then what came is given; without that until there are so many messages."""
    now = [0]
    source = opened(now)
    brokers.messages[0] = [b"%d" % number for number in range(100)]
    consume = Brokers.consume

    def slowly(self: Brokers, number: int, timeout: float) -> Any:
        now[0] += 100
        return consume(self, min(number, 1), timeout)

    monkeypatch.setattr(Brokers, "consume", slowly)
    raw = source.read(start(source), 50, 1 << 20, 0.5, 1.0)
    assert len(raw) == 10
    assert len(source.read(raw.reached, 50, 1 << 20, 0.5)) == 50
