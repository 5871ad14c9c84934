"""Which tables a source follows: those of its record, and later ones, either complete or reported.

look_at_tables compares the catalog with the record at each sync; Look has the result. publish adds a table to the
publication, make_publication makes an empty one.

CHANGE     which PostgreSQL tables are published
WHY        replication sends changes of rows. That a table was dropped and made again, renamed, or rewritten with other
           values, it does not send: oids, column numbers and relfilenodes of the catalog say so (unsent_values.py).
INVARIANT  a table is published while it is empty, under a lock that keeps writers out, or before the first load: all
           its rows are in its topic. One with rows of before is named, never followed in part.
INVARIANT  a column is taken as known once no row has a value there that replication did not send.
INVARIANT  the catalog is read again after the rows: an ALTER in between would make rewritten rows look like sent ones.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tablestore_engine.errors import FixRequest, RetryError, TablestoreError
from tablestore_engine.postgres.catalog_tables import (
    CatalogTable,
    key_of,
    list_tables,
    quoted,
    why_unfit,
)
from tablestore_engine.postgres.connector_state import (
    FollowedTable,
    SourceRecord,
    follow_as_is,
    resnapshot_command,
)
from tablestore_engine.postgres.database_source import DatabaseSource
from tablestore_engine.postgres.unsent_values import (
    Doubt,
    Since,
    doubt_begin,
    find_doubts,
    find_unsent,
    fingerprint,
    next_transaction,
)

_ROOT_SINCE, _GENERATED_SINCE = 130000, 180000


@dataclass
class Look:
    """By `schema.table`. `known`: with what is to be written down of them; `gone`: the database has them no more.

    `doubted`: the record of tables with rows that replication did not send.
    """

    trouble: dict[str, TablestoreError] = field(default_factory=dict)
    known: dict[str, FollowedTable] = field(default_factory=dict)
    gone: dict[str, TablestoreError] = field(default_factory=dict)
    doubted: dict[str, FollowedTable] = field(default_factory=dict)

    @property
    def followed(self) -> Mapping[str, FollowedTable]:
        """What the record is to say."""
        return {**self.doubted, **self.known}


def look_at_tables(connection: Any, source: DatabaseSource, record: SourceRecord, version: int) -> Look:  # noqa: ANN401
    """What a sync can bring up to now, and what it cannot. New tables are published on the way."""
    look = Look()
    tables = {one.title: one for one in list_tables(connection, source)}
    here = next_transaction(connection)  # after the catalog: what is in it was committed before
    oids = {one.oid: name for name, one in record.followed.items()}
    scanned: dict[str, str] = {}
    for name, table in tables.items():
        followed = record.followed.get(name)
        if (unfit := why_unfit(table, version)) is not None:
            look.trouble[name] = unfit
        elif followed is None and table.oid in oids:
            look.trouble[name] = _torn(
                source, name, f"it was {oids[table.oid]} before, whose topic has its rows"
            )
        elif followed is None:
            _keep(look, name, _begin_to_follow(connection, source, table), follow_as_is(table))
        elif (torn := why_torn(source, table, followed)) is not None:
            look.trouble[name] = torn
        elif doubts := find_doubts(table, followed):
            scanned[name] = fingerprint(table)
            since = doubt_begin(table, followed, here)
            trouble = _why_unsent(connection, source, table, doubts, since)
            if trouble is not None:
                look.doubted[name] = replace(followed, doubt=scanned[name], doubt_since=since.transaction)
            _keep(look, name, trouble, follow_as_is(table, followed))
        else:
            look.known[name] = follow_as_is(table, followed)
    _check_unchanged(connection, source, look, scanned)
    for name in record.followed.keys() - tables.keys():
        look.gone[name] = FixRequest(
            "TS1495",
            f"table {name} is not in the database any more",
            why="it was dropped or renamed; what the warehouse has of it stays as it was",
            fix="drop the warehouse's table too, and it is not asked for again",
        )
    return look


def _why_unsent(
    connection: Any,  # noqa: ANN401 - psycopg's
    source: DatabaseSource,
    table: CatalogTable,
    doubts: Sequence[Doubt],
    since: Since,
) -> TablestoreError | None:
    psycopg = importlib.import_module("psycopg")
    try:
        found = find_unsent(connection, doubts, since)
    except psycopg.Error as error:
        return _refused(table, str(error).strip())
    if found is None:
        return None
    more = f"; or let PostgreSQL send those of a small table: {found.cure}; and sync again"
    return _torn(source, table.title, f"{found.why}; replication did not send these values", more)


def _check_unchanged(
    connection: Any,  # noqa: ANN401 - psycopg's
    source: DatabaseSource,
    look: Look,
    scanned: Mapping[str, str],
) -> None:
    """Of tables whose rows were looked at: the catalog is what it was before."""
    if not scanned:
        return
    now = {one.title: fingerprint(one) for one in list_tables(connection, source)}
    for name, was in scanned.items():
        if now.get(name) != was and name in look.known:
            del look.known[name]
            look.trouble[name] = RetryError(
                "TS1590",
                f"table {name} of source {source.name} cannot be brought up to now",
                why="it was altered while its rows were checked",
                fix="sync again when the ALTER is done",
            )


def why_torn(source: DatabaseSource, table: CatalogTable, followed: FollowedTable) -> TablestoreError | None:
    """What the catalog says that replication did not send; None where nothing."""
    if table.oid != followed.oid:
        return _torn(source, table.title, "it was dropped and created again, and its topic has rows of both")
    if not table.published or (followed.published and table.published != followed.published):
        return _torn(
            source,
            table.title,
            f"it was taken out of the publication {source.slot}, and changes were not sent",
        )
    if key_of(table) != followed.key:
        why = f"its key was {_as_text(followed.key)} and is {_as_text(key_of(table))}"
        return _torn(source, table.title, why, "; drop the warehouse's table before")
    if followed.leaves.keys() - table.leaves.keys():
        return _torn(source, table.title, "a partition of it was dropped or detached, with its rows")
    emptied = [oid for oid, file in followed.leaves.items() if table.leaves[oid][0] != file]
    writers = {table.leaves[oid][3] for oid in emptied}
    if emptied and (len(emptied) < len(followed.leaves) or len(emptied) == 1 or len(writers) > 1):
        names = ", ".join(table.leaves[oid][1] for oid in emptied)
        return _torn(
            source,
            table.title,
            f"its partition {names} alone was truncated or rewritten, which replication does not send",
        )
    return None


def _keep(look: Look, name: str, trouble: TablestoreError | None, followed: FollowedTable) -> None:
    if trouble is None:
        look.known[name] = followed
    else:
        look.trouble[name] = trouble


def _as_text(columns: tuple[str, ...]) -> str:
    return f"({', '.join(columns)})"


def _torn(source: DatabaseSource, table: str, why: str, more: str = "") -> FixRequest:
    return FixRequest(
        "TS1495",
        f"table {table} of source {source.name} cannot be brought up to now",
        why=why,
        fix=f"read all rows of this table again: {resnapshot_command(source, table)}{more}",
    )


# publication -----------------------------------------------------------------------------------------


def make_publication(connection: Any, source: DatabaseSource, version: int) -> None:  # noqa: ANN401 - psycopg's
    """Empty; changes of partitions under the name of their root, values of generated columns too."""
    options = ["publish_via_partition_root = true"] if version >= _ROOT_SINCE else []
    options += ["publish_generated_columns = stored"] if version >= _GENERATED_SINCE else []
    name = quoted((source.slot,))
    connection.execute(f"drop publication if exists {name}")
    connection.execute(f"create publication {name}" + (f" with ({', '.join(options)})" if options else ""))


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
) -> TablestoreError | None:
    """Published while it is empty, with writers kept out for that moment."""
    psycopg = importlib.import_module("psycopg")
    name = quoted((table.schema, table.name))
    try:
        with connection.transaction():
            connection.execute(f"lock table {name} in share mode")
            if connection.execute(f"select 1 from {name} limit 1").fetchone() is None:
                return None if table.published else publish(connection, source, table)
    except psycopg.Error as error:
        return _refused(table, str(error).strip())
    return FixRequest(
        "TS1496",
        f"table {table.title} came later, and is not followed by source {source.name} yet",
        why="it has rows from before the first sync that saw it, which replication did not send",
        fix=f"read its rows: {resnapshot_command(source, table.title)}",
    )
