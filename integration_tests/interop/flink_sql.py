"""A Flink cluster in one JVM that runs SQL scripts: FlinkSqlRunner.java with Flink's published jars (decision 0083).

Values     come back exactly, in the form of rows.py: floats by their bits, times to the microsecond
Time       the start takes ten seconds, a script one
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from integration_tests.interop.environments import flink_cluster_jars
from integration_tests.interop.java_source import java_program
from integration_tests.interop.java_values import plain_value
from integration_tests.interop.rows import Change

_SOURCE = Path(__file__).with_name("FlinkSqlRunner.java")
_OPENED = ("util", "lang", "nio", "time", "net")


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
                rows.append((kind, tuple(map(plain_value, fields))))
            else:
                raise FlinkRefused(f"{line}\n{script}\n{self._last_errors()}")
        return found

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip("\n")

    def _last_errors(self) -> str:
        return (self._folder / "errors").read_text()[-3000:]
