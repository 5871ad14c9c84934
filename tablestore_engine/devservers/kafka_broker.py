"""A real Kafka 4 on loopback, for development, tests and the demo: one node, or three with replicated topics.

CHANGE     start and stop of the development broker
Steps      1 lock the folder  2 jars, Java, certificates  3 server.properties  4 format empty folders  5 start the nodes
           that do not run  6 state file  7 wait until each answers and is a controller  8 users and their rights
Repair     a start starts the nodes that died, the others keep running; a node whose folder is gone is formatted again
INVARIANT  a process is only signalled when its pid AND its start time are those of the state file.
INVARIANT  the folder is this user's alone (0700); another user's is refused, its state file signals nothing.
INVARIANT  every listener is bound to 127.0.0.1; a folder keeps its ports over restarts while they are free.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tablestore_engine.devservers.broker_certificates import Certificates, ensure_certificates
from tablestore_engine.devservers.broker_controllers import is_voter
from tablestore_engine.devservers.broker_node import (
    BrokerNode,
    choose_ports,
    count_nodes,
    format_nodes,
    nodes_of,
    write_ports,
)
from tablestore_engine.devservers.broker_properties import Ports, server_properties
from tablestore_engine.devservers.broker_state import (
    BrokerState,
    NodeProcess,
    forget_state,
    read_state,
    write_state,
)
from tablestore_engine.devservers.broker_users import UserFiles, ensure_users, internal_client
from tablestore_engine.devservers.java_bundles import KAFKA, ensure_bundle
from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.log.kafka.publish_progress import silent
from tablestore_engine.runtime.java import cache_folder, find_java
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime
from tablestore_engine.runtime.ownership import check_owner, make_private
from tablestore_engine.runtime.server_process import (
    STOP_SECONDS,
    end_process,
    last_words,
    locked,
    output_since,
    spawn,
    start_time,
    write_private,
)

# Kafka's own code is not verified class by class: a sixth of a start
_UNVERIFIED = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote")
_JVM_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=WARN", *_UNVERIFIED)
_HEAP = {1: "-Xmx512m", 3: "-Xmx256m"}
BROKERS = tuple(_HEAP)
_READY_SECONDS = 90.0
_LONELY_SECONDS, _CUT_OFF_SECONDS = 3.0, 10.0
_ATTEMPTS = 3
_DATA, _DATA_FIX = "data folder of the development broker", "name a folder of your own"


@dataclass(frozen=True)
class NodeInfo:
    """One node; `pid`: None of one that does not run."""

    number: int
    url: str
    pid: int | None
    folder: str
    log: str


@dataclass(frozen=True)
class BrokerInfo:
    """A running broker: `url` is the bootstrap address of all nodes; `pid` and `log` are of the first that runs.

    A secure one has files with the settings of clients: `client_config` for work, `admin_config` for a superuser.
    """

    url: str
    pid: int
    data_dir: str
    log: str
    client_config: str | None = None
    admin_config: str | None = None
    nodes: tuple[NodeInfo, ...] = ()

    @property
    def is_whole(self) -> bool:
        return all(node.pid is not None for node in self.nodes)


def broker_folder() -> Path:
    """The data folder of the user's one development broker."""
    return cache_folder() / "broker"


def start_broker(
    data_dir: Path | None = None,
    *,
    brokers: int | None = None,
    secure: bool = False,
    ports: Sequence[Ports] | None = None,
    say: Callable[[str], None] = silent,
    runtime: Runtime = SYSTEM,
) -> BrokerInfo:
    """A broker whose nodes all answer; those that run already go on. A `secure` one has users, TLS and rights.

    `brokers`: 1 or 3, by default as many as the folder has, 1 in an empty one. `ports`: of each node; by default those
    of the last start, else free ones. Raises TS1902 (Java), TS1910, TS1911 (fetch), TS1912, TS1913 (start), TS1915
    (certificates), TS1916 (one of the other kind runs), TS1934 (another number of nodes), TS1992.
    """
    folder = _folder(data_dir, runtime)
    make_private(folder, _DATA, _DATA_FIX, users=runtime.users)
    with locked(folder):
        nodes = nodes_of(folder, _choose_count(folder, brokers))
        running = _keep_ready(folder, secure=secure, runtime=runtime)
        if len(running) < len(nodes):
            java_home = find_java().home
            jars = ensure_bundle(KAFKA, java_home, say=say, runtime=runtime)
            made = ensure_certificates(folder / "certificates", java_home, runtime) if secure else None
            tools = _Tools(str(Path(java_home) / "bin" / "java"), jars, made, ports)
            attempts, is_started = 0, False
            while not is_started:  # a free port is looked up, then used: another may take it between
                attempts += 1
                is_last = attempts == _ATTEMPTS or ports is not None
                is_started = _Start(folder, nodes, running, tools, runtime).run(is_last=is_last)
        found = find_broker(folder, runtime=runtime)
        assert found is not None, "it has just answered"
        return found


def _choose_count(folder: Path, asked: int | None) -> int:
    """Raises FixRequest TS1934: a cluster that exists does not grow or shrink."""
    there = count_nodes(folder)
    if asked is None or asked == there:
        return there or 1
    if there is None and asked in BROKERS:
        return asked
    why = f"it was made for {there}" if there else f"known are {' and '.join(map(str, BROKERS))}"
    raise FixRequest(
        "TS1934",
        f"the development broker in {folder} cannot have {asked} node(s)",
        why=f"{why}, asked for were {asked}",
        fix="name another --data-dir; or, if its data may go, stop the broker, remove the folder, and start again",
    )


def _keep_ready(folder: Path, *, secure: bool, runtime: Runtime) -> Mapping[int, NodeProcess]:
    """The nodes that run and answer. Others are ended: who started them died before. Raises FixRequest TS1916."""
    state = read_state(folder)
    if state is None:
        return {}
    running = {number: one for number, one in state.nodes.items() if one.is_running}
    ready = {number: one for number, one in running.items() if one.is_ready}
    if ready and secure != state.secure:
        raise FixRequest(
            "TS1916",
            f"another development broker runs in {folder}",
            why=f"it was started {'with' if state.secure else 'without'} --secure",
            fix="stop it first (tablestore broker stop), or name another --data-dir",
        )
    _end({number: one for number, one in running.items() if number not in ready}, folder, ready, runtime)
    return ready


def stop_broker(data_dir: Path | None = None, *, node: int | None = None, runtime: Runtime = SYSTEM) -> bool:
    """Stop the broker of this folder, or one node of it; False when none runs. Raises RetryError TS1914 if it does not
    end.
    """
    folder = _folder(data_dir, runtime)
    state = read_state(folder)
    running = {} if state is None else {number: one for number, one in state.nodes.items() if one.is_running}
    asked = {number: one for number, one in running.items() if node in (None, number)}
    rest = {number: one for number, one in running.items() if number not in asked}
    _end(asked, folder, rest, runtime)
    if not rest:
        forget_state(folder)
    return bool(asked)


def _end(
    asked: Mapping[int, NodeProcess], folder: Path, rest: Mapping[int, NodeProcess], runtime: Runtime
) -> None:
    """Raises RetryError TS1914. A node asks the controllers before it stops. Without a majority of them nobody answers,
    for minutes: then it is killed, and so are several that do not reach each other. Nothing acknowledged is lost by it.
    """
    count = count_nodes(folder) or 1
    for one in asked.values():
        one.signal(signal.SIGTERM)
    begin = runtime.now_ms()
    while left := [one for one in asked.values() if one.is_running]:
        waited = (runtime.now_ms() - begin) / 1000
        is_minority = waited > _LONELY_SECONDS and 2 * (len(left) + len(rest)) <= count
        if is_minority or (waited > _CUT_OFF_SECONDS and count > 1 and not rest):
            for one in left:
                one.signal(signal.SIGKILL)
        if waited > STOP_SECONDS:
            raise RetryError(
                "TS1914",
                f"the broker with process id {left[0].pid} did not stop",
                why=f"expected its end within {STOP_SECONDS:.0f} s of SIGTERM",
                fix=f"look into broker.log in {folder}, then stop again",
            )
        runtime.sleep(0.05)


def find_broker(data_dir: Path | None = None, *, runtime: Runtime = SYSTEM) -> BrokerInfo | None:
    """The broker that the state file names, while at least one of its processes runs. Raises FixRequest TS1992."""
    folder = _folder(data_dir, runtime)
    state = read_state(folder)
    running = {} if state is None else {number: one for number, one in state.nodes.items() if one.is_running}
    if state is None or not running:
        return None
    urls = state.url.split(",")
    nodes = tuple(
        NodeInfo(
            node.number,
            url,
            running[node.number].pid if node.number in running else None,
            str(node.folder),
            str(node.log),
        )
        for node, url in zip(nodes_of(folder, len(urls)), urls, strict=True)
    )
    first = next(node for node in nodes if node.pid is not None)
    assert first.pid is not None
    info = BrokerInfo(state.url, first.pid, str(folder), first.log, nodes=nodes)
    if not state.secure:
        return info
    files = UserFiles(folder)
    return replace(info, client_config=str(files.client), admin_config=str(files.admin))


def _folder(data_dir: Path | None, runtime: Runtime) -> Path:
    folder = (data_dir or broker_folder()).absolute()
    check_owner(folder, _DATA, _DATA_FIX, users=runtime.users)
    return folder


@dataclass(frozen=True)
class _Tools:
    java: str
    jars: Path
    certificates: Certificates | None
    ports: Sequence[Ports] | None

    def command(self, count: int) -> list[str]:
        """A JVM with Kafka in it."""
        return [self.java, _HEAP[count], *_JVM_FLAGS, "-cp", f"{self.jars}/*"]

    def client(self, nodes: Sequence[Ports]) -> AdminClient:
        """By which we reach these nodes ourselves."""
        settings: Mapping[str, str | int | float] = {"bootstrap.servers": _addresses(nodes)}
        if self.certificates is not None:
            settings = internal_client(self.certificates, nodes)
        quiet = {"log_level": 0, "reconnect.backoff.max.ms": 200, "socket.timeout.ms": 2000}
        return AdminClient({**settings, **quiet})


def _addresses(nodes: Sequence[Ports]) -> str:
    return ",".join(f"127.0.0.1:{one.client}" for one in nodes)


@dataclass(frozen=True)
class _Start:
    """One try to start the nodes that are not `running`."""

    folder: Path
    nodes: Sequence[BrokerNode]
    running: Mapping[int, NodeProcess]
    tools: _Tools
    runtime: Runtime

    def run(self, *, is_last: bool) -> bool:
        """False when a port was taken meanwhile and another try makes sense. Raises TS1912, TS1913."""
        ports = self.tools.ports or choose_ports(self.folder, len(self.nodes), self.running)
        write_ports(self.folder, ports)
        missing = [node for node in self.nodes if node.number not in self.running]
        begins = {node.number: self._write_files(node, ports) for node in missing}
        java = self.tools.command(len(self.nodes))
        format_nodes(self.folder, self.nodes, ports, java, self.runtime)
        state = BrokerState(_addresses(ports), self.tools.certificates is not None, self.running)
        processes: dict[int, subprocess.Popen[bytes]] = {}
        for node in missing:
            processes[node.number] = process = spawn(
                [*java, "kafka.Kafka", str(node.properties)], node.folder, node.log
            )
            state = state.with_node(node.number, NodeProcess(process.pid, start_time(process.pid)))
            write_state(self.folder, state)
        trouble = self._wait_ready(processes, ports) or self._make_users(ports)
        if trouble is None:
            for number, process in processes.items():
                process.returncode = 0  # it outlives this handle: from here on the state file speaks for it
                state = state.with_node(number, replace(state.nodes[number], is_ready=True))
            write_state(self.folder, state)
            return True
        for process in processes.values():
            end_process(process)
        said = "\n".join(output_since(node.log, begins[node.number]) for node in missing)
        if "Address already in use" in said and not is_last:
            return False
        raise _not_started(self.folder, trouble, said)

    def _write_files(self, node: BrokerNode, ports: Sequence[Ports]) -> int:
        """How long its output is before this start."""
        node.folder.mkdir(mode=0o700, exist_ok=True)
        text = server_properties(ports, node.number, node.data, self.tools.certificates)
        write_private(node.properties, text)
        return node.log.stat().st_size if node.log.exists() else 0

    def _wait_ready(
        self, processes: Mapping[int, subprocess.Popen[bytes]], ports: Sequence[Ports]
    ) -> str | None:
        """What went wrong; None once each answers, knows that it is one of the brokers, and is a controller."""
        clients = {number: self.tools.client([ports[number - 1]]) for number in processes}
        deadline = self.runtime.now_ms() + int(_READY_SECONDS * 1000)
        while clients:
            for number, process in processes.items():
                if process.poll() is not None:
                    return f"the process of node {number} ended with status {process.returncode}"
            if self.runtime.now_ms() > deadline:
                return f"node {min(clients)} was no broker and controller within {_READY_SECONDS:.0f} s"
            clients = {
                number: one
                for number, one in clients.items()
                if not _knows_itself(one, number) or not is_voter(self.nodes[number - 1], self.nodes)
            }
            self.runtime.sleep(0.05)
        return None

    def _make_users(self, ports: Sequence[Ports]) -> str | None:
        """What went wrong."""
        made = self.tools.certificates
        if made is None:
            return None
        try:
            ensure_users(self.tools.client(ports), self.folder, made.ca, _addresses(ports), self.runtime)
        except KafkaException as error:
            return f"its users cannot be made: {error}"
        return None


def _knows_itself(client: AdminClient, number: int) -> bool:
    try:
        return number in client.list_topics(timeout=0.5).brokers
    except KafkaException:
        return False


def _not_started(folder: Path, trouble: str, said: str) -> RetryError:
    return RetryError(
        "TS1913",
        "the development broker did not start",
        why=f"{trouble}; its last lines: {last_words(said)}",
        fix=f"read broker.log in {folder}; if the data may go, remove {folder} and start again",
    )
