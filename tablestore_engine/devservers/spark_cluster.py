"""A real standalone Spark cluster on loopback, for development and tests: one master and workers from pyspark's jars.

Steps      1 lock the folder  2 Java, pyspark's jars, the secret  3 master, until its web page answers
           4 missing workers, each with a work folder of its own  5 wait until the master counts all of them
INVARIANT  a process is only signalled when its pid AND its start time are those of the state file.
INVARIANT  every process is bound to loopback, and only applications with the secret of the folder are let in: who may
           submit one runs programs as this user.
WHY        a worker has an address of its own (127.0.0.2, 127.0.0.3, …) where the system takes it: Spark sees hosts by
           their names, and neither speculates nor fetches over the network between two workers of one host.
INVARIANT  the secret stands in files of mode 0600 and in `conf`, never in a command line.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.log.kafka.publish_progress import silent
from tablestore_engine.runtime.java import cache_folder, find_java
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime
from tablestore_engine.runtime.ownership import check_owner, make_private
from tablestore_engine.runtime.server_process import (
    free_port,
    last_words,
    locked,
    spawn,
    start_time,
    write_private,
)

_READY_SECONDS = 90.0
_STOP_SECONDS = 20.0
_ANSWER_SECONDS = 5.0
_JVM_FLAGS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_DATA, _DATA_FIX = "folder of the development cluster", "name a folder of your own"
_STATE, _PROPERTIES, _SECRET = "cluster.json", "spark.properties", "secret"
_NOT_INHERITED = ("PYTHON", "PYSPARK", "SPARK")
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class WorkerSize:
    """What each worker offers: cores, and memory as Spark writes it."""

    cores: int = 1
    memory: str = "2g"


@dataclass(frozen=True)
class ServerProcess:
    """`name` is `master` or `worker-1`; `log` holds what it printed."""

    name: str
    pid: int
    started: str
    log: str


@dataclass(frozen=True)
class ClusterInfo:
    """A running cluster: `master` for spark.master, `web` the page of the master, `conf` for spark.conf."""

    master: str
    web: str
    data_dir: str
    processes: tuple[ServerProcess, ...]
    conf: Mapping[str, str]

    @property
    def workers(self) -> tuple[ServerProcess, ...]:
        return tuple(one for one in self.processes if one.name != "master")


def cluster_folder() -> Path:
    """The folder of the user's one development cluster."""
    return cache_folder() / "spark-cluster"


def start_cluster(
    data_dir: Path | None = None,
    *,
    workers: int = 2,
    size: WorkerSize = WorkerSize(),
    say: Callable[[str], None] = silent,
    runtime: Runtime = SYSTEM,
) -> ClusterInfo:
    """A master with `workers` workers that it counts; of a running one, workers that have ended are started again.

    Raises TS1902 (Java), TS1935 (start), TS1937 (no jars), TS1992.
    """
    folder = _folder(data_dir, runtime)
    make_private(folder, _DATA, _DATA_FIX, users=runtime.users)
    with locked(folder):
        starter = _Starter(folder, _environment(), size, runtime)
        running = find_cluster(folder, runtime=runtime)
        if running is None:
            say("starting the master")
            running = starter.start_master()
        for number in range(1, workers + 1):
            if all(one.name != _worker_name(number) for one in running.workers):
                say(f"starting worker {number} of {workers}")
                running = starter.start_worker(running, number)
        starter.wait_workers(running)
        return running


def find_cluster(data_dir: Path | None = None, *, runtime: Runtime = SYSTEM) -> ClusterInfo | None:
    """The cluster whose master is the process that the state file names; workers that have ended are left out."""
    folder = _folder(data_dir, runtime)
    state, alive = _read_state(folder)
    if not any(one.name == "master" for one in alive):
        return None
    return ClusterInfo(state["master"], state["web"], str(folder), alive, _conf(_secret(folder, runtime)))


def _read_state(folder: Path) -> tuple[Mapping[str, Any], tuple[ServerProcess, ...]]:
    """What the state file says, and those of its processes that run; nothing without one."""
    try:
        state = json.loads((folder / _STATE).read_text("utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return {}, ()
    found = (ServerProcess(**one) for one in state["processes"])
    return state, tuple(one for one in found if start_time(one.pid) == one.started)


def stop_cluster(data_dir: Path | None = None, *, runtime: Runtime = SYSTEM) -> bool:
    """End master and workers of this folder; False when none runs. Raises RetryError TS1936."""
    folder = _folder(data_dir, runtime)
    _, alive = _read_state(folder)
    for one in reversed(alive):  # workers first: a master that goes first has each of them look for another
        os.kill(one.pid, signal.SIGTERM)
    deadline = runtime.now_ms() + int(_STOP_SECONDS * 1000)
    while left := [one for one in alive if start_time(one.pid) == one.started]:
        if runtime.now_ms() > deadline:
            raise RetryError(
                "TS1936",
                f"the development cluster did not stop: {left[0].name} (process {left[0].pid}) still runs",
                why=f"expected its end within {_STOP_SECONDS:.0f} s of SIGTERM",
                fix=f"look into {left[0].log}, then stop again",
            )
        runtime.sleep(0.05)
    (folder / _STATE).unlink(missing_ok=True)
    return bool(alive)


def profile_lines(info: ClusterInfo) -> str:
    """The `spark:` block of a dbt profile that runs on this cluster."""
    conf = "\n".join(f"    {key}: {json.dumps(value)}" for key, value in info.conf.items())
    return f"spark:\n  master: {info.master}\n  conf:\n{conf}"


@dataclass(frozen=True)
class MasterAnswer:
    """What a master's page says: workers that it counts, their cores, and those that applications hold."""

    workers: int
    cores: int
    cores_used: int


def ask_master(web: str) -> MasterAnswer | None:
    """None: no answer, or not of a master."""
    try:
        with urllib.request.urlopen(f"{web}/json/", timeout=_ANSWER_SECONDS) as answer:  # noqa: S310 - http, ours
            found: Mapping[str, Any] = json.load(answer)
            return MasterAnswer(int(found["aliveworkers"]), int(found["cores"]), int(found["coresused"]))
    except (urllib.error.URLError, TimeoutError, ConnectionError, ValueError, KeyError):
        return None


@dataclass(frozen=True)
class _Starter:
    """Starts processes of one cluster and keeps the state file."""

    folder: Path
    environment: Mapping[str, str]
    size: WorkerSize
    runtime: Runtime

    def start_master(self) -> ClusterInfo:
        """Raises RetryError TS1935."""
        conf = _conf(_secret(self.folder, self.runtime))
        self._write_properties(conf)
        port, page = free_port(), free_port()
        arguments = ["--host", _LOOPBACK, "--port", str(port), "--webui-port", str(page)]
        process = self._launch("master", "master.Master", arguments, _LOOPBACK)
        web = f"http://{_LOOPBACK}:{page}"
        info = ClusterInfo(f"spark://{_LOOPBACK}:{port}", web, str(self.folder), (process,), conf)
        self._write_state(info)
        self._wait(info, lambda: ask_master(web) is not None, "its master gave no answer")
        return info

    def start_worker(self, info: ClusterInfo, number: int) -> ClusterInfo:
        """One more, which the master may not count yet."""
        work = self.folder / "work" / str(number)
        make_private(work, _DATA, _DATA_FIX, users=self.runtime.users)
        host = _worker_host(number)
        arguments = ["--host", host, "--cores", str(self.size.cores), "--memory", self.size.memory]
        arguments += ["--webui-port", "0", "--work-dir", str(work), info.master]
        process = self._launch(_worker_name(number), "worker.Worker", arguments, host)
        grown = ClusterInfo(info.master, info.web, info.data_dir, (*info.processes, process), info.conf)
        self._write_state(grown)
        return grown

    def wait_workers(self, info: ClusterInfo) -> None:
        """Until the master counts all of them. Raises RetryError TS1935."""

        def are_counted() -> bool:
            answer = ask_master(info.web)
            return answer is not None and answer.workers >= len(info.workers)

        self._wait(info, are_counted, f"its master does not count {len(info.workers)} workers")

    def _launch(self, name: str, kind: str, arguments: list[str], host: str) -> ServerProcess:
        log = self.folder / f"{name}.log"
        jars = Path(self.environment["SPARK_HOME"]) / "jars"
        java = Path(self.environment["JAVA_HOME"]) / "bin" / "java"
        properties = ["--properties-file", str(self.folder / _PROPERTIES)]
        log.unlink(missing_ok=True)
        command = [str(java), *_JVM_FLAGS, "-cp", f"{jars}/*", f"org.apache.spark.deploy.{kind}"]
        environ = {**self.environment, "SPARK_LOCAL_IP": host}
        process = spawn([*command, *properties, *arguments], self.folder, log, environ)
        started = start_time(process.pid)
        process.returncode = 0  # it outlives this handle: from here on the state file speaks for it
        return ServerProcess(name, process.pid, started or "", str(log))

    def _wait(self, info: ClusterInfo, is_ready: Callable[[], bool], trouble: str) -> None:
        deadline = self.runtime.now_ms() + int(_READY_SECONDS * 1000)
        while not is_ready():
            ended = [one for one in info.processes if start_time(one.pid) != one.started]
            if ended or self.runtime.now_ms() > deadline:
                slow = ended[0] if ended else info.processes[-1]
                why = f"{slow.name} ended" if ended else f"{trouble} within {_READY_SECONDS:.0f} s"
                stop_cluster(self.folder, runtime=self.runtime)
                raise RetryError(
                    "TS1935",
                    "the development cluster did not start",
                    why=f"{why}; its last lines: {last_words(Path(slow.log).read_text('utf-8', 'replace'))}",
                    fix=f"read {slow.log}, then start again",
                )
            self.runtime.sleep(0.1)

    def _write_state(self, info: ClusterInfo) -> None:
        state = {
            "master": info.master,
            "web": info.web,
            "processes": [asdict(one) for one in info.processes],
        }
        write_private(self.folder / _STATE, json.dumps(state))

    def _write_properties(self, conf: Mapping[str, str]) -> None:
        keys = {key: value for key, value in conf.items() if key.startswith("spark.authenticate")}
        write_private(self.folder / _PROPERTIES, "".join(f"{key}={value}\n" for key, value in keys.items()))


def _worker_name(number: int) -> str:
    return f"worker-{number}"


def _worker_host(number: int) -> str:
    """An address of its own, where one can be bound (Linux); else the one of all."""
    own = f"127.0.0.{number + 1}"
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.bind((own, 0))
        except OSError:
            return _LOOPBACK
    return own


def _conf(secret: str) -> dict[str, str]:
    """What an application needs to run here: this Python in the workers, and the secret."""
    return {
        "spark.pyspark.python": sys.executable,
        "spark.authenticate": "true",
        "spark.authenticate.secret": secret,
    }


def _secret(folder: Path, runtime: Runtime) -> str:
    """Of this folder, made once."""
    path = folder / _SECRET
    if not path.exists():
        write_private(path, runtime.new_uuid().replace("-", ""))
    return path.read_text("utf-8").strip()


def _environment() -> dict[str, str]:
    """For master and workers, whose executors inherit it. Raises FixRequest TS1902, TS1937."""
    spec = importlib.util.find_spec("pyspark")
    home = Path(next(iter((spec and spec.submodule_search_locations) or ("",))))
    if not (home / "jars").is_dir():
        raise FixRequest(
            "TS1937",
            "the development cluster cannot be started",
            why=f"pyspark has no folder of jars: {home / 'jars'}",
            fix="install pyspark with pip (the package pyspark-client has no jars)",
        )
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(_NOT_INHERITED)}
    own = {"JAVA_HOME": find_java().home, "SPARK_HOME": str(home)}
    return {**inherited, **own, "SPARK_SCALA_VERSION": "2.13"}


def _folder(data_dir: Path | None, runtime: Runtime) -> Path:
    folder = (data_dir or cluster_folder()).absolute()
    check_owner(folder, _DATA, _DATA_FIX, users=runtime.users)
    return folder
