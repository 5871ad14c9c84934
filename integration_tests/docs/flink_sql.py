"""A Flink cluster in one JVM that runs SQL scripts: FlinkSqlRunner.java with Flink's published jars.

Jars       fetched once into the cache (decision 0083); 50 of them, 130 MB. A script takes a second, the start ten
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from integration_tests.docs.java_source import java_program
from integration_tests.interop.environments import fetched

FLINK_VERSION, KAFKA_CONNECTOR = "2.0.0", "4.0.1-2.0"
_MODULES = (
    *("flink-table-planner-loader", "flink-table-runtime", "flink-table-api-java-bridge"),
    *("flink-clients", "flink-connector-files", "flink-json"),
)
_SOURCE = Path(__file__).with_name("FlinkSqlRunner.java")
_OPENED = ("util", "lang", "nio", "time")
Change = tuple[str, tuple[str, ...]]


def flink_sql_jars() -> Path:
    """The folder with Flink and its Kafka connector, which has its Kafka client inside."""
    lines = "".join(
        f'<dependency org="org.apache.flink" name="{name}" rev="{FLINK_VERSION}" conf="default->default"/>'
        for name in _MODULES
    )
    connector = ("flink-sql-connector-kafka", KAFKA_CONNECTOR)
    lines += f'<dependency org="org.apache.flink" name="{connector[0]}" rev="{connector[1]}" conf="default->master"/>'
    lines += '<dependency org="org.slf4j" name="slf4j-nop" rev="1.7.36" conf="default->default"/>'
    files = (f"flink-table-planner-loader-{FLINK_VERSION}.jar", f"{'-'.join(connector)}.jar")
    return fetched(f"interop-flink-sql-{FLINK_VERSION}", lines, files, 130)


class FlinkSql:
    """One cluster."""

    def __init__(self, folder: Path) -> None:
        """Starts it; `folder` is for scripts, the compiled runner and what Flink puts down. Raises CannotMake."""
        self._folder, self._scripts = folder, 0
        source = shutil.copy(_SOURCE, folder)
        opened = [f"--add-opens=java.base/java.{one}=ALL-UNNAMED" for one in _OPENED]
        command = java_program(Path(source), flink_sql_jars(), *opened, f"-Djava.io.tmpdir={folder}")
        self._errors = (folder / "errors").open("w")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        assert self._answer() == "ready", (folder / "errors").read_text()

    def close(self) -> None:
        """End the process that this object started."""
        self._process.terminate()
        self._process.wait(timeout=30)
        self._errors.close()

    def changes(self, script: str) -> list[Change]:
        """(row kind, fields as texts) of each row of the script's last query, which has to end by itself."""
        self._scripts += 1
        path = self._folder / f"{self._scripts}.sql"
        path.write_text(script)
        assert self._process.stdin is not None
        self._process.stdin.write(f"{path}\n")
        self._process.stdin.flush()
        found: list[Change] = []
        while (line := self._answer()) != "end":
            kind, *fields = line.split("\t")
            assert kind in ("+I", "-U", "+U", "-D"), (self._folder / "errors").read_text()[-3000:]
            found.append((kind, tuple(fields)))
        return found

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip("\n")
