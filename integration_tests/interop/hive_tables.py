"""Hive's read path: what one of its tasks does with Paimon's connector 1.2.0 (HiveReader.java).

A Hive that runs queries is not fetched: this is the part of it that opens our files.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from integration_tests.interop.environments import hive_jars
from integration_tests.interop.java_source import java_program
from integration_tests.interop.java_values import plain_value
from integration_tests.interop.rows import Row

_SOURCE = Path(__file__).with_name("HiveReader.java")
_OPENED = ("lang", "util", "nio", "net")


class HiveRefused(Exception):
    """Hive's classes answered with an error."""


class HiveTables:
    """One JVM."""

    name = "hive 3.1.3"

    def __init__(self, folder: Path) -> None:
        """Starts it; `folder` is for the compiled program. Raises CannotMake."""
        source = Path(shutil.copy(_SOURCE, folder))
        flags = [f"--add-opens=java.base/java.{one}=ALL-UNNAMED" for one in _OPENED]
        command = java_program(
            source, hive_jars(), *flags, "-Duser.timezone=UTC", f"-Djava.io.tmpdir={folder}"
        )
        self._errors = (folder / "errors").open("w")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        assert self._answer() == "ready", (folder / "errors").read_text()[-3000:]

    def close(self) -> None:
        """End the process that this object started."""
        self._process.terminate()
        self._process.wait(timeout=30)
        self._errors.close()

    def read(self, location: Path, snapshot: int | None = None) -> tuple[list[Row], list[str]]:
        """Rows of a state, the newest by default, and the errors of rows that the connector cannot show.

        Raises HiveRefused.
        """
        return self._ask(str(location) if snapshot is None else f"{location}\t{snapshot}")

    def create(self, statement: str) -> tuple[list[Row], list[str]]:
        """Parse a CREATE TABLE, give it to the storage handler's hooks, and read the table as `read` does."""
        return self._ask(f"create\t{statement}")

    def _ask(self, line: str) -> tuple[list[Row], list[str]]:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        rows, errors = [], []
        while (line := self._answer()) != "end":
            if not line.startswith(("[", '"')):
                raise HiveRefused(line)
            found = json.loads(line)
            if isinstance(found, str):
                errors.append(found)
            else:
                rows.append(tuple(map(plain_value, found)))
        return rows, errors

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip("\n")
