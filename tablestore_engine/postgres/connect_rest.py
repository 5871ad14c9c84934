"""The REST interface of a running Kafka Connect: its connectors, and what it says of them.

INVARIANT  requests carry the password in `rest-password`, a file for this user alone: Connect shows its settings
           to those who have it, and takes others.
"""

from __future__ import annotations

import base64
import json
import urllib.request
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tablestore_engine.postgres.database_source import REST_USER, DatabaseSource


@dataclass(frozen=True)
class ConnectInfo:
    """`url`: its REST interface; `log`: the file with its output."""

    source: DatabaseSource
    brokers: str
    url: str
    pid: int
    data_dir: str
    log: str


@dataclass(frozen=True)
class ConnectorStatus:
    """Words of Connect: RUNNING, FAILED, …; `error`: the first line of what went wrong."""

    connector: str
    task: str
    error: str = ""

    @property
    def is_running(self) -> bool:
        return self.connector == self.task == "RUNNING"

    @property
    def is_halted(self) -> bool:
        """One of them, until somebody does something."""
        return bool({"FAILED", "PAUSED", "STOPPED"} & {self.connector, self.task})


def connector_status(info: ConnectInfo, name: str | None = None) -> ConnectorStatus | None:
    """What Connect says of the source's connector, or of another one; None where it does not answer."""
    try:
        said = ask_connect(info, f"connectors/{name or info.source.name}/status")
    except (OSError, ValueError):
        return None
    tasks = said.get("tasks") or [{}]
    traces = [one.get("trace") or "" for one in (said.get("connector") or {}, *tasks)]
    errors = [line.strip() for trace in traces for line in trace.splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in errors if line.startswith("Caused by: ")]
    return ConnectorStatus(
        str((said.get("connector") or {}).get("state")),
        str(tasks[0].get("state", "UNASSIGNED")),
        (causes or errors or [""])[-1 if causes else 0][:400],
    )


def ask_connect(
    info: ConnectInfo, path: str, method: str = "GET", body: object = None, seconds: float = 5
) -> Any:  # noqa: ANN401 - JSON
    """Its answer. Raises OSError, ValueError. No proxy stands before this machine's own loopback."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{info.url}/{path}", data, method=method)  # noqa: S310 - http, of loopback
    if data is not None:
        request.add_header("Content-Type", "application/json")
    with suppress(FileNotFoundError):
        password = (Path(info.data_dir) / "rest-password").read_text("utf-8")
        login = base64.b64encode(f"{REST_USER}:{password}".encode()).decode()
        request.add_header("Authorization", f"Basic {login}")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=seconds) as answer:
        return json.loads(answer.read() or b"null")
