"""A Flink cluster in one JVM that runs SQL scripts: FlinkSqlRunner.java with Flink's published jars (decision 0083).

Values     come back exactly, in the form of rows.py: floats by their bits, times to the microsecond
Time       the start takes ten seconds, a script one
"""

from __future__ import annotations

import datetime as dt
import json
import shutil
import struct
import subprocess
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from integration_tests.interop.environments import flink_cluster_jars
from integration_tests.interop.java_source import java_program
from integration_tests.interop.rows import Change, plain_float

_SOURCE = Path(__file__).with_name("FlinkSqlRunner.java")
_OPENED = ("util", "lang", "nio", "time", "net")
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - rows.py has no zones


class FlinkRefused(Exception):
    """Flink answered with an error."""


class FlinkSql:
    """One cluster."""

    def __init__(self, folder: Path) -> None:
        """Starts it; `folder` is for scripts, the compiled runner and what Flink puts down. Raises CannotMake."""
        self._folder, self._scripts = folder, 0
        source = shutil.copy(_SOURCE, folder)
        flags = [f"--add-opens=java.base/java.{one}=ALL-UNNAMED" for one in _OPENED]
        flags += ["--add-opens=java.base/sun.nio.ch=ALL-UNNAMED", "-Xmx2g", "-Duser.timezone=UTC"]
        command = java_program(Path(source), flink_cluster_jars(), *flags, f"-Djava.io.tmpdir={folder}")
        self._errors = (folder / "errors").open("w")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        assert self._answer() == "ready", self._last_errors()

    def close(self) -> None:
        """End the process that this object started."""
        self._process.terminate()
        self._process.wait(timeout=30)
        self._errors.close()

    def changes(self, script: str) -> list[Change]:
        """(row kind, fields) of each row of the script's last statement, which has to end by itself."""
        return self.run(script)[-1]

    def run(self, script: str) -> list[list[Change]]:
        """The rows of each statement. Raises FlinkRefused with Flink's error."""
        self._scripts += 1
        path = self._folder / f"{self._scripts}.sql"
        path.write_text(script)
        assert self._process.stdin is not None
        self._process.stdin.write(f"{path}\n")
        self._process.stdin.flush()
        found: list[list[Change]] = []
        rows: list[Change] = []
        while (line := self._answer()) != "end":
            if line == "done":
                found.append(rows)
                rows = []
            elif line.startswith("["):
                kind, *fields = json.loads(line)
                rows.append((kind, tuple(map(_value, fields))))
            else:
                raise FlinkRefused(f"{line}\n{script}\n{self._last_errors()}")
        return found

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip("\n")

    def _last_errors(self) -> str:
        return (self._folder / "errors").read_text()[-3000:]


def _value(given: Any) -> Any:
    """The plain form of a value as the runner writes it."""
    if not isinstance(given, dict):
        return given
    ((tag, value),) = given.items()
    return _FORMS[tag](value)


def _moment(value: list[int]) -> dt.datetime:
    seconds, nanos = value
    assert nanos % 1000 == 0
    return _EPOCH + dt.timedelta(seconds=seconds, microseconds=nanos // 1000)


def _time(nanos: int) -> dt.time:
    assert nanos % 1000 == 0
    return (_EPOCH + dt.timedelta(microseconds=nanos // 1000)).time()


_FORMS: dict[str, Callable[[Any], Any]] = {
    "float": lambda bits: plain_float(struct.unpack("<f", struct.pack("<i", bits))[0]),
    "double": lambda bits: plain_float(struct.unpack("<d", struct.pack("<q", bits))[0]),
    "decimal": Decimal,
    "bytes": bytes.fromhex,
    "day": lambda days: _EPOCH.date() + dt.timedelta(days=days),
    "time": _time,
    "moment": _moment,
    "array": lambda values: tuple(map(_value, values)),
    "row": lambda values: tuple(map(_value, values)),
    "map": lambda pairs: ("map", tuple(sorted(((_value(k), _value(v)) for k, v in pairs), key=repr))),
}
