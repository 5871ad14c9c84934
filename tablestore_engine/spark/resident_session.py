"""A Spark session that outlives its command: commands of one folder use it one after the other.

Steps      `tablestore session start` asks for it → the first command of the folder starts the process that holds the
           JVM (session_holder) → each command takes the lock, connects to that JVM, and works in a new session of its
           own → it ends → the holder ends when nobody came for a while, or when it is stopped
INVARIANT  one command at a time: a second one starts a session of its own. Spark keeps one default session in a JVM.
INVARIANT  catalog, views, settings and cached data belong to a command: it gets a SharedState of its own.
INVARIANT  a session is used only by who would have started it in the same way: the same Spark settings, folder,
           programs and environment. Else it is replaced.
CRASH      a command that is killed or interrupted leaves the mark `in-use`: its work may still run in the JVM, so the
           next command replaces the process instead of using it.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from tablestore_engine.runtime.java import cache_folder, make_in_cache
from tablestore_engine.runtime.server_process import start_time, write_private

HOLDER = "tablestore_engine.spark.session_holder"
IDLE_SECONDS = 1800.0
_START_SECONDS = 180.0
_POLL_SECONDS = 0.05
_WANTED, _STATE, _LOCK, _MARK, LOG = "wanted.json", "state.json", "lock", "in-use", "holder.log"
_ABANDONED = threading.Event()
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


@dataclass(frozen=True)
class HolderState:
    """A running holder. `begun`: start time of its process, `digest`: of how it was started."""

    pid: int
    begun: str
    port: int
    secret: str
    digest: str

    @property
    def is_alive(self) -> bool:
        """The very process, not a later one of the same id."""
        return start_time(self.pid) == self.begun


@dataclass(frozen=True)
class SessionPlace:
    """Of one working folder; `folder`: where its resident session is written down."""

    working: Path
    folder: Path

    @property
    def idle_seconds(self) -> float | None:
        """How long a session waits for the next command; None: no session is asked for."""
        try:
            return float(json.loads((self.folder / _WANTED).read_text("utf-8"))["idle_seconds"])
        except (OSError, ValueError, KeyError):
            return None

    def want(self, idle_seconds: float) -> None:
        """From now on commands of the folder use a resident session."""
        make_in_cache(self.folder)
        text = json.dumps({"idle_seconds": idle_seconds, "working": str(self.working)})
        write_private(self.folder / _WANTED, text)

    def forget(self) -> None:
        """Commands start sessions of their own again; the holder is ended."""
        (self.folder / _WANTED).unlink(missing_ok=True)
        self.end_holder()

    def holder(self) -> HolderState | None:
        """The process that runs; None when none does."""
        try:
            found = HolderState(**json.loads((self.folder / _STATE).read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        return found if found.is_alive else None

    def end_holder(self) -> None:
        """Its JVM ends with it."""
        found = self.holder()
        if found is not None:
            with suppress(ProcessLookupError):
                os.kill(found.pid, signal.SIGTERM)
            while found.is_alive:
                time.sleep(_POLL_SECONDS)
        for name in (_STATE, _MARK):
            (self.folder / name).unlink(missing_ok=True)

    def publish(self, state: HolderState) -> None:
        """By the holder, once its session is up."""
        write_private(self.folder / _STATE, json.dumps(asdict(state)))

    def try_lock(self) -> TextIO | None:
        """Held until the file is closed, or the process ends; None while another command has it."""
        file = (self.folder / _LOCK).open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
        return file

    @property
    def mark(self) -> Path:
        """There while a command works, and after one that did not end well."""
        return self.folder / _MARK


def place_of(working: Path) -> SessionPlace:
    """Of a working folder of this user. Raises FixRequest TS1992 for a cache folder of somebody else."""
    digest = hashlib.sha256(str(working.resolve()).encode()).hexdigest()[:16]
    return SessionPlace(working.resolve(), cache_folder() / "sessions" / digest)


def digest_of(settings: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Of everything that a JVM is started with; secrets in it are not readable."""
    kept = {key: value for key, value in sorted(environ.items()) if key.startswith(_ENVIRONMENT)}
    programs = (pyspark.__version__, sys.executable, __file__)
    text = json.dumps([dict(settings), kept, programs], sort_keys=True)
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
    if holder is None or holder.digest != digest or place.mark.exists():
        place.end_holder()
        holder = _start_holder(place, {**settings, "digest": digest, "idle_seconds": idle})
    if holder is None:
        lock.close()
        return None
    place.mark.touch()
    session = _connect(holder)
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


def _connect(holder: HolderState) -> SparkSession:
    """What the command before has left behind goes first."""
    before = {name: os.environ.get(name) for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET")}
    os.environ.update(PYSPARK_GATEWAY_PORT=str(holder.port), PYSPARK_GATEWAY_SECRET=holder.secret)
    try:
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
    SparkContext._ensure_initialized(gateway=gateway)
    jvm: Any = gateway.jvm
    running = jvm.org.apache.spark.SparkContext.getOrCreate()
    java = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(running)
    running.cancelAllJobs()
    for one in java.getPersistentRDDs().values():
        one.unpersist()
    context = SparkContext(gateway=gateway, jsc=java, conf=SparkConf(_jvm=jvm, _jconf=java.getConf()))
    # with a SharedState of its own, unlike newSession(): names of the command before are not there
    return SparkSession(context, jvm.org.apache.spark.sql.classic.SparkSession(running))


def leave_work_behind() -> None:
    """A call into the JVM was interrupted: its work may still run there, so the next command replaces the JVM."""
    _ABANDONED.set()


def _detach(place: SessionPlace, lock: TextIO) -> None:
    """At the end of the command."""
    if not _ABANDONED.is_set():
        place.mark.unlink(missing_ok=True)
    lock.close()
