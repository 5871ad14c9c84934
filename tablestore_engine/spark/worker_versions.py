"""Versions of Python and of the libraries that bucket tasks use, compared between the driver and a worker process.

Steps      the driver puts its versions into the package for workers (ship_package) → each worker process compares
           its own once, before its first task → a difference is an error with both versions
INVARIANT  libraries have the driver's major and minor version: arrays and tasks cross as pickles, and files are written
           by these libraries. pyspark is the same release, since its two halves talk a private protocol.
INVARIANT  this module needs the standard library alone: it must answer where the others are missing.
"""

from __future__ import annotations

import functools
import importlib.metadata
import json
import pkgutil
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from tablestore_engine.errors import FixRequest

COMPARED = ("fastavro", "numpy", "obstore", "polars", "pyarrow", "pyroaring", "xxhash")
EXACT = "pyspark"
DRIVER_FILE = "driver_versions.json"
_FIX = "install the driver's versions for the Python of the workers, or set spark.pyspark.python to one that has them"


@dataclass(frozen=True)
class PythonVersions:
    """Of one process. `python`: major.minor; `packages`: None for one that is not installed; `place`: host and path."""

    python: str
    packages: Mapping[str, str | None]
    place: str

    def encode(self) -> str:
        """As JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def decode(cls, text: str | bytes) -> PythonVersions:
        """What `encode` gave."""
        return cls(**json.loads(text))


def versions_here() -> PythonVersions:
    """Of this process."""
    # a worker runs pyspark from Spark's own folder, which installed packages say nothing about
    running = getattr(sys.modules.get(EXACT), "__version__", None)
    packages = {name: _installed(name) for name in COMPARED} | {EXACT: running}
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return PythonVersions(python, packages, f"{platform.node()}: {sys.executable}")


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def find_differences(driver: PythonVersions, worker: PythonVersions) -> tuple[str, ...]:
    """A sentence part for each, in order of names; none: the worker can run the driver's tasks. Pure."""
    found = []
    if worker.python != driver.python:
        found.append(f"Python {worker.python} instead of {driver.python}")
    for name, wanted in sorted(driver.packages.items()):
        has = worker.packages.get(name)
        if wanted is None or (has is not None and _counted(name, has) == _counted(name, wanted)):
            continue
        found.append(f"no {name} instead of {wanted}" if has is None else f"{name} {has} instead of {wanted}")
    return tuple(found)


def _counted(name: str, version: str) -> tuple[str, ...]:
    parts = tuple(version.split("."))
    return parts if name == EXACT else parts[:2]


def refuse(driver: PythonVersions, workers: Sequence[PythonVersions]) -> FixRequest | None:
    """TS1540 with the differences of each worker's Python, None when there is none."""
    found = {one.place: found for one in workers if (found := find_differences(driver, one))}
    if not found:
        return None
    each = "; ".join(f"{place} has {', '.join(parts)}" for place, parts in sorted(found.items()))
    return FixRequest(
        "TS1540",
        "the Python of the Spark workers does not have the driver's versions",
        why=f"{each} (driver: {driver.place})",
        fix=_FIX,
    )


@functools.cache
def refusal_here() -> FixRequest | None:
    """In a worker process: TS1540 when it cannot run the driver's tasks. Nothing to compare outside of a cluster."""
    try:
        told = pkgutil.get_data(__package__, DRIVER_FILE)
    except OSError:  # the package was not sent by a driver on a cluster
        return None
    return None if told is None else refuse(PythonVersions.decode(told), [versions_here()])


def check_here() -> None:
    """Raises FixRequest TS1540 in a worker process that cannot run the driver's tasks."""
    refusal = refusal_here()
    if refusal is not None:
        raise refusal
