"""One real Spark session for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tablestore_engine.runtime.scratch import ScratchPlace
from tablestore_engine.spark.session import open_session
from tablestore_engine.spark.spark_settings import SparkSettings


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The warehouse folder of the session."""
    return str(tmp_path_factory.mktemp("warehouse"))


@pytest.fixture(scope="session")
def spark(warehouse: str) -> SparkSession:
    """A local session with two cores."""
    conf = {"spark.sql.shuffle.partitions": "2", "spark.driver.memory": "2g"}
    return open_session(SparkSettings("local[2]", conf), ScratchPlace(warehouse))


_CHANGE_ANSWERS = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.sql.caseSensitive")


@pytest.fixture(scope="module", autouse=True)
def settings_stay() -> Iterator[None]:
    """The modules share one session: one that leaves it with another time zone would fail tests of a later module."""
    before = _read_settings()
    yield
    after = _read_settings()
    if before and after:
        assert after == before


def _read_settings() -> dict[str, str | None]:
    session = SparkSession._instantiatedSession
    return {} if session is None else {name: session.conf.get(name) for name in _CHANGE_ANSWERS}
