"""A PostgreSQL database whose changes go to Kafka: how it is named, and the properties of Connect and Debezium.

Names      DatabaseSource       name, address, tables
           parse_source         texts → one
           worker_properties, connector_properties   files for Connect standalone
INVARIANT  the password is in none of these: Connect takes it from its environment when it needs it, and what its REST
           interface shows is the place, not the word.
INVARIANT  one topic of one partition for each table: the order of its changes, keys that move and TRUNCATE included.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tablestore_engine.errors import FixRequest

PASSWORD_ENV = "TABLESTORE_DATABASE_PASSWORD"  # noqa: S105 - the name of a variable
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_CONNECTOR = "io.debezium.connector.postgresql.PostgresConnector"


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

    @property
    def slot(self) -> str:
        """Where PostgreSQL keeps what Connect has not sent yet."""
        return f"tablestore_{self.name}"

    @property
    def url(self) -> str:
        """Without a password."""
        return f"postgresql://{self.user}@{self.host}:{self.port}/{self.database}"


def parse_source(name: str, url: str, tables: Sequence[str] = ()) -> DatabaseSource:
    """Raises FixRequest TS1475."""
    if not _NAME.fullmatch(name):
        raise _wrong(f"{name!r} is no name of a source", "expected small letters, digits and _, as in shop")
    parts = urlsplit(url)
    try:
        port = parts.port or 5432
    except ValueError as error:
        raise _wrong(f"{url!r} is no address of a database", str(error)) from None
    if parts.password is not None:
        raise _wrong(
            "the address of the database has a password in it",
            f"command lines and files are read by others; it belongs into {PASSWORD_ENV} of the environment",
        )
    database = unquote(parts.path.strip("/"))
    if parts.scheme not in ("postgresql", "postgres") or not (parts.hostname and parts.username and database):
        raise _wrong(f"{url!r} is no address of a database", "expected postgresql://user@host:port/database")
    for one in tables:
        if one.count(".") != 1 or "," in one:
            raise _wrong(f"{one!r} names no table", "expected schema.table, with * for anything")
    return DatabaseSource(
        name, parts.hostname, port, unquote(parts.username), database, tuple(dict.fromkeys(tables))
    )


def _wrong(what: str, why: str) -> FixRequest:
    return FixRequest(
        "TS1475",
        what,
        why=why,
        fix="write tablestore connect start shop --database postgresql://app@localhost:5432/shop",
    )


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
        "plugin.discovery": "service_load",
        "config.providers": "env",
        "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        "config.providers.env.param.allowlist.pattern": PASSWORD_ENV,
    })  # fmt: skip


def connector_properties(source: DatabaseSource) -> str:
    """Of Debezium: first all rows, then every change, deletes and TRUNCATE too."""
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
        "publication.autocreate.mode": "filtered" if source.tables else "all_tables",
        "snapshot.mode": "initial",
        "skipped.operations": "none",
        "heartbeat.interval.ms": "1000",
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "-1",
    }
    if source.tables:
        settings["table.include.list"] = ",".join(map(_pattern, source.tables))
    return _properties(settings)


def _pattern(table: str) -> str:
    """As Debezium takes it: a regular expression over the whole name."""
    return ".*".join(re.escape(part).replace("\\_", "_") for part in table.split("*"))


def _properties(settings: Mapping[str, str]) -> str:
    return "".join(f"{key}={_escaped(value)}\n" for key, value in settings.items())


def _escaped(value: str) -> str:
    """As java.util.Properties reads it back."""
    text = value.replace("\\", "\\\\")
    return "".join(one if " " <= one <= "~" else f"\\u{ord(one):04x}" for one in text)
