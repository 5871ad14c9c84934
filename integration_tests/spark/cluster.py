"""A standalone Spark cluster on loopback: one master and two workers, whose Python does not have our package."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import sysconfig
import time
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from tablestore_engine.runtime.java import cache_folder, find_java

_START_SECONDS = 90


def worker_python() -> str:
    """A venv in the cache whose .pth line adds our environment's packages; editable installs are not followed."""
    home = cache_folder() / "worker-venv"
    python = home / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    inside = subprocess.run(
        [str(python), "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"],
        check=True, capture_output=True, text=True,
    ).stdout.strip()  # fmt: skip
    (Path(inside) / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return str(python)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Cluster:
    """Processes of ours, ended by their pids."""

    folder: Path
    port: int = field(default_factory=_free_port)
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def url(self) -> str:
        """spark://127.0.0.1:<port>."""
        return f"spark://127.0.0.1:{self.port}"

    def start(self) -> Cluster:
        """Master, then two workers with one core each; returns when both are registered."""
        self._launch("master", "Master", "--host", "127.0.0.1", "--port", str(self.port), "--webui-port", "0")
        self._wait("master", "Starting Spark master", 1)
        for number in (1, 2):
            self._launch(
                f"worker{number}", "Worker", "--host", "127.0.0.1", "--cores", "1", "--memory", "1g",
                "--webui-port", "0", "--work-dir", str(self.folder / f"work{number}"), self.url,
            )  # fmt: skip
        self._wait("master", "Registering worker", 2)
        return self

    def stop(self) -> None:
        """End what was started, workers first."""
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            process.wait(timeout=30)

    def _launch(self, name: str, role: str, *arguments: str) -> None:
        jars = Path(pyspark.__file__).parent / "jars"
        command = [
            f"{find_java().home}/bin/java", "-cp", f"{jars}/*", "-Xmx256m", "-XX:+UseSerialGC",
            f"org.apache.spark.deploy.{role.lower()}.{role}", *arguments,
        ]  # fmt: skip
        env = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("PYTHON", "PYSPARK", "SPARK"))
        }
        env |= {
            "JAVA_HOME": find_java().home,  # executors are started with it, too
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_SCALA_VERSION": "2.13",
        }
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes.append(
                subprocess.Popen(
                    command, stdout=log, stderr=log, env=env, cwd=self.folder, start_new_session=True
                )
            )

    def _wait(self, name: str, text: str, count: int) -> None:
        deadline = time.monotonic() + _START_SECONDS
        log = self.folder / f"{name}.log"
        while len(re.findall(text, log.read_text("utf-8", "replace"))) < count:
            if time.monotonic() > deadline or self.processes[0].poll() is not None:
                raise TimeoutError(
                    f"{name} did not say {text!r} {count} times:\n" + log.read_text("utf-8", "replace")
                )
            time.sleep(0.2)
