"""A real Kafka 4 of one node on loopback, for development, tests and the demo; on demand with log-in, TLS and rights.

Steps      1 lock the folder  2 jars, Java, certificates  3 server.properties  4 format an empty folder  5 start in a
           session of its own (Ctrl-C must not reach the broker before its clients)  6 state file  7 wait until it
           answers  8 users and their rights
INVARIANT  a process is only signalled when its pid AND its start time are those of the state file.
INVARIANT  the folder is this user's alone (0700); another user's is refused, its state file signals nothing.
INVARIANT  every listener is bound to 127.0.0.1; a folder keeps its client port over restarts while it is free.
"""

from __future__ import annotations

import json
import re
import subprocess
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tablestore_engine.devservers.broker_certificates import Certificates, ensure_certificates
from tablestore_engine.devservers.broker_properties import Ports, server_properties
from tablestore_engine.devservers.broker_users import UserFiles, ensure_users, internal_client
from tablestore_engine.devservers.java_bundles import KAFKA, ensure_bundle
from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.runtime.java import cache_folder, find_java
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime
from tablestore_engine.runtime.ownership import check_owner, make_private
from tablestore_engine.runtime.server_process import (
    STOP_SECONDS,
    end_process,
    free_port,
    is_free,
    last_words,
    locked,
    read_running,
    stop_running,
    write_private,
    write_state,
)

_JVM_FLAGS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=WARN")
_READY_SECONDS = 90.0
_ATTEMPTS = 3
_DATA, _DATA_FIX = "data folder of the development broker", "name a folder of your own"


@dataclass(frozen=True)
class BrokerInfo:
    """A running broker: `url` is the bootstrap address, `log` the file with its output.

    A secure one has files with the settings of clients: `client_config` for work, `admin_config` for a superuser.
    """

    url: str
    pid: int
    data_dir: str
    log: str
    client_config: str | None = None
    admin_config: str | None = None


def _silent(_: str) -> None:
    """Progress nobody asked for."""


def broker_folder() -> Path:
    """The data folder of the user's one development broker."""
    return cache_folder() / "broker"


def start_broker(
    data_dir: Path | None = None,
    *,
    secure: bool = False,
    advertised: int | None = None,
    say: Callable[[str], None] = _silent,
    runtime: Runtime = SYSTEM,
) -> BrokerInfo:
    """A broker that answers; a `secure` one has users, TLS and rights. `advertised`: the port that clients of a plain
    one are sent to, where something on this machine stands between. Raises TS1902 (Java), TS1910, TS1911 (fetch),
    TS1912, TS1913 (start), TS1915 (certificates), TS1916 (one of the other kind runs), TS1992.
    """
    folder = _folder(data_dir, runtime)
    make_private(folder, _DATA, _DATA_FIX, users=runtime.users)
    with locked(folder):
        running = find_broker(folder, runtime=runtime)
        if running is not None and _is_ready(folder):
            _check_kind(running, secure=secure)
            return running
        if running is not None:  # who started it died before it was ready
            stop_broker(folder, runtime=runtime)
        java_home = find_java().home
        jars = ensure_bundle(KAFKA, java_home, say=say, runtime=runtime)
        made = ensure_certificates(folder / "certificates", java_home, runtime) if secure else None
        started, attempts = None, 0
        while started is None:  # a free port is looked up, then used: another may take it between
            attempts += 1
            tools = _Tools(str(Path(java_home) / "bin" / "java"), jars, made, advertised)
            started = _start_once(folder, tools, last=attempts == _ATTEMPTS, runtime=runtime)
        return started


def _check_kind(running: BrokerInfo, *, secure: bool) -> None:
    """Who asks for log-in and rights must not get a broker without them, nor the reverse."""
    if secure != (running.client_config is not None):
        raise FixRequest(
            "TS1916",
            f"another development broker runs in {running.data_dir}",
            why=f"it was started {'without' if secure else 'with'} --secure",
            fix="stop it first (tablestore broker stop), or name another --data-dir",
        )


def stop_broker(data_dir: Path | None = None, *, runtime: Runtime = SYSTEM) -> bool:
    """Stop the broker of this folder; False when none runs. Raises RetryError TS1914 if it does not end."""
    folder = _folder(data_dir, runtime)
    info = find_broker(folder, runtime=runtime)
    if info is None:
        return False
    if not stop_running(_state_file(folder), runtime):
        raise RetryError(
            "TS1914",
            f"the broker with process id {info.pid} did not stop",
            why=f"expected its end within {STOP_SECONDS:.0f} s of SIGTERM",
            fix=f"look into {info.log}, then stop again",
        )
    return True


def find_broker(data_dir: Path | None = None, *, runtime: Runtime = SYSTEM) -> BrokerInfo | None:
    """The broker that the state file names, if that very process still runs. Raises FixRequest TS1992."""
    folder = _folder(data_dir, runtime)
    state = read_running(_state_file(folder))
    if state is None:
        return None
    files = UserFiles(folder) if state.get("secure") else None
    return _info(folder, state["url"], state["pid"], files)


def _info(folder: Path, url: str, pid: int, files: UserFiles | None) -> BrokerInfo:
    log = str(folder / "broker.log")
    if files is None:
        return BrokerInfo(url, pid, str(folder), log)
    return BrokerInfo(url, pid, str(folder), log, str(files.client), str(files.admin))


def _is_ready(folder: Path) -> bool:
    """Of a broker that find_broker found."""
    return bool(json.loads(_state_file(folder).read_text("utf-8")).get("ready", True))


def _folder(data_dir: Path | None, runtime: Runtime) -> Path:
    folder = (data_dir or broker_folder()).absolute()
    check_owner(folder, _DATA, _DATA_FIX, users=runtime.users)
    return folder


def _state_file(folder: Path) -> Path:
    return folder / "broker.json"


@dataclass(frozen=True)
class _Tools:
    """What a broker is started with."""

    java: str
    jars: Path
    certificates: Certificates | None
    advertised: int | None

    @property
    def command(self) -> list[str]:
        """A JVM with Kafka in it."""
        return [self.java, *_JVM_FLAGS, "-cp", f"{self.jars}/*"]

    def client(self, ports: Ports) -> Mapping[str, str | int | float]:
        """Settings by which we reach the broker ourselves."""
        if self.certificates is None:
            return {"bootstrap.servers": f"127.0.0.1:{ports.client}"}
        return internal_client(self.certificates, ports)


def _start_once(folder: Path, tools: _Tools, *, last: bool, runtime: Runtime) -> BrokerInfo | None:
    """One try; None when a port was taken meanwhile and another try makes sense."""
    ports = Ports(_keep_port(folder), free_port(), free_port(), tools.advertised)
    properties = folder / "server.properties"
    write_private(properties, server_properties(ports, folder / "kafka", tools.certificates))
    if not (folder / "kafka" / "meta.properties").exists():
        _format(tools.command, properties)
    with (folder / "broker.log").open("ab") as log:
        begin = log.tell()
        process = subprocess.Popen(
            [*tools.command, "kafka.Kafka", str(properties)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
            start_new_session=True,
        )
    url = f"127.0.0.1:{ports.client}"
    state = {"url": url, "secure": tools.certificates is not None}
    write_state(_state_file(folder), process.pid, {**state, "ready": False})
    trouble, files = _wait_ready(process, tools, ports, folder, runtime)
    if trouble is None:
        write_state(_state_file(folder), process.pid, {**state, "ready": True})
        process.returncode = 0  # it outlives this handle: from here on the state file speaks for it
        return _info(folder, url, process.pid, files)
    end_process(process)
    with (folder / "broker.log").open("rb") as log:
        log.seek(begin)
        said = log.read().decode("utf-8", "replace")
    if "Address already in use" in said and not last:
        return None
    raise _not_started(folder, trouble, said)


def _not_started(folder: Path, trouble: str, said: str) -> RetryError:
    return RetryError(
        "TS1913",
        "the development broker did not start",
        why=f"{trouble}; its last lines: {last_words(said)}",
        fix=f"read {folder / 'broker.log'}; if the data may go, remove {folder} and start again",
    )


def _format(java: list[str], properties: Path) -> None:
    """Give an empty data folder its cluster id."""
    cluster = uuid.uuid4().hex[:22]
    done = subprocess.run(
        [*java, "kafka.tools.StorageTool", "format", "--standalone", "-t", cluster, "-c", str(properties)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise FixRequest(
            "TS1912",
            f"the data folder of the development broker cannot be formatted: {properties.parent}",
            why=(done.stderr or done.stdout).strip()[-400:],
            fix="remove that folder, or name another one",
        )


def _wait_ready(
    process: subprocess.Popen[bytes], tools: _Tools, ports: Ports, folder: Path, runtime: Runtime
) -> tuple[str | None, UserFiles | None]:
    """What went wrong, None once the broker answers a metadata request; and the files of its users."""
    admin = AdminClient(
        {
            **tools.client(ports),
            "log_level": 0,
            "reconnect.backoff.max.ms": 200,
            "socket.timeout.ms": 2000,
        }
    )
    deadline = runtime.now_ms() + int(_READY_SECONDS * 1000)
    while runtime.now_ms() < deadline:
        if process.poll() is not None:
            return f"its process ended with status {process.returncode}", None
        try:
            if admin.list_topics(timeout=0.5).brokers:
                break
        except KafkaException:
            continue
        runtime.sleep(0.05)
    else:
        return f"it gave no metadata answer within {_READY_SECONDS:.0f} s", None
    if tools.certificates is None:
        return None, None
    try:
        return None, ensure_users(admin, folder, tools.certificates.ca, ports.client, runtime)
    except KafkaException as error:
        return f"its users cannot be made: {error}", None


def _keep_port(folder: Path) -> int:
    """The port of the last start while it is free, so that clients survive a restart."""
    try:
        said = re.search(
            r"(?:PLAINTEXT|CLIENT)://127\.0\.0\.1:(\d+)", (folder / "server.properties").read_text("utf-8")
        )
    except FileNotFoundError:
        said = None
    if said is not None and is_free(int(said.group(1))):
        return int(said.group(1))
    return free_port()
