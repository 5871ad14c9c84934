"""The common face of the readers, and those that live in a process and an environment of their own.

Steps      a request is one JSON line; rows come back in an Arrow file beside it
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from integration_tests.interop.environments import (
    ICEBERG,
    PYPAIMON,
    RUST,
    SPARK35,
    iceberg_jar,
    java_command,
    paimon_jars,
)
from integration_tests.interop.rows import Change, Row, plain_changes, plain_rows
from tablestore_engine.certify import reader_program

_SCRIPTS = Path(__file__).parent / "readers"
_PROGRAM = Path(reader_program.__file__).parent


class Peer(Protocol):
    """Somebody who reads Paimon tables."""

    name: str

    def read(self, location: Path, snapshot: int | None = None) -> list[Row]:
        """Rows at a snapshot, the newest when none is given."""


class PeerRefused(Exception):
    """The peer answered with an error of its own."""


class ProcessPeer:
    """A reader script in its own environment; started by the first request, stopped by `close`."""

    def __init__(self, name: str, command: list[str], folder: Path, environment: Mapping[str, str]) -> None:
        """`folder` takes the answers' Arrow files and the script's error output."""
        self.name = name
        self._command, self._folder = command, folder
        self._environment = {**os.environ, **environment}
        self._process: subprocess.Popen[str] | None = None

    def read(self, location: Path, snapshot: int | None = None) -> list[Row]:
        """Rows at a snapshot, the newest when none is given."""
        return plain_rows(self._rows("read", location=str(location), snapshot=snapshot))

    def where(
        self, location: Path, text: str, snapshot: int | None, rows: pa.Table | None = None
    ) -> list[Row]:
        """Rows that a filter selects: of the table, or of `rows` by the peer's own filter without metadata."""
        given = None if rows is None else self._give(rows)
        return plain_rows(
            self._rows("where", location=str(location), snapshot=snapshot, filter=text, rows=given)
        )

    def count(self, location: Path, snapshot: int | None = None) -> int:
        """Number of rows by the peer's own SQL."""
        return int(self.ask("count", location=str(location), snapshot=snapshot))

    def changelog(self, location: Path, since: int, until: int, mode: str = "changelog") -> list[Change]:
        """Changes of the snapshots (since, until]."""
        table = self._rows("changelog", location=str(location), since=since, until=until, mode=mode)
        return plain_changes(table) if table.num_columns else []

    def follow(
        self, location: Path, last: int | None = None, *, first: int = 1, consumer: str | None = None
    ) -> list[Change]:
        """Changes of a streaming read: from a snapshot, or where a consumer is, up to `last` (Spark: the newest)."""
        return plain_changes(
            self._rows("follow", location=str(location), first=first, last=last, consumer=consumer)
        )

    def sql(self, location: Path, text: str) -> None:
        """Run a statement, `{table}` standing for the table's name."""
        self.ask("sql", location=str(location), text=text)

    def select(self, location: Path, text: str) -> list[Row]:
        """Rows of a query, `{table}` standing for the table's name."""
        return plain_rows(self._rows("select", location=str(location), text=text))

    def run(self, text: str, name: str) -> list[Row]:
        """Rows of what a Python program gives this name; it has the session as `spark`."""
        return plain_rows(self._rows("run", text=text, name=name))

    def write(self, location: Path, rows: pa.Table) -> None:
        """One batch commit of rows."""
        self.ask("write", location=str(location), rows=self._give(rows))

    def ask(self, what: str, **words: Any) -> Any:
        """One request; PeerRefused when the peer failed."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"do": what, "out": str(self._answer), **words}) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise PeerRefused(f"{self.name} died:\n{self._errors.read_text()[-3000:]}")
        reply = json.loads(line)
        if not reply["ok"]:
            raise PeerRefused(f"{self.name}: {reply['error'][:3000]}\n{reply['trace'][-1500:]}")
        return reply["value"]

    def close(self) -> None:
        """End the process that this object started."""
        if self._process is not None:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.close()
            self._process.wait(timeout=60)
            self._process.stdout.close()

    def _give(self, rows: pa.Table) -> str:
        given = self._folder / "rows.arrow"
        self._folder.mkdir(parents=True, exist_ok=True)
        with pa.OSFile(str(given), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
            writer.write_table(rows)
        return str(given)

    @property
    def _answer(self) -> Path:
        return self._folder / "answer.arrow"

    @property
    def _errors(self) -> Path:
        return self._folder / "errors.txt"

    def _rows(self, what: str, **words: Any) -> pa.Table:
        self.ask(what, **words)
        with pa.OSFile(str(self._answer)) as source:
            return pa.ipc.open_file(source).read_all()

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._folder.mkdir(parents=True, exist_ok=True)
            with self._errors.open("w") as errors:
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    env=self._environment,
                    cwd=self._folder,
                )
        return self._process


def spark_peer(folder: Path) -> ProcessPeer:
    """paimon-spark 0.9.0 on Spark 3.5."""
    return _spark_35("paimon-spark 0.9.0", "spark_reader.py", paimon_jars()["paimon-spark-3.5"], folder)


def spark_iceberg_peer(folder: Path) -> ProcessPeer:
    """Iceberg's Java reader 1.11.0 on Spark 3.5, over Iceberg metadata."""
    return _spark_35("Iceberg 1.11.0", "spark_iceberg_reader.py", iceberg_jar(), folder)


def _spark_35(name: str, script: str, jar: Path, folder: Path) -> ProcessPeer:
    command = [str(SPARK35.python()), str(_SCRIPTS / script), str(jar), str(folder)]
    home = str(Path(java_command()).parent.parent)
    removed = {"SPARK_HOME": "", "PYSPARK_SUBMIT_ARGS": "pyspark-shell"}
    return _peer(name, command, folder, {"JAVA_HOME": home, "SPARK_LOCAL_IP": "127.0.0.1", **removed})


def pypaimon_peer(folder: Path) -> ProcessPeer:
    """pypaimon 2.1.0."""
    return _peer("pypaimon 2.1.0", [str(PYPAIMON.python()), str(_SCRIPTS / "pypaimon_reader.py")], folder, {})


def rust_peer(folder: Path) -> ProcessPeer:
    """pypaimon-rust 0.4.0."""
    return _peer("pypaimon-rust 0.4.0", [str(RUST.python()), str(_SCRIPTS / "rust_reader.py")], folder, {})


def duckdb_peer(folder: Path) -> ProcessPeer:
    """DuckDB 1.5.5 over Iceberg metadata."""
    return _peer(
        "DuckDB 1.5.5", [str(ICEBERG.python()), str(_SCRIPTS / "duckdb_iceberg_reader.py")], folder, {}
    )


def pyiceberg_peer(folder: Path) -> ProcessPeer:
    """pyiceberg 0.12.0 over Iceberg metadata."""
    return _peer(
        "pyiceberg 0.12.0", [str(ICEBERG.python()), str(_SCRIPTS / "pyiceberg_reader.py")], folder, {}
    )


def _peer(name: str, command: list[str], folder: Path, environment: Mapping[str, str]) -> ProcessPeer:
    plain = {"PYTHONPATH": str(_PROGRAM), "PYTHONDONTWRITEBYTECODE": "1", "TZ": "UTC"}
    peer = ProcessPeer(name, command, folder, {**plain, **environment})
    if "SPARK_HOME" in environment:
        peer._environment.pop("SPARK_HOME", None)
    return peer
