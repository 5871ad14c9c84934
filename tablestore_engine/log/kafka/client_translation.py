r"""Client settings as people have them (Java's spelling, librdkafka's second names) → as librdkafka is given them.

CHANGE     a client setting in Java's spelling
Steps      1 unknown names are refused with the nearest known one 2 the JAAS text becomes user and password 3 trust and
           key stores in PEM and PKCS#12 become files that OpenSSL reads 4 what has another name gets it
Refused    what cannot be said to librdkafka, with what to write instead: JKS stores, Java classes
INVARIANT  translating twice is translating once; no value that may be a secret goes into an error.
Grammar    of the JAAS text: class flag (name=value)* `;` with values in " or ' (where \ escapes) or bare, as Java's own
           reader has it (a StreamTokenizer: \n \t and octal numbers mean what they mean in C); one module, no more
INVARIANT  the JAAS text holds a password: nothing of it goes into an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tablestore_engine.errors import FixRequest
from tablestore_engine.log.kafka.client_keys import (
    KNOWN,
    OF_ENGINE,
    OF_JAVA,
    SAME_AS,
    find_nearest,
    is_client_key,
)

_TOKEN = re.compile(
    r"""\s*(?:(?P<sign>[=;])|"(?P<double>(?:[^"\\\n]|\\.)*)"|'(?P<single>(?:[^'\\\n]|\\.)*)'|(?P<bare>[^\s=;"']+))""",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.DOTALL)
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})


@dataclass(frozen=True)
class LoginModule:
    """`name` as in ScramLoginModule."""

    name: str
    options: Mapping[str, str] = field(repr=False)


def parse_jaas(text: str) -> LoginModule | None:
    tokens = _tokens(text)
    if tokens is None or len(tokens) < 3 or tokens[-1] != ("sign", ";"):
        return None
    (kind, name), (_, flag), *rest = tokens[:-1]
    if kind == "sign" or flag.lower() not in _FLAGS or len(rest) % 3:
        return None
    options: dict[str, str] = {}
    for at in range(0, len(rest), 3):
        key, sign, value = rest[at : at + 3]
        if key[0] == "sign" or sign != ("sign", "=") or value[0] == "sign" or key[1] in options:
            return None
        options[key[1]] = value[1]
    return LoginModule(name.rpartition(".")[2], options)


def _tokens(text: str) -> list[tuple[str, str]] | None:
    """(sign, = or ;), (word, text) …; None for a quote that is not closed."""
    found: list[tuple[str, str]] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        token = _TOKEN.match(text, at)
        if token is None:
            return None
        if token["sign"]:
            found.append(("sign", token["sign"]))
        elif token["bare"] is not None:
            found.append(("word", token["bare"]))
        else:
            quoted = token["double"] if token["double"] is not None else token["single"]
            found.append(("word", _ESCAPE.sub(_unescape, quoted)))
        at = token.end()
    return found


def _unescape(found: re.Match[str]) -> str:
    text = found[1]
    if text[0] in "01234567":
        return chr(int(text, 8))
    return _LETTERS.get(text, text)


_PREFIX = "kafka."
_PEM = (".pem", ".crt", ".cer", ".ca-bundle")
_JKS = (".jks", ".keystore", ".truststore")
_LOG_IN: Mapping[str, Mapping[str, str]] = {
    "ScramLoginModule": {"username": "sasl.username", "password": "sasl.password"},
    "PlainLoginModule": {"username": "sasl.username", "password": "sasl.password"},
    "OAuthBearerLoginModule": {
        "clientId": "sasl.oauthbearer.client.id",
        "clientSecret": "sasl.oauthbearer.client.secret",
        "scope": "sasl.oauthbearer.scope",
    },
    "Krb5LoginModule": {
        "keyTab": "sasl.kerberos.keytab",
        "principal": "sasl.kerberos.principal",
        "serviceName": "sasl.kerberos.service.name",
    },
}
_MECHANISMS = {
    "ScramLoginModule": "SCRAM-SHA-",
    "PlainLoginModule": "PLAIN",
    "OAuthBearerLoginModule": "OAUTHBEARER",
    "Krb5LoginModule": "GSSAPI",
}
_FOR_JAVA_ALONE = frozenset(
    {"useKeyTab", "storeKey", "useTicketCache", "renewTicket", "doNotPrompt", "refreshKrb5Config"}
)


def translate_settings(settings: Mapping[str, str], source: str) -> dict[str, str]:
    """`source` says where they stand, for errors; keys without the prefix are not ours and stay.

    Raises FixRequest TS1754 (unknown), TS1755 (no counterpart), TS1756 (JAAS text), TS1757 (contradiction).
    """
    given: dict[str, str] = {}
    kept: dict[str, str] = {}
    for key, value in settings.items():
        if key.startswith(_PREFIX):
            given[key.removeprefix(_PREFIX)] = str(value)
        elif is_client_key(key):
            raise _unknown(key, source, f"a setting of the Kafka client is written {_PREFIX}{key} here", key)
        else:
            kept[key] = value
    jaas = given.pop("sasl.jaas.config", None)
    found = _trust_store(given, source) | _key_store(given, source)
    for key, value in given.items():
        name, text = _translate(key, value, source)
        if found.get(name, text) != text:
            raise _contradiction(
                source, f"{_PREFIX}{name} is said twice, as {_PREFIX}{key} too", f"leave {_PREFIX}{key} out"
            )
        found[name] = text
    if jaas is not None:
        found = _log_in(jaas, found, source)
    return {**kept, **{_PREFIX + key: value for key, value in found.items()}}


def check_log_in(client: Mapping[str, str]) -> None:
    """`client`: without the prefix. Raises FixRequest TS1757: librdkafka would try Kerberos by itself."""
    if client.get("security.protocol", "").lower().startswith("sasl_") and not client.get("sasl.mechanism"):
        raise _contradiction(
            "the Kafka client",
            "kafka.security.protocol asks for a log-in by SASL, and no mechanism is named",
            "set kafka.sasl.mechanism to SCRAM-SHA-512, SCRAM-SHA-256, PLAIN, OAUTHBEARER or GSSAPI, as the brokers do",
        )


def _translate(key: str, value: str, source: str) -> tuple[str, str]:
    """One key without the prefix."""
    name = SAME_AS.get(key, key)
    if name not in KNOWN | OF_ENGINE:
        if key in OF_JAVA:
            raise _untranslatable(key, source, "librdkafka has no such setting", OF_JAVA[key])
        near = find_nearest(key)
        raise _unknown(
            key, source, f"no Kafka client has such a setting; the nearest one is {_PREFIX}{near}", near
        )
    if name == "ssl.endpoint.identification.algorithm":
        return name, value.strip().lower() or "none"  # Java switches the check off by an empty text
    if key in {"send.buffer.bytes", "receive.buffer.bytes"} and value.strip() == "-1":
        return name, "0"  # what the system has
    return name, value


def _trust_store(given: dict[str, str], source: str) -> dict[str, str]:
    """Takes the keys of Java's trust store out of `given`; what OpenSSL reads instead."""
    kind = given.pop("ssl.truststore.type", "").upper()
    location = given.pop("ssl.truststore.location", None)
    if location is None:
        if kind not in {"", "PEM"}:
            raise _untranslatable(
                "ssl.truststore.type", source, f"{kind} names no file", "write kafka.ssl.ca.location"
            )
        return {}
    if kind == "PEM" or (not kind and location.lower().endswith(_PEM)):
        return {"ssl.ca.location": location}
    raise _untranslatable(
        "ssl.truststore.location",
        source,
        f"it is a store of type {kind or 'JKS'}, and librdkafka trusts certificates in PEM",
        f"keytool -exportcert -rfc -keystore {location} -alias ALIAS -file ca.pem for each CA (keytool -list names "
        "them), join the files, and write kafka.ssl.ca.location=ca.pem instead of all kafka.ssl.truststore.*",
    )


def _key_store(given: dict[str, str], source: str) -> dict[str, str]:
    """Takes Java's type of a key store out of `given`, and its place where OpenSSL calls it otherwise."""
    kind = given.pop("ssl.keystore.type", "").upper()
    location = given.get("ssl.keystore.location", "")
    if kind == "PEM":
        given.pop("ssl.keystore.location", None)
        if "ssl.keystore.password" in given:
            raise _untranslatable(
                "ssl.keystore.password", source, "a key store in PEM has none", "write kafka.ssl.key.password"
            )
        return {"ssl.certificate.location": location, "ssl.key.location": location} if location else {}
    if kind not in {"", "PKCS12"} or (not kind and location.lower().endswith(_JKS)):
        raise _untranslatable(
            "ssl.keystore.location",
            source,
            f"it is a store of type {kind or 'JKS'}, and librdkafka reads PKCS#12 and PEM",
            f"keytool -importkeystore -srckeystore {location or 'STORE'} -destkeystore client.p12 -deststoretype "
            "PKCS12, and write kafka.ssl.keystore.location=client.p12",
        )
    return {}


def _log_in(jaas: str, found: dict[str, str], source: str) -> dict[str, str]:
    """`found` with what the JAAS text says. Raises TS1756, TS1757."""
    module = parse_jaas(jaas)
    names = None if module is None else _LOG_IN.get(module.name)
    if module is None or names is None:
        named = "" if module is None or not module.name.isidentifier() else f" {module.name}"
        raise FixRequest(
            "TS1756",
            f"{_PREFIX}sasl.jaas.config of {source} cannot be read",
            why="expected ScramLoginModule, PlainLoginModule, OAuthBearerLoginModule or Krb5LoginModule, then "
            f"required, options and a semicolon; got another text{named}, which is not shown, since it holds a secret",
            fix="write kafka.sasl.mechanism, kafka.sasl.username and kafka.sasl.password instead",
        )
    _check_mechanism(module, found, source)
    said: dict[str, str] = {}
    for option, value in module.options.items():
        if option in names:
            said[names[option]] = value
        elif option not in _FOR_JAVA_ALONE:
            known = option if option.replace("_", "").isalnum() and len(option) < 40 else "that is not shown"
            raise _untranslatable(
                "sasl.jaas.config",
                source,
                f"its option {known} means nothing to librdkafka",
                "leave that option out",
            )
    for key, value in said.items():
        if found.get(key, value) != value:
            raise _contradiction(
                source, f"{_PREFIX}{key} is said twice, in {_PREFIX}sasl.jaas.config too", "say it once"
            )
    if module.name == "OAuthBearerLoginModule" and "sasl.oauthbearer.token.endpoint.url" in found:
        said["sasl.oauthbearer.method"] = "oidc"
    return {**found, **said}


def _check_mechanism(module: LoginModule, found: Mapping[str, str], source: str) -> None:
    mechanism, wanted = found.get("sasl.mechanism", "").upper(), _MECHANISMS[module.name]
    if mechanism and not mechanism.startswith(wanted):
        raise _contradiction(
            source,
            f"kafka.sasl.mechanism and the {module.name} of kafka.sasl.jaas.config do not fit together",
            f"set kafka.sasl.mechanism to {wanted + '512' if wanted.endswith('-') else wanted}, or take another module",
        )


def _unknown(key: str, source: str, why: str, near: str) -> FixRequest:
    return FixRequest(
        "TS1754", f"{key!r} of {source} is no setting", why=why, fix=f"write {_PREFIX}{near}, or leave it out"
    )


def _untranslatable(key: str, source: str, why: str, fix: str) -> FixRequest:
    return FixRequest("TS1755", f"{_PREFIX}{key} of {source} cannot be used", why=why, fix=fix)


def _contradiction(source: str, why: str, fix: str) -> FixRequest:
    return FixRequest("TS1757", f"the Kafka settings of {source} do not fit together", why=why, fix=fix)
