"""Making and deleting a table's topics while the brokers' view of them is late."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from tablestore_engine.errors import KafkaRequestFailed, RetryError
from tablestore_engine.log.kafka.client_config import ClientConfig
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.kafka_topic import (
    create_topics,
    delete_topics,
    find_settled_topics,
    find_topics,
)
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.log.message_envelope import ChangelogMode
from tablestore_engine.runtime.outside_world import Runtime

SETTINGS = LogSettings("d.t", "uuid", "t", 1, ChangelogMode.UPSERT, ClientConfig({}))
BOTH = frozenset((SETTINGS.topic, SETTINGS.marker_topic))


class LateAdmin:
    """A controller that acts at once, and brokers that show a change `delay` looks later."""

    def __init__(self, delay: int) -> None:
        self.ids: dict[str, int] = {}
        self.delay = delay
        self._made = 0
        self._shown: list[dict[str, int]] = []

    def describe_topics(self, wanted: Any, **_: Any) -> dict[str, Future[Any]]:
        """What the brokers show."""
        self._shown.append(dict(self.ids))
        shown = self._shown[max(0, len(self._shown) - 1 - self.delay)]
        return {name: self._described(shown.get(name)) for name in (SETTINGS.topic, SETTINGS.marker_topic)}

    def create_topics(self, wanted: list[Any], *, validate_only: bool, **_: Any) -> dict[str, Future[None]]:
        """Known to the controller at once."""
        return {one.topic: self._create(one.topic, validate_only) for one in wanted}

    def delete_topics(self, names: list[str], **_: Any) -> dict[str, Future[None]]:
        """Gone for the controller at once."""
        return {name: _answer(KafkaError.UNKNOWN_TOPIC_OR_PART, self.ids.pop(name, None)) for name in names}

    def look(self) -> None:
        """What the brokers show now is what the controller knows."""
        self._shown = [dict(self.ids)] * (self.delay + 1)

    def _create(self, name: str, validate_only: bool) -> Future[None]:
        if name in self.ids:
            return _answer(KafkaError.TOPIC_ALREADY_EXISTS, None)
        if not validate_only:
            self._made += 1
            self.ids[name] = self._made
        return _answer(0, self._made + 1)

    def _described(self, topic_id: int | None) -> Future[Any]:
        partition = SimpleNamespace(replicas=[1])
        found = SimpleNamespace(topic_id=topic_id, partitions=[partition], authorized_operations=())
        future = _answer(KafkaError.UNKNOWN_TOPIC_OR_PART, topic_id)
        if topic_id is not None:
            future = Future()
            future.set_result(found)
        return future


def _answer(code: int, known: object) -> Future[Any]:
    future: Future[Any] = Future()
    if known is None:
        future.set_exception(KafkaException(KafkaError(code)))
    else:
        future.set_result(None)
    return future


def runtime() -> Runtime:
    """A clock that goes on by what is slept, and by a millisecond a look."""
    now = [0]

    def now_ms() -> int:
        now[0] += 1
        return now[0]

    def sleep(seconds: float) -> None:
        now[0] += int(seconds * 1000)

    return Runtime(now_ms=now_ms, sleep=sleep)


def log_of(admin: LateAdmin) -> KafkaLog:
    """One whose brokers are these."""
    return KafkaLog(SETTINGS, runtime(), admin)  # type: ignore[arg-type]  # a fake


@pytest.mark.parametrize("first", sorted(BOTH))
def test_a_topic_that_is_shown_at_the_first_look_but_gone_is_made(first: str) -> None:
    """A drop whose second deletion the brokers do not show yet: both topics exist at the end, both made here."""
    admin = LateAdmin(delay=3)
    create_topics(log_of(admin))
    admin.ids = {name: found for name, found in admin.ids.items() if name != first}
    admin.look()
    admin.ids = {}
    topics, created = create_topics(log_of(admin))
    assert set(admin.ids) == created == BOTH
    assert topics.data is not None
    assert topics.marker is not None


def test_deleted_topics_are_no_longer_shown() -> None:
    """What a table made right behind a drop finds: nothing."""
    admin = LateAdmin(delay=4)
    topics, _ = create_topics(log_of(admin))
    admin.look()
    delete_topics(log_of(admin), BOTH, topics)
    _, created = create_topics(log_of(admin))
    assert created == BOTH


def test_a_topic_that_never_appears_is_named() -> None:
    """TS1720 says which of the two it is."""
    admin = LateAdmin(delay=10**9)
    admin.ids[SETTINGS.topic] = 1
    with pytest.raises(RetryError, match=f"TS1720 topic {SETTINGS.marker_topic} of"):
        create_topics(log_of(admin))


@pytest.mark.parametrize("delay", [0, 1, 3])
def test_a_topic_that_one_broker_does_not_know_yet_is_not_missing(delay: int) -> None:
    """The controller knows it: it is asked for until the broker does too; one that nobody knows is missing at once."""
    admin = LateAdmin(delay)
    log = log_of(admin)
    admin.look()
    assert find_settled_topics(log).data is None
    admin.ids = {SETTINGS.topic: 7, SETTINGS.marker_topic: 8}
    assert (find_topics(log).data is None) == (delay > 0)
    assert find_settled_topics(log).data is not None


def test_a_broker_that_never_learns_of_a_topic_is_an_error() -> None:
    """In bounded time, and never the answer that the topic is gone."""
    admin = LateAdmin(10_000)
    log = log_of(admin)
    admin.look()
    admin.ids = {SETTINGS.topic: 7, SETTINGS.marker_topic: 8}
    with pytest.raises(KafkaRequestFailed, match="TS1711"):
        find_settled_topics(log)
