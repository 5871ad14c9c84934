"""Single tables of a source read again: all rows of one moment replace those of the warehouse, in one commit.

Steps      1 publish what is not published; every transaction that had begun ends 2 the catalog 3 all changes until now
           lie in Kafka (wait_sent) 4 the ends of the topics: the positions that the tables get 5 every transaction that
           had begun ends 6 a second connector reads all rows, later than 5 7 the catalog is what it was in 2 8 rows
           into a table beside, then its rows and the position replace the table's, in one commit 9 the record
Proof      a message before the position (4) is of a transaction that ended before 6, so its rows are in the snapshot.
           A message after it is of a transaction that began after 1 and committed after 3: it has the columns of 2,
           and all its changes were published. Applying it again changes nothing: the last message of a key in the
           topic is its last change. A key without such a message did not change between the position and the snapshot.
INVARIANT  the table has the id of its re-snapshot beside its position, in the same commit, and the record asks for it:
           a table restored to before it, or one in another database of the warehouse, is refused (TS1593).
CRASH      before the commit nothing has changed; between commit and record the table is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tablestore_engine.errors import FixRequest, NotFound, RetryError, TablestoreError
from tablestore_engine.format.data_type import DataField
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.type_arrow import type_to_arrow
from tablestore_engine.ingest.decoded_messages import DecodedMessages, DecodedRows
from tablestore_engine.ingest.ingest_spec import ChangeFormat, IngestSpec
from tablestore_engine.ingest.target_columns import Known, plan_columns
from tablestore_engine.log.kafka.cluster_topics import find_cluster
from tablestore_engine.log.kafka.topic_source import TopicSource
from tablestore_engine.postgres.catalog_tables import CatalogTable, list_tables, why_unfit
from tablestore_engine.postgres.connect_rest import ConnectInfo
from tablestore_engine.postgres.connector_state import change_record, follow_as_is, topic_of
from tablestore_engine.postgres.database_source import DatabaseSource, snapshot_prefix
from tablestore_engine.postgres.postgres_session import find_identity, open_database
from tablestore_engine.postgres.publication_tables import publish
from tablestore_engine.postgres.replication_progress import wait_ended, wait_sent
from tablestore_engine.postgres.snapshot_connector import (
    SnapshotTopic,
    drop_snapshots,
    quietly_drop,
    take_snapshot,
)
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.runtime.server_process import locked
from tablestore_engine.spark.type_ddl import spark_ddl
from tablestore_engine.sql.scanner import quote_name
from tablestore_engine.store.metadata.source_positions import PositionStep
from tablestore_engine.store.write.write_request import WriteMode
from tablestore_engine.warehouse.write.write_spec import OnSchemaChange, TableSpec, WriteSpec

if TYPE_CHECKING:
    from tablestore_engine.api.engine import Engine

_LOCK, _ROWS_IN_MEMORY = ".snapshot-lock", 1_000_000


@dataclass(frozen=True)
class Resnapshot:
    """Of one source into one database of the warehouse. `name_of`: table of the source → of the warehouse."""

    engine: Engine
    running: ConnectInfo
    environ: Mapping[str, str]
    options: Mapping[str, str]
    name_of: Callable[[str], str]
    check: Callable[[], None]
    say: Callable[[str], None]
    runtime: Runtime

    @property
    def source(self) -> DatabaseSource:
        """What is read."""
        return self.running.source

    def run(self, titles: Sequence[str]) -> Mapping[str, TablestoreError]:
        """Of each table that was not replaced, why not. `titles`: `schema.table`.

        Raises NotFound TS1594 (no such table), FixRequest TS1491, TS1599, RetryError TS1479, TS1486, TS1591, TS1592,
        TS1464 before anything has changed.
        """
        with locked(Path(self.running.data_dir), _LOCK):
            drop_snapshots(self.running, self.engine.clients, self.runtime)
            try:
                return self._run(tuple(dict.fromkeys(titles)))
            finally:
                quietly_drop(self.running, self.engine.clients, self.runtime)

    def _run(self, titles: Sequence[str]) -> Mapping[str, TablestoreError]:
        self._publish(titles)
        wait_ended(self.source, self.environ, self.runtime, check=self.check)
        before = self._catalog()
        wait_sent(self.source, self.environ, self.runtime, check=self.check)
        ends = self._ends(titles)
        wait_ended(self.source, self.environ, self.runtime, check=self.check)
        snapshot = self.runtime.new_uuid()
        self.say(f"reading {', '.join(titles)} of {self.source.url} again")
        topics = take_snapshot(
            self.running, titles, snapshot, self.engine.clients, check=self.check, runtime=self.runtime
        )
        now, errors = self._catalog(), {}
        for title in titles:
            try:
                table = now.get(title)
                if table is None or table != before.get(title):
                    raise _altered(self.source, title)
                self._replace(table, topics[title], ends.get(title), snapshot)
            except TablestoreError as error:
                errors[title] = error
        return errors

    def _catalog(self) -> Mapping[str, CatalogTable]:
        with open_database(self.source, self.environ) as connection:
            return {one.title: one for one in list_tables(connection, self.source)}

    def _publish(self, titles: Sequence[str]) -> None:
        """All are checked before the first one is published."""
        with open_database(self.source, self.environ) as connection:
            here = find_identity(connection)
            tables = {one.title: one for one in list_tables(connection, self.source)}
            fit = [one for one, table in tables.items() if why_unfit(table, here.version) is None]
            for title in titles:
                if title not in tables:
                    raise _unknown(self.source, title)
                if (unfit := why_unfit(tables[title], here.version)) is not None:
                    raise unfit
                if twins := [one for one in fit if one != title and self.name_of(one) == self.name_of(title)]:
                    raise _clash(self.name_of(title), (title, *twins))
            for title in titles:
                table = tables[title]
                if not table.published and (refused := publish(connection, self.source, table)) is not None:
                    raise refused

    def _ends(self, titles: Sequence[str]) -> Mapping[str, str]:
        """Positions behind all messages; none of a table whose topic is still to be made."""
        there, found = find_cluster(self.engine.clients)[1], {}
        for title in titles:
            topic = topic_of(self.source.name, title)
            if topic in there:
                source = TopicSource(topic, self.engine.clients, self.runtime)
                found[title] = source.ends()
                source.close()
        return found

    # one table -----------------------------------------------------------------------------------

    def _replace(self, table: CatalogTable, found: SnapshotTopic, end: str | None, snapshot: str) -> None:
        name = self.name_of(table.title)
        topic = topic_of(self.source.name, table.title)
        steps = {mark_of(topic): PositionStep(None, snapshot, is_reset=True)}
        steps[f"kafka:{topic}"] = PositionStep(None, end, is_reset=True)
        have = self.engine.find_table(name)
        if not found.topic and have is None:
            if end is not None:
                raise _empty(self.source, table.title, name)
            snapshot = ""  # no row, no message: its topic will have all
        elif not found.topic:
            assert have is not None
            rows = have.schema.arrow_schema().empty_table()
            self.engine.write(name, rows, WriteSpec(mode=WriteMode.OVERWRITE_TABLE, positions=steps))
        else:
            self._replace_rows(name, found, steps)
        change_record(
            Path(self.running.data_dir),
            lambda known: known.with_snapshot(
                table.title, follow_as_is(table, known.followed.get(table.title)), snapshot
            ),
        )
        self.say(f"{name}: read again, {found.rows} rows")

    def _replace_rows(self, name: str, found: SnapshotTopic, steps: Mapping[str, PositionStep]) -> None:
        """By a table beside, which has the rows as every ingest reads them."""
        beside = f"{name}__resnapshot"
        self._drop(beside)
        try:
            self.engine.ingest(
                IngestSpec(format=ChangeFormat.DEBEZIUM_JSON, into=beside, topic=found.topic), say=self.say
            )
            made, have = self.engine.table(beside).schema, self.engine.find_table(name)
            known = None if have is None else have.schema
            if known is not None and list(known.primary_keys) != list(made.primary_keys):
                raise _other_key(name, made, known)
            fields = columns_of(made, known, name)
            changes = known is not None and [one.type for one in fields] != [one.type for one in known.fields]
            spec = WriteSpec(
                table=TableSpec(
                    primary_key=() if known is not None else tuple(made.primary_keys),
                    options={} if known is not None else self.options,
                ),
                mode=WriteMode.OVERWRITE_TABLE,
                on_schema_change=OnSchemaChange.SYNC_ALL_COLUMNS if changes else OnSchemaChange.SAME_COLUMNS,
                duplicates="last",
                positions=steps,
            )
            self.engine.write(name, self._rows(beside, fields, found.rows), spec)
        finally:
            self._drop(beside)

    def _rows(self, beside: str, fields: Sequence[DataField], count: int) -> object:
        """Arrow, or SQL where there are many."""
        table = self.engine.table(beside)
        have = {one.name.lower(): one.name for one in table.schema.fields}
        if count > _ROWS_IN_MEMORY and not any(one.type.root == "TIME" for one in fields):
            return self.engine.query(_select(beside, fields, have))
        rows = table.scan().to_arrow()
        columns = [
            rows.column(have[one.name.lower()]).cast(type_to_arrow(one.type))
            if one.name.lower() in have
            else pa.nulls(rows.num_rows, type_to_arrow(one.type))
            for one in fields
        ]
        return pa.table(columns, names=[one.name for one in fields])

    def _drop(self, beside: str) -> None:
        """Only one that a snapshot has filled. Raises FixRequest TS1597."""
        found = self.engine.find_table(beside)
        if found is None:
            return
        if not any(one.startswith(f"kafka:{snapshot_prefix(self.source.name)}") for one in found.positions()):
            raise FixRequest(
                "TS1597",
                f"rows cannot be read into {beside}",
                why="a table of that name is there, and no re-snapshot has made it",
                fix="rename it",
            )
        self.engine.drop_table(beside)


def mark_of(topic: str) -> str:
    """Beside the position of a topic: which re-snapshot the table has."""
    return f"re-snapshot of {topic}"


def check_snapshot(name: str, topic: str, snapshot: str, positions: Mapping[str, str]) -> None:
    """The table has the re-snapshot that the record asks for; `positions`: of the table, none where it is missing.

    Raises FixRequest TS1593.
    """
    if snapshot and positions.get(mark_of(topic)) != snapshot:
        raise FixRequest(
            "TS1593",
            f"table {name} lacks rows of a re-snapshot",
            why=f"rows of its source were read again into another table or another state of it; topic {topic} alone "
            "does not have all of them",
            fix=f"read the table again: tablestore sync … --resnapshot '{topic.partition('.')[2]}'",
        )


def columns_of(made: TableSchema, known: TableSchema | None, name: str) -> Sequence[DataField]:
    """Columns to write with: those of the table, and new or wider ones. Raises FixData TS1423."""
    if known is None:
        return tuple(made.fields)
    types = {one.name: one.type for one in made.fields}
    one_row = DecodedRows(
        {name: pa.nulls(1) for name in types}, types, np.array([True]), np.array([0], dtype=np.int64)
    )
    rules = Known(known.fields, {}, OnSchemaChange.APPEND_NEW_COLUMNS, name, is_new=False)
    return plan_columns(DecodedMessages(parts=[one_row]), rules, lambda _: "the snapshot")


def _select(beside: str, fields: Sequence[DataField], have: Mapping[str, str]) -> str:
    columns = [
        f"cast({quote_name(have[one.name.lower()]) if one.name.lower() in have else 'null'} as {spark_ddl(one.type)}) "
        f"as {quote_name(one.name)}"
        for one in fields
    ]
    return f"select {', '.join(columns)} from {'.'.join(map(quote_name, beside.split('.', 1)))}"


def _altered(source: DatabaseSource, title: str) -> RetryError:
    return RetryError(
        "TS1598",
        f"table {title} of source {source.name} was not read again",
        why="it was altered, truncated or rewritten meanwhile",
        fix="repeat when that is done; the warehouse's table is as it was",
    )


def _unknown(source: DatabaseSource, title: str) -> NotFound:
    return NotFound(
        "TS1594",
        f"{title} is no table of source {source.name}",
        why="the database has no such table, or the patterns of the source leave it out",
        fix="name it as schema.table, as in public.orders",
    )


def _clash(name: str, titles: Sequence[str]) -> FixRequest:
    return FixRequest(
        "TS1599",
        f"table {name} was not read again",
        why=f"{' and '.join(titles)} would both become {name}",
        fix="leave one out: name others with --table, and give it a source and a database of its own",
    )


def _empty(source: DatabaseSource, title: str, name: str) -> FixRequest:
    return FixRequest(
        "TS1595",
        f"table {name} cannot be made",
        why=f"{title} has no row now, and its topic may have messages of an earlier table of that name",
        fix=f"repeat when it has a row: tablestore sync {source.name} … --resnapshot '{title}'",
    )


def _other_key(name: str, made: TableSchema, known: TableSchema) -> FixRequest:
    return FixRequest(
        "TS1596",
        f"table {name} was not read again",
        why=f"its primary key is ({', '.join(known.primary_keys)}), that of the source's table is "
        f"({', '.join(made.primary_keys)})",
        fix=f'drop it (tablestore sql "drop table {name}"), and repeat',
    )
