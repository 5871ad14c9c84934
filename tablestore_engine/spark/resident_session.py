"""A Spark session that outlives its command: commands of one folder use it one after the other.

Steps      `tablestore session start` asks for it → the first command of the folder starts a JVM and gives its input to
           the resident process (runtime/resident) → each command takes the lock, connects to that JVM, and works in a
           new session of its own → the JVM ends with the resident process
INVARIANT  one command at a time: a second one starts a session of its own. Spark keeps one default session in a JVM.
INVARIANT  catalog, views, settings and cached data belong to a command: it gets a SharedState of its own.
INVARIANT  a JVM is used only by who would have started it in the same way: the same Spark settings, folder, programs
           and environment. Else it is replaced.
CRASH      a command that is killed or interrupted leaves the mark `in-use`: its work may still run in the JVM. The
           resident process cancels its jobs; the next command replaces the JVM when a call of it does not end (a plan
           is analysed).
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TextIO

import pyspark
from py4j.java_gateway import JavaObject
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from tablestore_engine.runtime.resident.process_client import keep_jvm
from tablestore_engine.runtime.resident.session_place import KeptJvm, SessionPlace, place_of
from tablestore_engine.spark.jvm_launch import join_gateway, leave_gateway

_POLL_SECONDS = 0.05
# What a JVM and its Python workers take from the environment, once, when they start.
_ENVIRONMENT = (
    "AWS_",
    "SPARK_",
    "HADOOP_",
    "JAVA_",
    "PYSPARK_",
    "PYTHON",
    "TABLESTORE_",
    "TZ",
    "LANG",
    "LC_",
)
# Cancelled tasks end in a fraction of a second; a new session costs more than twice these.
_SETTLE_SECONDS = 5.0
# In the stacks of Java threads that work for a command. A deep analysis has more frames than a stack shows: its call is
# not among them.
_PY4J_CALL, _SQL_WORK = "py4j.commands.", re.compile(r"\bsql\.catalyst\.|\bexecution\.streaming\.")
_ABANDONED = threading.Event()


def digest_of(settings: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Of everything that a JVM is started with; secrets in it are not readable."""
    programs = (pyspark.__version__, sys.executable, __file__)
    seen = {key: value for key, value in environ.items() if key.startswith(_ENVIRONMENT)}
    text = json.dumps([dict(settings), seen, programs], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def attach(settings: Mapping[str, Any], start: Callable[[Path], SparkSession]) -> SparkSession | None:
    """A session in the JVM of this folder, which `start` starts if need be; None when none is asked for, or another
    command uses it. `settings`: master, conf and jars; `start` gets a folder for its files.

    Raises what `start` raises.
    """
    place = place_of(Path.cwd())
    lock = None if place.idle_seconds is None else place.try_lock()
    if lock is None:
        return None
    atexit.register(_detach, place, lock)
    digest = digest_of(settings, os.environ)
    return _join(place, digest) or _start(place, digest, start)


def _join(place: SessionPlace, digest: str) -> SparkSession | None:
    """None: there is no such JVM any more."""
    kept, was_left = place.jvm(), place.mark.exists()
    place.mark.touch()
    session = _connect(kept, was_left=was_left) if kept is not None and kept.digest == digest else None
    if session is None:
        place.end_jvm()
    return session


def _start(place: SessionPlace, digest: str, start: Callable[[Path], SparkSession]) -> SparkSession:
    """It ends with this command where no process comes up that keeps it, or where the JVM is another program's."""
    session = start(place.make_scratch())
    gateway: Any = session.sparkContext._gateway
    if gateway.proc is not None:
        java, how = int(gateway.jvm.java.lang.ProcessHandle.current().pid()), gateway.gateway_parameters
        place.write_jvm(KeptJvm(java, int(how.port), str(how.auth_token), digest))
        keep_jvm(place, gateway.proc.stdin.fileno())
    return session


def _connect(kept: KeptJvm, *, was_left: bool) -> SparkSession | None:
    """What the command before has left behind goes first; None when that does not end."""
    gateway = join_gateway(kept.port, kept.secret)
    jvm: Any = gateway.jvm
    running = jvm.org.apache.spark.SparkContext.getOrCreate()
    java = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(running)
    running.cancelAllJobs()
    if was_left and not _settles(jvm, running):
        leave_gateway()
        return None
    for one in java.getPersistentRDDs().values():
        one.unpersist()
    context = SparkContext(gateway=gateway, jsc=java, conf=SparkConf(_jvm=jvm, _jconf=java.getConf()))
    # with a SharedState of its own, unlike newSession(): names of the command before are not there
    return SparkSession(context, jvm.org.apache.spark.sql.classic.SparkSession(running))


def _settles(jvm: Any, running: Any) -> bool:  # noqa: ANN401 - py4j has no types
    """Whether nothing works for a command any more: no task, no call but this one, no stream."""
    deadline = time.monotonic() + _SETTLE_SECONDS
    while time.monotonic() < deadline:
        running.cancelAllJobs()  # a plan that was left may begin one just now
        executors = running.statusTracker().getExecutorInfos()
        tasks = sum(one.numRunningTasks() for one in executors)
        traces = jvm.java.lang.Thread.getAllStackTraces()
        values = JavaObject.__getattr__(traces, "values")()  # Java's: py4j gives a map the methods of a dict
        threads = jvm.java.util.Arrays.deepToString(values.toArray()).split("], [")
        calls = sum(_PY4J_CALL in one for one in threads)
        if not tasks and calls <= 1 and not any(map(_SQL_WORK.search, threads)):
            return True
        time.sleep(_POLL_SECONDS)
    return False


def leave_work_behind() -> None:
    """Work was stopped: some of it may still run or be planned in the JVM, so the next command looks at that first."""
    _ABANDONED.set()


def _detach(place: SessionPlace, lock: TextIO) -> None:
    """At the end of the command."""
    if not _ABANDONED.is_set():
        place.mark.unlink(missing_ok=True)
    lock.close()
