"""A real schema registry for tests: Apicurio, with its interface that is Confluent's, in memory, on loopback.

WHY        Confluent's own server is in no package registry; Apicurio's is, and speaks the same interface. The newest
           version that runs on Java 17.
INVARIANT  compatibility is BACKWARD for every subject, as Confluent's server has it.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import tarfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from integration_tests.interop.environments import fetched, java_command

VERSION = "2.6.13.Final"
_NAME = "apicurio-registry-app"
_DEPENDENCY = (
    f'<dependency org="io.apicurio" name="{_NAME}" rev="{VERSION}" conf="default->master" transitive="false">'
    f'<artifact name="{_NAME}" type="tar.gz" ext="tar.gz" m:classifier="all"/></dependency>'
)
_START_SECONDS = 120
_OPTIONS = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class Registry:
    """Schemas are lost when it stops; the port stays the same."""

    def __init__(self, folder: Path) -> None:
        """`folder` takes the program and what it prints; it must be ours alone."""
        self._folder = folder
        archive = f"{_NAME}-{VERSION}-all.tar.gz"
        with tarfile.open(fetched(f"apicurio-{VERSION}", _DEPENDENCY, (archive,), 142) / archive) as packed:
            if hasattr(tarfile, "data_filter"):  # from Python 3.11.4 on
                packed.extraction_filter = tarfile.data_filter  # type: ignore[method-assign]
            packed.extractall(folder)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = int(free.getsockname()[1])
        self.url = f"http://127.0.0.1:{self._port}/apis/ccompat/v7"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Returns when it answers."""
        command = [
            java_command(),
            *_OPTIONS,
            "-Dquarkus.http.host=127.0.0.1",
            f"-Dquarkus.http.port={self._port}",
            *("-jar", f"{_NAME}-{VERSION}-runner.jar"),
        ]
        with (self._folder / "output.txt").open("ab") as output:
            self._process = subprocess.Popen(
                command, cwd=self._folder, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                self.ask("PUT", "/config", {"compatibility": "BACKWARD"})
            except OSError:  # URLError is one
                if self._process.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    raise
                time.sleep(0.2)
            else:
                return

    def stop(self) -> None:
        """End the process that this object started."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=60)
            self._process = None

    def remove(self) -> None:
        """Stop it, and take its files away."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """One request; the parsed answer."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        request = urllib.request.Request(self.url + path, data=data, headers=headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or b"null")
