"""Which logs are sent by Spark tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tablestore_engine.errors import FixRequest
from tablestore_engine.runtime.scratch import ScratchPlace
from tablestore_engine.spark import task_placement
from tablestore_engine.spark.lazy_session import LazySession
from tablestore_engine.spark.shard_executors import ShardExecutors
from tablestore_engine.spark.spark_settings import SparkSettings
from tablestore_engine.spark.task_placement import START_FACTOR

LARGE = START_FACTOR * task_placement.SMALL_BYTES + 1


class Broken(LazySession):
    """Spark that does not start."""

    asked = 0

    def get(self) -> object:  # type: ignore[override]
        """As LazySession."""
        self.asked += 1
        raise FixRequest("TS1500", "no Java", why="-", fix="-")


@pytest.mark.parametrize(("size", "shards", "asked"), [(LARGE - 1, 8, 0), (1 << 40, 1, 0), (LARGE, 2, 1)])
def test_the_driver_sends_what_is_small_or_not_shared(
    tmp_path: Path, size: int, shards: int, asked: int
) -> None:
    """Spark is asked for the rest alone; where it cannot start the driver does it too."""
    session = Broken(SparkSettings(), ScratchPlace(str(tmp_path), None))
    assert ShardExecutors(session).plan(size, shards) is None
    assert session.asked == asked
