"""Do the brokers of a profile answer: for `dbt debug` and `tablestore doctor`.

Names      check_brokers   ask for metadata, bounded in time
"""

from __future__ import annotations

from collections.abc import Mapping

from tablestore_engine.log.kafka.client_translation import check_log_in
from tablestore_engine.log.kafka.kafka_client import make_admin
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.log.message_envelope import ChangelogMode


def check_brokers(log: Mapping[str, str]) -> None:
    """`log`: client settings with the prefix `kafka.`. Raises what publishing would raise (TS17xx)."""
    client = {key.removeprefix("kafka."): value for key, value in log.items() if key.startswith("kafka.")}
    check_log_in(client)
    settings = LogSettings("the profile", "check", "check", 1, ChangelogMode.UPSERT, client)
    make_admin(settings)
