"""Refused by the brokers, or refusing them: log-in and certificate, each with its own error and its next step.

LOGIN and RIGHTS: codes of Kafka errors that mean one or the other. What rights a log lacks: log/kafka/log_errors.py.
CHANGE     errors of log-in, certificates and rights
INVARIANT  called after a failure only: it costs a connection or two, bounded in time.
WHY        librdkafka says "certificate verify failed" for an unknown CA, an expired certificate and a wrong name alike,
           and only "transport failure" when one side speaks TLS and the other does not.
INVARIANT  nothing is sent but the TLS handshake; no secret of the settings is used.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from confluent_kafka import KafkaError

from tablestore_engine.errors import FixRequest
from tablestore_engine.log.kafka.client_config import ClientConfig

_EXPIRED, _NOT_YET = 10, 9  # X509_V_ERR_* of OpenSSL
_WRONG_NAME = frozenset({62, 64})
_PORT = 9092


class Trust(Enum):
    TRUSTED = "trusted"
    UNKNOWN_CA = "unknown CA"
    EXPIRED = "out of its time"
    WRONG_NAME = "of another name"
    NO_TLS = "no TLS"
    NO_ANSWER = "no answer"
    OWN_FILES = "own files cannot be read"


@dataclass(frozen=True)
class TlsFinding:
    """`said` is OpenSSL's or the system's own sentence."""

    trust: Trust
    said: str = ""


def parse_addresses(servers: str) -> tuple[tuple[str, int], ...]:
    """`a:1,[::1]:2,PLAINTEXT://b:3` → (a, 1), (::1, 2), (b, 3)."""
    found = []
    for part in servers.split(","):
        text = part.strip().rpartition("://")[2]
        host, colon, port = text.rpartition(":")
        if text and (not colon or not port.isdecimal()):
            host, port = text, str(_PORT)
        if host:
            found.append((host.strip("[]"), int(port)))
    return tuple(found)


def probe_tls(
    address: tuple[str, int], client: Mapping[str, str], *, verify: bool = True, timeout_s: float = 3.0
) -> TlsFinding:
    """One handshake. `verify` False asks only whether the other side speaks TLS."""
    try:
        context = _context(client, verify=verify)
    except (OSError, ValueError) as error:
        return TlsFinding(Trust.OWN_FILES, str(error))
    try:
        connection = socket.create_connection(address, timeout_s)
    except OSError as error:
        return TlsFinding(Trust.NO_ANSWER, str(error))
    try:
        with connection, context.wrap_socket(connection, server_hostname=address[0]):
            return TlsFinding(Trust.TRUSTED)
    except ssl.SSLCertVerificationError as error:
        return TlsFinding(_judge(error.verify_code), error.verify_message)
    except (OSError, ValueError) as error:  # it hung up, or answered what is no TLS
        return TlsFinding(Trust.NO_TLS, str(error))


def _judge(code: int) -> Trust:
    if code in (_EXPIRED, _NOT_YET):
        return Trust.EXPIRED
    return Trust.WRONG_NAME if code in _WRONG_NAME else Trust.UNKNOWN_CA


def _context(client: Mapping[str, str], *, verify: bool) -> ssl.SSLContext:
    """As the client checks. Raises OSError, ValueError for a file that is no certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = client.get("ssl.endpoint.identification.algorithm", "https") != "none"
    if not verify or client.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    location, text = client.get("ssl.ca.location"), client.get("ssl.ca.pem")
    if text:
        context.load_verify_locations(cadata=text)
    elif location and location != "probe":
        is_folder = Path(location).is_dir()
        context.load_verify_locations(
            capath=location if is_folder else None, cafile=None if is_folder else location
        )
    else:
        context.load_default_certs()
    return context


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
