"""The log position of PostgreSQL, and whether Connect has sent everything up to it.

wait_sent: everything that was committed in the database before the call lies in Kafka when it returns.
wait_ended: every transaction that had begun has ended.

Steps      a message into the database's own log, which wakes the connector even when no table changes → its place →
           the replication slot has confirmed that place: Connect tells PostgreSQL so behind its answers from Kafka
WHY        the message comes again every few seconds: one that lies before the place of a first load is never seen by
           Debezium, and in a quiet database nothing else would let it confirm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.postgres.database_source import DatabaseSource
from tablestore_engine.postgres.postgres_session import open_database
from tablestore_engine.runtime.outside_world import Runtime

_WAIT_SECONDS = 120.0
_POLL_SECONDS = 0.1
_AGAIN_SECONDS = 5.0
_NOW = "select txid_current()"  # an id of its own: a snapshot's xmax is no higher than that of the youngest open one
_OLDEST = "select txid_snapshot_xmin(txid_current_snapshot())"
_WHO = """select who from (select 'process ' || pid || ' since ' || xact_start, age(backend_xid) from pg_stat_activity
where backend_xid is not null union all select 'prepared transaction ' || gid || ' since ' || prepared, age(transaction)
from pg_prepared_xacts) t(who, age) order by age desc limit 1"""
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
        reported_ms = runtime.now_ms()
        deadline = reported_ms + int(seconds * 1000)
        while not _is_confirmed(connection, source, place):
            check()
            if runtime.now_ms() > deadline:
                raise RetryError(
                    "TS1479",
                    f"Connect has not sent all changes of {source.url} yet",
                    why=f"slot {source.slot} has not confirmed {place} within {seconds:.0f} s; nothing was read",
                    fix="look at tablestore connect status, and repeat: a first load may take long",
                )
            if runtime.now_ms() >= reported_ms + _AGAIN_SECONDS * 1000:
                connection.execute(_TELL)
                reported_ms = runtime.now_ms()
            runtime.sleep(_POLL_SECONDS)
        return place


def wait_ended(
    source: DatabaseSource,
    environ: Mapping[str, str],
    runtime: Runtime,
    *,
    check: Callable[[], None],
    seconds: float = _WAIT_SECONDS,
) -> None:
    """Every transaction that had an id at the call has ended, and later snapshots see it.

    WHY: PostgreSQL sends a transaction before others see it as committed, by as long as a synchronous standby takes.
    Raises RetryError TS1591 where one stays open, TS1486.
    """
    with open_database(source, environ) as connection:
        begun = connection.execute(_NOW).fetchone()[0]
        deadline = runtime.now_ms() + int(seconds * 1000)
        while connection.execute(_OLDEST).fetchone()[0] < begun:
            check()
            if runtime.now_ms() > deadline:
                raise RetryError(
                    "TS1591",
                    f"no snapshot of {source.url} can be taken",
                    why=f"a transaction stays open for more than {seconds:.0f} s: {_oldest(connection)}",
                    fix="end it, or wait for it, and repeat",
                )
            runtime.sleep(_POLL_SECONDS)


def _oldest(connection: Any) -> str:  # noqa: ANN401 - psycopg's
    row = connection.execute(_WHO).fetchone()
    return "unknown" if row is None else str(row[0])


def _is_confirmed(connection: Any, source: DatabaseSource, place: str) -> bool:  # noqa: ANN401 - psycopg's
    asked = "select confirmed_flush_lsn >= %s::pg_lsn from pg_replication_slots where slot_name = %s"
    row = connection.execute(asked, (place, source.slot)).fetchone()
    if row is None:
        raise FixRequest(
            "TS1478",
            f"no connector follows {source.url}",
            why=f"the database has no replication slot {source.slot}",
            fix=f"load all rows again: `tablestore connect start {source.name} --database {source.url} --anew`",
        )
    return bool(row[0])
