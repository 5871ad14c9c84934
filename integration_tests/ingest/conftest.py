"""A PostgreSQL for all tests of whole databases, and connectors that end with their test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration_tests.ingest.databases import PASSWORD, Connected, drop_slot
from tablestore_demo.demo_postgres import Postgres, run_postgres
from tablestore_engine.devservers.kafka_broker import BrokerInfo
from tablestore_engine.postgres.database_source import PASSWORD_ENV
from tablestore_engine.spi import ConnectInfo, parse_source, start_connect, stop_connect


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One server for all tests; each has a schema of its own."""
    with run_postgres(PASSWORD) as server:
        yield server


@pytest.fixture
def connected(postgres: Postgres, broker: BrokerInfo, tmp_path: Path) -> Iterator[Connected]:
    """Starts connectors, which end with the test, their slots and schemas with them."""
    names: list[str] = []

    def start(
        name: str,
        *tables: str,
        url: str | None = None,
        password: str = PASSWORD,
        anew: bool = False,
    ) -> ConnectInfo:
        names.append(name)
        source = parse_source(name, url or postgres.url, tables)
        environ = {**os.environ, PASSWORD_ENV: password}
        return start_connect(
            source, broker.url, environ=environ, data_dir=tmp_path / name, anew=anew, say=print
        )

    yield start
    for name in set(names):
        stop_connect(name, tmp_path / name)
        drop_slot(postgres, f"tablestore_{name}")
        postgres.run(
            f"drop publication if exists tablestore_{name}", f"drop schema if exists {name} cascade"
        )  # a source of all tables is not to find them
