"""Users of the secure broker, made for one test each, and a table that they work on."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.devservers.broker_users import bind
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.log.kafka_rights import RIGHTS, TRANSACTIONAL_PREFIX, Resource, Right
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime
from tablestore_engine.spi import read_settings

SETTINGS = dict[str, str]


@dataclass(frozen=True)
class User:
    """One who may do nothing yet; `settings` is what a client of theirs needs."""

    name: str
    topic: str
    settings: SETTINGS = field(repr=False)

    def acl(self, right: Right) -> AclBinding:
        """The right on this user's own topics and ids."""
        if right.resource is Resource.TRANSACTIONS:
            kind, name = ResourceType.TRANSACTIONAL_ID, TRANSACTIONAL_PREFIX
            return bind(self.name, kind, name, right.operation, is_prefix=True)
        name = self.topic + ("__snapshots" if right.resource is Resource.MARKER else "")
        return bind(self.name, ResourceType.TOPIC, name, right.operation)


class Realm:
    """What only the superuser may do; every change is waited for."""

    def __init__(self, info: BrokerInfo) -> None:
        assert info.client_config is not None
        assert info.admin_config is not None
        self.info = info
        self.least = read_settings(info.client_config, by="the test")
        self.superuser = read_settings(info.admin_config, by="the test")
        self.admin = AdminClient({key.removeprefix("kafka."): text for key, text in self.superuser.items()})

    def new_user(self, rights: Iterable[Right] = RIGHTS) -> User:
        """A log-in of its own, with these rights on a topic of its own."""
        name, password = f"u{uuid.uuid4().hex}", uuid.uuid4().hex
        log_in = {"kafka.sasl.username": name, "kafka.sasl.password": password}
        self.set_password(name, password)
        user = User(name, f"topic-{name}", {**self.superuser, **log_in})
        self.give(user, rights)
        return user

    def set_password(self, name: str, password: str) -> None:
        """New or changed."""
        scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        change = UserScramCredentialUpsertion(name, scram, password.encode())
        self.admin.alter_user_scram_credentials([change])[name].result()

    def give(self, user: User, rights: Iterable[Right]) -> None:
        """These rights too."""
        bindings = [user.acl(right) for right in rights]
        for done in self.admin.create_acls(bindings).values() if bindings else ():
            done.result()
        self._await(user, lambda has: has >= set(bindings))

    def take(self, user: User, right: Right) -> None:
        """One right less."""
        gone = user.acl(right)
        self.admin.delete_acls([_filter(gone)])[_filter(gone)].result()
        self._await(user, lambda has: gone not in has)

    def _await(self, user: User, is_there: Callable[[set[AclBinding]], bool]) -> None:
        await_state(lambda: is_there(set(self.admin.describe_acls(_all_of(user)).result())))


def await_state(is_so: Callable[[], bool]) -> None:
    """Until the broker does what the controller has confirmed."""
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _filter(acl: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(
        acl.restype,
        acl.name,
        acl.resource_pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )


def _all_of(user: User) -> AclBindingFilter:
    every = (ResourceType.ANY, None, ResourcePatternType.ANY)
    return AclBindingFilter(*every, f"User:{user.name}", None, AclOperation.ANY, AclPermissionType.ANY)


@dataclass
class LoggedTable:
    """`folder`: its warehouse. Every write adds one row, each in a snapshot of its own."""

    folder: Path
    topic: str
    rows: list[int] = field(default_factory=list)

    def write(
        self, log: SETTINGS, runtime: Runtime = SYSTEM, *, publish: bool = True, **options: str
    ) -> None:
        """One row more; it counts when it is committed, whether its log was sent or not."""
        number = len(self.rows) + 1
        kept = {"log.system": "kafka", "kafka.topic": self.topic, **options}
        spec = WriteSpec(table=TableSpec(primary_key=("id",), options=kept), publish=publish)
        try:
            with Engine(str(self.folder), log=log, runtime=runtime, environ={}) as engine:
                engine.write("d.t", pa.table({"id": [number]}), spec)
        finally:
            self.rows = self.ids()

    def ids(self) -> list[int]:
        """Rows of the table; [] when there is none."""
        with Engine(str(self.folder), log={}, environ={}) as engine:
            table = engine.find_table("d.t")
            return [] if table is None else sorted(table.scan().to_arrow()["id"].to_pylist())

    def publish(self, log: SETTINGS) -> None:
        """What is pending."""
        with Engine(str(self.folder), log=log, environ={}) as engine:
            engine.table("d.t").publish()

    def rescale(self, log: SETTINGS, buckets: int) -> None:
        """Another number of buckets, and of topic partitions."""
        with Engine(str(self.folder), log=log, environ={}) as engine:
            engine.table("d.t").rescale(buckets)

    def drop(self, log: SETTINGS) -> None:
        """The table and its topics."""
        with Engine(str(self.folder), log=log, environ={}) as engine:
            engine.drop_table("d.t")

    def published(self, log: SETTINGS) -> list[int]:
        """Snapshots of the messages that readers see, in order; one message of each, or it came twice."""
        with Engine(str(self.folder), log=log, environ={}) as engine:
            return sorted(message.snapshot_id or 0 for message in engine.table("d.t").log_messages())
