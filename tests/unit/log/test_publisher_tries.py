"""How often the publisher tries: as often as docs/log-system.md says, with a new client each time, and never longer."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from tablestore_engine.errors import FixRequest, RetryError, TablestoreError
from tablestore_engine.log.kafka import kafka_log
from tablestore_engine.log.kafka.client_config import ClientConfig
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.publisher import Publisher
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.log.message_envelope import ChangelogMode
from tablestore_engine.runtime.outside_world import Runtime

SETTINGS = LogSettings(
    "d.t", "u", "t", 1, ChangelogMode.UPSERT, ClientConfig({"bootstrap.servers": "nowhere:1"})
)
AWAY = RetryError("TS1799", "the brokers are away", why="-", fix="-")
WRONG = FixRequest("TS1798", "the log-in is refused", why="-", fix="-")


class World:
    """Brokers that fail each client in the same way; a clock that only `slowness` moves."""

    def __init__(self, trouble: Exception, slowness: int = 0) -> None:
        self.trouble = trouble
        self.slowness = slowness
        self.opened = 0
        self.now = 0
        self.slept: list[float] = []

    def open(self, _: ClientConfig, topic: str) -> AdminClient:
        """In the place of make_admin."""
        self.opened += 1
        self.now += self.slowness
        raise self.trouble

    def runtime(self) -> Runtime:
        """With this clock; sleeping takes no time."""
        return Runtime(now_ms=lambda: self.now, sleep=self.slept.append)


def _publish(publisher: Publisher) -> object:
    return publisher.publish_pending(1, lambda _: None)


def _check(publisher: Publisher) -> object:
    return publisher.check(1)


@pytest.mark.parametrize("action", [_publish, _check], ids=["publish", "check"])
@pytest.mark.parametrize(
    ("trouble", "tries", "error"),
    [
        (AWAY, 4, RetryError),
        (KafkaException(KafkaError(KafkaError._TRANSPORT)), 4, RetryError),
        (KafkaException(KafkaError(KafkaError._FENCED)), 6, TablestoreError),
        (WRONG, 1, FixRequest),
    ],
    ids=["away", "client error", "fenced", "wrong setting"],
)
def test_trouble_is_tried_again_three_times_and_a_wrong_setting_never(
    monkeypatch: pytest.MonkeyPatch,
    action: Callable[[Publisher], object],
    trouble: Exception,
    tries: int,
    error: type[TablestoreError],
) -> None:
    """The first try and three more; five more when another publisher took over; each behind a pause."""
    world = World(trouble)
    monkeypatch.setattr(kafka_log, "make_admin", world.open)
    with pytest.raises(error):
        action(Publisher(KafkaLog(SETTINGS, world.runtime())))
    assert (world.opened, len(world.slept)) == (tries, tries - 1)
    assert all(0 < pause < 10 for pause in world.slept)


def test_time_ends_the_tries_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Publishing waits for three time-outs, the check before a commit for one; a try that ends later is the last."""
    for action, tries in ((_publish, 3), (_check, 1)):
        world = World(AWAY, slowness=10_000)
        monkeypatch.setattr(kafka_log, "make_admin", world.open)
        with pytest.raises(RetryError, match="TS1799"):
            action(Publisher(KafkaLog(SETTINGS, world.runtime())))
        assert world.opened == tries
