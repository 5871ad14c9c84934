"""One log as one argument: what shards share, what goes to another process, and who has a client."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from confluent_kafka.admin import AdminClient

from tablestore_engine.log.kafka import kafka_log as module
from tablestore_engine.log.kafka.client_config import ClientConfig
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.kafka_sink import KafkaSink
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.log.message_envelope import ChangelogMode
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime

SETTINGS = LogSettings(
    "d.t", "u", "t", 5, ChangelogMode.UPSERT, ClientConfig({"sasl.password": "s3cret"}), shards=2, shard=1
)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> KafkaLog:
    """Connected, with a clock that stands still."""
    monkeypatch.setattr(module, "make_admin", lambda client, topic: (client, topic))
    return KafkaLog(SETTINGS, Runtime(now_ms=lambda: 7)).connected()


def test_a_log_has_no_client_before_it_is_connected(log: KafkaLog) -> None:
    """Connecting changes nothing in the log at hand; the client is of its brokers and its topic."""
    unconnected = KafkaLog(SETTINGS)
    assert unconnected.connected() == unconnected
    assert unconnected.connection is None
    assert log.connection == (SETTINGS.client, "t")  # type: ignore[comparison-overlap]  # a fake
    assert log.admin is log.connection
    with pytest.raises(AssertionError, match="not connected"):
        _ = unconnected.admin


def test_shards_share_the_client_and_the_clock(log: KafkaLog) -> None:
    """Another shard of a log differs in what it sends, and in nothing else."""
    first, second = log.all_shards()
    assert (first.settings, second.settings) == SETTINGS.all_shards()
    assert second == log == first.of_shard(1)
    assert first.admin is log.admin
    assert first.runtime is log.runtime
    assert (first.data_places, first.marker_place) == ((("t", 0), ("t", 2), ("t", 4)), ("t__snapshots", 0))
    assert (log.data_places, log.marker_place) == ((("t", 1), ("t", 3)), ("t__snapshots", 1))


def test_an_answer_is_waited_for_as_long_as_the_client_says(log: KafkaLog) -> None:
    """From now on, by the clock of the log."""
    quick = replace(log, settings=replace(SETTINGS, client=ClientConfig({}, timeout_s=0.5)))
    assert (log.deadline_ms(), quick.deadline_ms()) == (10_007, 507)


def test_another_process_gets_the_settings_alone(log: KafkaLog) -> None:
    """No client and no clock crosses, though neither could be pickled; a sink is the same sink there."""
    real = replace(log, connection=AdminClient({}))
    there = pickle.loads(pickle.dumps(real))
    assert (there.settings, there.connection) == (SETTINGS, None)
    assert isinstance(there.runtime, Runtime)
    assert there.runtime is SYSTEM
    sink = KafkaSink(real)
    assert pickle.loads(pickle.dumps(sink)) == sink
    assert "s3cret" not in repr(real)
