"""The state folder of a resident session: the process that stays for one working folder, and the JVM that it keeps.

    <cache>/sessions/<digest of the folder>/
        wanted.json                a session is asked for, and how long it waits for commands
        process.json, process.log  the resident process
        start.lock                 held while one is started
        socket                     where it takes commands and JVMs (Linux)
        spark.json, spark/         the JVM; its log and the catalog of its first session
        spark.lock, in-use         held by the command that works in the JVM; there until it has ended well

INVARIANT  a process is known by id and start time: a later one of the same id is another one.
INVARIANT  only this user can read it: the secret of the JVM is in it.
INVARIANT  spark.json is written, and its JVM ended, only under spark.lock, or by `stop`.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from tablestore_engine.runtime.java import cache_folder, make_in_cache
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime
from tablestore_engine.runtime.server_process import read_running, stop_running, write_private, write_state

PROCESS, PROCESS_LOG, SOCKET, START_LOCK = "process.json", "process.log", "socket", "start.lock"
_WANTED, _MARK = "wanted.json", "in-use"
_JVM, _JVM_LOCK, _SCRATCH = "spark.json", "spark.lock", "spark"
IDLE_SECONDS = 1800.0


@dataclass(frozen=True)
class KeptJvm:
    """A JVM that runs: `port` and `secret` of its gateway, `digest` of how it was started."""

    pid: int
    port: int
    secret: str
    digest: str


@dataclass(frozen=True)
class SessionPlace:
    """Of one working folder; `folder`: where its resident session is written down."""

    working: Path
    folder: Path

    @property
    def idle_seconds(self) -> float | None:
        """How long a session waits for the next command; None: no session is asked for."""
        try:
            return float(json.loads((self.folder / _WANTED).read_text("utf-8"))["idle_seconds"])
        except (OSError, ValueError, KeyError):
            return None

    def want(self, idle_seconds: float) -> None:
        """From now on commands of the folder use a resident session. Raises FixRequest TS1992."""
        make_in_cache(self.folder)
        text = json.dumps({"idle_seconds": idle_seconds, "working": str(self.working)})
        write_private(self.folder / _WANTED, text)

    def forget(self) -> None:
        """Commands start Spark and dbt themselves again; the process ends by itself."""
        (self.folder / _WANTED).unlink(missing_ok=True)

    def process(self) -> int | None:
        state = read_running(self.folder / PROCESS)
        return None if state is None else int(state["pid"])

    def program(self) -> str | None:
        """The module that the resident process has loaded for commands."""
        state = read_running(self.folder / PROCESS)
        return None if state is None else state["program"]

    def jvm(self) -> KeptJvm | None:
        """The JVM that commands can use; None: the next command starts one."""
        state = read_running(self.folder / _JVM)
        if state is None or self.process() is None:
            return None
        return KeptJvm(state["pid"], state["port"], state["secret"], state["digest"])

    def write_jvm(self, jvm: KeptJvm) -> None:
        """By the command that has started it."""
        write_state(
            self.folder / _JVM, jvm.pid, {"port": jvm.port, "secret": jvm.secret, "digest": jvm.digest}
        )

    def end_jvm(self, runtime: Runtime = SYSTEM) -> None:
        """Also one whose process has ended, and one that does not answer."""
        file = self.folder / _JVM
        if not stop_running(file, runtime):
            state = read_running(file)
            with suppress(ProcessLookupError):
                if state is not None:
                    os.kill(state["pid"], signal.SIGKILL)
        file.unlink(missing_ok=True)
        shutil.rmtree(self.folder / _SCRATCH, ignore_errors=True)

    def make_scratch(self) -> Path:
        """A folder for files of the JVM, which go with it."""
        (self.folder / _SCRATCH).mkdir(mode=0o700, exist_ok=True)
        return self.folder / _SCRATCH

    def try_lock(self) -> TextIO | None:
        """Held until the file is closed, or the process ends; None while another command has it."""
        file = (self.folder / _JVM_LOCK).open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
        return file

    @property
    def mark(self) -> Path:
        """There while a command works in the JVM, and after one that did not end well."""
        return self.folder / _MARK


def place_of(working: Path) -> SessionPlace:
    """Of a working folder of this user. Raises FixRequest TS1992 for a cache folder of somebody else."""
    digest = hashlib.sha256(str(working.resolve()).encode()).hexdigest()[:16]
    return SessionPlace(working.resolve(), cache_folder() / "sessions" / digest)
