"""One real Spark session for all tests of this folder."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tablestore_engine.runtime.scratch import ScratchPlace
from tablestore_engine.spark.session import SparkSettings, open_session


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The warehouse folder of the session."""
    return str(tmp_path_factory.mktemp("warehouse"))


@pytest.fixture(scope="session")
def spark(warehouse: str) -> SparkSession:
    """A local session with two cores."""
    conf = {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "2g"}
    return open_session(SparkSettings("local[2]", conf), ScratchPlace(warehouse))
