"""A PostgreSQL database whose changes go to Kafka: how it is named, and the properties of Connect and Debezium.

CHANGE     the properties of the Debezium connector, which creates the replication slot
INVARIANT  the password is in none of these: Connect takes it from its environment when it needs it, and what its REST
           interface shows is the file, not the password.
INVARIANT  one topic of one partition for each table: the order of its changes, keys that move and TRUNCATE included.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from tablestore_engine.errors import FixRequest

PASSWORD_ENV = "TABLESTORE_DATABASE_PASSWORD"  # noqa: S105 - the name of a variable
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_CONNECTOR = "io.debezium.connector.postgresql.PostgresConnector"
_REST_LOGIN = "org.apache.kafka.connect.rest.basic.auth.extension"
_SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
_NOTHING = "tablestore_no_schema\\.tablestore_no_table"
_NO_ADDRESS = "that is no address of a database"
REST_USER = "tablestore"


@dataclass(frozen=True)
class DatabaseSource:
    """`name`: of the connector; its topics begin with it, and its replication slot is `tablestore_<name>`.

    `tables`: `schema.table`, with * for anything; none: all.
    """

    name: str
    host: str
    port: int
    user: str
    database: str
    tables: tuple[str, ...] = ()
    sslmode: str = ""

    @property
    def slot(self) -> str:
        """Where PostgreSQL keeps what Connect has not sent yet."""
        return f"tablestore_{self.name}"

    @property
    def url(self) -> str:
        """Without a password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        mode = f"?sslmode={self.sslmode}" if self.sslmode else ""
        return f"postgresql://{quote(self.user, safe='')}@{host}:{self.port}/{quote(self.database, safe='')}{mode}"


def parse_source(name: str, url: str, tables: Sequence[str] = ()) -> DatabaseSource:
    """Raises FixRequest TS1475."""
    if not _NAME.fullmatch(name):
        raise _wrong(f"{name!r} is no name of a source", "expected small letters, digits and _, as in shop")
    if not url:
        raise _wrong(
            f"source {name} needs the address of its database: --database",
            "no start of it is recorded in its data folder; later starts take the address of the first one. The "
            f"password is never stored, it comes from {PASSWORD_ENV}",
            name=name,
        )
    parts, port = _split(url)
    if parts.password is not None:
        raise _wrong(
            "the address of the database has a password in it",
            f"command lines and files are read by others; it belongs into {PASSWORD_ENV} of the environment",
        )
    database = unquote(parts.path.strip("/"))
    if parts.scheme not in ("postgresql", "postgres") or not (parts.hostname and parts.username and database):
        raise _wrong(_NO_ADDRESS, "expected postgresql://user@host:port/database")
    for one in tables:
        if one.count(".") != 1 or "," in one:
            raise _wrong(f"{one!r} names no table", "expected schema.table, with * for anything")
    chosen, user = tuple(dict.fromkeys(tables)), unquote(parts.username)
    return DatabaseSource(name, parts.hostname, port, user, database, chosen, _ssl_mode(parts))


def _split(url: str) -> tuple[SplitResult, int]:
    """A text that is no address may be a password: it is not repeated."""
    try:
        parts = urlsplit(url)
        port = parts.port or 5432
    except ValueError:
        raise _wrong(_NO_ADDRESS, "its host or its port cannot be read") from None
    return parts, port


def _ssl_mode(parts: SplitResult) -> str:
    """The one thing that may stand behind ?."""
    asked = parse_qsl(parts.query, keep_blank_values=True)
    if parts.fragment or any(key != "sslmode" or value not in _SSL_MODES for key, value in asked):
        raise _wrong(
            _NO_ADDRESS,
            f"behind the database there may be ?sslmode= alone, with one of {', '.join(_SSL_MODES)}",
        )
    return asked[-1][1] if asked else ""


def _wrong(what: str, why: str, *, name: str = "shop") -> FixRequest:
    return FixRequest(
        "TS1475",
        what,
        why=why,
        fix=f"write tablestore connect start {name} --database postgresql://app@localhost:5432/shop",
    )


def rest_login(folder: Path, password: str) -> tuple[str, str]:
    """Texts of two files: the user of Connect's REST interface, and the login configuration."""
    file = str(folder / "rest-users").replace("\\", "\\\\").replace('"', '\\"')
    login = f'KafkaConnect {{\n{_REST_LOGIN}.PropertyFileLoginModule required file="{file}";\n}};\n'
    return f"{REST_USER}={password}\n", login


def worker_properties(brokers: str, rest_port: int, folder: Path) -> str:
    """Of Connect: messages with their schemas, so that every type is known."""
    return _properties({
        "bootstrap.servers": brokers,
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "key.converter.schemas.enable": "true",
        "value.converter.schemas.enable": "true",
        "offset.storage.file.filename": str(folder / "offsets"),
        "offset.flush.interval.ms": "1000",
        "listeners": f"http://127.0.0.1:{rest_port}",
        "rest.extension.classes": f"{_REST_LOGIN}.BasicAuthSecurityRestExtension",
        "plugin.discovery": "service_load",
        "config.providers": "env",
        "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        "config.providers.env.param.allowlist.pattern": PASSWORD_ENV,
    })  # fmt: skip


def connector_properties(
    source: DatabaseSource, loaded: Sequence[str] = (), *, is_first: bool = False
) -> str:
    """Of Debezium: first all rows of the tables `loaded`, then every change of the publication, deletes and TRUNCATE.

    `is_first`: the load is still to come. By itself Debezium would begin it once more when the database dies in it, and
    never tell of rows that were deleted in between: then it halts, and the next start begins anew.
    A value that cannot be converted ends the connector: the other ways of Debezium are a NULL in its place, or no row.
    """
    settings = _settings(source, loaded)
    if is_first:
        settings["errors.max.retries"] = "0"
    if source.tables:
        settings["table.include.list"] = ",".join(map(pattern_of, source.tables))
    return _properties(settings)


def _settings(source: DatabaseSource, loaded: Sequence[str]) -> dict[str, str]:
    settings = {
        "name": source.name,
        "connector.class": _CONNECTOR,
        "tasks.max": "1",
        "database.hostname": source.host,
        "database.port": str(source.port),
        "database.user": source.user,
        "database.password": f"${{env:{PASSWORD_ENV}}}",
        "database.dbname": source.database,
        "topic.prefix": source.name,
        "plugin.name": "pgoutput",
        "slot.name": source.slot,
        "publication.name": source.slot,
        "publication.autocreate.mode": "disabled",
        "snapshot.mode": "initial",
        "snapshot.include.collection.list": ",".join(map(re.escape, loaded)) or _NOTHING,
        "event.converting.failure.handling.mode": "fail",
        "include.unknown.datatypes": "true",
        "interval.handling.mode": "string",
        "skipped.operations": "none",
        "heartbeat.interval.ms": "1000",
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "-1",
        "topic.creation.default.cleanup.policy": "delete",
        "topic.creation.default.retention.ms": "-1",
        "topic.creation.default.retention.bytes": "-1",
    }
    if source.sslmode:
        settings["database.sslmode"] = source.sslmode
    return settings


def snapshot_settings(source: DatabaseSource, tables: Sequence[str], name: str) -> Mapping[str, str]:
    """Of a connector that reads all rows of some tables once, into topics of its own, and ends. It needs no slot."""
    settings = _settings(source, tables)
    del settings["heartbeat.interval.ms"]
    return {
        **settings,
        "name": name,
        "topic.prefix": name,
        "table.include.list": ",".join(map(re.escape, tables)),
        "snapshot.mode": "initial_only",
        "errors.max.retries": "0",
        "notification.enabled.channels": "sink",
        "notification.sink.topic.name": notification_topic(name),
    }


def snapshot_prefix(source: str) -> str:
    """Of the names of such connectors and their topics; no source has a name with -."""
    return f"{source}-snapshot-"


def notification_topic(name: str) -> str:
    """Where a snapshot connector says how many rows it has read."""
    return f"{name}-notifications"


def pattern_of(table: str) -> str:
    """Of `schema.table` with *: a regular expression over the whole name, as Debezium takes it."""
    return ".*".join(re.escape(part).replace("\\_", "_") for part in table.split("*"))


def _properties(settings: Mapping[str, str]) -> str:
    return "".join(f"{key}={_escaped(value)}\n" for key, value in settings.items())


def _escaped(value: str) -> str:
    """As java.util.Properties reads it back."""
    text = value.replace("\\", "\\\\")
    return "".join(one if " " <= one <= "~" else f"\\u{ord(one):04x}" for one in text)
