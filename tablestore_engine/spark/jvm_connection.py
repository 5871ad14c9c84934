"""The connection that a thread has to the JVM, closed under a call that does not return.

WHY        Spark cancels jobs, but nothing ends the analysis or the optimization of a plan: a view over a chain of self
           joins is analysed for minutes. The thread that waits for the answer is let out by its socket; the JVM's own
           thread goes on until it has finished, or its process ends.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from tablestore_engine.errors import Stopped
from tablestore_engine.spark.fetch_rows import cancel, job_tag
from tablestore_engine.spark.resident_session import leave_work_behind


@dataclass
class JvmConnection:
    """`client`: py4j's; `connection`: None where py4j shares connections between threads, which are left alone."""

    client: Any
    connection: Any
    is_closed: bool = False

    def close(self) -> bool:
        """The call under way fails; False: there is none, or it was closed before."""
        mine = self.connection
        if self.is_closed or mine is None or mine in self.client.deque or mine.socket is None:
            return False
        self.is_closed = True
        leave_work_behind()
        mine.initiated_from_client = False  # else py4j sends the same call once more
        with suppress(OSError, AttributeError):
            mine.socket.shutdown(socket.SHUT_RDWR)
        return True


_CURRENT = threading.local()


@contextmanager
def interruptible(session: SparkSession, tag: str) -> Iterator[JvmConnection]:
    """Jobs that this thread starts inside carry `tag`; Ctrl-C in this thread cancels them."""
    with job_tag(session, tag):  # the first call of a thread makes its connection
        client: Any = session.sparkContext._gateway._gateway_client  # type: ignore[union-attr]
        find = getattr(client, "get_thread_connection", None)
        before = getattr(_CURRENT, "connection", None)
        _CURRENT.connection = JvmConnection(client, None if find is None else find())
        try:
            yield _CURRENT.connection
        except KeyboardInterrupt:
            leave_work_behind()
            cancel(session, tag)
            raise
        finally:
            _CURRENT.connection = before


def check_connected() -> None:
    """For code that goes on after an error of a call: a new connection would run jobs that nobody can cancel.

    Raises Stopped TS1572.
    """
    current: JvmConnection | None = getattr(_CURRENT, "connection", None)
    if current is not None and current.is_closed:
        raise Stopped(
            "TS1572",
            "the work was stopped while Spark planned the statement",
            why="the program was interrupted; nothing of this statement was committed",
            fix="run it again",
        )
