"""A standalone cluster whose workers do not have our package writes and reads our tables."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from integration_tests.spark.cluster import Cluster, worker_python
from integration_tests.spark.cluster_write import ROWS


def test_workers_without_our_package(tmp_path: Path) -> None:
    """Two workers without our package write four buckets with the shipped code, and the view reads every row."""
    cluster = Cluster(tmp_path)
    warehouse = tmp_path / "warehouse"
    warehouse.mkdir()
    try:
        cluster.start()
        command = [
            sys.executable,
            "-m",
            "integration_tests.spark.cluster_write",
            cluster.url,
            worker_python(),
            str(warehouse),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr[-4000:]
        told = json.loads(done.stdout.splitlines()[-1])
    finally:
        cluster.stop()
    assert told["before"] == ["missing"], "the workers must not have the package on their own"
    assert all(
        place.endswith("tablestore_engine.zip/tablestore_engine/__init__.pyc") for place in told["after"]
    )
    assert told["buckets"] == [0, 1, 2, 3]
    assert told["inserted"] == ROWS
    assert told["read"] == [ROWS, ROWS * (ROWS - 1) // 2, 7]
    assert not list((warehouse / ".tablestore").iterdir()), "the session's scratch is gone"
