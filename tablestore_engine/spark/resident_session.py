"""A Spark session that outlives its command: commands of one folder use it one after the other.

Steps      `tablestore session start` asks for it → the first command of the folder starts the process that holds the
           JVM (session_holder) → each command takes the lock, connects to that JVM, and works in a new session of its
           own → it ends → the holder ends when nobody came for a while, or when it is stopped
INVARIANT  one command at a time: a second one starts a session of its own. Spark keeps one default session in a JVM.
INVARIANT  catalog, views, settings and cached data belong to a command: it gets a SharedState of its own.
INVARIANT  a session is used only by who would have started it in the same way: the same Spark settings, folder,
           programs and environment. Else it is replaced.
CRASH      a command that is killed or interrupted leaves the mark `in-use`: its work may still run in the JVM. The
           holder cancels its jobs; the next command replaces the process when a call of it does not end (a plan is
           analysed).
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

import pyspark
from py4j.java_gateway import JavaObject
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from tablestore_engine.runtime.session_place import (
    LOG,
    HolderState,
    SessionPlace,
    place_of,
    start_environment,
)
from tablestore_engine.spark.jvm_launch import join_gateway, leave_gateway

HOLDER = "tablestore_engine.spark.session_holder"
IDLE_SECONDS = 1800.0
_START_SECONDS = 180.0
_POLL_SECONDS = 0.05
_SETTLE_SECONDS = (
    5.0  # cancelled tasks end in a fraction of a second; a new session costs more than twice that
)
# In the stacks of Java threads that work for a command. A deep analysis has more frames than a stack shows: its call is
# not among them.
_PY4J_CALL, _SQL_WORK = "py4j.commands.", re.compile(r"\bsql\.catalyst\.|\bexecution\.streaming\.")
_ABANDONED = threading.Event()


def digest_of(settings: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Of everything that a JVM is started with; secrets in it are not readable."""
    programs = (pyspark.__version__, sys.executable, __file__)
    text = json.dumps([dict(settings), start_environment(environ), programs], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def attach(settings: Mapping[str, Any]) -> SparkSession | None:
    """A new session in the JVM of this folder's holder, which is started if need be; None when none is asked for, or
    another command uses it. `settings`: master, conf and jars, as the holder gets them.
    """
    place = place_of(Path.cwd())
    idle = place.idle_seconds
    if idle is None:
        return None
    lock = place.try_lock()
    if lock is None:
        return None
    digest = digest_of(settings, os.environ)
    holder = place.holder()
    session = None if holder is None or holder.digest != digest else _connect(holder, place)
    if session is None:
        place.end_holder()
        holder = _start_holder(place, {**settings, "digest": digest, "idle_seconds": idle})
        session = None if holder is None else _connect(holder, place)
    if session is None:
        lock.close()
        return None
    place.mark.touch()
    atexit.register(_detach, place, lock)
    return session


def _start_holder(place: SessionPlace, request: Mapping[str, Any]) -> HolderState | None:
    """None when it did not come up: the caller starts a session of its own, which says what is wrong."""
    with (place.folder / LOG).open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", HOLDER],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=place.working,
            start_new_session=True,  # Ctrl-C of the command is not meant for it
        )
    assert process.stdin is not None
    with process.stdin as stdin:
        stdin.write(json.dumps(dict(request)).encode())
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        found = place.holder()
        if found is not None and found.pid == process.pid:
            return found
        time.sleep(_POLL_SECONDS)
    return None


def _connect(holder: HolderState, place: SessionPlace) -> SparkSession | None:
    """What the command before has left behind goes first; None when that does not end."""
    gateway = join_gateway(holder.port, holder.secret)
    jvm: Any = gateway.jvm
    running = jvm.org.apache.spark.SparkContext.getOrCreate()
    java = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(running)
    running.cancelAllJobs()
    if place.mark.exists() and not _settles(jvm, running):
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
