"""Refused by the brokers, or refusing them: log-in, certificate, rights, each in its own words and with its next step.

Names      LOGIN, RIGHTS       codes of Kafka errors that mean one or the other
           login_error()       TS1713: user, password or mechanism
           explain_no_answer() behind a first contact that failed: TS1751 certificate, TS1752 TLS on one side alone,
                               TS1713 a log-in that was not given; None when it is something else
           rights_error()      TS1750: which operations on which topic are missing, as far as the brokers tell
Steps      rights: ask which operations this user has on both topics, hold them against log/kafka_rights.py
INVARIANT  called after a failure only: it costs a connection or two, bounded in time.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    AdminClient,
    TopicDescription,
)

from tablestore_engine.errors import FixRequest
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.log.kafka.tls_probe import TlsFinding, Trust, parse_addresses, probe_tls
from tablestore_engine.log.kafka_rights import Resource, operations

LOGIN = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError.SASL_AUTHENTICATION_FAILED})
RIGHTS = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
    }
)
_CERTIFICATES: Mapping[Trust, str] = {
    Trust.UNKNOWN_CA: "set kafka.ssl.ca.location to the certificate (PEM) of the CA that signed the brokers' ones",
    Trust.EXPIRED: "the brokers need a new certificate (of the development broker: stop it, start it again); look at "
    "the clock of this machine too",
    Trust.WRONG_NAME: "name the brokers in kafka.bootstrap.servers as their certificate does, or let it have this name "
    "(subjectAltName)",
    Trust.OWN_FILES: "correct kafka.ssl.ca.location: a readable file with certificates in PEM",
}
_LOOK_SECONDS = 5.0
_ADDRESSES = 3


def login_error(what: str, why: str) -> FixRequest:
    """The brokers do not know this user."""
    return FixRequest(
        "TS1713",
        what,
        why=f"the brokers refuse the log-in: {why}",
        fix="correct kafka.sasl.username, kafka.sasl.password, kafka.sasl.mechanism and kafka.security.protocol, under "
        "`log:` of the profile or in --kafka-config",
    )


def explain_no_answer(settings: LogSettings, what: str, *, is_over: bool) -> FixRequest | None:
    """Ask the first address that answers. `is_over`: the client has given up, so a guess is better than nothing."""
    protocol = settings.client.get("security.protocol", "plaintext").lower()
    for address in parse_addresses(settings.brokers)[:_ADDRESSES]:
        finding = probe_tls(address, settings.client, verify=protocol.endswith("ssl"))
        if finding.trust is not Trust.NO_ANSWER:
            where = f"{address[0]}:{address[1]}"
            return _explain(settings, finding, what, where, protocol, is_over=is_over)
    return None


def _explain(
    settings: LogSettings, finding: TlsFinding, what: str, where: str, protocol: str, *, is_over: bool
) -> FixRequest | None:
    trust, uses_tls = finding.trust, protocol.endswith("ssl")
    if uses_tls and trust in _CERTIFICATES:
        return FixRequest(
            "TS1751",
            what,
            why=settings.redact(f"the certificate of {where} is not accepted: {finding.said}"),
            fix=_CERTIFICATES[trust],
        )
    if uses_tls == (trust is Trust.NO_TLS):
        spoken, wanted = ("no TLS", "SASL_PLAINTEXT") if uses_tls else ("TLS", "SASL_SSL")
        return FixRequest(
            "TS1752",
            what,
            why=f"{where} speaks {spoken}, and kafka.security.protocol is {protocol.upper()}",
            fix=f"set kafka.security.protocol to {wanted}, or to {wanted.removeprefix('SASL_')} where nobody logs in",
        )
    if protocol == "ssl" and is_over:
        return login_error(
            what, f"{where} speaks TLS, and hung up behind it: it may want kafka.security.protocol=SASL_SSL"
        )
    return None


def rights_error(
    code: int, settings: LogSettings, why: str, *, doing: str, config: Mapping[str, object]
) -> FixRequest:
    """`config`: what clients are made with."""
    user = settings.client.get("sasl.username", "of this client")
    missing = _missing_rights(code, settings, doing, config)
    told = "; ".join(f"{words} on {place}" for place, words in missing.items())
    commands = " and ".join(
        f"kafka-acls.sh --add --allow-principal User:{user} "
        + " ".join(f"--operation {word}" for word in words.split(", "))
        + f" {flag}"
        for flag, words in ((_flag(place), words) for place, words in missing.items())
    )
    return FixRequest(
        "TS1750",
        f"the log of {settings.table} (topic {settings.topic}) failed while {doing}",
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


def _missing_rights(
    code: int, settings: LogSettings, doing: str, config: Mapping[str, object]
) -> dict[str, str]:
    """{"topic orders": "Read, Write"}; {} when the brokers do not tell."""
    if code == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
        return {"transactional ids ts-": "Write"}
    names = {settings.topic: Resource.DATA, settings.marker_topic: Resource.MARKER}
    try:
        admin = AdminClient(dict(config))  # type: ignore[arg-type]  # its stub forgets callbacks
        asked = admin.describe_topics(
            TopicCollection(list(names)), include_authorized_operations=True, request_timeout=_LOOK_SECONDS
        )
    except KafkaException:
        return {}
    missing: dict[str, str] = {}
    for name, resource in names.items():
        lacking = _lacking(asked[name], resource, is_creating=doing.endswith(f" {name}"))
        missing |= {f"topic {name}": ", ".join(lacking)} if lacking else {}
    return missing


def _lacking(asked: Future[TopicDescription], resource: Resource, *, is_creating: bool) -> list[str]:
    """Operations that are needed and not given; of a topic that is not there only Create can be missed."""
    try:
        told = asked.result().authorized_operations or []
    except KafkaException as error:
        inner = error.args[0]
        if inner.code() in RIGHTS:
            return list(operations(resource))
        return ["Create"] if is_creating else []
    has = {operation.name.replace("_", "") for operation in told}
    return [word for word in operations(resource) if word.upper() not in has]
