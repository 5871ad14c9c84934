"""Kafka Connect with the real Debezium in it, on loopback: changes of one PostgreSQL database into topics.

start_connect fetches it once, starts it and waits until it works; stop_connect ends the process that we started, and
no other.

CHANGE     start and stop of Kafka Connect
Steps      1 lock the folder  2 jars and Java  3 how it begins (postgres/connector_bootstrap.py)  4 files of properties
           5 start in a session of its own  6 state file  7 wait until connector and task run
INVARIANT  a connector whose task has failed is never "running", whatever its process does.
INVARIANT  the folder is this user's alone (0700) and belongs to one source: how far it is lies there.
INVARIANT  requests to Connect need its password, which only this user can read: Connect shows and changes its settings.
INVARIANT  a process that we started is in the state file, or has ended: also when Ctrl-C ends the wait.
WHY        standalone, in one process: this is for one machine. Elsewhere people have a Connect of theirs.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tablestore_engine.devservers.java_bundles import CONNECT, ensure_bundle
from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.log.kafka.client_settings import BROKERS
from tablestore_engine.postgres.connect_rest import ConnectInfo, connector_status
from tablestore_engine.postgres.connector_bootstrap import is_first_load_done, prepare_source
from tablestore_engine.postgres.database_source import (
    PASSWORD_ENV,
    DatabaseSource,
    connector_properties,
    rest_login,
    worker_properties,
)
from tablestore_engine.runtime.java import cache_folder, find_java
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime
from tablestore_engine.runtime.ownership import check_owner, make_private
from tablestore_engine.runtime.server_process import (
    end_process,
    first_words,
    free_port,
    locked,
    output_since,
    read_running,
    spawn,
    write_private,
    write_state,
)

_JVM_FLAGS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=WARN")
_READY_SECONDS, _STOP_SECONDS, _KILL_SECONDS = 180.0, 20.0, 20.0
_LAST_START = "last-start.json"
_DATA, _DATA_FIX = "data folder of Connect", "name a folder of your own"


@dataclass(frozen=True)
class LastStart:
    """What a source was started with; it has no password."""

    source: DatabaseSource
    brokers: str


def connect_folder(name: str) -> Path:
    """The data folder of a source when none is named."""
    return cache_folder() / "connect" / name


def start_connect(
    source: DatabaseSource,
    brokers: str,
    *,
    environ: Mapping[str, str] = os.environ,
    data_dir: Path | None = None,
    anew: bool = False,
    say: Callable[[str], None],
    runtime: Runtime = SYSTEM,
) -> ConnectInfo:
    """A connector that works. The password comes from `environ`. `anew`: from an empty beginning, whatever was before.

    Raises FixRequest TS1462 (another source runs there), TS1485, TS1492, TS1493 (not what was followed before), TS1902,
    TS1910, RetryError TS1464, TS1486, TS1494, TS1911, TS1476 (it fails).
    """
    folder = _folder(source.name, data_dir, runtime)
    make_private(folder, _DATA, _DATA_FIX, users=runtime.users)
    with locked(folder):
        running = find_connect(source.name, data_dir, runtime=runtime)
        if running is not None and _is_ready(folder):
            _check_same(running, source, brokers, anew=anew)
            return running
        if running is not None:  # who started it died before it was ready
            stop_connect(source.name, data_dir, runtime=runtime)
        java_home = find_java().home
        jars = ensure_bundle(CONNECT, java_home, say=say, runtime=runtime)
        record = prepare_source(
            source,
            {BROKERS: brokers},
            environ=environ,
            folder=folder,
            anew=anew,
            say=say,
            runtime=runtime,
        )
        port = free_port()
        command = _command(Path(java_home), jars, folder)
        _write_files(folder, source, brokers, port, tuple(record.followed))
        write_last_start(folder, LastStart(source, brokers))
        info = ConnectInfo(
            source, brokers, f"http://127.0.0.1:{port}", 0, str(folder), str(folder / "connect.log")
        )
        return _start(command, info, environ, runtime)


def _write_files(
    folder: Path, source: DatabaseSource, brokers: str, port: int, tables: tuple[str, ...]
) -> None:
    password = secrets.token_urlsafe(24)
    users, login = rest_login(folder, password)
    for name, text in (
        ("rest-password", password),
        ("rest-users", users),
        ("rest-login", login),
        ("worker.properties", worker_properties(brokers, port, folder)),
        (
            "connector.properties",
            connector_properties(source, tables, is_first=not is_first_load_done(folder)),
        ),
    ):
        write_private(folder / name, text)


def _command(java_home: Path, jars: Path, folder: Path) -> list[str]:
    command = [str(java_home / "bin" / "java"), *_JVM_FLAGS]
    command += [f"-Djava.security.auth.login.config={folder / 'rest-login'}", "-cp", f"{jars}/*"]
    files = (str(folder / f"{name}.properties") for name in ("worker", "connector"))
    return [*command, "org.apache.kafka.connect.cli.ConnectStandalone", *files]


def _start(
    command: list[str], wanted: ConnectInfo, environ: Mapping[str, str], runtime: Runtime
) -> ConnectInfo:
    folder, path = Path(wanted.data_dir), Path(wanted.log)
    begin = path.stat().st_size if path.exists() else 0
    process = spawn(command, folder, path, {PASSWORD_ENV: "", **environ})
    try:
        info = replace(wanted, pid=process.pid)
        write_state(_state_file(folder), info.pid, {**asdict(info), "ready": False})
        trouble = _wait_ready(process, info, runtime)
        if trouble is None:
            write_state(_state_file(folder), info.pid, {**asdict(info), "ready": True})
            process.returncode = 0  # it outlives this handle: from here on the state file speaks for it
            return info
    except BaseException:
        end_process(process)
        raise
    end_process(process)
    said = output_since(path, begin)
    raise RetryError(
        "TS1476",
        f"changes of {wanted.source.url} cannot be followed",
        why=f"{trouble}; what Connect said first: {first_words(said)}",
        fix=f"read {path}; the database needs wal_level=logical and a user with REPLICATION, whose password is taken "
        f"from {PASSWORD_ENV}",
    )


def _wait_ready(process: subprocess.Popen[bytes], info: ConnectInfo, runtime: Runtime) -> str | None:
    """What went wrong; None once it works."""
    deadline = runtime.now_ms() + int(_READY_SECONDS * 1000)
    while runtime.now_ms() < deadline:
        if process.poll() is not None:
            return f"its process ended with status {process.returncode}"
        status = connector_status(info)
        if status is not None and status.is_halted:
            return status.error
        if status is not None and status.is_running:
            return None
        runtime.sleep(0.2)
    return f"its connector did not run within {_READY_SECONDS:.0f} s"


def stop_connect(name: str, data_dir: Path | None = None, *, runtime: Runtime = SYSTEM) -> bool:
    """False when none runs. Its slot and its place stay: a later start goes on.

    Debezium takes its time to let go of a database that is busy or away; then it is killed, which loses nothing: what
    Kafka has and Connect has not noted down comes again, in order.
    """
    info = find_connect(name, data_dir, runtime=runtime)
    if info is None:
        return False
    for sign, seconds in ((signal.SIGTERM, _STOP_SECONDS), (signal.SIGKILL, _KILL_SECONDS)):
        os.kill(info.pid, sign)
        deadline = runtime.now_ms() + int(seconds * 1000)
        while runtime.now_ms() < deadline:
            if find_connect(name, data_dir, runtime=runtime) is None:
                _state_file(Path(info.data_dir)).unlink(missing_ok=True)
                return True
            runtime.sleep(0.05)
    raise RetryError(
        "TS1477",
        f"Connect with process id {info.pid} did not stop",
        why=f"it is there {_KILL_SECONDS:.0f} s after SIGKILL",
        fix=f"look into {info.log}, then stop again",
    )


def find_connect(name: str, data_dir: Path | None = None, *, runtime: Runtime = SYSTEM) -> ConnectInfo | None:
    """What the state file names, if that very process still runs. Raises FixRequest TS1992."""
    state = read_running(_state_file(_folder(name, data_dir, runtime)))
    if state is None:
        return None
    source, _, _ = state.pop("source"), state.pop("started"), state.pop("ready", True)
    return ConnectInfo(_decode_source(source), **state)


def find_last_start(
    name: str, data_dir: Path | None = None, *, runtime: Runtime = SYSTEM
) -> LastStart | None:
    """None where the source was never started, or its file is damaged. Raises FixRequest TS1992."""
    try:
        stored = json.loads((_folder(name, data_dir, runtime) / _LAST_START).read_text("utf-8"))
        found = LastStart(_decode_source(stored["source"]), str(stored["brokers"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    return found if found.source.name == name else None


def write_last_start(folder: Path, last: LastStart) -> None:
    """Readable by this user alone. It stays when the source is stopped."""
    write_private(folder / _LAST_START, json.dumps(asdict(last)))


def _decode_source(stored: Mapping[str, Any]) -> DatabaseSource:
    return DatabaseSource(**{**stored, "tables": tuple(stored["tables"])})


def _is_ready(folder: Path) -> bool:
    """Of one that find_connect found."""
    return bool(json.loads(_state_file(folder).read_text("utf-8")).get("ready", True))


def _check_same(running: ConnectInfo, source: DatabaseSource, brokers: str, *, anew: bool) -> None:
    if anew or (running.source, running.brokers) != (source, brokers):
        raise FixRequest(
            "TS1462",
            f"a source of the name {source.name} runs",
            why=f"it follows {', '.join(running.source.tables) or 'all tables'} of {running.source.url} "
            f"into {running.brokers}",
            fix=f"stop it first (tablestore connect stop {source.name}), or give this one another name",
        )


def _folder(name: str, data_dir: Path | None, runtime: Runtime) -> Path:
    folder = (data_dir or connect_folder(name)).absolute()
    check_owner(folder, _DATA, _DATA_FIX, users=runtime.users)
    return folder


def _state_file(folder: Path) -> Path:
    return folder / "connect.json"
