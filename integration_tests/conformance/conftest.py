"""Fixtures of dbt-tests-adapter over one warehouse and one JVM for the whole pytest process."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.fixtures.project import *  # noqa: F403 - the fixtures of dbt-tests-adapter, which conftest must own

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def dbt_profile_target(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The profile every class runs with; the schema is dbt's own per class."""
    return {
        "type": "tablestore",
        "user": "dbt",
        "threads": 2,
        "warehouse": str(tmp_path_factory.mktemp("warehouse")),
        "spark": {"master": "local[2]", "conf": {"spark.sql.shuffle.partitions": "2"}},
    }


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """Tests of one class build on each other here: keep their order, and let dbt's own warnings be."""
    ours = [item for item in items if HERE in item.path.parents]
    for item in ours:
        item.add_marker(pytest.mark.filterwarnings("ignore"))
    yield
    kept = set(items)  # -k and -m have taken some out meanwhile
    places = [index for index, item in enumerate(items) if HERE in item.path.parents]
    for place, item in zip(places, [item for item in ours if item in kept], strict=True):
        items[place] = item
