"""Parts that cost seconds and are shared by a whole test session.

broker          a real Kafka of one node on loopback, in a folder of its own
secure_broker   another one, with log-in by SCRAM over TLS, and rights
registry        a real schema registry on loopback
WHY      every JVM of Spark that a test starts, in whatever process, compiles with its first compiler only:
         compilers take two fifths of a short run (decision 0026), and no test here has millions of rows.
         With one compiler Java's code cache is 48 MB, which generated code fills: then a third of the processor time
         goes into sweeping it. New objects get room from the start, so that they are collected less often.
         Pages of sorts and hash tables are 1 MB: Spark takes up to 64 MB of zeros for a few rows, and in the pipelines
         a fifth of Java's processor time went into collecting them (decision 0117).
         Java's memory lies in huge pages: a twelfth less processor time (decision 0158).

How Spark runs plans, by suite. "Interpreted": without generated code and adaptive execution (interpreted.py).

suite                                       make test, pytest            make test-nightly
adapter, spark, kafka, ingest, s3, ui,      interpreted                  as users run
kills, cluster, pipelines, docs, demo
packaging                                   (starts no Spark)            as users run
conformance; soak's attack of queries       interpreted, by their own    interpreted, by their own
                                            settings (many queries)      settings
interop                                     as users run                 as users run
spark/test_product_settings                 both, and compares           both, and compares
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from integration_tests.apicurio import Registry
from integration_tests.interop.environments import CannotMake
from integration_tests.interpreted import JAVA_OPTIONS
from tablestore_engine.devservers.kafka_broker import BrokerInfo, start_broker, stop_broker
from tablestore_engine.errors import RetryError
from tests.doses import is_nightly
from tests.garbage import collect_less, collect_no_more, collect_nothing, collect_young

HERE = Path(__file__).parent
_INTERPRETED_SUITES = {
    *("adapter", "spark", "kafka", "ingest", "s3", "ui", "kills", "cluster", "pipelines", "docs", "demo"),
    *("soak", "packaging", "conformance"),
}
_OPTIONS_VARIABLE = "SPARK_SUBMIT_OPTS"  # every JVM of Spark reads it
_FEW_COMPILERS = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -Xmn512m -Dspark.buffer.pageSize=1m"
_HUGE_PAGES = "-XX:+UseTransparentHugePages"
_KERNEL_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def java_options(paths: Iterable[Path], *, nightly: bool) -> tuple[str, ...]:
    """For a pytest process that was given these paths: interpreted plans where each is in a suite that has them."""
    folders = {path.relative_to(HERE).parts[:1] for path in paths if path.is_relative_to(HERE)}
    is_interpreted = bool(folders) and folders <= {(name,) for name in _INTERPRETED_SUITES}
    # Java warns where the kernel has none
    pages = (_HUGE_PAGES,) if _KERNEL_PAGES.is_file() and "[never]" not in _KERNEL_PAGES.read_text() else ()
    plans = (JAVA_OPTIONS,) if is_interpreted and not nightly else ()
    return (_FEW_COMPILERS, *pages, *plans)


def pytest_configure(config: pytest.Config) -> None:
    """Options for the JVMs of this process, and of those that it starts; after what the user has set.

    A shell starts jobs in the background with Ctrl-C ignored, and so would each command that a test interrupts.
    Garbage is not collected until the tests are.
    """
    collect_nothing()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    paths = [config.invocation_params.dir / one.split("::")[0] for one in config.args]
    for options in java_options([path.resolve() for path in paths], nightly=is_nightly()):
        before = os.environ.get(_OPTIONS_VARIABLE, "")
        if options not in before:
            os.environ[_OPTIONS_VARIABLE] = f"{before} {options}".strip()


def pytest_collection_finish() -> None:
    """Nothing of the collected tests is garbage."""
    collect_less()


def pytest_sessionfinish() -> None:
    """Nothing is given back that the end of the process gives back."""
    collect_no_more()


def pytest_runtest_logfinish() -> None:
    """Clients and sessions of the test go with it."""
    collect_young()


@pytest.fixture(autouse=True)
def changes_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a busy machine makes of small tables, changed_keys models of this process do not compute all rows.

    Suites that do not import dbt are not made to: it takes two seconds.
    """
    name = "dbt.adapters.tablestore.plan.run_costs"
    if "dbt.cli.main" in sys.modules or name in sys.modules:
        run_costs = importlib.import_module(name)  # the adapter may load it in a run only
        monkeypatch.setattr(run_costs, "MARGIN_SECONDS", float("inf"))
        monkeypatch.setattr(run_costs, "KEYS_SHARE", 1e9)


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
