"""Users of the secure development broker: a superuser, and one with no right more than tables with a log need.

INVARIANT  a password is made once for each folder, stands in a file for this user alone, and is never printed.
INVARIANT  `tablestore` may do what log/kafka_rights.py lists, on any topic, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not in its __all__
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tablestore_engine.devservers.broker_certificates import Certificates
from tablestore_engine.devservers.broker_properties import ADMIN_USER, Ports
from tablestore_engine.log.kafka_rights import RIGHTS, TRANSACTIONAL_PREFIX, Resource
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.runtime.server_process import write_private

CLIENT_USER = "tablestore"
_ITERATIONS = 8192
_SECONDS = 15.0
_FILE = """# written by `tablestore broker start --secure`: give it as --kafka-config, or by TABLESTORE_KAFKA_CONFIG
bootstrap.servers={servers}
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
sasl.username={user}
sasl.password={password}
ssl.ca.location={ca}
"""


@dataclass(frozen=True)
class UserFiles:
    """`folder` holds one file for each user."""

    folder: Path

    @property
    def client(self) -> Path:
        """Of the user with the rights that are needed."""
        return self.folder / f"{CLIENT_USER}.properties"

    @property
    def admin(self) -> Path:
        """Of the superuser."""
        return self.folder / f"{ADMIN_USER}.properties"


def internal_client(certificates: Certificates, nodes: Sequence[Ports]) -> Mapping[str, str | int | float]:
    """Settings of a Kafka client on the internal listener of these nodes."""
    return {
        "bootstrap.servers": ",".join(f"127.0.0.1:{one.internal}" for one in nodes),
        "security.protocol": "SSL",
        "ssl.ca.location": str(certificates.ca),
        "ssl.keystore.location": str(certificates.store),
        "ssl.keystore.password": certificates.password(),
    }


def ensure_users(admin: AdminClient, folder: Path, ca: Path, servers: str, runtime: Runtime) -> UserFiles:
    """Both users, their rights and their files, which name `servers`; repeating it changes nothing.

    Raises KafkaException.
    """
    files = UserFiles(folder)
    passwords = {
        user: _known_password(file) or runtime.new_uuid()
        for user, file in ((ADMIN_USER, files.admin), (CLIENT_USER, files.client))
    }
    scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, _ITERATIONS)
    asked = admin.alter_user_scram_credentials(
        [UserScramCredentialUpsertion(user, scram, text.encode()) for user, text in passwords.items()],
        request_timeout=_SECONDS,
    )
    for done in asked.values():
        done.result()
    for made in admin.create_acls(_bindings(), request_timeout=_SECONDS).values():
        made.result()
    for user, file in ((ADMIN_USER, files.admin), (CLIENT_USER, files.client)):
        write_private(file, _FILE.format(servers=servers, user=user, password=passwords[user], ca=ca))
    return files


def _known_password(file: Path) -> str | None:
    try:
        found = re.search(r"^sasl\.password=(.+)$", file.read_text("utf-8"), re.MULTILINE)
    except FileNotFoundError:
        return None
    return None if found is None else found[1]


def _bindings() -> list[AclBinding]:
    """Any topic may be a table's, so the two topics are one resource here."""
    topics = {right.operation for right in RIGHTS if right.resource is not Resource.TRANSACTIONS}
    ids = {right.operation for right in RIGHTS if right.resource is Resource.TRANSACTIONS}
    return [
        *(bind(CLIENT_USER, ResourceType.TOPIC, "*", word) for word in sorted(topics)),
        *(
            bind(CLIENT_USER, ResourceType.TRANSACTIONAL_ID, TRANSACTIONAL_PREFIX, word, is_prefix=True)
            for word in sorted(ids)
        ),
    ]


def bind(user: str, kind: ResourceType, name: str, operation: str, *, is_prefix: bool = False) -> AclBinding:
    """`user` may do `operation` (in Kafka's word) on a resource, from any host."""
    pattern = ResourcePatternType.PREFIXED if is_prefix else ResourcePatternType.LITERAL
    word = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operation).upper()
    return AclBinding(kind, name, pattern, f"User:{user}", "*", AclOperation[word], AclPermissionType.ALLOW)
