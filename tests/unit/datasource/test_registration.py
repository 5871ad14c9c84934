"""The source is registered by one thread at a time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from pyspark.sql import SparkSession

from tablestore_engine.datasource.spark_source import register_source

LONG_ENOUGH = 0.2  # for the second thread to come in, if nothing keeps it out


def test_two_threads_do_not_register_at_once() -> None:
    """Spark may refuse the second of them, as it did for two Python models at once."""
    together, overlaps = threading.Barrier(2), []

    def register(_: object) -> None:
        try:
            together.wait(LONG_ENOUGH)
            overlaps.append(1)
        except threading.BrokenBarrierError:
            together.reset()

    context = SimpleNamespace(master="local[2]")
    session = SimpleNamespace(sparkContext=context, dataSource=SimpleNamespace(register=register))
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: register_source(cast("SparkSession", session), Path()), range(2)))
    assert overlaps == []
