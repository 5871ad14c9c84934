"""Starting the JVM of a session, or joining one that runs: pyspark's gateway to it.

INVARIANT  spark.conf never stands in a command line, which every user of the machine can read: it goes by a 0600 file,
           or through the gateway of a JVM that runs.
INVARIANT  a failed start leaves no half-made gateway behind.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

from tablestore_engine.fileio.storage_errors import explained
from tablestore_engine.runtime import jvm_ahead
from tablestore_engine.runtime.jvm_ahead import JvmStart
from tablestore_engine.spark.spark_jars import jars_folder

_SUBMIT_ENV = "PYSPARK_SUBMIT_ARGS"
_DEFAULTS = "--load-spark-defaults"  # the user's spark-defaults.conf counts below ours
_SHELL = "pyspark-shell"
# What the JVM itself takes before any session asks; everything else reaches it with the session.
_OF_THE_JVM = ("spark.driver.extraJavaOptions", "spark.driver.memory")
_OF_SQL = ("spark.sql.", "spark.driver.memory", "spark.default.parallelism", "spark.ui.")


def launch(conf: SparkConf, start: JvmStart | None, scratch: Path, log: Path) -> None:
    """The JVM, whose own output (start-up noise, Python workers' stderr) goes to the log, not to the user.

    `start`: how it may be started ahead (plan_start). Nothing when this process has a JVM.
    """
    if SparkContext._gateway is not None:
        return
    running = jvm_ahead.take(start, log)
    if running is not None:
        gateway = join_gateway(running.port, running.secret)
        gateway.proc = running.process
        for key, value in conf.getAll():  # as the properties file would have
            gateway.jvm.java.lang.System.setProperty(key, value)
        return
    with _properties_file(conf, scratch) as path:
        submit = " ".join(
            (_DEFAULTS, "--properties-file", shlex.quote(str(path)), os.environ.get(_SUBMIT_ENV, _SHELL))
        )
        with log.open("ab") as sink, environment({_SUBMIT_ENV: submit}, replace=True):
            # once it listens it has read the file
            gateway = launch_gateway(None, {"stdout": sink, "stderr": sink})  # type: ignore[no-untyped-call]
        SparkContext._ensure_initialized(gateway=gateway)


def plan_start(
    asked: Mapping[str, str], conf: Mapping[str, str], added: Mapping[str, str], parent: Path
) -> JvmStart | None:
    """How the JVM of such a session can begin before the session is asked for; None where more than `asked` for SQL
    decides over it.

    `asked`: the user's conf; `conf`: the whole one; `added`: over the environment; `parent`: of scratch folders.
    """
    if _SUBMIT_ENV in os.environ or "spark.jars" in conf or not all(key.startswith(_OF_SQL) for key in asked):
        return None
    told = [part for key in _OF_THE_JVM if key in conf for part in ("--conf", f"{key}={conf[key]}")]
    program = jars_folder().parent / "bin" / "spark-submit"
    return JvmStart(str(program), (_DEFAULTS, *told, _SHELL), dict(added), str(parent))


def join_gateway(port: int, secret: str) -> Any:  # noqa: ANN401 - py4j has no types
    """pyspark's gateway to a JVM that runs, which is the process's from now on."""
    asked = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    with environment(asked, replace=True):
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
    SparkContext._ensure_initialized(gateway=gateway)
    return gateway


def leave_gateway() -> None:
    """Of a JVM that was joined: the next start of the process makes one of its own."""
    if SparkContext._gateway is not None:
        SparkContext._gateway.close()  # the JVM belongs to another process
    SparkContext._gateway = None
    SparkContext._jvm = None


def forget_gateway() -> None:
    """After a failed start: end the JVM, so that the next try starts a new one."""
    gateway = SparkContext._gateway
    SparkContext._gateway = None
    SparkContext._jvm = None
    if gateway is not None and getattr(gateway, "proc", None) is not None:
        gateway.proc.stdin.close()


@contextmanager
def _properties_file(conf: SparkConf, scratch: Path) -> Iterator[Path]:
    """The conf as a Java properties file that only this user reads, gone once Spark has read it."""
    path = scratch / "spark.properties"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with explained(str(path)), os.fdopen(handle, "w", encoding="ascii") as file:
            file.writelines(f"{_escaped(key)}={_escaped(value)}\n" for key, value in conf.getAll())
        yield path
    finally:
        path.unlink(missing_ok=True)


def _escaped(text: str) -> str:
    """As java.util.Properties reads it back: no line breaks, signs and characters beyond ASCII bare."""
    units = memoryview(text.encode("utf-16-be", "surrogatepass")).cast("B")
    codes = [units[at] << 8 | units[at + 1] for at in range(0, len(units), 2)]
    return "".join(
        chr(code) if chr(code).isascii() and chr(code).isalnum() else f"\\u{code:04x}" for code in codes
    )


class environment:  # noqa: N801 - a context manager, read as a verb
    """Environment variables for the child process, put back afterwards."""

    def __init__(self, values: Mapping[str, str], *, replace: bool = False) -> None:
        self.values = {
            key: value
            for key, value in values.items()
            if replace or key == "JAVA_HOME" or key not in os.environ
        }
        self.before = {key: os.environ.get(key) for key in self.values}

    def __enter__(self) -> Mapping[str, str]:
        os.environ.update(self.values)
        return self.values

    def __exit__(self, *_: object) -> None:
        for key, value in self.before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value
