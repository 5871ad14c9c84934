"""Settings of a table's two topics: what new ones get, what existing ones must have.

CHANGE     the settings of a topic (options log.retention, log.system.replication)
Must       data: never compacted, for a reader must see every change
           marker: only compacted, for the newest record of each snapshot stays for ever
           both: as many replicas as min.insync.replicas wants; with three or more of them two must have a row before
           it counts, and one that lags must not become the leader
Default    without 'log.system.replication' the brokers decide how many replicas there are, and min.insync.replicas with
           it: what they made is checked like any other topic
WHY        another user's topic may be a table's, and an administrator may change ours.
"""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from tablestore_engine.errors import FixRequest
from tablestore_engine.log.kafka.kafka_log import KafkaLog
from tablestore_engine.log.kafka.leader_wait import refresh_by
from tablestore_engine.log.kafka.settings import LogSettings

_CLEANUP, _RETENTION = "cleanup.policy", "retention.ms"
_MIN_ISR, _UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"
_MANY = 3  # replicas, of which one may be away


def data_config(settings: LogSettings) -> dict[str, str]:
    retention = {} if settings.retention_ms is None else {_RETENTION: str(settings.retention_ms)}
    return {_CLEANUP: "delete", "message.timestamp.type": "CreateTime", **retention, **_safety(settings)}


def marker_config(settings: LogSettings) -> dict[str, str]:
    return {_CLEANUP: "compact", **_safety(settings)}


def _safety(settings: LogSettings) -> dict[str, str]:
    wanted = settings.replication
    if wanted is None or 1 < wanted < _MANY:
        return {_UNCLEAN: "false"}
    # with one replica the brokers' default may be a number that no row can reach
    return {_UNCLEAN: "false", _MIN_ISR: "1" if wanted == 1 else "2"}


def find_misfits(
    config: Mapping[str, str], replicas: int, *, is_marker: bool
) -> Mapping[str, tuple[str, str]]:
    """{setting: (what it must be, why)}; settings that the brokers do not tell are not judged."""
    misfits: dict[str, tuple[str, str]] = {}
    policies = {part.strip() for part in config.get(_CLEANUP, "").split(",")} - {""}
    if is_marker and policies and policies != {"compact"}:
        misfits[_CLEANUP] = (
            "compact",
            "markers would be deleted, and with them how far the table is published",
        )
    if not is_marker and "compact" in policies:
        misfits[_CLEANUP] = ("delete", "changes would vanish that a reader has not seen")
    wanted = int(config.get(_MIN_ISR, "1"))
    if wanted > replicas:
        misfits[_MIN_ISR] = (str(min(2, replicas)), f"it has {replicas} replica(s): no row could be written")
    elif wanted < 2 and replicas >= _MANY:
        misfits[_MIN_ISR] = ("2", "rows would count that only one broker has")
    if config.get(_UNCLEAN, "false") == "true" and replicas > 1:
        misfits[_UNCLEAN] = ("false", "a replica that lags could become the leader and lose rows")
    return misfits


def settle_settings(log: KafkaLog, replicas: Mapping[str, int]) -> None:
    """`replicas`: {topic: of its partition with the fewest}. Raises FixRequest TS1753, KafkaException."""
    settings, configs = log.settings, read_configs(log, tuple(replicas))
    for name, count in replicas.items():
        check_fit(settings, name, configs[name], count)
    wanted = None if settings.retention_ms is None else str(settings.retention_ms)
    if wanted is not None and settings.topic in configs and configs[settings.topic][_RETENTION] != wanted:
        change = ConfigEntry(_RETENTION, wanted, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, settings.topic, incremental_configs=[change])
        asked = log.admin.incremental_alter_configs([resource], request_timeout=settings.client.timeout_s)
        asked[resource].result()


def check_fit(settings: LogSettings, name: str, config: Mapping[str, str], replicas: int) -> None:
    """Raises FixRequest TS1753."""
    misfits = find_misfits(config, replicas, is_marker=name != settings.topic)
    if misfits:
        told = "; ".join(f"{key} must be {wanted}: {why}" for key, (wanted, why) in misfits.items())
        change = ",".join(f"{key}={wanted}" for key, (wanted, _) in misfits.items())
        with_both = (
            " and 'log.system.replication', which sets min.insync.replicas" if _MIN_ISR in misfits else ""
        )
        raise FixRequest(
            "TS1753",
            f"topic {name} cannot carry the log of {settings.table}",
            why=told,
            fix=f"kafka-configs.sh --alter --entity-type topics --entity-name {name} --add-config {change}; or choose "
            f"another 'kafka.topic'{with_both} for a new table",
        )


def read_configs(log: KafkaLog, names: tuple[str, ...]) -> Mapping[str, Mapping[str, str]]:
    """{topic: {setting: value}} of topics that exist; a broker may learn of a new one later than another.

    Raises KafkaException.
    """
    return log.wait.ask(lambda seconds: _ask_configs(log, names, seconds), refresh_by(log.admin))


def _ask_configs(log: KafkaLog, names: tuple[str, ...], seconds: float) -> Mapping[str, Mapping[str, str]]:
    resources = {name: ConfigResource(ResourceType.TOPIC, name) for name in names}
    asked = log.admin.describe_configs(list(resources.values()), request_timeout=seconds)
    return {
        name: {key: str(entry.value) for key, entry in asked[resource].result().items()}
        for name, resource in resources.items()
    }
