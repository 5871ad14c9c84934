"""How a source starts: resume where Connect was, load for the first time, or refuse.

CHANGE     whether a source database is loaded for the first time or resumed
Steps      look at folder, database and brokers → decide → anew: slot, publication, topics and offsets of before go; a
           publication of the tables that can be followed → their record
INVARIANT  a first load that was not completed is never gone on with: its second snapshot would be younger than its
           first rows, and what was deleted between them would stay for ever. Nobody was promised it: it begins anew.
INVARIANT  a slot without the offsets that belong to it, or offsets without their slot, is never gone on with either;
           but what a sync has promised is never thrown away unasked.
CRASH      anew: the record is written last; a start that died before is reported, or what it left is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tablestore_engine.errors import FixRequest, RetryError, TablestoreError
from tablestore_engine.log.kafka.cluster_topics import delete_topics, find_cluster
from tablestore_engine.postgres.catalog_tables import CatalogTable, find_risky, list_tables, why_unfit
from tablestore_engine.postgres.connector_state import (
    FollowedTable,
    SourceRecord,
    anew_command,
    check_record,
    follow_as_is,
    read_record,
    topic_of,
    write_record,
)
from tablestore_engine.postgres.database_source import DatabaseSource
from tablestore_engine.postgres.postgres_session import (
    Identity,
    Slot,
    find_identity,
    find_slot,
    open_database,
)
from tablestore_engine.postgres.publication_tables import make_publication, publish
from tablestore_engine.runtime.outside_world import Runtime

_DROP_SECONDS, _POLL_SECONDS = 20.0, 0.2
_OFFSETS = "offsets"


@dataclass(frozen=True)
class Found:
    """Of a source before it is started. `topics`: of its tables, those that are there; `is_loaded`: Connect's offsets
    say that the first load was completed.
    """

    record: SourceRecord | None
    here: Identity
    cluster: str
    slot: Slot | None
    topics: tuple[str, ...]
    is_loaded: bool


def prepare_source(
    source: DatabaseSource,
    settings: Mapping[str, str],
    *,
    environ: Mapping[str, str],
    folder: Path,
    anew: bool,
    say: Callable[[str], None],
    runtime: Runtime,
) -> SourceRecord:
    """Its slot and its topics belong to its offsets behind this. `settings`: of Kafka's clients.

    Raises FixRequest TS1485, TS1492, TS1493, RetryError TS1464, TS1486, TS1494.
    """
    record, (cluster, there) = read_record(folder), find_cluster(settings)
    with open_database(source, environ) as connection:
        here = find_identity(connection)
        tables = list_tables(connection, source)
        names = {*(one.title for one in tables), *(record.followed if record else ())}
        topics = {topic_of(source.name, one) for one in names} & there
        offsets = folder / _OFFSETS
        is_loaded = is_first_load_done(folder)
        slot = find_slot(connection, source)
        found = Found(record, here, cluster, slot, tuple(sorted(topics)), is_loaded)
        if not anew and not decide_begin(source, found):
            assert record is not None
            return record
        if slot is not None:
            _drop_slot(connection, source, runtime)
        delete_topics(settings, found.topics, runtime)
        offsets.unlink(missing_ok=True)
        make_publication(connection, source, here.version)
        followed = _publish_tables(connection, source, tables, here.version, say)
    new = SourceRecord(source.database, source.tables, here.system, here.timeline, cluster, None, followed)
    write_record(folder, new)
    return new


def _publish_tables(
    connection: Any,  # noqa: ANN401 - psycopg's
    source: DatabaseSource,
    tables: Sequence[CatalogTable],
    version: int,
    say: Callable[[str], None],
) -> dict[str, FollowedTable]:
    """Those that can be published, as the catalog has them afterwards; why the others cannot is said."""
    refused: dict[str, TablestoreError] = {}
    for table in tables:
        trouble = why_unfit(table, version) or publish(connection, source, table)
        if trouble is not None:
            refused[table.title] = trouble
            say(str(trouble))
        elif risky := find_risky(table):
            say(
                f"{table.title}: an update that leaves a large value of {', '.join(risky)} as it was would end the "
                f"connector: alter table {table.title} replica identity full"
            )
    after = list_tables(connection, source)  # with their entries in the publication that was just made
    return {one.title: follow_as_is(one) for one in after if one.published and one.title not in refused}


def decide_begin(source: DatabaseSource, found: Found) -> bool:
    """Whether it begins anew. Raises FixRequest TS1492, TS1493."""
    record = found.record
    if record is None:
        if found.slot is not None:
            raise _torn(source, f"the database has a slot {source.slot}, and this folder does not know of it")
        if found.topics:
            raise _torn(source, f"the brokers have its topics already: {', '.join(found.topics[:5])}")
        return True
    check_record(record, source, found.here, found.cluster)
    if record.reached is None and not found.is_loaded:
        return True
    if not found.is_loaded:
        raise _torn(source, "the file with how far Connect is was lost")
    if found.slot is None:
        raise _torn(source, f"the database has no slot {source.slot} any more: it kept no changes since")
    if found.slot.is_lost:
        raise _torn(
            source, f"the database threw away what slot {source.slot} had yet to read (wal_status lost)"
        )
    return False


def is_first_load_done(folder: Path) -> bool:
    """As Connect has noted it."""
    offsets = folder / _OFFSETS
    return offsets.exists() and has_loaded(offsets.read_bytes())


def has_loaded(offsets: bytes) -> bool:
    """Of Connect's file, in which Debezium's values are among Java's: the load is complete."""
    return b'"snapshot_completed":true' in offsets or (b'"lsn' in offsets and b'"snapshot"' not in offsets)


def _torn(source: DatabaseSource, why: str) -> FixRequest:
    return FixRequest(
        "TS1493",
        f"source {source.name} cannot resume where it was",
        why=f"{why}; rows that were deleted meanwhile would stay in the tables",
        fix=f"load all rows again: {anew_command(source)}, which deletes its slot and its topics; then drop the "
        "tables that it filled. Or give this source another name",
    )


def _drop_slot(connection: Any, source: DatabaseSource, runtime: Runtime) -> None:  # noqa: ANN401 - psycopg's
    """A Connect that was killed lets go of it within moments. Raises RetryError TS1494."""
    deadline = runtime.now_ms() + int(_DROP_SECONDS * 1000)
    while (slot := find_slot(connection, source)) is not None and slot.is_active:
        if runtime.now_ms() > deadline:
            raise RetryError(
                "TS1494",
                f"source {source.name} cannot be created again",
                why=f"another program reads from slot {source.slot} of {source.url}",
                fix="end that Connect, then start again",
            )
        runtime.sleep(_POLL_SECONDS)
    if slot is not None:
        connection.execute("select pg_drop_replication_slot(%s)", (source.slot,))
