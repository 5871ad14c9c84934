"""The peers and the Java-written tables, one of each per session; a missing environment is a failure under CI.

java, spark, pypaimon, rust   readers, started by first use
duckdb, pyiceberg,
spark_iceberg                 readers of Iceberg metadata, likewise
flink                         Flink's format classes, for messages of logs
hive                          Hive's classes with Paimon's connector, a reader
flink_tables                  a Flink cluster with Paimon's connector, reader and writer
golden                        name -> table that Java wrote (golden.KINDS), made once, shared by all tests: read only
ours                          name -> table that our engine wrote (our_tables.OURS), likewise
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from integration_tests.interop.engine_matrix import VARIABLE, EngineMatrix
from integration_tests.interop.flink import Flink
from integration_tests.interop.flink_tables import FlinkTables
from integration_tests.interop.golden import KINDS, Golden, make_table
from integration_tests.interop.hive_tables import HiveTables
from integration_tests.interop.java_paimon import JavaPaimon
from integration_tests.interop.missing import made_or_skip
from integration_tests.interop.our_tables import OURS
from integration_tests.interop.ours import Ours
from integration_tests.interop.peers import (
    ProcessPeer,
    duckdb_peer,
    pyiceberg_peer,
    pypaimon_peer,
    rust_peer,
    spark_iceberg_peer,
    spark_peer,
)

MATRIX = EngineMatrix()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Outcomes for the matrix of docs/engines.md."""
    report = yield
    MATRIX.note(item, report)
    return report


def pytest_sessionfinish() -> None:
    """Written where the environment names a file."""
    if os.environ.get(VARIABLE):
        MATRIX.write(Path(os.environ[VARIABLE]))


T = TypeVar("T", JavaPaimon, ProcessPeer, Flink, FlinkTables, HiveTables)


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaPaimon]:
    """Java Paimon 1.4.2 in one JVM."""
    yield from _started(JavaPaimon, tmp_path_factory.mktemp("java"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessPeer]:
    """paimon-spark 0.9.0 on Spark 3.5."""
    yield from _started(spark_peer, tmp_path_factory.mktemp("spark"))


@pytest.fixture(scope="session")
def pypaimon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessPeer]:
    """pypaimon 2.1.0."""
    yield from _started(pypaimon_peer, tmp_path_factory.mktemp("pypaimon"))


@pytest.fixture(scope="session")
def rust(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessPeer]:
    """pypaimon-rust 0.4.0."""
    yield from _started(rust_peer, tmp_path_factory.mktemp("rust"))


@pytest.fixture(scope="session")
def duckdb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessPeer]:
    """DuckDB 1.5.5 with its Iceberg extension."""
    yield from _started(duckdb_peer, tmp_path_factory.mktemp("duckdb"))


@pytest.fixture(scope="session")
def pyiceberg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessPeer]:
    """pyiceberg 0.12.0."""
    yield from _started(pyiceberg_peer, tmp_path_factory.mktemp("pyiceberg"))


@pytest.fixture(scope="session")
def spark_iceberg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessPeer]:
    """Iceberg's Java reader 1.11.0 on Spark 3.5."""
    yield from _started(spark_iceberg_peer, tmp_path_factory.mktemp("spark-iceberg"))


@pytest.fixture(scope="session")
def flink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flink]:
    """Flink 1.20's formats in one JVM."""
    yield from _started(Flink, tmp_path_factory.mktemp("flink"))


@pytest.fixture(scope="session")
def flink_tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlinkTables]:
    """Flink 2.0.0 with Paimon's connector 1.4.2."""
    yield from _started(FlinkTables, tmp_path_factory.mktemp("flink-tables"))


@pytest.fixture(scope="session")
def hive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveTables]:
    """Hive 3.1.3 with Paimon's connector 1.2.0."""
    yield from _started(HiveTables, tmp_path_factory.mktemp("hive"))


@pytest.fixture(scope="session")
def golden(java: JavaPaimon, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Golden]:
    """The table of a name, written by Java when first asked for."""
    warehouse = tmp_path_factory.mktemp("golden")
    made: dict[str, Golden] = {}

    def table(name: str) -> Golden:
        if name not in made:
            made[name] = make_table(java, warehouse / "theirs.db" / name, KINDS[name]())
        return made[name]

    return table


@pytest.fixture(scope="session")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Golden]:
    """The table of a name in our_tables.OURS, written by our engine when first asked for; read only."""
    warehouse = tmp_path_factory.mktemp("ours")
    made: dict[str, Golden] = {}

    def table(name: str) -> Golden:
        if name not in made:
            made[name] = make_table(Ours(), warehouse / "ours.db" / name, OURS[name]())
        return made[name]

    return table


def _started(start: Callable[[Path], T], folder: Path) -> Iterator[T]:
    peer = made_or_skip(lambda: start(folder))
    yield peer
    peer.close()
