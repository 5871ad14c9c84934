"""How clients reach the Kafka brokers and the schema registry: addresses, security, time-outs. No table, no topic.

CHANGE     brokers, security and time-outs of every Kafka client (options kafka.compression.type, kafka.linger.ms,
           kafka.batch.size, kafka.transaction.timeout.ms)
Trust      brokers, security, files and plugins come from the profile, the environment or --bootstrap alone. A table may
           have been written by anybody: it only tunes messages, by the kafka.* rows of the table of options.
INVARIANT  secrets never leave `properties` and `registry`, which are left out of repr; `redact` takes them out of any
           text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tablestore_engine.errors import FixRequest
from tablestore_engine.log.kafka.client_keys import ANSWER_MS
from tablestore_engine.log.kafka.client_translation import check_log_in
from tablestore_engine.options import OPTIONS

REGISTRY_PREFIX = "schema.registry."
KAFKA_PREFIX = "kafka."
BROKERS = "kafka.bootstrap.servers"
_TUNING = frozenset(key for key in OPTIONS if key.startswith(KAFKA_PREFIX)) - {"kafka.topic"}
# what makes exactly-once work is not for sale
_OWNED = frozenset(
    {
        "transactional.id",
        "enable.idempotence",
        "isolation.level",
        "group.id",
        "enable.auto.commit",
        "enable.partition.eof",
        "auto.offset.reset",
        "acks",
        "request.required.acks",
    }
)
_SECRET = re.compile(
    r"passw|passphrase|secret|jaas|key\.pem|keystore\.key|token|credential|oauthbearer\.config|user\.info",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ClientConfig:
    """What admin clients, producers, consumers and the client of a schema registry are made with.

    `properties`: librdkafka configuration without the prefix `kafka.`; `registry`: settings of the schema registry
    without theirs. `subject`: what the clients are for, in errors. `group_id`: no group is ever joined, but a consumer
    must have one. `timeout_s`: seconds until brokers must have answered.
    """

    properties: Mapping[str, str] = field(repr=False)
    registry: Mapping[str, str] = field(default_factory=dict, repr=False)
    subject: str = "the Kafka connection"
    group_id: str = "tablestore"
    timeout_s: float = 10.0

    @property
    def delivery_s(self) -> float:
        """How long brokers may be away in the middle of a transaction: less than its own two minutes."""
        return min(3 * self.timeout_s, 100.0)

    @property
    def brokers(self) -> str:
        return self.properties["bootstrap.servers"]

    def redact(self, text: str) -> str:
        """The text without any secret value of the client configuration."""
        for key, value in (*self.properties.items(), *self.registry.items()):
            if _SECRET.search(key) and value:
                text = text.replace(value, "***")
        return re.sub(r"//[^/@\s]*@", "//***@", text)  # a registry's URL may hold a user and a password


def profile_config(
    profile: Mapping[str, str], *, subject: str = "the Kafka connection", group_id: str = "tablestore"
) -> ClientConfig:
    """Of clients that belong to no table. Raises FixRequest TS1436 where no brokers are named, TS1701."""
    if not profile.get(BROKERS):
        raise FixRequest(
            "TS1436",
            f"no brokers are named for {subject}",
            why=f"{BROKERS} is nowhere set",
            fix="add it to `log:` of the profile, or give --bootstrap or TABLESTORE_KAFKA",
        )
    properties = client_properties({}, profile, subject)
    return ClientConfig(
        properties,
        registry_settings(profile),
        subject=subject,
        group_id=group_id,
        timeout_s=answer_seconds(profile, subject),
    )


def answer_seconds(profile: Mapping[str, str], owner: str) -> float:
    """How long a profile lets brokers be silent: kafka.default.api.timeout.ms. Raises TS1701."""
    said = str(profile.get(KAFKA_PREFIX + ANSWER_MS, "10000")).strip()
    if not said.isdecimal() or int(said) == 0:
        raise options_conflict(
            owner,
            f"'{KAFKA_PREFIX}{ANSWER_MS}' is {said!r}, expected milliseconds, 1 or more",
            "write a whole number, or leave it out: 10000",
        )
    return int(said) / 1000


def client_properties(options: Mapping[str, str], profile: Mapping[str, str], owner: str) -> dict[str, str]:
    """librdkafka configuration: the profile's, under the few options of a table that tune messages. Raises TS1701."""
    said = {key: value for key, value in profile.items() if key.startswith(KAFKA_PREFIX)}
    said.update({key: value for key, value in options.items() if key in _TUNING})
    client = {key.removeprefix(KAFKA_PREFIX): str(value) for key, value in said.items()}
    client.pop(ANSWER_MS, None)  # answer_seconds reads it
    check_log_in(client)
    if not client.get("bootstrap.servers"):
        raise options_conflict(
            owner,
            "'log.system' = 'kafka', and no brokers are named; a table's own options are not asked for them",
            "name the brokers: `brokers` of the profile for dbt, --bootstrap or TABLESTORE_KAFKA for a command, "
            "Engine(…, log={'kafka.bootstrap.servers': …}) in Python",
        )
    owned = sorted(_OWNED & client.keys())
    if owned:
        raise options_conflict(
            owner,
            f"{', '.join(repr(KAFKA_PREFIX + key) for key in owned)} is chosen by the engine",
            "leave it out: exactly-once depends on it",
        )
    return client


def registry_settings(profile: Mapping[str, str]) -> dict[str, str]:
    """Those of the schema registry, without their prefix."""
    return {
        key.removeprefix(REGISTRY_PREFIX): value
        for key, value in profile.items()
        if key.startswith(REGISTRY_PREFIX)
    }


def options_conflict(owner: str, why: str, fix: str) -> FixRequest:
    """TS1701."""
    return FixRequest("TS1701", f"the log options of {owner} do not fit together", why=why, fix=fix)
