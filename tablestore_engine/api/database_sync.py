"""A whole database into tables: every topic of its connector, each table exactly once.

Names      SyncSpec       which source, into which database of the warehouse, by which rules
           sync_database  everything up to now; SyncReport: what became of each table
Steps      wait until Connect has sent what the database has committed → topics of the source → one ingest for each,
           which goes on at the position in its own table
INVARIANT  a table that fails holds no other one back, and the report is not a success.
INVARIANT  `up to now` is the database's: what was committed in it before the call is in the tables behind it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tablestore_engine.errors import FixRequest, TablestoreError
from tablestore_engine.ingest.ingest_spec import ChangeFormat, IngestReport, IngestSpec, OnError, OnTruncate
from tablestore_engine.log.database_position import wait_sent
from tablestore_engine.log.dev_connect import ConnectInfo, connector_status
from tablestore_engine.log.kafka.client_settings import client_settings
from tablestore_engine.log.kafka.topic_names import list_topics
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime

if TYPE_CHECKING:
    from tablestore_engine.api.engine import Engine

_PUBLIC = "public"


@dataclass(frozen=True)
class SyncSpec:
    """`into`: a database of the warehouse; schema `public` gives its tables their own names, any other
    `<schema>__<table>`. `options`: of tables that are made.
    """

    into: str
    on_error: OnError = OnError.FAIL
    on_truncate: OnTruncate = OnTruncate.APPLY
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SyncReport:
    """Of each table, by its name: what was done, or why not. `place`: of the database, up to which it was read."""

    place: str
    tables: Mapping[str, IngestReport]
    errors: Mapping[str, TablestoreError]

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "place": self.place,
            "tables": {name: report.record() for name, report in self.tables.items()},
            "errors": {name: {"code": one.code, "text": str(one)} for name, one in self.errors.items()},
        }


def sync_database(
    engine: Engine,
    running: ConnectInfo,
    spec: SyncSpec,
    *,
    environ: Mapping[str, str] = os.environ,
    stop: threading.Event | None = None,
    say: Callable[[str], None],
    runtime: Runtime = SYSTEM,
) -> SyncReport:
    """`stop` ends it behind the batch that is being written.

    Raises FixRequest TS1463, TS1467, TS1478, RetryError TS1479 before anything is read.
    """
    place = wait_sent(running.source, environ, runtime, check=lambda: _check_running(running))
    settings = client_settings(environ, said={"kafka.bootstrap.servers": running.brokers})
    reports: dict[str, IngestReport] = {}
    errors: dict[str, TablestoreError] = {}
    for topic, table in table_topics(running.source.name, spec.into, list_topics(settings)).items():
        asked = IngestSpec(
            format=ChangeFormat.DEBEZIUM_JSON,
            into=table,
            topic=topic,
            on_error=spec.on_error,
            on_truncate=spec.on_truncate,
            options=spec.options,
        )
        try:
            reports[table] = engine.ingest(asked, stop=stop, say=say)
            say(f"{table}: {reports[table].summary()}")
        except TablestoreError as error:
            errors[table] = error
            say(f"{table}: {error}")
    return SyncReport(place, reports, errors)


def table_topics(source: str, into: str, topics: Iterable[str]) -> dict[str, str]:
    """Topic → table, of those that are `<source>.<schema>.<table>`. Raises FixRequest TS1463."""
    found: dict[str, str] = {}
    for topic in sorted(topics):
        prefix, _, rest = topic.partition(".")
        schema, dot, table = rest.partition(".")
        if prefix != source or not dot or not table:
            continue
        name = f"{into}.{table if schema == _PUBLIC else f'{schema}__{table}'}".lower()
        if name in found.values():
            raise FixRequest(
                "TS1463",
                f"two tables of source {source} would become {name}",
                why=f"topics {next(one for one, known in found.items() if known == name)} and {topic}",
                fix="sync them one by one, into databases of their own: tablestore ingest debezium-json --topic …",
            )
        found[topic] = name
    return found


def _check_running(running: ConnectInfo) -> None:
    """Waiting for a connector that has failed has no end. Raises FixRequest TS1467."""
    status = connector_status(running)
    if status is None or status.is_halted:
        raise FixRequest(
            "TS1467",
            f"the connector of {running.source.url} does not run",
            why="it does not answer" if status is None else f"it is {status.connector}: {status.error}",
            fix=f"read {running.log}, then: tablestore connect stop {running.source.name}, and start it again",
        )
