"""Fixtures of dbt-tests-adapter over one warehouse and one JVM for the whole pytest process."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.fixtures.project import *  # noqa: F403 - the fixtures of dbt-tests-adapter, which conftest must own

from dbt.adapters.tablestore.connections import get_engine
from dbt.adapters.tablestore.credentials import TablestoreCredentials, describe_warehouse
from integration_tests.conformance.record import Recorder
from integration_tests.conformance.selection import is_selected
from integration_tests.interpreted import INTERPRETED
from integration_tests.warehouse_address import warehouse_address

HERE = Path(__file__).parent
# Thousands of queries over a few rows: generating code, planning again and shuffling in parallel would only cost time.
SPARK_CONF = {
    "spark.sql.shuffle.partitions": "1",
    **INTERPRETED,
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """--conformance-record=FILE merges what each class did into FILE."""
    parser.addoption("--conformance-record", metavar="FILE", help="merge outcomes per class into this file")


def pytest_configure(config: pytest.Config) -> None:
    """The recorder, if asked for."""
    if path := config.getoption("--conformance-record", None):
        config.pluginmanager.register(Recorder(Path(path).resolve()), "conformance-recorder")


@pytest.fixture(scope="session")
def tablestore_target(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The profile every class runs with; the schema is dbt's own per class."""
    return {
        "type": "tablestore",
        "user": "dbt",
        "threads": 2,
        "warehouse": warehouse_address(str(tmp_path_factory.mktemp("warehouse"))),
        "spark": {"master": "local[2]", "conf": SPARK_CONF},
    }


@pytest.fixture(scope="class", autouse=True)
def text_is_taken_as_dates(
    tablestore_target: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Tests of dbt write text into DATE and TIMESTAMP. The session may be one that other suites use as well."""
    known = {field.name for field in fields(TablestoreCredentials)}
    output = {name: value for name, value in tablestore_target.items() if name in known}
    credentials = TablestoreCredentials.from_dict({"schema": "dbt", **output})
    engine = get_engine(describe_warehouse(credentials, str(tmp_path_factory.getbasetemp())))
    name = "spark.sql.storeAssignmentPolicy"
    before = str(engine.spark.conf.get(name))
    engine.spark.conf.set(name, "LEGACY")
    yield
    engine.spark.conf.set(name, before)


@pytest.fixture(scope="session")
def dbt_profile_target(tablestore_target: dict[str, Any]) -> dict[str, Any]:
    """The same under the name that dbt's fixtures ask for."""
    return tablestore_target


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """Tests of one class build on each other here: they keep their order, after those of other folders. dbt's own
    warnings may be.
    """
    ours = [item for item in items if HERE in item.path.parents]
    for item in ours:
        item.add_marker(pytest.mark.filterwarnings("ignore"))
        cls = getattr(item, "cls", None)
        if not is_selected(item.path.stem, cls.__name__ if cls else None):
            item.add_marker(pytest.mark.whole)
    yield
    kept = set(items)  # -k and -m have taken some out meanwhile
    others = [item for item in items if HERE not in item.path.parents]
    items[:] = [*others, *(item for item in ours if item in kept)]
