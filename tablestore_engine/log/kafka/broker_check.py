"""Do the brokers and the schema registry of a profile answer: for `dbt debug` and `tablestore doctor`.

Names      check_brokers    ask for metadata, bounded in time
           check_registry   ask which kinds of schemas it takes
"""

from __future__ import annotations

from collections.abc import Mapping

from tablestore_engine.log.kafka.client_translation import check_log_in
from tablestore_engine.log.kafka.kafka_client import make_admin
from tablestore_engine.log.kafka.schema_registry import SchemaRegistry
from tablestore_engine.log.kafka.settings import REGISTRY_PREFIX, LogSettings
from tablestore_engine.log.message_envelope import ChangelogMode


def check_brokers(log: Mapping[str, str]) -> None:
    """`log`: client settings with the prefix `kafka.`. Raises what publishing would raise (TS17xx)."""
    client = {key.removeprefix("kafka."): value for key, value in log.items() if key.startswith("kafka.")}
    check_log_in(client)
    settings = LogSettings("the profile", "check", "check", 1, ChangelogMode.UPSERT, client)
    make_admin(settings)


def check_registry(log: Mapping[str, str]) -> str:
    """Its address without a log-in. Raises TS1767, TS1768, TS1770-TS1772."""
    said = {
        key.removeprefix(REGISTRY_PREFIX): text
        for key, text in log.items()
        if key.startswith(REGISTRY_PREFIX)
    }
    settings = LogSettings("the profile", "check", "check", 1, ChangelogMode.UPSERT, {}, registry=said)
    with SchemaRegistry(settings) as registry:
        registry.check_reachable()
    return settings.redact(said["url"])
