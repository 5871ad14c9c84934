"""Our package on workers that do not have it: one zip of compiled modules, added to the Spark application once.

INVARIANT  workers run exactly the driver's code, also where another version is installed: the zip comes first.
WHY        compiled modules, since a worker process would compile all of the package anew at its first task.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

from pyspark.sql import SparkSession

import tablestore_engine
from tablestore_engine.errors import FixRequest
from tablestore_engine.runtime.locks import OrderedLock, Rank

_LOCK = OrderedLock("what was shipped", Rank.PROCESS)
_SHIPPED: set[str] = set()
_PACKAGE = "tablestore_engine"
_NOT_SHIPPED = ("cli", "testing", "api", "warehouse")


def ship(session: SparkSession, scratch: Path) -> None:
    """Add the package to the application; nothing happens when it was added before."""
    application = session.sparkContext.applicationId
    with _LOCK:
        if application in _SHIPPED:
            return
        path = scratch / f"{_PACKAGE}.zip"
        write_package(path)
        session.sparkContext.addPyFile(str(path))
        _SHIPPED.add(application)


def write_package(path: Path) -> None:
    """The package as a zip: modules compiled, the layers that only drivers use left out."""
    root = Path(str(tablestore_engine.__file__)).parent
    if not root.is_dir():
        raise FixRequest(
            "TS1517",
            "the engine cannot be sent to the Spark workers",
            why=f"{root} is no folder: the package runs from an archive",
            fix="install the package with pip, so that it lies in a folder",
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    left_out = {str(root / name) for name in _NOT_SHIPPED}
    with zipfile.PyZipFile(str(path), "w", zipfile.ZIP_DEFLATED, optimize=0) as archive:
        archive.writepy(str(root), filterfunc=lambda entry: entry not in left_out)
