"""How far PostgreSQL is, and whether Connect has sent that much.

Names      wait_sent   everything that was committed in the database before the call lies in Kafka when it returns
Steps      a message into the database's own log, which wakes the connector even when no table changes → its place →
           the replication slot has confirmed that place: Connect tells PostgreSQL so behind its answers from Kafka
WHY        the message comes again every few seconds: one that lies before the place of a first load is never seen by
           Debezium, and in a quiet database nothing else would let it confirm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.log.database_session import open_database
from tablestore_engine.log.database_source import DatabaseSource
from tablestore_engine.runtime.outside_world import Runtime

_WAIT_SECONDS = 120.0
_POLL_SECONDS = 0.1
_AGAIN_SECONDS = 5.0
_TELL = "select pg_logical_emit_message(true, 'tablestore', 'sync')::text"


def wait_sent(
    source: DatabaseSource,
    environ: Mapping[str, str],
    runtime: Runtime,
    *,
    check: Callable[[], None],
    seconds: float = _WAIT_SECONDS,
) -> str:
    """The place, as PostgreSQL writes it. `check` raises where waiting has no sense.

    Raises FixRequest TS1478 (no slot), TS1485, RetryError TS1479, TS1486.
    """
    with open_database(source, environ) as connection:
        place = str(connection.execute(_TELL).fetchone()[0])
        told_ms = runtime.now_ms()
        deadline = told_ms + int(seconds * 1000)
        while not _is_confirmed(connection, source, place):
            check()
            if runtime.now_ms() > deadline:
                raise RetryError(
                    "TS1479",
                    f"Connect has not sent all changes of {source.url} yet",
                    why=f"slot {source.slot} has not confirmed {place} within {seconds:.0f} s; nothing was read",
                    fix="look at tablestore connect status, and repeat: a first load may take long",
                )
            if runtime.now_ms() >= told_ms + _AGAIN_SECONDS * 1000:
                connection.execute(_TELL)
                told_ms = runtime.now_ms()
            runtime.sleep(_POLL_SECONDS)
        return place


def _is_confirmed(connection: Any, source: DatabaseSource, place: str) -> bool:  # noqa: ANN401 - psycopg's
    asked = "select confirmed_flush_lsn >= %s::pg_lsn from pg_replication_slots where slot_name = %s"
    row = connection.execute(asked, (place, source.slot)).fetchone()
    if row is None:
        raise FixRequest(
            "TS1478",
            f"nobody follows {source.url}",
            why=f"the database has no replication slot {source.slot}",
            fix=f"begin anew: tablestore connect start {source.name} --database {source.url} --anew",
        )
    return bool(row[0])
