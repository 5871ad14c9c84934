"""The engine of one warehouse: the entry point for dbt, Python users and the command line; safe for threads.

CHANGE     which system the changelogs are sent to (option log.system)
Steps      a write: warehouse/write_rows -> warehouse/write/table_writer -> commit -> publish what the log lacks
           SQL: warehouse/statements/statement_runner decides: queries resolve names, changes are actions
INVARIANT  no JVM before the first statement that needs one: names, Arrow reads and writes, staging work without, as
           long as no bucket work is due that is too large for the driver (spark/executors.py).
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, Self

from tablestore_engine.api.engine_names import EngineNames
from tablestore_engine.api.results import ColumnInfo, SqlResult, StagedInfo, shown_columns
from tablestore_engine.api.table import Table
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.seen_states import SeenStates
from tablestore_engine.log.kafka.client_settings import DeferredSettings, client_settings
from tablestore_engine.log.kafka.kafka_sink import KafkaSystem
from tablestore_engine.log.kafka.publish_progress import silent
from tablestore_engine.runtime.interrupts import let_signals_interrupt
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime
from tablestore_engine.warehouse.warehouse import Warehouse
from tablestore_engine.warehouse.write_report import WriteReport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tablestore_engine.api.changed_keys import ChangedKeys
    from tablestore_engine.api.empty_batches import EmptyBatches
    from tablestore_engine.api.pinned_versions import Versions
    from tablestore_engine.api.python_frames import PythonFrames
    from tablestore_engine.api.stateful_streams import StatefulStreams
    from tablestore_engine.catalog.read_log import ReadLog
    from tablestore_engine.catalog.resolved_names import Overrides
    from tablestore_engine.fileio.external_folders import FolderNames
    from tablestore_engine.ingest.ingest_spec import IngestReport, IngestSpec
    from tablestore_engine.log.avro_decode import FindSchema
    from tablestore_engine.log.message_source import MessageSource
    from tablestore_engine.spark.spark_settings import SparkSettings
    from tablestore_engine.warehouse.gate.gatekeeper import Gatekeeper
    from tablestore_engine.warehouse.log.former_logs import FormerLogs
    from tablestore_engine.warehouse.maintenance.orphan_cleanup import Orphans
    from tablestore_engine.warehouse.write.write_spec import WriteSpec

NO_VERSIONS: Versions = {}


class Engine(EngineNames):
    """Tables under one warehouse folder; `log` are Kafka client settings (secrets stay in memory).

    What `log` does not say comes from `environ`: TABLESTORE_KAFKA (brokers), TABLESTORE_KAFKA_CONFIG (a file).

    `scratch`: folder for what a Spark session needs while it runs (runtime/scratch.py); else TABLESTORE_SCRATCH.
    `spark` may be a function: it is asked when Spark is first needed.
    `trusted_sql`: SQL text that others stored in the warehouse may do what the user may (else TS1529).
    `external_paths`: folders outside the warehouse, or a function; data files of other engines are read there.
    `say` gets a line now and then while publishing to a log takes long, and how Spark reads an object store.

    >>> with Engine("./warehouse") as shop:
    ...     shop.create_database("shop")
    ...     names = shop.databases()
    >>> "shop" in names
    True
    """

    def __init__(  # noqa: PLR0913 - what a process says of a warehouse, by name, each with a default
        self,
        warehouse: str | os.PathLike[str],
        *,
        spark: SparkSettings | Callable[[], SparkSettings] | None = None,
        log: Mapping[str, str] | None = None,
        runtime: Runtime = SYSTEM,
        trusted_sql: bool = False,
        scratch: str | os.PathLike[str] | None = None,
        environ: Mapping[str, str] = os.environ,
        say: Callable[[str], None] = silent,
        external_paths: FolderNames = (),
    ) -> None:
        from tablestore_engine.runtime.scratch import SCRATCH_ENV
        from tablestore_engine.spark.spark_settings import SparkSettings

        let_signals_interrupt()
        self._runtime = runtime
        self._clients: Mapping[str, str] = (
            log if isinstance(log, DeferredSettings) else client_settings(environ, said=log)
        )
        logs = KafkaSystem(self._clients, runtime, say)
        self._warehouse = Warehouse(
            os.fspath(warehouse),
            spark or SparkSettings(),
            logs,
            runtime,
            trusted_sql=trusted_sql,
            scratch=os.fspath(scratch) if scratch else environ.get(SCRATCH_ENV),
            say=say,
            external_paths=external_paths,
        )
        self._is_registered = False
        self._seen: SeenStates | None = None

    def looking_once(self) -> Engine:
        """The same engine for one piece of work of one thread: it looks each table up once, and reads that state until
        it has written the table. A write that finds a newer state there is planned again, as always.
        """
        made = copy(self)
        made._seen = SeenStates()
        return made

    def _overrides(self, versions: Versions, reads: ReadLog | None = None) -> Overrides:
        from tablestore_engine.api.pinned_versions import to_overrides

        return to_overrides(versions, reads, self._seen)

    def __repr__(self) -> str:
        """`Engine('/data/warehouse')`; it looks at no file."""
        return f"Engine({self.warehouse!r})"

    @property
    def warehouse(self) -> str:
        """The folder, absolute, or the whole address on an object store."""
        return self._warehouse.address

    @property
    def clients(self) -> Mapping[str, str]:
        """Settings of the clients of Kafka and a registry; they may have secrets."""
        return self._clients

    def __enter__(self) -> Self:
        """`with Engine(…) as engine:` closes it at the end."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give producers up; the Spark session stays for others in this process."""
        self._warehouse.close()

    def check(self) -> tuple[str, ...]:
        """What `dbt debug` and `tablestore doctor` try: one line each. Raises the first problem."""
        from tablestore_engine.api.environment_check import check_environment

        return check_environment(self._warehouse)

    # Spark ---------------------------------------------------------------------------------------

    @property
    def spark(self) -> SparkSession:
        """The session, started at first use, and the active one of this thread. It knows format("tablestore").

        What the engine runs itself needs none of it, and telling Spark costs a Python process: see decision 0042.
        """
        from tablestore_engine.datasource.spark_source import register_source
        from tablestore_engine.spark.session import make_active

        session = self._warehouse.resolver.session
        if not self._is_registered:
            register_source(session, self._warehouse.session.scratch())
            self._is_registered = True
        make_active(session)
        return session

    def query(self, text: str, *, versions: Versions = NO_VERSIONS) -> DataFrame:
        """A query as a DataFrame; every table in it is pinned to one state."""
        with self._warehouse.running(needs_spark=True):
            return self._warehouse.resolver.query(text, self._overrides(versions))

    def sql(self, text: str, *, versions: Versions = NO_VERSIONS, reads: ReadLog | None = None) -> SqlResult:
        """Run one statement completely; `reads` notes what it read. Raises TS15xx for what is not understood.

        >>> engine.sql("select region, sum(amount) from demo.orders group by 1 order by 1").rows  # doctest: +SPARK
        (('eu', 40.0), ('us', 20.0))
        """
        from tablestore_engine.api.pinned_versions import to_overrides
        from tablestore_engine.sql.parser import parse
        from tablestore_engine.sql.statement import Query
        from tablestore_engine.warehouse.statements.data_test_answer import answer_without_spark
        from tablestore_engine.warehouse.statements.statement_runner import StatementRunner, needs_session
        from tablestore_engine.warehouse.statements.table_actions import TableActions

        statement, overrides = parse(text), self._overrides(versions, reads)
        if not isinstance(statement, Query):  # it may change what was seen
            overrides = to_overrides(versions, reads)
        counted = answer_without_spark(self._warehouse, text, overrides)
        if counted is not None:
            return SqlResult(counted.columns, counted.rows)
        with self._warehouse.running(
            needs_spark=self._warehouse.session.is_started or needs_session(statement)
        ):
            runner = StatementRunner(self._warehouse.spark, TableActions(self._warehouse))
            done = runner.run(statement, overrides)
        return SqlResult(done.fetched.columns, done.fetched.rows, done.report, done.notice)

    def query_duckdb(self, text: str) -> SqlResult:
        """A query in DuckDB's SQL over tables by their names, without Spark; types in the result are DuckDB's.

        Past states have names too, as `demo__at_snapshot_5.orders`. Raises FixRequest TS1552, TS1567, Unsupported
        TS1553 for a view, NotFound TS1554.

        >>> engine.query_duckdb("select region, sum(amount) from demo.orders group by all order by all").rows
        (('eu', 40.0), ('us', 20.0))
        """
        from tablestore_engine.api.duckdb_sql import query_duckdb

        with self._warehouse.running(needs_spark=False):
            return query_duckdb(self._warehouse, text)

    def query_columns(
        self, sql: str, *, versions: Versions = NO_VERSIONS, reads: ReadLog | None = None
    ) -> tuple[ColumnInfo, ...]:
        """Columns of a query; it is analysed, not run. `reads` is told which tables it would read."""
        with self._warehouse.running(needs_spark=True):
            schema = self._warehouse.resolver.pinned_query(sql, self._overrides(versions, reads))[0].schema
        return tuple(ColumnInfo(f.name, f.dataType.simpleString(), f.nullable) for f in schema.fields)

    def query_names(self, sql: str, *, versions: Versions = NO_VERSIONS) -> frozenset[str]:
        """Tables and views that a query reads, through views too, as `database.name` in lower case; it is not run."""
        from tablestore_engine.catalog.resolved_names import ResolvedTable, ResolvedView

        with self._warehouse.running(needs_spark=True):
            _, meanings = self._warehouse.resolver.pinned_query(sql, self._overrides(versions))
        return frozenset(
            f"{database}.{name}"
            for (database, name), found in meanings.items()
            if isinstance(found, ResolvedTable | ResolvedView)
        )

    def stateful_clause(
        self, sql: str, streams: Collection[str], *, versions: Versions = NO_VERSIONS
    ) -> str | None:
        """What in a query over `streams` (names as it writes them) needs more of them than one range; None: nothing.

        Then its result over all changes is that of their ranges, one after the other. It is analysed, not run.
        """
        from tablestore_engine.spark.stream_outline import outline_streams

        names = [self._identifier(name) for name in streams]
        with self._warehouse.running(needs_spark=True):
            frame, _ = self._warehouse.resolver.pinned_query(sql, self._overrides(versions))
            return outline_streams(frame, [(one.database, one.name) for one in names]).clause

    @property
    def changed_keys(self) -> ChangedKeys:
        """Queries that are kept up to date by the keys that changes affect."""
        from tablestore_engine.api.changed_keys import ChangedKeys

        return ChangedKeys(self._warehouse, lambda: self._warehouse.running(needs_spark=True), self._seen)

    def empty_batches(self) -> EmptyBatches:
        """For one run: batches that have no input, by metadata."""
        from tablestore_engine.api.empty_batches import EmptyBatches

        return EmptyBatches(self._warehouse, lambda needs: self._warehouse.running(needs_spark=needs))

    @property
    def python_frames(self) -> PythonFrames:
        """Frames for Python code that reads tables and gives rows."""
        from tablestore_engine.api.python_frames import PythonFrames

        return PythonFrames(
            self._warehouse, lambda: self._warehouse.running(needs_spark=True), lambda: self.spark
        )

    @property
    def stateful(self) -> StatefulStreams:
        """Queries over streams that one range cannot answer."""
        from tablestore_engine.api.stateful_streams import StatefulStreams

        return StatefulStreams(
            self._warehouse,
            lambda: self._warehouse.running(needs_spark=True),
            self._warehouse.operations.check,
            self._seen,
        )

    def stop(self, thread: threading.Thread) -> None:
        """End what `thread` does with this engine and refuse what it asks for next; returns at once."""
        self._warehouse.operations.stop(thread)

    def wait_stopped(self, seconds: float) -> bool:
        """Whether the work of all stopped threads is over, at the latest after `seconds`."""
        return self._warehouse.operations.wait_ended(seconds)

    def columns(self, name: str) -> tuple[ColumnInfo, ...]:
        """Columns of a table (no Spark) or of a view (analysed by Spark)."""
        identifier = self._identifier(name)
        stores = self._warehouse.stores
        known = None if self._seen is None else stores.find_as_seen(identifier, self._seen)
        seen = stores.find_seen(identifier) if known is None else known.find_seen()
        if seen is not None:
            return shown_columns(seen.latest_schema())
        view = self._warehouse.catalog.views.find(identifier)
        if view is None:
            return ()
        comments = {key.lower(): text for key, text in view.column_comments.items()}
        found = self.query_columns(f"select * from `{identifier.database}`.`{identifier.name}`")
        return tuple(ColumnInfo(c.name, c.type_text, c.nullable, comments.get(c.name.lower())) for c in found)

    # writing -------------------------------------------------------------------------------------

    def write(
        self,
        name: str,
        rows: Any,  # noqa: ANN401 - what Python users have, see to_arrow
        spec: WriteSpec,
        *,
        versions: Versions = NO_VERSIONS,
    ) -> WriteReport:
        """Rows: SQL text, a Spark DataFrame, an Arrow table, a pandas or polars frame. One commit, then publishing."""
        from tablestore_engine.warehouse.write_rows import write_rows

        return write_rows(self._warehouse, self._identifier(name), rows, spec, self._overrides(versions))

    def ingest(
        self,
        spec: IngestSpec,
        *,
        follow: bool = False,
        stop: threading.Event | None = None,
        say: Callable[[str], None] = silent,
    ) -> IngestReport:
        """Change messages of others into a keyed table, exactly once: up to now, or on and on until `stop` is set.

        Secrets come from `log` of the engine, never from the spec. Raises TS1420-TS1438, and what writes raise.
        """
        from tablestore_engine.ingest.open_ingest import open_ingest

        ingest = open_ingest(self._warehouse, spec, self._open_topic, self._runtime, say)
        with self._warehouse.running(needs_spark=self._warehouse.session.is_started):
            asked = stop or threading.Event()
            return ingest.follow(asked) if follow else ingest.run(asked)

    def _open_topic(self, topic: str) -> tuple[MessageSource, FindSchema]:
        from tablestore_engine.log.kafka.topic_source import TopicSource

        source = TopicSource(topic, self._clients, self._runtime)
        return source, source.find_schema

    def truncate(self, name: str) -> WriteReport:
        """All rows deleted, in one snapshot."""
        from tablestore_engine.store.write.write_request import WriteMode
        from tablestore_engine.warehouse.write.write_spec import WriteSpec
        from tablestore_engine.warehouse.write_rows import write_rows

        empty = self.table(name).schema.arrow_schema().empty_table()
        return write_rows(
            self._warehouse, self._identifier(name), empty, WriteSpec(mode=WriteMode.OVERWRITE_TABLE)
        )

    # staging and log -----------------------------------------------------------------------------

    def staged(self, name: str) -> tuple[StagedInfo, ...]:
        """Staged snapshots of a table (`db.table`), or of all tables of a database (`db`). Raises NotFound TS1414."""
        warehouse = self._warehouse
        if "." in name:
            names = [self._identifier(name)]
        else:
            catalog = warehouse.catalog
            found = {*catalog.list_tables(name), *catalog.list_replacements(name)}
            names = [Identifier(name, one) for one in sorted(found)]
        places = [place for one in names for place in (one, one.replacement)]
        stores = [(place, warehouse.stores.find(place)) for place in places]
        if "." in name and not any(store for _, store in stores):
            warehouse.stores.get(names[0])
        tables = [Table(warehouse, place, store) for place, store in stores if store is not None]
        return tuple(one for table in tables for one in table.staged())

    def replacements(self, database: str) -> tuple[str, ...]:
        """Names of tables and views for whose place a staged table waits, as `database.name`."""
        return tuple(f"{database}.{name}" for name in self._warehouse.catalog.list_replacements(database))

    @property
    def orphans(self) -> Orphans:
        """Orphan files of the whole warehouse: of every table, and folders beside them."""
        return self._warehouse.orphans

    @property
    def former_logs(self) -> FormerLogs:
        """Logs that dropped tables have left."""
        return self._warehouse.former_logs

    @property
    def gate(self) -> Gatekeeper:
        """Test-gated publishing: what waits, what it waits for, and publishing it."""
        from tablestore_engine.warehouse.gate.gatekeeper import Gatekeeper

        return Gatekeeper(self._warehouse)

    def count_log_messages(self, name: str) -> int:
        """How many messages readers of the table's log see; 0 without table or log."""
        found = self.find_table(name)
        return 0 if found is None else len(found.log_messages())
