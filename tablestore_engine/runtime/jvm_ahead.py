"""A JVM that starts while Python still imports, as the last session of its folder has started one.

CHANGE     the JVM that starts before the imports of a `dbt` command
Steps      a session starts → `keep` writes down how its JVM was started → the next command begins that (`begin`) before
           it knows its profile → its session takes the JVM (`take`) if it would have started the very same one
INVARIANT  a JVM is taken only by who would have started it in the same way: program, arguments, environment, folder.
           Any other one ends, and the session starts its own.
INVARIANT  what is written down has no setting of a user but the memory of the driver: callers see to it.
INVARIANT  `begin` comes before all threads, `take` from one at a time (the start of a session).
INVARIANT  the folder that a JVM writes its port to is never removed: without it the JVM would not end by itself.
CRASH      a process that is killed: its JVM ends with its input, once it listens; the folder of its output is removed
           as scratch is, the file with its port by a later command.
"""

from __future__ import annotations

import atexit
import json
import os
import struct
import subprocess
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from tablestore_engine.errors import TablestoreError
from tablestore_engine.runtime.process_folder import open_process_folder
from tablestore_engine.runtime.server_process import write_private
from tablestore_engine.runtime.session_place import JVM_START, SessionPlace, place_of, start_environment

# Both are pyspark's (java_gateway): where the JVM writes port and secret, and that it is to serve this process.
_CONNECTION_ENV, _CLASSIC_ENV = "_PYSPARK_DRIVER_CONN_INFO_PATH", {"SPARK_CONNECT_MODE": "0"}
_POLL_SECONDS, _LEFT_SECONDS = 0.01, 3600
_LOG = "spark.log"


@dataclass(frozen=True)
class JvmStart:
    """`program`: Spark's spark-submit; `arguments` in order; `environment`: over the one of the process; `scratch`: the
    folder that process folders lie in.
    """

    program: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    scratch: str


@dataclass(frozen=True)
class RunningJvm:
    """A JVM that listens: `port` and `secret` of its gateway. It ends when stdin of `process` is closed."""

    process: subprocess.Popen[bytes]
    port: int
    secret: str


@dataclass(frozen=True)
class _Begun:
    start: JvmStart
    process: subprocess.Popen[bytes]
    folder: Path
    connection: Path
    circumstances: tuple[str, dict[str, str]]

    def end(self) -> None:
        """At once: one that still starts does not read that its input has ended."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.connection.unlink(missing_ok=True)


_ASKED: list[SessionPlace] = []  # whether this process may begin, and where its starts are kept
_BEGUN: list[_Begun] = []


def begin(working: Path) -> None:
    """Start a JVM as the last command in `working` did; returns at once. Nothing where there was none, or where a
    resident session is asked for. What fails here is left to the session's own start.
    """
    with suppress(TablestoreError, OSError):
        place = place_of(working)
        if _ASKED or place.idle_seconds is not None:
            return
        _ASKED.append(place)
        start = _read(place)
        if start is not None and Path(start.scratch).is_dir():
            _BEGUN.append(_begin(start, place))
            atexit.register(_end_what_was_not_taken)


def keep(start: JvmStart | None) -> None:
    """How this folder's next command begins its JVM; None: not at all. Nothing in a process that has not asked."""
    if not _ASKED:
        return
    place = _ASKED[0]
    with suppress(OSError):
        if start is None:
            (place.folder / JVM_START).unlink(missing_ok=True)
        elif start != _read(place):
            place.make()
            write_private(place.folder / JVM_START, json.dumps(asdict(start)))


def take(start: JvmStart | None, log: Path) -> RunningJvm | None:
    """The JVM that was begun, once it listens; its output lies at `log` then. None: there is none, or another one."""
    if not _BEGUN:
        return None
    begun = _BEGUN.pop()
    if begun.start == start and begun.circumstances == _circumstances(begun.start):
        with suppress(OSError):
            running = _await(begun)
            if running is not None:
                os.replace(begun.folder / _LOG, log)
                return running
    begun.end()
    return None


def _read(place: SessionPlace) -> JvmStart | None:
    try:
        told = json.loads((place.folder / JVM_START).read_text("utf-8"))
        return JvmStart(told["program"], tuple(told["arguments"]), dict(told["environment"]), told["scratch"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _circumstances(start: JvmStart) -> tuple[str, dict[str, str]]:
    """The folder that a JVM runs in, and the variables that it sees."""
    return os.getcwd(), start_environment({**os.environ, **start.environment})


def _end_what_was_not_taken() -> None:
    while _BEGUN:
        _BEGUN.pop().end()


def _begin(start: JvmStart, place: SessionPlace) -> _Begun:
    folder, connection = open_process_folder(Path(start.scratch)), _new_connection(place)
    environment = {**os.environ, **start.environment, **_CLASSIC_ENV, _CONNECTION_ENV: str(connection)}
    with (folder / _LOG).open("ab") as log:
        process = subprocess.Popen(
            [start.program, *start.arguments],
            stdin=subprocess.PIPE,  # its end ends the JVM, however this process ends
            stdout=log,
            stderr=log,
            env=environment,
            process_group=0,  # Ctrl-C is for this process, which ends what runs in the JVM
        )
    return _Begun(start, process, folder, connection, _circumstances(start))


def _new_connection(place: SessionPlace) -> Path:
    """Where a JVM writes its port to, in a folder that stays; what killed processes have left there goes."""
    folder = place.folder / "starting"
    folder.mkdir(mode=0o700, exist_ok=True)
    for left in folder.iterdir():
        if time.time() - left.stat().st_mtime > _LEFT_SECONDS:
            left.unlink(missing_ok=True)
    return folder / f"connection-{uuid.uuid4().hex}"


def _await(begun: _Begun) -> RunningJvm | None:
    """None when it ended before it listened."""
    while begun.process.poll() is None and not begun.connection.is_file():
        time.sleep(_POLL_SECONDS)
    if not begun.connection.is_file():
        return None
    told = begun.connection.read_bytes()
    begun.connection.unlink()
    port, length = struct.unpack_from(">ii", told)
    return RunningJvm(begun.process, port, told[8 : 8 + length].decode("utf-8"))
