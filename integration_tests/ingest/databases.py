"""What tests of whole databases have in common."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tablestore_demo.demo_postgres import Postgres
from tablestore_engine.api import Engine
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.postgres.database_source import PASSWORD_ENV
from tablestore_engine.spi import ConnectInfo, SyncReport, SyncSpec, sync_database

PASSWORD = "an-unusual-word-7"
KNOWN = {PASSWORD_ENV: PASSWORD}
Connected = Callable[..., ConnectInfo]


def fresh() -> str:
    """A name of a schema and its source."""
    return f"s{uuid.uuid4().hex[:10]}"


def opened(tmp_path: Path, broker: BrokerInfo) -> Engine:
    """The warehouse."""
    return Engine(str(tmp_path / "warehouse"), log={"kafka.bootstrap.servers": broker.url})


def sync(engine: Engine, running: ConnectInfo, stop: threading.Event | None = None) -> SyncReport:
    """Everything that is committed by now."""
    return sync_database(engine, running, SyncSpec("demo"), environ=KNOWN, stop=stop, say=print)


def rows_of(engine: Engine, table: str) -> list[tuple[Any, ...]] | None:
    """None where there is no such table."""
    found = engine.find_table(f"demo.{table}")
    return (
        None if found is None else sorted(tuple(row.values()) for row in found.scan().to_arrow().to_pylist())
    )


def until(is_so: Callable[[], object], seconds: float = 300.0) -> None:
    """Looks again and again."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def drop_slot(postgres: Postgres, slot: str, seconds: float = 300.0) -> None:
    """PostgreSQL notices the end of a killed Connect a moment later; a slot that does not exist is fine."""
    look, deadline = (
        f"select active from pg_replication_slots where slot_name = '{slot}'",
        time.monotonic() + seconds,
    )
    while (found := postgres.rows(look)) == [(True,)]:
        assert time.monotonic() < deadline, f"somebody still reads slot {slot}"
        time.sleep(0.05)
    if found:
        postgres.run(f"select pg_drop_replication_slot('{slot}')")
