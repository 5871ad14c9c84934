"""One quiet Spark session per process, started on first use, without Hive.

Steps      start: find Java → JVM with its output in <scratch>/spark.log → session → silence the loggers
INVARIANT  an adopted session (a user's, a notebook's) keeps its settings: only our conf for reading is added.
INVARIANT  a failed start leaves no JVM behind (jvm_launch), and becomes one TS1504 error.
"""

from __future__ import annotations

import logging
import re
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkConf
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tablestore_engine.errors import FixRequest, StorageError, Unsupported
from tablestore_engine.fileio.storage_errors import explained
from tablestore_engine.runtime.java import JavaChoice, find_java
from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.runtime.scratch import ScratchPlace
from tablestore_engine.spark import class_archive, core_watch, spark_errors
from tablestore_engine.spark.jvm_launch import environment, forget_gateway, launch
from tablestore_engine.spark.jvm_names import keep_names
from tablestore_engine.spark.resident_session import attach
from tablestore_engine.spark.spark_settings import SparkSettings

PYSPARKS = ((4, 1), (4, 2), (4, 3))  # minor versions that the nightly run tests
_LOCK = OrderedLock("session start", Rank.SESSION_START)
_SCRATCH_LOCK = OrderedLock("scratch folders", Rank.PROCESS)
_SCRATCH: dict[ScratchPlace, Path] = {}
_NOISY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j")

# What reading and writing our tables needs; a user's conf wins over each of them.
DEFAULT_CONF: Mapping[str, str] = {
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.ansi.enabled": "true",  # Spark's own default; decision 0093
    "spark.sql.variable.substitute": "false",  # ${env:X} in a comment or a view's text would show secrets
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "131072",
    "spark.sql.parquet.filterPushdown": "true",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    # Spark 4.3.0 cannot send a fused union's tasks when a nested-loop join lies over it (ClassCastException, UnionExec)
    "spark.sql.codegen.wholeStage.union.enabled": "false",
    # each streaming query starts a Python process; 15 s, Spark's default, is too short on a busy machine
    "spark.python.authenticate.socketTimeout": "60s",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",  # it goes to the log file, where TS1504 looks for the reason
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.shuffle.compress": "true",
    "spark.io.compression.codec": "lz4",
    "spark.driver.memory": "2g",
}
_LOCAL_CONF: Mapping[str, str] = {
    # Every user of the machine reaches the driver's ports: without it they send any block, the broadcast conf with its
    # secrets among them, and deserialize any message. Spark makes a secret for each application.
    "spark.authenticate": "true",
    "spark.shuffle.sort.bypassMergeThreshold": "200",
    "spark.python.worker.reuse": "true",
}
# An executor that is lost takes rows with it that others have read in part. Where the query gives other rows when it is
# run again, Spark would mix both without a word: rows twice and rows lost. It compares checksums instead, and fails.
_CHECKSUM = "spark.sql.shuffle.orderIndependentChecksum"
# Rows between Python and Java of one machine go through sockets that only their user opens. A port can be the former
# one of a broker to which clients still try to connect: Spark takes that for its own client, and the query never ends.
_SOCKETS = "spark.python.unix.domain.socket"
_SOCKET_FOLDER_MAX = 60  # a socket's name has at most 103 bytes (macOS), and Spark's part of it has 42
_CLUSTER_CONF: Mapping[str, str] = {
    f"{_CHECKSUM}.enabled": "true",
    f"{_CHECKSUM}.enableFullRetryOnMismatch": "true",
    # takes effect where the cluster authenticates; encrypts what leaves the machine. A master without it is spoken to
    # by SASL (spark.network.crypto.saslFallback)
    "spark.network.crypto.enabled": "true",
}
# Java's second compiler waits for ten times as many calls and loops as by default. In a small build it compiled code
# that ran no more; loads of millions of rows take no longer (decision 0157).
_LATE_COMPILER = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000"
    " -XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
_LOOPBACK_ONLY = ("spark.driver.host", "spark.driver.bindAddress")


def check_pyspark(version: str) -> None:
    """Raises Unsupported TS1500 for a minor version that nothing here was tested with."""
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) not in PYSPARKS:
        tested = ", ".join(f"{major}.{minor}" for major, minor in PYSPARKS)
        raise Unsupported(
            "TS1500",
            f"pyspark {version} is not supported",
            why=f"tested are {tested}; plans of queries are read by names that Spark changes between minor versions",
            fix="reinstall dbt-tablestore, which brings a pyspark that fits, or install a newer dbt-tablestore",
        )


def open_session(settings: SparkSettings, place: ScratchPlace) -> SparkSession:
    """The process's session; started with `settings` when there is none yet. Raises TS1500, FixRequest TS1504."""
    check_pyspark(pyspark.__version__)
    with _LOCK:
        session = SparkSession.getActiveSession() or _running_session()
        if session is None:
            scratch = session_scratch(place, settings)
            session = _attach(settings) or start_session(settings, scratch)
        keep_names(session._jvm)
        _silence()
        return session


def _running_session() -> SparkSession | None:
    """The session that another thread of this process uses (getActiveSession is per thread)."""
    session = SparkSession._instantiatedSession
    if session is None or session._sc._jsc is None:
        return None
    return session


def make_active(session: SparkSession) -> None:
    """For this thread: Spark looks the source of a writer up in the active session, and a new thread has none."""
    jvm: Any = session._jvm
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session._jsparkSession)


def session_scratch(place: ScratchPlace, settings: SparkSettings) -> Path:
    """A folder that the workers of the process's session see; of `settings` while there is none."""
    running = _running_session()
    master = settings if running is None else SparkSettings(running.sparkContext.master or "")
    with _SCRATCH_LOCK:
        known = _SCRATCH.get(place)
        if known is None:
            with explained(str(place.parent(is_one_machine=master.is_local))):
                known = _SCRATCH[place] = place.open(is_one_machine=master.is_local)
        return known


def spark_conf(settings: SparkSettings, scratch: Path, java_flags: str) -> dict[str, str]:
    """The whole conf, decided before anything starts: ours, then for the master, then the user's."""
    conf = dict(DEFAULT_CONF)
    if settings.is_local:
        conf.update(_LOCAL_CONF)
        # 200, Spark's default, costs seconds per small query on a few cores; too few only spill
        conf["spark.sql.shuffle.partitions"] = str(max(4, 2 * settings.local_cores))
    else:
        conf.update(_CLUSTER_CONF)
        if settings.cluster_cores is not None:
            conf["spark.sql.shuffle.partitions"] = str(max(4, 2 * settings.cluster_cores))
    if not settings.is_loopback:
        for key in _LOOPBACK_ONLY:
            del conf[key]
    if settings.master.startswith("local-cluster"):  # Spark makes no secret for it
        del conf["spark.authenticate"]
    elif settings.is_local and len(str(scratch)) <= _SOCKET_FOLDER_MAX:
        conf.update({f"{_SOCKETS}.enabled": "true", f"{_SOCKETS}.dir": str(scratch)})
    conf["spark.app.name"] = "tablestore"
    conf["spark.sql.warehouse.dir"] = str(scratch / "catalog")
    conf.update({key: str(value) for key, value in settings.conf.items()})
    jars = ",".join(one for one in (conf.get("spark.jars", ""), *settings.more_jars()) if one)
    if jars:
        conf["spark.jars"] = jars
    flags = (java_flags, conf.get("spark.driver.extraJavaOptions", ""))
    conf["spark.driver.extraJavaOptions"] = " ".join(flag for flag in flags if flag)
    return conf


def _attach(settings: SparkSettings) -> SparkSession | None:
    """A session in the resident JVM of this folder, where the user asked for one (resident_session)."""
    if not settings.is_local:
        return None
    conf = {key: str(value) for key, value in settings.conf.items()}
    how = {"master": settings.master, "conf": conf, "jars": [*settings.more_jars()]}
    with _own_interrupt():
        return attach(how, lambda folder: start_session(settings, folder, stays=True))


def start_session(settings: SparkSettings, scratch: Path, *, stays: bool = False) -> SparkSession:
    """A JVM and its session; `stays`: a terminal that is closed does not end the JVM. Raises FixRequest TS1504."""
    if settings.master.startswith("sc://"):
        raise FixRequest(
            "TS1504",
            f"Spark Connect ({settings.master}) cannot be used yet",
            why="the write path and the views need a classic session: local[n] or spark://host:port",
            fix="set spark.master of the profile to local[*] or to a standalone master",
        )
    java = find_java()
    log = scratch / "spark.log"
    conf = spark_conf(settings, scratch, driver_flags(settings, java))
    with environment(_start_environment(settings, java.home)):
        try:
            spark_config = SparkConf(loadDefaults=False).setMaster(settings.master).setAll(list(conf.items()))
            launch(spark_config, scratch, log, stays=stays)
            with _own_interrupt():
                session = SparkSession.builder.config(conf=spark_config).getOrCreate()
        except StorageError:
            forget_gateway()
            raise
        except (PySparkException, Py4JError, OSError) as error:
            forget_gateway()
            raise _not_started(settings, java.sentence, error, log) from error
    if settings.is_local:
        class_archive.build_in_background(java)
    else:
        core_watch.watch(session.sparkContext)
    return session


def driver_flags(settings: SparkSettings, java: JavaChoice) -> str:
    """Java's flags for the driver; those of the user's conf follow them."""
    if not settings.is_local:
        return class_archive.GC_FLAG
    return f"{class_archive.GC_FLAG} {_LATE_COMPILER} {class_archive.archive_flags(java)}".strip()


@contextmanager
def _own_interrupt() -> Iterator[None]:
    """pyspark's handler of Ctrl-C asks the JVM to cancel jobs on the connection whose call it interrupts, and waits for
    that call to end; ours cancel them afterwards (api/engine.py).
    """
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT)
    yield
    if is_main and signal.getsignal(signal.SIGINT) is not before:
        signal.signal(signal.SIGINT, before or signal.default_int_handler)


def _start_environment(settings: SparkSettings, java_home: str) -> dict[str, str]:
    """What Spark only takes from the environment; what the user set there wins, except for Java."""
    env = {"JAVA_HOME": java_home}
    # workers of a loopback master are on this machine; elsewhere they take `python3` of their PATH
    python = settings.conf.get("spark.pyspark.python", sys.executable if settings.is_loopback else "")
    if python:
        env["PYSPARK_PYTHON"] = python
    if settings.is_loopback:
        env["SPARK_LOCAL_IP"] = "127.0.0.1"
    return env


def _not_started(settings: SparkSettings, java: str, error: Exception, log: Path) -> FixRequest:
    told = log.read_text("utf-8", "replace").strip().splitlines() if log.is_file() else []
    reasons = [line.strip() for line in told if re.search(r"(Exception|Error): |^Error ", line)]
    reason = reasons[0] if reasons else spark_errors.translate(error).why
    return FixRequest(
        "TS1504",
        f"Spark did not start (master {settings.master})",
        why=f"{reason[:400]}; {java}",
        fix="check spark.master and spark.conf of the profile, JAVA_HOME, and memory; `tablestore doctor` tests each",
    )


def _is_not_py4j(record: logging.LogRecord) -> bool:
    """py4j writes tracebacks of calls that were interrupted to the root logger."""
    return record.module != "java_gateway"


def _silence() -> None:
    """pyspark logs every failed statement as JSON with the JVM stack, also errors that are caught."""
    logging.getLogger().addFilter(_is_not_py4j)
    for name in _NOISY_LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def leave_session(session: Any) -> None:  # noqa: ANN401 - py4j's
    """Frees the memory of a session. Spark's context holds a listener of its queries, which refers to the session; the
    listener is removed. Another Spark version may have it elsewhere, and then the session stays in memory.
    """
    with suppress(Py4JError):
        manager = session.sessionState().streamingQueryManager()
        field = manager.getClass().getDeclaredField("listenerBus")
        field.setAccessible(True)
        session.sparkContext().listenerBus().removeListener(field.get(manager))
