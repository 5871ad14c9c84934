"""Versions of the workers' Python, compared with the driver's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tablestore_engine.spark.ship_package import write_package
from tablestore_engine.spark.worker_versions import (
    DRIVER_FILE,
    PythonVersions,
    find_differences,
    refusal_here,
    refuse,
    versions_here,
)

DRIVER = PythonVersions("3.11", {"numpy": "2.4.6", "pyarrow": "26.0.1", "pyspark": "4.3.0"}, "driver: /py")
# In a worker process: run one empty group of bucket tasks, with the package as it came from the driver.
_TASK = """
import pickle, tablestore_engine
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.spark import task_job, task_outcomes
assert ".zip" in tablestore_engine.__file__
[(place, data)] = task_job.run_group(LocalFileIO("/"), None, pickle.dumps([(5, None)]))
print(place, task_outcomes.decode_outcome(data))
"""


@pytest.mark.parametrize(
    ("python", "packages", "found"),
    [
        ("3.11", {}, ()),
        ("3.11", {"numpy": "2.4.0", "pyarrow": "26.0.9"}, ()),
        ("3.12", {}, ("Python 3.12 instead of 3.11",)),
        ("3.11", {"numpy": "2.3.6"}, ("numpy 2.3.6 instead of 2.4.6",)),
        ("3.11", {"pyarrow": None}, ("no pyarrow instead of 26.0.1",)),
        ("3.11", {"pyspark": "4.3.1"}, ("pyspark 4.3.1 instead of 4.3.0",)),
        (
            "3.10",
            {"pyarrow": "9.0.0", "numpy": None},
            (
                "Python 3.10 instead of 3.11",
                "no numpy instead of 2.4.6",
                "pyarrow 9.0.0 instead of 26.0.1",
            ),
        ),
    ],
)
def test_differences_name_both_versions(
    python: str, packages: dict[str, str | None], found: tuple[str, ...]
) -> None:
    """Major and minor count for libraries, the whole release for pyspark, major and minor for Python."""
    worker = PythonVersions(python, {**DRIVER.packages, **packages}, "host: /py")
    assert find_differences(DRIVER, worker) == found


def test_package_the_driver_lacks_is_not_asked_of_workers() -> None:
    """Workers need what the driver uses, and no more."""
    driver = replace(DRIVER, packages={**DRIVER.packages, "polars": None})
    assert find_differences(driver, DRIVER) == ()


def test_refusal_names_each_python_once() -> None:
    """TS1540 lists the places that differ, and none when all agree."""
    bad = PythonVersions("3.11", {**DRIVER.packages, "numpy": "1.0.0"}, "far: /py")
    refusal = refuse(DRIVER, [DRIVER, bad, bad])
    assert refusal is not None
    assert (refusal.code, refusal.why.count("far: /py"), refusal.why.count("numpy 1.0.0")) == ("TS1540", 1, 1)
    assert refuse(DRIVER, [DRIVER]) is None


def test_outside_of_a_cluster_nothing_is_compared() -> None:
    """A package that no driver sent has no versions in it."""
    assert refusal_here() is None


def test_worker_process_refuses_tasks_of_other_versions(tmp_path: Path) -> None:
    """A process that runs the package as it was sent answers its first task with TS1540, and runs none of it."""
    archive = tmp_path / "engine.zip"
    here = versions_here()
    write_package(archive, replace(here, packages={**here.packages, "pyarrow": "9.8.7"}))
    environment = {**os.environ, "PYTHONPATH": str(archive)}
    done = subprocess.run(
        [sys.executable, "-c", _TASK],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("5 TS1540"), done.stdout
    assert "instead of 9.8.7" in done.stdout


def test_versions_cross_as_json() -> None:
    """What a worker gets is what the driver wrote."""
    assert PythonVersions.decode(DRIVER.encode()) == DRIVER
    assert json.loads(DRIVER.encode())["python"] == "3.11"
    assert DRIVER_FILE.endswith(".json")
