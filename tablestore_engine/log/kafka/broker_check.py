"""Do the brokers and the schema registry of a profile answer: for `dbt debug` and `tablestore doctor`."""

from __future__ import annotations

from collections.abc import Mapping

from tablestore_engine.log.kafka.client_config import ClientConfig, profile_config, registry_settings
from tablestore_engine.log.kafka.kafka_client import make_admin
from tablestore_engine.log.kafka.schema_registry import SchemaRegistry

_SUBJECT = "the connection of the profile"


def check_brokers(log: Mapping[str, str]) -> None:
    """`log`: client settings with the prefix `kafka.`. Raises what publishing would raise (TS17xx)."""
    make_admin(profile_config(log, subject=_SUBJECT))


def check_registry(log: Mapping[str, str]) -> str:
    """Its address without a log-in. Raises TS1767, TS1768, TS1770-TS1772."""
    client = ClientConfig({}, registry_settings(log), subject=_SUBJECT)
    with SchemaRegistry(client) as registry:
        registry.check_reachable()
    return client.redact(client.registry["url"])
