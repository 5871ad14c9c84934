"""Hidden Parquet tables: one per (table state, file schema, with or without deletions), made of links.

CHANGE     the hidden tables that Spark reads
Steps      links to the group's files in a folder of the session's scratch, or a stand-in there (remote_files) →
           CREATE TABLE … USING parquet over the folder → one-row table of the words of dead rows → CREATE OR REPLACE
           VIEW
INVARIANT  a folder never changes after its table exists: running queries keep reading what they were analysed with. It
           goes when no work needs it (session_names).
INVARIANT  everything lies in the session's scratch and the in-memory catalog: it ends with the process.
WHY        a literal reaches any cluster and costs no file. Spark parses, folds and copies it: 20,000 rows of `$files`
           took 98 s as a literal.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from tablestore_engine.catalog.resolved_names import ResolvedTable
from tablestore_engine.errors import Unsupported
from tablestore_engine.format.schema_check import check_readable_by_sql
from tablestore_engine.runtime.locks import OrderedLock
from tablestore_engine.runtime.moments import datetime_text
from tablestore_engine.spark.change_views import ChangelogGroup, ChangeViews
from tablestore_engine.spark.deletion_bitmap_literal import DeletionBitmapLiteral
from tablestore_engine.spark.linked_files import LinkedFiles, link_stored
from tablestore_engine.spark.plan_conditions import HIDDEN_DATABASE
from tablestore_engine.spark.plan_pruning import PlanPruner
from tablestore_engine.spark.read_way import ChosenReads
from tablestore_engine.spark.remote_files import RemoteFiles
from tablestore_engine.spark.remote_relations import RemoteRelations
from tablestore_engine.spark.session_names import Idle, MadeState, SessionNames
from tablestore_engine.spark.spark_internals import SparkInner
from tablestore_engine.spark.spark_settings import ReadWay
from tablestore_engine.spark.view_sql import (
    FileGroup,
    column_list,
    group_files,
    select_group,
    view_query,
    words_table,
)
from tablestore_engine.sql.scanner import quote_name, quote_string
from tablestore_engine.store.files.stored_file import StoredFile
from tablestore_engine.store.read.scan import ScanPlan
from tablestore_engine.stream.change_source import SNAPSHOT_ID
from tablestore_engine.stream.changes_plan import ChangesPlan

LITERAL_ROWS = 300
_ARROW_TYPES = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "boolean": pa.bool_(),
    "timestamp_ntz": pa.timestamp("us"),
    "array<string>": pa.list_(pa.string()),
}


def system_view_sql(columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[object]]) -> str:
    """The rows as a literal. `columns`: (name, Spark type)."""
    names = [name for name, _ in columns]
    texts = json.dumps(
        [dict(zip(names, row, strict=True)) for row in rows], ensure_ascii=False, default=_moment_text
    )
    shape = f"array<struct<{', '.join(f'`{name}`: {kind}' for name, kind in columns)}>>"
    return of_this_moment(f"(select inline(from_json({quote_string(texts)}, {quote_string(shape)})))")


def of_this_moment(source: str) -> str:
    """A query that reads a system view is another one at each moment, and says so by a function that no run fixes: what
    is computed from changes alone must not take the view for a constant.
    """
    return f"select * from {source} where current_user() is not null"


def rows_table(columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[object]]) -> pa.Table:
    """The rows for a Parquet file."""
    values = zip(*rows, strict=True)
    arrays = [pa.array(one, _ARROW_TYPES[kind]) for one, (_, kind) in zip(values, columns, strict=True)]
    return pa.table(arrays, names=[name for name, _ in columns])


def columns_text(columns: Sequence[tuple[str, str]]) -> str:
    """For CREATE TABLE."""
    return ", ".join(f"{quote_name(name)} {kind}" for name, kind in columns)


def _moment_text(value: object) -> str:
    if isinstance(value, datetime):
        return datetime_text(value)
    raise TypeError(type(value).__name__)


_REMEMBERED_FILES = 200_000  # of all hidden tables that queries can still be pruned in: about 200 MB
_CHECKED_PAGES = "'parquet.page.verify-checksum.enabled' 'true'"  # part of the reader's Hadoop conf
_NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


class HiddenTables:
    """Makes the views of one session. REQUIRES callers hold the resolver's lock."""

    def __init__(self, session: SparkSession, scratch: Path, names: SessionNames, reads: ChosenReads) -> None:
        self._session, self._names, self.reads = session, names, reads
        self._making: set[str] = set()
        self._scratch = scratch
        for part in ("files", "words", "changes"):
            (scratch / part).mkdir(exist_ok=True)
        self._databases: set[str] = set()
        self._queries: dict[str, str] = {}
        self._scans: dict[str, tuple[str, ...]] = {}  # state → its hidden tables, if they have its rows
        self._files: dict[str, LinkedFiles] = {}  # hidden table → what it reads; the oldest are forgotten
        self._inner = SparkInner.of(session)
        self._words = DeletionBitmapLiteral(self._inner)
        self._remote = RemoteRelations(session, self._inner, scratch)
        self._changes = ChangeViews(scratch / "changes", self._create, self._scan, self._changes_table)

    @property
    def lock(self) -> OrderedLock:
        """Of the session's names."""
        return self._names.lock

    def key_of(self, table: ResolvedTable) -> str:
        """Of a state as this way registers it: engines of one session may read one warehouse in several ways."""
        return table.key if self.reads.way is ReadWay.LINKS else f"{table.key}#{self.reads.way.value}"

    def register(self, database: str, name: str, table: ResolvedTable) -> None:
        """CREATE OR REPLACE VIEW database.name over the files of this state. Raises Unsupported TS2170."""
        self.ensure_database(database)
        key = self.key_of(table)
        query = self._queries.get(key) if key in self._names.made else None
        if query is None:
            check_readable_by_sql(f"{database}.{name}", table.schema)
            query = self._queries[key] = self._make(table)
        comment = f" comment {quote_string(table.schema.comment)}" if table.schema.comment else ""
        columns = column_list(table.schema)
        self._session.sql(
            f"create or replace view {quote_name(database)}.{quote_name(name)} {columns}{comment} as {query}"
        )

    def system_rows(self, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[object]]) -> str:
        """The query of a system view. Many rows are a hidden table, which stays as long as the session."""
        if len(rows) <= LITERAL_ROWS or self.reads.way is not ReadWay.LINKS:
            return system_view_sql(columns, rows)
        sink = pa.BufferOutputStream()
        pq.write_table(rows_table(columns, rows), sink, compression="zstd")
        data = sink.getvalue()
        name = f"s_{hashlib.sha256(data).hexdigest()[:20]}"
        folder = self._scratch / "words" / name
        folder.mkdir(exist_ok=True)
        (folder / "rows.parquet").write_bytes(data)
        self.ensure_database(HIDDEN_DATABASE)
        return of_this_moment(self._create(name, columns_text(columns), folder))

    def drop(self, idle: Idle) -> None:
        """Views and hidden tables leave the catalog, links the disk."""
        for database, name in idle.views:
            self._session.sql(f"drop view if exists {quote_name(database)}.{quote_name(name)}")
        for state in idle.states:
            for table in state.tables:
                self._session.sql(f"drop table if exists {table}")
                self._files.pop(table.partition(".")[2], None)
                self._names.stand_ins.pop(table.partition(".")[2], None)
            for pattern in state.folders:
                for folder in pattern.parent.glob(pattern.name):
                    shutil.rmtree(folder, ignore_errors=True)  # what stays there ends with the session
        self._queries = {key: query for key, query in self._queries.items() if key in self._names.made}
        self._scans = {key: names for key, names in self._scans.items() if key in self._names.made}

    def files_of(self, table: ResolvedTable) -> tuple[StoredFile, ...] | None:
        """The files that Spark reads for a registered state; None: they are forgotten, or rows are made of changes."""
        known: Mapping[str, LinkedFiles | RemoteFiles] = {**self._files, **self._names.stand_ins}
        found = [known.get(name) for name in self._scans.get(self.key_of(table), ())]
        groups = [one.group for one in found if one is not None]
        return (
            tuple(file for group in groups for file in group.files)
            if groups and len(groups) == len(found)
            else None
        )

    def pruner(self) -> PlanPruner:
        """For the tables that there are now."""
        # stand-ins of all engines of the session: a name may have been registered by another one
        tables: dict[str, LinkedFiles | RemoteFiles] = {**self._files, **self._names.stand_ins}
        return PlanPruner(self._inner, self._words, tables, self._remote, self.reads.fileio)

    def prepared(self, frame: DataFrame, session: SparkSession) -> DataFrame:
        """The frame, of another session over the same catalog, with all files in place of stand-ins."""
        inner = SparkInner(session)
        remote = RemoteRelations(session, inner, self._scratch)
        tables = dict(self._names.stand_ins)
        return PlanPruner(inner, self._words, tables, remote, self.reads.fileio).prepared(frame)

    def ensure_database(self, database: str) -> None:
        """A database of the in-memory catalog, made once, in our folder: a session of the user's has its own place,
        by default `spark-warehouse` where it was started.
        """
        if database not in self._databases:
            place = quote_string(str(self._scratch / "catalog" / database))
            self._session.sql(f"create database if not exists {quote_name(database)} location {place}")
            self._databases.add(database)

    def _make(self, table: ResolvedTable) -> str:
        """Hidden tables for all groups of the state; the view's query over them."""
        self.ensure_database(HIDDEN_DATABASE)
        plan = table.load_plan(is_native=True)
        digest = hashlib.sha256(self.key_of(table).encode()).hexdigest()[:20]
        self._making.clear()
        if isinstance(plan, ChangesPlan):
            query = view_query(self._changes.query(plan, digest), table.schema)
        else:
            query = self._scan(plan, digest)
            self._scans[self.key_of(table)] = tuple(f"f_{digest}_{group.key}" for group in self._groups(plan))
        self._names.made[self.key_of(table)] = MadeState(frozenset(self._making), self._folders(digest))
        return query

    def _folders(self, digest: str) -> frozenset[Path]:
        """Of one state, by patterns: plans make more of them, of some of its files (LinkedFiles.only)."""
        places = (("files", f"f_{digest}_*"), ("words", f"m_{digest}_*"), ("changes", f"{digest}_*"))
        return frozenset(self._scratch / place / pattern for place, pattern in places)

    def _scan(self, plan: ScanPlan, digest: str) -> str:
        self._check_way(plan.files)
        selects: list[str] = []
        for group in self._groups(plan):
            hidden = self._files_table(f"f_{digest}_{group.key}", group)
            vectors = self._words_table(f"m_{digest}_{group.key}", group) if group.has_deletions else None
            selects.append(select_group(group, plan.schema, hidden, vectors))
        return view_query(selects, plan.schema)

    def _check_way(self, files: Iterable[StoredFile]) -> None:
        """Raises Unsupported TS1656 for a file that Spark cannot open."""
        for file in files:
            is_sent = file.is_external and self.reads.way is ReadWay.PORTABLE
            if file.fileio is not None and not is_sent and self.reads.way is not ReadWay.LINKS:
                raise _outside_by_spark(file.path) if file.is_external else _not_by_spark(file.path)

    def _groups(self, plan: ScanPlan) -> tuple[FileGroup, ...]:
        """Python workers leave dead rows out themselves: one group for each schema."""
        if self.reads.way is not ReadWay.PORTABLE:
            return group_files(plan)
        by_schema: dict[int, list[StoredFile]] = {}
        for file in plan.files:
            by_schema.setdefault(file.schema.id, []).append(file)
        return tuple(
            FileGroup(files[0].schema, has_deletions=False, files=tuple(files))
            for _, files in sorted(by_schema.items())
        )

    def _files_table(self, name: str, group: FileGroup) -> str:
        folder, columns = self._scratch / "files" / name, group.columns_ddl
        if self.reads.way is not ReadWay.LINKS:
            return self._stand_in(name, columns, folder, RemoteFiles.of(group, self.reads))
        linked = LinkedFiles.of(group, folder)
        linked.make()
        self._remember(name, linked)
        return self._create(name, columns, linked.folder)

    def _changes_table(self, name: str, columns: str, folder: Path, files: ChangelogGroup) -> str:
        """A hidden table of changelog files, each with its snapshot as a column."""
        self._check_way(files.group.files)
        if self.reads.way is ReadWay.LINKS:
            for file in files.group.files:
                link_stored(file, files.place(folder, file))
            return self._create(name, columns, folder)
        remote = RemoteFiles.of_changes(
            files.group, self.reads, SNAPSHOT_ID, files.snapshots, shows_kinds=files.shows_kinds
        )
        return self._stand_in(name, columns, folder, remote)

    def _stand_in(self, name: str, columns: str, folder: Path, files: RemoteFiles) -> str:
        files.make_stand_in(folder)
        self._names.stand_ins[name] = files
        options = {} if self.reads.places is None else self.reads.places.options
        return self._create(name, columns, folder, options)

    def _remember(self, name: str, hidden: LinkedFiles) -> None:
        self._files[name] = hidden
        while (
            sum(len(one.group.files) for one in self._files.values()) > _REMEMBERED_FILES
            and len(self._files) > 1
        ):
            del self._files[next(iter(self._files))]

    def _words_table(self, name: str, group: FileGroup) -> str:
        folder = self._scratch / "words" / name
        folder.mkdir(exist_ok=True)
        pq.write_table(words_table(group), folder / "words.parquet", compression="zstd")
        return self._create(name, "m array<bigint>", folder)

    def _create(self, name: str, columns: str, folder: Path, more: Mapping[str, str] = _NO_OPTIONS) -> str:
        full = f"{HIDDEN_DATABASE}.{name}"
        given = [f"{quote_string(key)} {quote_string(value)}" for key, value in more.items()]
        options = ", ".join([f"path {quote_string(folder.as_uri())}", _CHECKED_PAGES, *given])
        self._session.sql(f"create table if not exists {full} ({columns}) using parquet options ({options})")
        self._making.add(full)
        return full


def _outside_by_spark(path: str) -> Unsupported:
    return Unsupported(
        "TS1656",
        "Spark cannot read this table with its own Parquet reader: it has files outside of the warehouse",
        why=f"its file {path} is read by the engine alone, which checks where it lies",
        fix="set `read_way: portable`, or read it by Table.read or Engine.query_duckdb",
    )


def _not_by_spark(path: str) -> Unsupported:
    return Unsupported(
        "TS1656",
        "Spark cannot read this table: its rows are merged, or copied from ORC or Avro, before they are read",
        why=f"these rows are files of this machine ({path}), and Spark reads an object store by itself",
        fix="convert the table (`tablestore convert DATABASE.TABLE`) or compact it with file.format=parquet, or read "
        "it by Table.read or Engine.query_duckdb",
    )
