"""One standalone cluster for all tests of this folder, and one application on it: the session of this process.

cluster     a master and two workers with a core each, of which a test may kill some: the next test gets new ones
settings    how an application reaches it; its workers do not have our package
engine      a warehouse of the test's own, whose tasks all go to executors
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration_tests.cluster.worker_python import worker_python
from integration_tests.warehouse_address import warehouse_address
from tablestore_engine.api import Engine, SparkSettings
from tablestore_engine.devservers.spark_cluster import ClusterInfo, WorkerSize, start_cluster, stop_cluster
from tablestore_engine.spark import task_placement
from tests.doses import examples

SIZE = WorkerSize(cores=1, memory="1g")


@pytest.fixture(scope="session")
def cluster_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the cluster of this run has its files."""
    folder = tmp_path_factory.mktemp("cluster")
    yield folder
    stop_cluster(folder)


@pytest.fixture
def cluster(cluster_folder: Path) -> ClusterInfo:
    """With both workers, whatever the test before did to them."""
    return start_cluster(cluster_folder, workers=2, size=SIZE)


@pytest.fixture
def settings(cluster: ClusterInfo) -> SparkSettings:
    """For small data; cores are left for a second application by no one."""
    return SparkSettings(
        cluster.master,
        {
            **cluster.conf,
            "spark.pyspark.python": worker_python(),
            "spark.executor.memory": "512m",
            "spark.driver.memory": "1g",
            "spark.cores.max": str(
                examples(1, 2)
            ),  # by day one executor: each is a JVM, and Python beside it
            "spark.sql.shuffle.partitions": "2",
        },
    )


@pytest.fixture
def engine(settings: SparkSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """Every task that reads or writes rows is a Spark task, however small. The application ends with the test: it has
    all cores, and a driver of another test would wait for ever.
    """
    monkeypatch.setattr(task_placement, "SMALL_BYTES", -1)
    with Engine(warehouse_address(str(tmp_path / "warehouse")), spark=settings) as opened:
        opened.create_database("demo")
        opened.sql("select 1")
        yield opened
        opened.spark.stop()
        for place in [
            one for one in sys.path if "/userFiles-" in one
        ]:  # what it sent itself is deleted with it
            sys.path.remove(place)
