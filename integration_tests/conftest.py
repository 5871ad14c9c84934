"""Parts that cost seconds and are shared by a whole test session.

broker          a real Kafka of one node on loopback, in a folder of its own
secure_broker   another one, with log-in by SCRAM over TLS, and rights
registry        a real schema registry on loopback
WHY      every JVM of Spark that a test starts, in whatever process, compiles with its first compiler only:
         compilers take two fifths of a short run (decision 0026), and no test here has millions of rows.
         With one compiler Java's code cache is 48 MB, which generated code fills: then a third of the processor time
         goes into sweeping it. New objects get room from the start, so that they are collected less often.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration_tests.apicurio import Registry
from integration_tests.interop.environments import CannotMake
from tablestore_engine.devservers.kafka_broker import BrokerInfo, start_broker, stop_broker
from tablestore_engine.errors import RetryError

_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -Xmn512m"
if _JAVA_OPTIONS not in os.environ.get("SPARK_SUBMIT_OPTS", ""):
    os.environ["SPARK_SUBMIT_OPTS"] = f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} {_JAVA_OPTIONS}".strip()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerInfo]:
    """One broker per session; without its jars the tests are skipped with the reason, but fail under CI."""
    yield from _run_broker(tmp_path_factory.mktemp("broker"), secure=False)


@pytest.fixture(scope="session")
def secure_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerInfo]:
    """The same with users, certificates and rights, as `tablestore broker start --secure` makes it."""
    yield from _run_broker(tmp_path_factory.mktemp("secure-broker"), secure=True)


def _run_broker(folder: Path, *, secure: bool) -> Iterator[BrokerInfo]:
    try:
        info = start_broker(folder, secure=secure, say=print)
    except RetryError as error:
        if error.code != "TS1911" or os.environ.get("CI"):
            raise
        pytest.skip(f"needs the Kafka jars: {error}")
    yield info
    stop_broker(folder)


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """One schema registry per session; skipped without it, but a failure under CI."""
    try:
        started = Registry(tmp_path_factory.mktemp("registry"))
    except CannotMake as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"needs a schema registry: {reason}")
    yield started
    started.remove()
