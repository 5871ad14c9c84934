"""A job that waits for executors which do not come says so, on a cluster.

WHY        an application without cores waits for ever without a word: another one may hold all of them, or no worker
           has the memory that an executor asks for.
INVARIANT  it only looks and speaks: jobs go on waiting, since cores may come. Nothing runs on a local master.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark import SparkContext

from tablestore_engine.spark.worker_check import count_executors

_LOGGER = logging.getLogger("tablestore_engine.spark")
_LOOK_SECONDS = 5.0
_FIRST_NOTICE_SECONDS = 15.0


@dataclass
class WaitNotice:
    """When to speak: after 15 s without an executor, then each time after twice as long. Pure."""

    waited: float = 0.0
    following: float = _FIRST_NOTICE_SECONDS

    def look(self, *, has_job: bool, executors: int, seconds: float) -> float | None:
        """Seconds waited, when it is time to say them. `seconds`: since the look before."""
        if not has_job or executors > 0:
            self.waited, self.following = 0.0, _FIRST_NOTICE_SECONDS
            return None
        self.waited += seconds
        if self.waited < self.following:
            return None
        self.following *= 2
        return self.waited


def sentence(master: str, waited: float, memory: str) -> str:
    """What a user can do about it."""
    return (
        f"a Spark job waits for executors for {waited:.0f} s: {master} has given this application none. Other "
        "applications may hold all cores (set spark.cores.max in each of them), or no worker has "
        f"{memory} of free memory (spark.executor.memory). The job starts when an executor comes"
    )


def watch(context: SparkContext, say: Callable[[str], None] = _LOGGER.warning) -> threading.Thread:
    """A daemon thread that ends with the application."""
    thread = threading.Thread(target=_watch, args=(context, say), name="tablestore core watch", daemon=True)
    thread.start()
    return thread


def _watch(context: SparkContext, say: Callable[[str], None]) -> None:
    notice, pause = WaitNotice(), threading.Event()
    conf = context.getConf()
    memory = conf.get("spark.executor.memory") or "1g"
    while not pause.wait(_LOOK_SECONDS):
        try:
            has_job = len(context.statusTracker().getActiveJobsIds()) > 0
            waited = notice.look(has_job=has_job, executors=count_executors(context), seconds=_LOOK_SECONDS)
        except (Py4JError, AttributeError, OSError):  # the context was stopped, or its JVM has ended
            return
        if waited is not None:
            say(sentence(str(context.master), waited, memory))
