"""A broker of three nodes under attack: which node leads what, kills, and a consumer that is not ours.

INVARIANT  only processes of this broker are signalled.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from integration_tests.kafka.source import Row
from tablestore_engine.devservers.kafka_broker import (
    BrokerInfo,
    NodeInfo,
    find_broker,
    start_broker,
    stop_broker,
)
from tablestore_engine.log.kafka import transaction_state

_SECONDS = 300.0


@dataclass(frozen=True)
class Nodes:
    """`folder`: the broker's data folder."""

    folder: Path

    @property
    def info(self) -> BrokerInfo:
        """As it is now."""
        found = find_broker(self.folder)
        assert found is not None
        return found

    @property
    def url(self) -> str:
        """Of all nodes."""
        return self.info.url

    def admin(self) -> AdminClient:
        """A new one."""
        return AdminClient({"bootstrap.servers": self.url, "log_level": 0})

    def node(self, number: int) -> NodeInfo:
        """As it is now."""
        return self.info.nodes[number - 1]

    def leader(self, topic: str, partition: int = 0) -> int:
        """Of a partition that has one."""
        found: list[int | None] = []

        def has_one() -> bool:
            found[:] = [self.find_leader(topic, partition)]
            return found[0] is not None

        wait(has_one, f"{topic}[{partition}] has no leader")
        assert found[0] is not None
        return found[0]

    def find_leader(self, topic: str, partition: int = 0) -> int | None:
        """Of a partition now; None where it has none, or does not exist."""
        known = self.admin().list_topics(topic, timeout=_SECONDS).topics[topic].partitions
        leader = known[partition].leader if partition in known else 0
        return leader if leader > 0 else None

    def in_sync(self, topic: str, partition: int = 0) -> set[int]:
        """Replicas."""
        return set(self._partition(topic, partition).isrs)

    def _partition(self, topic: str, partition: int):  # type: ignore[no-untyped-def]  # its class is not exported
        return self.admin().list_topics(topic, timeout=_SECONDS).topics[topic].partitions[partition]

    def coordinator(self, transactional_id: str) -> int:
        """The node that decides over its transactions."""
        topic = transaction_state.TOPIC
        partitions = len(self.admin().list_topics(topic, timeout=_SECONDS).topics[topic].partitions)
        return self.leader(topic, transaction_state.partition_of(transactional_id, partitions))

    def kill(self, number: int) -> None:
        """SIGKILL, and it is gone."""
        pid = self.node(number).pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):  # another process started it
            os.waitpid(pid, 0)
        wait(lambda: self.node(number).pid is None, f"node {number} survives")

    def stop(self, number: int) -> None:
        """It hands over what it leads."""
        assert stop_broker(self.folder, node=number)

    def lose(self, number: int) -> None:
        """Killed, and its disk is gone."""
        self.kill(number)
        shutil.rmtree(self.node(number).folder)

    def repair(self) -> None:
        """Every node runs; not every replica has caught up."""
        assert start_broker(self.folder).is_whole

    def heal(self) -> None:
        """Every node runs, and every replica is in sync."""
        self.repair()
        wait(lambda: not self.lagging(), "replicas lag")

    def lagging(self) -> set[str]:
        """Topics with a replica that is not in sync."""
        found = self.admin().list_topics(timeout=_SECONDS).topics
        return {
            name
            for name, topic in found.items()
            for one in topic.partitions.values()
            if set(one.isrs) != set(one.replicas)
        }

    def set_min_in_sync(self, topic: str, count: int) -> None:
        """min.insync.replicas of a topic."""
        change = ConfigEntry("min.insync.replicas", str(count), incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
        admin = self.admin()  # its futures die with it
        admin.incremental_alter_configs([resource])[resource].result()


def wait(is_so: Callable[[], bool], otherwise: str) -> None:
    """Brokers that are on their way may not answer."""
    deadline = time.monotonic() + _SECONDS
    while True:
        with suppress(KafkaException):
            if is_so():
                return
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.1)


def committed_rows(url: str, topic: str, partitions: int) -> Mapping[int, list[Row]]:
    """(snapshot, kind, id) per partition, by a plain consumer of committed messages."""
    found: dict[int, list[Row]] = {}
    for partition in range(partitions):
        found[partition] = []
        for message in committed_messages(url, topic, partition):
            headers = dict(message.headers() or [])
            key = json.loads(message.key() or b"")["id"]
            found[partition].append((int(headers["s"]), headers["k"].decode(), key))
    return found


def committed_messages(url: str, topic: str, partition: int) -> Iterator[Message]:
    """From the first to the last stable offset."""
    settings = {
        "bootstrap.servers": url,
        "group.id": "judge",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "log_level": 0,
    }
    with closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition(topic, partition, 0)])
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            message = consumer.poll(1)
            if message is None:
                continue
            error = message.error()
            if error is None:
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                return
        raise AssertionError(f"{topic}[{partition}] does not end")
