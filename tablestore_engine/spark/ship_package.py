"""Our package on workers that do not have it: one zip of compiled modules, added to the Spark application once.

INVARIANT  workers run exactly the driver's code, also where another version is installed: the zip comes first.
INVARIANT  on a cluster the zip has the driver's versions in it, and workers are asked for theirs before the first job.
WHY        compiled modules, since a worker process would compile all of the package anew at its first task.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

from pyspark.sql import SparkSession

import tablestore_engine
from tablestore_engine.errors import FixRequest
from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.spark.worker_check import check_workers, is_cluster
from tablestore_engine.spark.worker_versions import DRIVER_FILE, PythonVersions, versions_here

_LOCK = OrderedLock("what was shipped", Rank.PROCESS)
_SHIPPED: set[str] = set()
_CHECKED: set[str] = set()
_PACKAGE = "tablestore_engine"
_NOT_SHIPPED = ("api", "cli", "devservers", "ingest", "postgres", "spi", "testing")


def ship(session: SparkSession, scratch: Path) -> None:
    """Add the package to the application; nothing happens when it was added before.

    On a cluster raises FixRequest TS1540 to TS1543 when workers cannot run it.
    """
    context = session.sparkContext
    application = context.applicationId
    with _LOCK:
        if application not in _SHIPPED:
            path = scratch / f"{_PACKAGE}.zip"
            write_package(path, versions_here() if is_cluster(context) else None)
            context.addPyFile(str(path))
            _SHIPPED.add(application)
    if application not in _CHECKED and is_cluster(context):  # under no lock: it may wait for executors
        check_workers(context)
    _CHECKED.add(application)


def write_package(path: Path, driver: PythonVersions | None = None) -> None:
    """The package as a zip: modules compiled, the layers that only drivers use left out.

    `driver`: versions that worker processes compare with their own.
    """
    root = Path(str(tablestore_engine.__file__)).parent
    if not root.is_dir():
        raise FixRequest(
            "TS1517",
            "the engine cannot be sent to the Spark workers",
            why=f"{root} is no folder: the package runs from an archive",
            fix="install the package with pip, so that it is in a folder",
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    left_out = {str(root / name) for name in _NOT_SHIPPED}
    with zipfile.PyZipFile(str(path), "w", zipfile.ZIP_DEFLATED, optimize=0) as archive:
        archive.writepy(str(root), filterfunc=lambda entry: entry not in left_out)
        if driver is not None:
            archive.writestr(f"{_PACKAGE}/spark/{DRIVER_FILE}", driver.encode())
