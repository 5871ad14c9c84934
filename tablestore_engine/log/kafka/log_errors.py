"""A KafkaException of a table's log → one of our errors, by what the caller must do.

Missing rights are named: the brokers are asked which operations this user has on both topics, and the answer is
compared with log/kafka_rights.py.
CHANGE     errors of the brokers about a table's log
INVARIANT  asked after a failure only, with one connection, bounded in time.
"""

from __future__ import annotations

from concurrent.futures import Future

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    TopicDescription,
)

from tablestore_engine.errors import Fenced, FixRequest, RetryError, TablestoreError
from tablestore_engine.log.kafka.access_errors import RIGHTS
from tablestore_engine.log.kafka.kafka_client import (
    FENCED,
    Reasons,
    client_error,
    code_of,
    open_admin,
    why_of,
)
from tablestore_engine.log.kafka.replica_lag import LATE, explain_replicas
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.log.kafka_rights import Resource, operations

_LOOK_SECONDS = 5.0


def translate(
    error: KafkaException,
    settings: LogSettings,
    *,
    doing: str,
    topic: str | None = None,
    reasons: Reasons | None = None,
) -> TablestoreError:
    """TS1750 for missing rights, TS1710 fenced, TS1779 for too few replicas in sync, else as client_error.

    `topic`: the one that was asked for or changed; without a right to it, the topic may be one that is not there.
    """
    code, client = code_of(error), settings.client
    is_login = reasons is not None and reasons.find_login_failure() is not None
    if code in RIGHTS:
        return _rights_error(code, settings, why_of(error, client, reasons), doing=doing, topic=topic)
    lag = explain_replicas(settings) if code in LATE and not is_login else None
    if lag is not None:
        return RetryError(
            "TS1779",
            f"{client.subject} failed while {doing}",
            why=f"too few replicas are in sync: {lag}; {why_of(error, client, reasons)}",
            fix="start the brokers that are away, or wait until their replicas are in sync, then publish again",
        )
    if code not in FENCED or is_login:
        return client_error(error, client, doing=doing, reasons=reasons)
    return Fenced(
        "TS1710",
        f"{client.subject} failed while {doing}",
        why=f"another publisher of this table took over: {why_of(error, client, reasons)}",
        fix="run one publisher of a table at a time; what it did not publish, the next run does",
    )


def _rights_error(code: int, settings: LogSettings, why: str, *, doing: str, topic: str | None) -> FixRequest:
    user = settings.client.properties.get("sasl.username", "of this client")
    missing = _missing_rights(code, settings, topic)
    told = "; ".join(f"{words} on {place}" for place, words in missing.items())
    commands = " and ".join(
        f"kafka-acls.sh --add --allow-principal User:{user} "
        + " ".join(f"--operation {word}" for word in words.split(", "))
        + f" {flag}"
        for flag, words in ((_flag(place), words) for place, words in missing.items())
    )
    return FixRequest(
        "TS1750",
        f"{settings.client.subject} failed while {doing}",
        why=f"the user {user} has no right to it: {told + '; ' if told else ''}{why}",
        fix=f"let an administrator give it: {commands}"
        if commands
        else "let an administrator give the rights that docs/log-system.md lists",
    )


def _flag(place: str) -> str:
    kind, _, name = place.rpartition(" ")
    if kind == "topic":
        return f"--topic {name}"
    return f"--transactional-id {name} --resource-pattern-type prefixed"


def _missing_rights(code: int, settings: LogSettings, topic: str | None) -> dict[str, str]:
    """{"topic orders": "Read, Write"}; {} when the brokers do not tell."""
    if code == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        return {"transactional ids ts-": "Write"}
    names = {settings.topic: Resource.DATA, settings.marker_topic: Resource.MARKER}
    try:
        admin = open_admin(settings.client, Reasons())
        asked = admin.describe_topics(
            TopicCollection(list(names)), include_authorized_operations=True, request_timeout=_LOOK_SECONDS
        )
    except KafkaException:
        return {}
    missing: dict[str, str] = {}
    for name, resource in names.items():
        lacking = _lacking(asked[name], resource, is_creating=name == topic)
        missing |= {f"topic {name}": ", ".join(lacking)} if lacking else {}
    return missing


def _lacking(asked: Future[TopicDescription], resource: Resource, *, is_creating: bool) -> list[str]:
    """Operations that are needed and not given; of a topic that is not there only Create can be missed."""
    try:
        told = asked.result().authorized_operations or []
    except KafkaException as error:
        if code_of(error) in RIGHTS:
            return list(operations(resource))
        return ["Create"] if is_creating else []
    has = {operation.name.replace("_", "") for operation in told}
    return [word for word in operations(resource) if word.upper() not in has]
