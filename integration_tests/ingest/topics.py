"""Topics that others write, for tests of ingesting them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.unit.ingest.encoders import Message


def make_topic(url: str, partitions: int = 1, name: str | None = None) -> str:
    """Its name."""
    topic = name or f"shop.{uuid.uuid4().hex}"
    admin = AdminClient({"bootstrap.servers": url})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)
    return topic


def drop_topic(url: str, topic: str) -> None:
    """And wait."""
    admin = AdminClient({"bootstrap.servers": url})
    admin.delete_topics([topic])[topic].result(30)


def send(url: str, topic: str, messages: Sequence[Message], partition: int = 0) -> None:
    """All of them, in order."""
    producer = Producer({"bootstrap.servers": url, "enable.idempotence": True, "linger.ms": 5})
    for key, value in messages:
        producer.produce(topic, value, key, partition)
    assert producer.flush(30) == 0
