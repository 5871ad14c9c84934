"""Why a TLS connection to a broker fails: asked of the broker itself, after the Kafka client gave up.

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

_EXPIRED, _NOT_YET = 10, 9  # X509_V_ERR_* of OpenSSL
_WRONG_NAME = frozenset({62, 64})
_PORT = 9092


class Trust(Enum):
    """What a handshake showed."""

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
