"""What Spark says where the Python of its workers cannot start or lacks a module, as errors with a fix.

WHY        Spark passes on a traceback of the worker, or of the JVM; the way out is one setting or one installation.
"""

from __future__ import annotations

import re

from tablestore_engine.errors import FixRequest

_OTHER_PYTHON = re.compile(
    r"PYTHON_VERSION_MISMATCH\]\s*Python in worker has different version:? \(?(?P<worker>[\d., ]+?)\)?"
    r" than that in driver:? \(?(?P<driver>[\d., ]+?)\)?[,.]? "
)
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '(?P<name>[\w.]+)'")
_NO_PROGRAM = re.compile(r'Cannot run program "(?P<path>[^"]+)"[^:]*: (?:error=\d+, )?(?P<why>[^\n]+)')
_SETTING = "spark.pyspark.python"


def find_worker_error(text: str) -> FixRequest | None:
    """TS1541, TS1542, TS1543 for what Spark says of its workers' Python; None for anything else."""
    if (other := _OTHER_PYTHON.search(text)) is not None:
        return FixRequest(
            "TS1541",
            "the Spark workers run another Python than the driver",
            why=f"workers run Python {_version(other['worker'])}, the driver runs Python {_version(other['driver'])}",
            fix=f"set {_SETTING} to a Python {_version(other['driver'])} that every worker has, or start the driver "
            f"with Python {_version(other['worker'])}",
        )
    if (missing := _NO_MODULE.search(text)) is not None:
        name = missing["name"]
        return FixRequest(
            "TS1542",
            f"the Python of the Spark workers has no module {name}",
            why=f"a task imports {name}, which is not installed where the task ran",
            fix=f"install it for the Python of the workers, or set {_SETTING} to a Python that has it",
        )
    if (absent := _NO_PROGRAM.search(text)) is not None:
        return FixRequest(
            "TS1543",
            f"a Spark worker cannot start the Python program {absent['path']}",
            why=absent["why"].strip()[:300],
            fix=f"set {_SETTING} to the path of a Python on every worker, or install it there",
        )
    return None


def _version(text: str) -> str:
    """3.11 of `3.11` and of `3, 11`."""
    return ".".join(re.findall(r"\d+", text)[:2])
