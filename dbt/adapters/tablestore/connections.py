"""dbt's connections over one engine: statements run eagerly, errors come out short, Ctrl-C stops the work.

INVARIANT  a statement has run completely when execute() returns, also a SELECT nobody fetches (hooks).
INVARIANT  nothing is set on the Spark session here: it is shared by all threads.
WHY        an engine owns the Spark session; a JVM holds one, and starting it is most of a small dbt run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from functools import partial
from multiprocessing.context import SpawnContext
from typing import Any

from dbt.adapters.contracts.connection import AdapterResponse, Connection, ConnectionState
from dbt.adapters.sql.connections import SQLConnectionManager

from dbt.adapters.tablestore.adapter_response import describe_commit
from dbt.adapters.tablestore.credentials import EngineSettings, describe_warehouse
from dbt.adapters.tablestore.dbt_errors import to_dbt_error
from dbt.adapters.tablestore.interruption import stop_threads
from dbt.adapters.tablestore.messages import WarnedOnce, logger
from dbt.adapters.tablestore.pinned_reads import retry_published
from dbt.adapters.tablestore.statements import split_statements
from tablestore_engine.api import Engine, SparkSettings, SqlResult, TablestoreError, TableVersion
from tablestore_engine.spi import (
    DataFileGone,
    OrderedLock,
    Rank,
    ReadLog,
    StagedVersionMissing,
    fetch_s3_jars,
)

_ENGINES: dict[EngineSettings, Engine] = {}
_LOCK = OrderedLock("engines", Rank.ENGINES)


def _jars_of(warehouse: EngineSettings) -> Callable[[], Sequence[str]]:
    """Fetched when the session starts; on a cluster jars are the cluster's own affair."""
    if warehouse.fetches_connector and warehouse.spark_master.startswith("local"):
        return partial(fetch_s3_jars, logger.info)
    return tuple


def get_engine(warehouse: EngineSettings) -> Engine:
    """Open, or return the open one. Starts no JVM: the engine does so when it first needs Spark."""
    with _LOCK:
        engine = _ENGINES.get(warehouse)
        if engine is None:
            settings = SparkSettings(
                master=warehouse.spark_master,
                conf=dict(warehouse.spark_conf),
                read_way=warehouse.read_way,
                more_jars=_jars_of(warehouse),
            )
            engine = Engine(
                warehouse.location,
                spark=settings,
                log=dict(warehouse.log),
                trusted_sql=warehouse.trusted_sql,
                scratch=warehouse.scratch,
                external_paths=warehouse.external_paths,
                say=logger.info,
            )
            if warehouse.branch is not None:
                engine = engine.on_branch(warehouse.branch)
            _ENGINES[warehouse] = engine
        return engine


class TablestoreCursor:
    """One execution; rows are plain tuples."""

    def __init__(self, handle: TablestoreHandle) -> None:
        self._handle = handle
        self._result: SqlResult | None = None
        self._next_row = 0

    def execute(self, sql: str, bindings: Sequence[Any] | None = None) -> None:
        """Run every statement of the text; the last one's rows are kept."""
        text = sql if not bindings else sql % tuple(render_literal(value) for value in bindings)
        self._result, self._next_row = None, 0
        for statement in split_statements(text):
            self._result = self._handle.run(statement)
            if self._result.notice is not None:
                self._handle.warn(self._result.notice, self._result.notice)

    @property
    def description(self) -> list[tuple[str, str, None, None, None, None, bool]]:
        """Names and types of the columns, in the form of PEP 249."""
        if self._result is None:
            return []
        return [(name, kind, None, None, None, None, True) for name, kind in self._result.columns]

    @property
    def response(self) -> AdapterResponse:
        """What the last statement did."""
        return describe_commit(None if self._result is None else self._result.report)

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self.fetchmany(len(self._rows))

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        rows = self._rows[self._next_row : self._next_row + size]
        self._next_row += len(rows)
        return [tuple(row) for row in rows]

    def fetchone(self) -> tuple[Any, ...] | None:
        return next(iter(self.fetchmany(1)), None)

    @property
    def _rows(self) -> Sequence[Any]:
        return () if self._result is None else self._result.rows

    def close(self) -> None:
        self._result = None


def render_literal(value: Any) -> str:  # noqa: ANN401 - whatever agate delivers
    """A value as exact Spark SQL: NULL, quotes, backslashes, big integers and decimals survive."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Decimal):
        return str(int(value)) if value == value.to_integral_value() else f"{value:f}BD"
    if isinstance(value, float):
        return f"{value!r}D"
    text = value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def show_value(value: Any) -> Any:  # noqa: ANN401 - whatever Spark delivers
    """A value as dbt shows it: structs keep the names of their fields, binary is hex text as SQL's X'…' has it."""
    if isinstance(value, bytes | bytearray):
        return value.hex().upper()
    names = getattr(value, "__fields__", None)  # of a Row
    if names is not None:
        return {name: show_value(part) for name, part in zip(names, value, strict=True)}
    if isinstance(value, list | tuple):
        return [show_value(part) for part in value]
    if isinstance(value, Mapping):
        return {
            name if isinstance(name, str) else str(name): show_value(part) for name, part in value.items()
        }
    return value


class TablestoreHandle:
    """What a dbt thread holds; `pin` says which table names mean past or staged snapshots now; `warn`(about, text)."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.reads: ReadLog | None = None
        self.pin: Callable[[], Mapping[str, TableVersion]] = dict
        self.warn: Callable[[str, str], None] = WarnedOnce().warn

    def run(self, statement: str) -> SqlResult:
        """Execute one statement completely.

        A test of another thread may publish a table in the place of the one that this test reads: then once more.
        """
        if self.reads is None:
            return retry_published(self.pin, partial(self.engine.sql, statement))
        first = ReadLog()
        try:
            result = self.engine.sql(statement, versions=self.pin(), reads=first)
        except (DataFileGone, StagedVersionMissing):
            return self.engine.sql(statement, versions=self.pin(), reads=self.reads)
        except TablestoreError:
            self.reads.add(first)
            raise
        self.reads.add(first)
        return result

    def cursor(self) -> TablestoreCursor:
        return TablestoreCursor(self)

    def close(self) -> None:
        """The engine stays open for the other threads."""

    def rollback(self) -> None:
        """There is nothing to roll back: a snapshot exists or it does not."""


class TablestoreConnectionManager(SQLConnectionManager):
    """One handle per dbt thread, one engine for all."""

    TYPE = "tablestore"
    # Set by the adapter: node id -> versions its statements read; connections are named after nodes.
    versions_for: Callable[[str], Mapping[str, TableVersion]] | None = None
    # Set by the adapter: test id -> where it is noted what its statements read.
    reads_for: Callable[[str], ReadLog] | None = None
    # Set by the adapter: a statement has run, and may have changed anything.
    after_statement: Callable[[], None] = staticmethod(lambda: None)

    def __init__(self, profile: Any, mp_context: SpawnContext) -> None:  # noqa: ANN401 - dbt's own untyped config
        super().__init__(profile, mp_context)
        self._warned = WarnedOnce()

    def add_query(self, *args: Any, **kwargs: Any) -> tuple[Connection, Any]:  # noqa: ANN401 - dbt's signature
        """Pin the reads of the node that this thread runs, then execute."""
        connection = self.get_thread_connection()
        if self.versions_for is not None:
            connection.handle.pin = partial(self.versions_for, connection.name or "")
        connection.handle.warn = self._warned.warn
        is_test = (connection.name or "").startswith("test.")
        connection.handle.reads = (
            self.reads_for(connection.name or "") if is_test and self.reads_for else None
        )
        try:
            result: tuple[Connection, Any] = super().add_query(*args, **kwargs)
        finally:
            self.after_statement()
        return result

    @contextmanager
    def exception_handler(self, sql: str) -> Generator[None, None, None]:
        """Errors of the engine with their own text, whatever else as a database error."""
        try:
            yield
        except TablestoreError as error:
            logger.debug(f"Error while running:\n{sql}")
            raise to_dbt_error(error) from error

    @classmethod
    def open(cls, connection: Connection) -> Connection:
        """Take the engine of the target; Spark starts with the first statement that needs it."""
        if connection.state == ConnectionState.OPEN:
            return connection
        credentials = connection.credentials
        try:
            engine = get_engine(describe_warehouse(credentials, credentials.project_root))
        except TablestoreError as error:
            raise to_dbt_error(error) from error
        connection.handle = TablestoreHandle(engine)
        connection.state = ConnectionState.OPEN
        return connection

    @classmethod
    def process_results(cls, column_names: Iterable[str], rows: Iterable[Any]) -> Iterator[dict[str, Any]]:
        """Rows for dbt's tables, which know no structs and no bytes."""
        shown = (tuple(show_value(value) for value in row) for row in rows)
        yield from super().process_results(column_names, shown)

    def cancel_open(self) -> list[str]:
        """Called by dbt on Ctrl-C: end what its other threads do; a thread may work without an open connection."""
        mine = threading.get_ident()
        with self.lock:
            known: dict[Any, Connection] = dict(self.thread_connections)  # (process, thread) -> connection
        others = {ident: one for (_, ident), one in known.items() if ident != mine}
        credentials: Any = self.profile.credentials
        stop_threads(get_engine(describe_warehouse(credentials, credentials.project_root)), others)
        return [one.name for one in others.values() if one.name is not None]

    def cancel(self, connection: Connection) -> None:
        """Never called: cancel_open() stops threads, not connections."""

    @classmethod
    def get_response(cls, cursor: TablestoreCursor) -> AdapterResponse:
        """What goes to run_results.json for a statement that a macro ran."""
        return cursor.response

    @classmethod
    def data_type_code_to_name(cls, type_code: int | str) -> str:
        """Types are names already."""
        return str(type_code)

    def commit(self) -> None:
        """There are no transactions."""

    add_begin_query = add_commit_query = begin = clear_transaction = commit
