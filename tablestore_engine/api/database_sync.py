"""A whole database into tables: every topic of its connector, each table exactly once.

Steps      database and brokers are those of the source's record → its tables as the catalog has them now, new ones are
           followed → wait until Connect has sent what the database has committed → one ingest for each table, which
           goes on at the position in its own table
INVARIANT  a table that fails holds no other one back, and the report is not a success.
INVARIANT  a table that cannot be whole is named: none of those that the source's patterns mean is silently absent.
INVARIANT  `up to now` is the database's: what was committed in it before the call is in the tables behind it.
CRASH      the record has the place before the first table is read: what a sync has promised is known to the next start.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tablestore_engine.api.table_resnapshot import Resnapshot, check_snapshot
from tablestore_engine.devservers.connector_check import ConnectorCheck
from tablestore_engine.errors import EngineBug, FixRequest, NotFound, TablestoreError
from tablestore_engine.ingest.ingest_spec import ChangeFormat, IngestReport, IngestSpec, OnError, OnTruncate
from tablestore_engine.log.kafka.cluster_topics import find_cluster, first_offsets
from tablestore_engine.postgres.connect_rest import ConnectInfo
from tablestore_engine.postgres.connector_state import (
    FollowedTable,
    SourceRecord,
    anew_command,
    change_record,
    check_record,
    read_record,
    topic_of,
)
from tablestore_engine.postgres.database_source import DatabaseSource
from tablestore_engine.postgres.postgres_session import find_identity, open_database
from tablestore_engine.postgres.publication_tables import Look, look_at_tables
from tablestore_engine.postgres.replication_progress import wait_sent
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime

if TYPE_CHECKING:
    from tablestore_engine.api.engine import Engine

_PUBLIC = "public"


@dataclass(frozen=True)
class SyncSpec:
    """`into`: a database of the warehouse; schema `public` gives its tables their own names, any other
    `<schema>__<table>`. `options`: of tables that are made. `resnapshot`: tables of the source (`schema.table`): all
    their rows are read again first, whatever the record says of them. `names_unchanged`: a line for tables without
    messages too.
    """

    into: str
    on_error: OnError = OnError.FAIL
    on_truncate: OnTruncate = OnTruncate.APPLY
    options: Mapping[str, str] = field(default_factory=dict)
    resnapshot: tuple[str, ...] = ()
    names_unchanged: bool = True


@dataclass(frozen=True)
class SyncReport:
    """Of each table, by its name: what was done, or why not. `place`: of the database, up to which it was read.

    `is_complete`: not stopped before the end.
    """

    place: str
    tables: Mapping[str, IngestReport]
    errors: Mapping[str, TablestoreError]
    is_complete: bool = True

    @property
    def is_success(self) -> bool:
        """Every table is up to now."""
        return self.is_complete and not self.errors

    @property
    def has_changes(self) -> bool:
        """A table has read messages, or has failed."""
        return bool(self.errors) or any(one.messages for one in self.tables.values())

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "place": self.place,
            "complete": self.is_complete,
            "tables": {name: report.record() for name, report in self.tables.items()},
            "errors": {name: {"code": one.code, "text": str(one)} for name, one in self.errors.items()},
        }


class _StoppedError(Exception):
    """Somebody asked to end while nothing was read yet."""


def _both(stop: threading.Event, check: Callable[[], None]) -> Callable[[], None]:
    def ask() -> None:
        if stop.is_set():
            raise _StoppedError
        check()

    return ask


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
    """`stop` ends it: what was not read then makes the report incomplete.

    Raises FixRequest TS1467, TS1478, TS1484, TS1492, TS1497, RetryError TS1464, TS1467, TS1479, TS1486 before anything
    is read.
    """
    source, folder, stop = running.source, Path(running.data_dir), stop or threading.Event()
    record = known_record(source, folder)
    with open_database(source, environ) as connection:
        here = find_identity(connection)
        check_record(record, source, here, record.cluster)
    sync = TableRound(engine, source, spec, stop, say, runtime)
    check = _both(stop, ConnectorCheck(running, runtime))
    if spec.resnapshot:
        check_brokers(source, record, find_cluster(engine.clients)[0])
        try:
            sync.read_again(running, environ, check)
        except _StoppedError:
            return SyncReport("", {}, {}, is_complete=False)
        record = known_record(source, folder)
    with open_database(source, environ) as connection:
        look = look_at_tables(connection, source, record, here.version)
    change_record(folder, lambda known: known.with_followed(look.followed))
    try:
        place = wait_sent(source, environ, runtime, check=check)
    except _StoppedError:
        return SyncReport("", {}, {}, is_complete=False)
    change_record(folder, lambda known: known.with_place(place))
    cluster, topics = find_cluster(engine.clients)
    check_brokers(source, record, cluster)
    sync.name_troubles(look, folder)
    sync.ingest_all({title: known_record(source, folder).followed[title] for title in look.known}, topics)
    is_complete = sync.is_complete and all(one.is_complete for one in sync.reports.values())
    return SyncReport(place, sync.reports, sync.errors, is_complete)


class TableRound:
    """One round, table by table."""

    def __init__(
        self,
        engine: Engine,
        source: DatabaseSource,
        spec: SyncSpec,
        stop: threading.Event,
        say: Callable[[str], None],
        runtime: Runtime,
    ) -> None:
        self._engine, self._source, self._spec, self._stop = engine, source, spec, stop
        self._say, self._runtime = say, runtime
        self.reports: dict[str, IngestReport] = {}
        self.errors: dict[str, TablestoreError] = {}
        self.is_complete = True

    def read_again(self, running: ConnectInfo, environ: Mapping[str, str], check: Callable[[], None]) -> None:
        """The tables that the call names. Raises what Resnapshot.run raises."""
        resnapshot = Resnapshot(
            self._engine,
            running,
            environ,
            self._spec.options,
            lambda title: table_name(self._spec.into, title),
            check,
            self._say,
            self._runtime,
        )
        for title, error in resnapshot.run(self._spec.resnapshot).items():
            self._failed(table_name(self._spec.into, title), error)

    def name_troubles(self, look: Look, folder: Path) -> None:
        """Those that cannot be brought up to now; one that neither side has any more is forgotten."""
        for title, error in (*look.trouble.items(), *look.gone.items()):
            name = table_name(self._spec.into, title)
            if title in look.gone and not self._has_table(name):
                change_record(folder, lambda known, title=title: known.without(title))  # type: ignore[misc]
            else:
                self._failed(name, error)

    def _has_table(self, name: str) -> bool:
        """A name that cannot be one of ours has trouble of its own."""
        try:
            return self._engine.find_table(name) is not None
        except TablestoreError:
            return True

    def ingest_all(self, titles: Mapping[str, FollowedTable], there: frozenset[str]) -> None:
        """Each on its own. `there`: topics that the brokers have."""
        names = {title: table_name(self._spec.into, title) for title in titles}
        topics = {title: topic_of(self._source.name, title) for title in titles}
        clashes = Counter((*names.values(), *topics.values()))
        for title, name in names.items():
            if self._stop.is_set():
                self.is_complete = False
                return
            try:
                if clashes[name] > 1 or clashes[topics[title]] > 1:
                    raise _clash(self._source, title, name)
                if name not in self.errors:  # one that was not read again
                    self._ingest(topics[title], name, titles[title].snapshot, is_there=topics[title] in there)
            except TablestoreError as error:
                self._failed(name, error)
            except Exception as error:  # noqa: BLE001 - the other tables are not to wait for it
                self._failed(name, _unexpected(name, error))

    def _ingest(self, topic: str, name: str, snapshot: str, *, is_there: bool) -> None:
        """`is_there`: the topic; without it no row was ever in the source's table, or none changed since `snapshot`."""
        found = self._engine.find_table(name)
        is_new, positions = found is None, {} if found is None else found.positions()
        check_snapshot(name, topic, snapshot, positions)
        if not is_there:
            if not is_new and (not snapshot or f"kafka:{topic}" in positions):
                raise _from_before(name, topic)
            return
        if is_new and (first := first_offsets(self._engine.clients, [topic], self._runtime)[topic]) > 0:
            raise _begins_late(name, topic, first)
        spec = self._spec
        asked = IngestSpec(
            format=ChangeFormat.DEBEZIUM_JSON,
            into=name,
            topic=topic,
            on_error=spec.on_error,
            on_truncate=spec.on_truncate,
            options=spec.options,
        )
        report = self._engine.ingest(asked, stop=self._stop, say=self._say)
        self.reports[name] = report
        if report.messages or spec.names_unchanged:
            self._say(f"{name}: {report.summary()}")

    def _failed(self, name: str, error: TablestoreError) -> None:
        self.errors[name] = error
        self._say(f"{name}: {error}")


def table_name(into: str, title: str) -> str:
    """Of the warehouse, for `schema.table` of the source."""
    schema, _, table = title.partition(".")
    return f"{into}.{table if schema == _PUBLIC else f'{schema}__{table}'}".lower()


def known_record(source: DatabaseSource, folder: Path) -> SourceRecord:
    """What the folder says. Raises FixRequest TS1484."""
    record = read_record(folder)
    if record is None:
        raise FixRequest(
            "TS1484",
            f"source {source.name} cannot be read up to now",
            why=f"nothing is written down of it in {folder}: it was started by an older version, or a file was lost",
            fix=f"tablestore connect stop {source.name}, then load all rows again: {anew_command(source)}",
        )
    return record


def check_brokers(source: DatabaseSource, record: SourceRecord, cluster: str) -> None:
    """The call's are those of the source. Raises FixRequest TS1497."""
    if record.cluster != cluster:
        raise FixRequest(
            "TS1497",
            f"source {source.name} sends its changes elsewhere",
            why=f"its topics are in the Kafka cluster {record.cluster}, the brokers of this call are {cluster}",
            fix="name the brokers that it was started with (TABLESTORE_KAFKA, --bootstrap, log:)",
        )


def _clash(source: DatabaseSource, title: str, name: str) -> FixRequest:
    return FixRequest(
        "TS1463",
        f"two tables of source {source.name} would become {name}",
        why=f"{title} is one of them: names differ in their case alone, or in what stands for a schema",
        fix="leave one out: name others with --table, and give it a source and a database of its own",
    )


def _from_before(name: str, topic: str) -> FixRequest:
    return FixRequest(
        "TS1482",
        f"table {name} has rows of another source, or of one that was created again",
        why=f"topic {topic} is not there: since this source began its table had no row",
        fix="drop the warehouse's table, or sync into another database",
    )


def _begins_late(name: str, topic: str, first: int) -> NotFound:
    return NotFound(
        "TS1483",
        f"table {name} cannot begin with topic {topic}",
        why=f"the first message is {first}: retention or another program deleted earlier ones, with rows",
        fix="create the source again (`connect start … --anew`); its topics keep everything if they are its own",
    )


def _unexpected(name: str, error: Exception) -> EngineBug:
    return EngineBug(
        "TS1498",
        f"table {name} could not be brought up to now",
        why=f"{type(error).__name__}: {error}",
        fix="report this; the other tables went on",
    )
