"""The stored state of a working folder's Spark sessions: a resident one, and how the last JVM was started.

    <cache>/sessions/<digest of the folder>/    wanted.json, state.json, lock, in-use, holder.log, jvm-start.json

INVARIANT  a process is known by id and start time: a later one of the same id is another one.
INVARIANT  only this user can read it: the secret of a resident JVM is in it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

from tablestore_engine.runtime.java import cache_folder, make_in_cache
from tablestore_engine.runtime.server_process import start_time, write_private

_POLL_SECONDS = 0.05
_WANTED, _STATE, _LOCK, _MARK = "wanted.json", "state.json", "lock", "in-use"
LOG, JVM_START = "holder.log", "jvm-start.json"
# What a JVM and its Python workers take from the environment, once, when they start.
_ENVIRONMENT = (
    "AWS_",
    "SPARK_",
    "HADOOP_",
    "JAVA_",
    "PYSPARK_",
    "PYTHON",
    "TABLESTORE_",
    "TZ",
    "LANG",
    "LC_",
)


def start_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that a JVM is started by."""
    return {key: value for key, value in sorted(environ.items()) if key.startswith(_ENVIRONMENT)}


@dataclass(frozen=True)
class HolderState:
    """A running holder. `begun`: start time of its process, `digest`: of how it was started, `java`: its JVM's id."""

    pid: int
    begun: str
    port: int
    secret: str
    digest: str
    java: int
    java_begun: str

    @property
    def is_alive(self) -> bool:
        """The very processes, not later ones of the same ids."""
        return start_time(self.pid) == self.begun and start_time(self.java) == self.java_begun


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

    def make(self) -> None:
        """The folder in the cache, for this user alone. Raises FixRequest TS1992."""
        make_in_cache(self.folder)

    def want(self, idle_seconds: float) -> None:
        """From now on commands of the folder use a resident session."""
        self.make()
        text = json.dumps({"idle_seconds": idle_seconds, "working": str(self.working)})
        write_private(self.folder / _WANTED, text)

    def forget(self) -> None:
        """Commands start sessions of their own again; the holder is ended."""
        (self.folder / _WANTED).unlink(missing_ok=True)
        self.end_holder()

    def holder(self) -> HolderState | None:
        """The process that runs, with its JVM; None when none does."""
        found = self._read()
        return found if found is not None and found.is_alive else None

    def _read(self) -> HolderState | None:
        try:
            return HolderState(**json.loads((self.folder / _STATE).read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return None

    def end_holder(self) -> None:
        """Its JVM ends with it."""
        found = self.holder()
        if found is not None:
            with suppress(ProcessLookupError):
                os.kill(found.pid, signal.SIGTERM)
            while found.is_alive:
                time.sleep(_POLL_SECONDS)
        self._clear()

    def withdraw(self, state: HolderState) -> None:
        """By the holder, at its end: its state goes, the one of a successor stays."""
        if self._read() == state:
            self._clear()

    def drop_dead(self) -> None:
        """What a holder has left that was killed, or whose JVM was; nothing while a command works, or starts one."""
        lock = self.try_lock() if self.folder.is_dir() else None
        if lock is not None:
            with lock:
                if self.holder() is None:
                    self._clear()

    def _clear(self) -> None:
        for name in (_STATE, _MARK):
            (self.folder / name).unlink(missing_ok=True)

    def publish(self, state: HolderState) -> None:
        """By the holder, once its session is up."""
        write_private(self.folder / _STATE, json.dumps(asdict(state)))

    def try_lock(self) -> TextIO | None:
        """Held until the file is closed, or the process ends; None while another command has it."""
        file = (self.folder / _LOCK).open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
        return file

    @property
    def mark(self) -> Path:
        """There while a command works, and after one that did not end well."""
        return self.folder / _MARK


def place_of(working: Path) -> SessionPlace:
    """Of a working folder of this user. Raises FixRequest TS1992 for a cache folder of somebody else."""
    digest = hashlib.sha256(str(working.resolve()).encode()).hexdigest()[:16]
    return SessionPlace(working.resolve(), cache_folder() / "sessions" / digest)
