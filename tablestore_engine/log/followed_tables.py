"""Which tables a source follows: those of its record, and those that came later, each whole or named.

Names      look_at_tables   at each sync: what changed in the catalog; Look: trouble by table, the record of the rest
           publish          a table into the publication; make_publication: an empty one
WHY        the database's log tells changes of rows. That a table was dropped and made again, renamed, or got a column
           whose value stands in the catalog, it does not tell: oids and column numbers of the catalog do.
INVARIANT  a table is published while it is empty, under a lock that keeps writers out, or before the first load: all
           its rows are in its topic. One with rows of before is named, never followed in part.
INVARIANT  a new column or partition is taken as known once no row of before has a value there that no message told.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tablestore_engine.errors import FixRequest, RetryError, TablestoreError
from tablestore_engine.log.database_source import DatabaseSource
from tablestore_engine.log.database_tables import (
    CatalogColumn,
    CatalogTable,
    key_of,
    list_tables,
    quoted,
    why_unfit,
)
from tablestore_engine.log.source_record import FollowedTable, SourceRecord, anew_command, follow_as_is

_WIDER = {
    ("smallint", "integer"),
    ("smallint", "bigint"),
    ("integer", "bigint"),
    ("real", "double precision"),
    ("character varying", "text"),
}
_ROOT_SINCE, _GENERATED_SINCE = 130000, 180000


class Changed(StrEnum):
    """What happened to a column."""

    ADDED = "added"
    AGAIN = "dropped and made again"
    RETYPED = "given another type"


@dataclass
class Look:
    """By `schema.table`. `known`: with what is to be written down of them; `gone`: the database has them no more."""

    trouble: dict[str, TablestoreError] = field(default_factory=dict)
    known: dict[str, FollowedTable] = field(default_factory=dict)
    gone: dict[str, TablestoreError] = field(default_factory=dict)


def look_at_tables(connection: Any, source: DatabaseSource, record: SourceRecord, version: int) -> Look:  # noqa: ANN401
    """What a sync can bring up to now, and what it cannot. New tables are published on the way."""
    look = Look()
    tables = {one.title: one for one in list_tables(connection, source)}
    oids = {one.oid: name for name, one in record.followed.items()}
    published = {
        row[0]
        for row in connection.execute(
            "select r.prrelid::bigint from pg_publication_rel r join pg_publication p on p.oid = r.prpubid "
            "where p.pubname = %s",
            (source.slot,),
        ).fetchall()
    }
    for name, table in tables.items():
        followed = record.followed.get(name)
        if (unfit := why_unfit(table, version)) is not None:
            look.trouble[name] = unfit
        elif followed is None and table.oid in oids:
            look.trouble[name] = _torn(
                source, name, f"it was {oids[table.oid]} before, whose topic has its rows"
            )
        elif followed is None:
            trouble = _begin_to_follow(connection, source, table, is_published=table.oid in published)
            _keep(look, name, trouble, follow_as_is(table))
        else:
            trouble = why_torn(source, table, followed, is_published=table.oid in published)
            if trouble is None:
                trouble = _look_at_rows(connection, source, table, followed)
            _keep(look, name, trouble, follow_as_is(table))
    for name in record.followed.keys() - tables.keys():
        look.gone[name] = FixRequest(
            "TS1495",
            f"table {name} is not in the database any more",
            why="it was dropped or renamed; what the warehouse has of it stays as it was",
            fix="drop the warehouse's table too, and it is not asked for again",
        )
    return look


def why_torn(
    source: DatabaseSource, table: CatalogTable, followed: FollowedTable, *, is_published: bool
) -> TablestoreError | None:
    """What the catalog says that no message told; None where nothing."""
    if table.oid != followed.oid:
        return _torn(source, table.title, "it was dropped and made again, and its topic has rows of both")
    if not is_published:
        return _torn(source, table.title, f"somebody took it out of the publication {source.slot}")
    if key_of(table) != followed.key:
        return _torn(source, table.title, f"its key was {_told(followed.key)} and is {_told(key_of(table))}")
    if followed.leaves.keys() - table.leaves.keys():
        return _torn(source, table.title, "a partition of it was dropped or detached, with its rows")
    emptied = [oid for oid, file in followed.leaves.items() if table.leaves[oid][0] != file]
    if emptied and (len(emptied) < len(followed.leaves) or len(emptied) == 1):
        names = ", ".join(table.leaves[oid][1] for oid in emptied)
        return _torn(
            source,
            table.title,
            f"its partition {names} alone was truncated or rewritten: the log has no word",
        )
    return None


def _keep(look: Look, name: str, trouble: TablestoreError | None, followed: FollowedTable) -> None:
    if trouble is None:
        look.known[name] = followed
    else:
        look.trouble[name] = trouble


def _told(columns: tuple[str, ...]) -> str:
    return f"({', '.join(columns)})"


def _torn(source: DatabaseSource, table: str, why: str) -> FixRequest:
    return FixRequest(
        "TS1495",
        f"table {table} of source {source.name} cannot be brought up to now",
        why=why,
        fix=f"drop the warehouse's table and begin anew with all rows: {anew_command(source)}",
    )


# publication -----------------------------------------------------------------------------------------


def make_publication(connection: Any, source: DatabaseSource, version: int) -> None:  # noqa: ANN401 - psycopg's
    """Empty; changes of partitions under the name of their root, values of generated columns too."""
    words = ["publish_via_partition_root = true"] if version >= _ROOT_SINCE else []
    words += ["publish_generated_columns = stored"] if version >= _GENERATED_SINCE else []
    name = quoted((source.slot,))
    connection.execute(f"drop publication if exists {name}")
    connection.execute(f"create publication {name}" + (f" with ({', '.join(words)})" if words else ""))


def publish(connection: Any, source: DatabaseSource, table: CatalogTable) -> TablestoreError | None:  # noqa: ANN401
    """What PostgreSQL said against it; None where nothing."""
    psycopg = importlib.import_module("psycopg")
    try:
        connection.execute(
            f"alter publication {quoted((source.slot,))} add table {quoted((table.schema, table.name))}"
        )
    except psycopg.Error as error:
        return _refused(table, str(error).strip())
    return None


def _refused(table: CatalogTable, why: str) -> TablestoreError:
    return RetryError(
        "TS1499",
        f"table {table.title} cannot be followed",
        why=why,
        fix="the user of the source must own the tables that it follows; or leave it out: name others with --table",
    )


def _begin_to_follow(
    connection: Any,  # noqa: ANN401 - psycopg's
    source: DatabaseSource,
    table: CatalogTable,
    *,
    is_published: bool,
) -> TablestoreError | None:
    """Published while it is empty, with writers kept out for that moment."""
    psycopg = importlib.import_module("psycopg")
    name = quoted((table.schema, table.name))
    try:
        with connection.transaction():
            connection.execute(f"lock table {name} in share mode")
            if connection.execute(f"select 1 from {name} limit 1").fetchone() is None:
                return None if is_published else publish(connection, source, table)
    except psycopg.Error as error:
        return _refused(table, str(error).strip())
    return FixRequest(
        "TS1496",
        f"table {table.title} came later, and cannot be followed by source {source.name}",
        why="it has rows from before it was looked at, of which the source's log has nothing",
        fix=f"give it a source of its own: tablestore connect start {source.name}_2 --database {source.url} --table "
        f"'{table.title}', and sync that into the same database",
    )


# rows that no message told ----------------------------------------------------------------------------


def _look_at_rows(
    connection: Any,  # noqa: ANN401 - psycopg's
    source: DatabaseSource,
    table: CatalogTable,
    followed: FollowedTable,
) -> TablestoreError | None:
    """Rows from before a column, with a value that stands in the catalog or was written by the statement itself; rows
    from before their table was made a partition.
    """
    psycopg = importlib.import_module("psycopg")
    name = quoted((table.schema, table.name))
    what = f"table {table.title} of source {source.name} cannot be brought up to now"
    try:
        for column in table.columns:
            how, said = how_changed(column, followed), quoted((column.name,))
            if how is None:
                continue
            if _has_older(
                connection, name, column.made, "true" if how is Changed.AGAIN else f"{said} is not null"
            ):
                return FixRequest(
                    "TS1495",
                    what,
                    why=f"its column {column.name} was {how}: rows of before have values that no message told",
                    fix=f"let PostgreSQL tell them: update {name} set {said} = {said}; and sync again",
                )
        for oid in table.leaves.keys() - followed.leaves.keys():
            _, leaf, made = table.leaves[oid]
            if _has_older(connection, leaf, made, "true"):
                said = quoted(followed.key[:1])
                return FixRequest(
                    "TS1495",
                    what,
                    why=f"{leaf} was made a partition of it with rows of before, which no message tells",
                    fix=f"let PostgreSQL tell them: update {leaf} set {said} = {said}; and sync again",
                )
    except psycopg.Error as error:
        return _refused(table, str(error).strip())
    return None


def how_changed(column: CatalogColumn, followed: FollowedTable) -> Changed | None:
    """None where values of before are what they were: a type that only became wider."""
    number, kind = followed.columns.get(column.name), followed.kinds.get(column.name)
    if number is None:
        return Changed.ADDED
    if number != column.number:
        return Changed.AGAIN
    before, now = (re.sub(r"\(.*\)", "", one or "") for one in (kind, column.kind))
    return None if before == now or (before, now) in _WIDER else Changed.RETYPED


def _has_older(connection: Any, name: str, transaction: str, condition: str) -> bool:  # noqa: ANN401 - psycopg's
    """Rows no younger than a transaction. All names are quoted."""
    asked = f"select 1 from {name} where {condition} and age(xmin) >= age(%s::xid) limit 1"
    return connection.execute(asked, (transaction,)).fetchone() is not None
