"""Which topics the brokers have.

Names      list_topics   all that this user may see
"""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaException

from tablestore_engine.errors import RetryError
from tablestore_engine.log.kafka.kafka_client import make_admin
from tablestore_engine.log.kafka.settings import reader_settings


def list_topics(profile: Mapping[str, str]) -> tuple[str, ...]:
    """`profile`: settings of the clients. Raises RetryError TS1464, FixRequest TS1701."""
    settings = reader_settings("*", profile)
    try:
        return tuple(make_admin(settings).list_topics(timeout=settings.timeout_s).topics)
    except KafkaException as error:
        raise RetryError(
            "TS1464",
            "the brokers did not say which topics they have",
            why=settings.redact(str(error)),
            fix="check the brokers, and repeat",
        ) from error
