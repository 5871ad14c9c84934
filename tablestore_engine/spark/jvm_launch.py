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

_SUBMIT_ENV = "PYSPARK_SUBMIT_ARGS"
_DEFAULTS = "--load-spark-defaults"  # the user's spark-defaults.conf counts below ours
_SHELL = "pyspark-shell"


def launch(conf: SparkConf, scratch: Path, log: Path, *, stays: bool) -> None:
    """The JVM, whose own output (start-up noise, Python workers' stderr) goes to the log, not to the user.

    Nothing when this process has a JVM. `stays`: it is the process's child alone, a terminal does not end it.
    """
    if SparkContext._gateway is not None:
        return
    with _properties_file(conf, scratch) as path:
        submit = " ".join(
            (_DEFAULTS, "--properties-file", shlex.quote(str(path)), os.environ.get(_SUBMIT_ENV, _SHELL))
        )
        with log.open("ab") as sink, environment({_SUBMIT_ENV: submit}, replace=True):
            # once it listens it has read the file
            gateway = launch_gateway(None, {"stdout": sink, "stderr": sink, "start_new_session": stays})  # type: ignore[no-untyped-call]
        SparkContext._ensure_initialized(gateway=gateway)


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
