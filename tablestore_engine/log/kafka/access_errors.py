"""Refused by the brokers, or refusing them: log-in and certificate, each with its own error and its next step.

LOGIN and RIGHTS: codes of Kafka errors that mean one or the other. What rights a log lacks: log/kafka/log_errors.py.
CHANGE     errors of log-in, certificates and rights
INVARIANT  called after a failure only: it costs a connection or two, bounded in time.
"""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaError

from tablestore_engine.errors import FixRequest
from tablestore_engine.log.kafka.client_config import ClientConfig
from tablestore_engine.log.kafka.tls_probe import TlsFinding, Trust, parse_addresses, probe_tls

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


def explain_no_answer(config: ClientConfig, what: str, *, is_over: bool) -> FixRequest | None:
    """Ask the first address that answers. `is_over`: the client has given up, so a guess is better than nothing."""
    protocol = config.properties.get("security.protocol", "plaintext").lower()
    for address in parse_addresses(config.brokers)[:_ADDRESSES]:
        finding = probe_tls(address, config.properties, verify=protocol.endswith("ssl"))
        if finding.trust is not Trust.NO_ANSWER:
            where = f"{address[0]}:{address[1]}"
            return _explain(config, finding, what, where, protocol, is_over=is_over)
    return None


def _explain(
    config: ClientConfig, finding: TlsFinding, what: str, where: str, protocol: str, *, is_over: bool
) -> FixRequest | None:
    trust, uses_tls = finding.trust, protocol.endswith("ssl")
    if uses_tls and trust in _CERTIFICATES:
        return FixRequest(
            "TS1751",
            what,
            why=config.redact(f"the certificate of {where} is not accepted: {finding.said}"),
            fix=_CERTIFICATES[trust],
        )
    if uses_tls == (trust is Trust.NO_TLS):
        spoken, wanted = ("no TLS", "SASL_PLAINTEXT") if uses_tls else ("TLS", "SASL_SSL")
        return FixRequest(
            "TS1752",
            what,
            why=f"{where} speaks {spoken}, and kafka.security.protocol is {protocol.upper()}",
            fix=f"set kafka.security.protocol to {wanted}, or to {wanted.removeprefix('SASL_')} without authentication",
        )
    if protocol == "ssl" and is_over:
        return login_error(
            what, f"{where} speaks TLS, and hung up behind it: it may want kafka.security.protocol=SASL_SSL"
        )
    return None
