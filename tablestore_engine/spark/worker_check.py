"""One small job on the executors before the first job of ours on a cluster: can their Python run our tasks.

Steps      two tasks for each executor that is there → versions of its Python → differences are TS1540
WHY        without it the first sign would be a traceback in the middle of a write. Executors that come later, or that
           got no task, compare by themselves (worker_versions.refusal_here).
"""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from tablestore_engine.spark import spark_errors
from tablestore_engine.spark.worker_versions import PythonVersions, refuse, versions_here

_TASKS_PER_EXECUTOR = 2
_PROBES_MAX = 200


def is_cluster(context: SparkContext) -> bool:
    """Whether tasks run in other processes than the driver's JVM."""
    return not (context.master or "").startswith("local")


def count_executors(context: SparkContext) -> int:
    """Executors that have registered; the driver is none."""
    java: Any = context._jsc.sc()
    return int(java.getExecutorMemoryStatus().size()) - 1


def check_workers(context: SparkContext) -> tuple[PythonVersions, ...]:
    """The Pythons that answered, each once. Raises FixRequest TS1540, TS1541, TS1542, TS1543.

    It waits for the first executor; what it waits for is said by core_watch.
    """
    try:
        count = min(_PROBES_MAX, max(1, count_executors(context)) * _TASKS_PER_EXECUTOR)
        told = context.parallelize(range(count), count).map(_report).collect()
    except (PySparkException, Py4JError) as error:
        raise spark_errors.translate(error) from None
    found = {one.place: one for one in map(PythonVersions.decode, told)}
    refusal = refuse(versions_here(), list(found.values()))
    if refusal is not None:
        raise refusal
    return tuple(found.values())


def _report(_: int) -> str:
    """In the worker."""
    return versions_here().encode()
