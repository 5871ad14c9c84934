"""A connection to the source database: its identity, log position and tables.

Optional   psycopg, which the extra `postgres` brings, is imported when a database is asked
INVARIANT  the password is in no error: PostgreSQL's sentences do not have it, and ours name the address without it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.postgres.database_source import PASSWORD_ENV, DatabaseSource

_LOCK_MS = 5000
_IDENTITY = """select system_identifier::text,
('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int,
pg_current_wal_lsn()::text, current_setting('server_version_num')::int from pg_control_system()"""
_SLOT = """select active, coalesce(wal_status, '') = 'lost' from pg_replication_slots where slot_name = %s"""


@dataclass(frozen=True)
class Identity:
    """`system`: the same for a server, its copies and its backups; `timeline`: another one behind each recovery.

    `place`: how far its log is, `version`: as 180000.
    """

    system: str
    timeline: int
    place: str
    version: int


@dataclass(frozen=True)
class Slot:
    """`is_active`: somebody reads it; `is_lost`: the database threw away what was not read."""

    is_active: bool
    is_lost: bool


def place_number(place: str) -> int:
    """Of a place as PostgreSQL writes it, `1/2F`."""
    high, _, low = place.partition("/")
    return (int(high, 16) << 32) + int(low, 16)


@contextmanager
def open_database(source: DatabaseSource, environ: Mapping[str, str]) -> Iterator[Any]:
    """Every statement commits. Raises FixRequest TS1485 (no psycopg), RetryError TS1486, of what the block asks too."""
    psycopg = _load()
    mode = {"sslmode": source.sslmode} if source.sslmode else {}
    try:
        with psycopg.connect(
            host=source.host,
            port=source.port,
            user=source.user,
            dbname=source.database,
            password=environ.get(PASSWORD_ENV) or None,
            connect_timeout=10,
            application_name=source.slot,
            autocommit=True,
            **mode,
        ) as connection:
            connection.execute(f"set lock_timeout = {_LOCK_MS}")
            yield connection
    except psycopg.Error as error:
        raise RetryError(
            "TS1486",
            f"the database {source.url} cannot be asked how far it is",
            why=str(error).strip(),
            fix=f"check the address, and the password in {PASSWORD_ENV}",
        ) from error


def find_identity(connection: Any) -> Identity:  # noqa: ANN401 - psycopg's
    """Of the server behind a connection."""
    return Identity(*connection.execute(_IDENTITY).fetchone())


def find_slot(connection: Any, source: DatabaseSource) -> Slot | None:  # noqa: ANN401 - psycopg's
    """None where there is none."""
    row = connection.execute(_SLOT, (source.slot,)).fetchone()
    return None if row is None else Slot(*row)


def _load() -> Any:  # noqa: ANN401 - a module that may be missing
    try:
        return importlib.import_module("psycopg")
    except ImportError as error:
        raise FixRequest(
            "TS1485",
            "the database cannot be asked how far it is",
            why=str(error),
            fix="pip install 'dbt-tablestore[postgres]'",
        ) from error
