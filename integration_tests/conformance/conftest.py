"""Fixtures of dbt-tests-adapter over one warehouse and one JVM for the whole pytest process."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.fixtures.project import *  # noqa: F403 - the fixtures of dbt-tests-adapter, which conftest must own

from integration_tests.conformance.record import Recorder
from integration_tests.conformance.selection import is_selected
from integration_tests.interpreted import INTERPRETED
from integration_tests.warehouse_address import warehouse_address

HERE = Path(__file__).parent
# Thousands of queries over a few rows: generating code, planning again and shuffling in parallel would only cost time.
SPARK_CONF = {
    "spark.sql.storeAssignmentPolicy": "LEGACY",  # tests of dbt write text into DATE and TIMESTAMP
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


@pytest.fixture(scope="session")
def dbt_profile_target(tablestore_target: dict[str, Any]) -> dict[str, Any]:
    """The same under the name that dbt's fixtures ask for."""
    return tablestore_target


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """Tests of one class build on each other here: keep their order, and let dbt's own warnings be."""
    ours = [item for item in items if HERE in item.path.parents]
    for item in ours:
        item.add_marker(pytest.mark.filterwarnings("ignore"))
        cls = getattr(item, "cls", None)
        if not is_selected(item.path.stem, cls.__name__ if cls else None):
            item.add_marker(pytest.mark.whole)
    yield
    kept = set(items)  # -k and -m have taken some out meanwhile
    places = [index for index, item in enumerate(items) if HERE in item.path.parents]
    for place, item in zip(places, [item for item in ours if item in kept], strict=True):
        items[place] = item
