"""The resident process as commands use it: it runs a command for them, or keeps the JVM that they have started.

CHANGE     start and end of the resident process
Steps      connect to the folder's process, or start it → request with the three files → signals there, wait status back
INVARIANT  None where the command was not begun: the caller runs the program itself. What was begun is never run again.
INVARIANT  the caller ends as the command does: with its exit status, or by the same signal.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from tablestore_engine.errors import RetryError
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime
from tablestore_engine.runtime.resident.circumstances import OF_TERMINALS, circumstances_of
from tablestore_engine.runtime.resident.process_request import (
    BEGIN,
    STATUS,
    TAKEN,
    CommandRequest,
    open_socket,
    receive_all,
    receive_files,
    send_jvm,
    send_request,
    user_of,
)
from tablestore_engine.runtime.resident.served_command import PASSED_ON
from tablestore_engine.runtime.resident.session_place import (
    PROCESS,
    PROCESS_LOG,
    SOCKET,
    START_LOCK,
    SessionPlace,
    place_of,
)
from tablestore_engine.runtime.server_process import locked, stop_running

_PROCESS = "tablestore_engine.spark.resident_main"
_LOAD_SECONDS, _ANSWER_SECONDS, _POLL_SECONDS = 120.0, 30.0, 0.02
_TRIES = 2  # a process that was loaded in other circumstances refuses once


def run_served(words: Sequence[str], program: str) -> int | None:
    """Exit status of the command `words` (the whole argv), or None. `program`: the module that loads it.

    Raises RetryError TS1961: the command was begun, and how it ended is not known.
    """
    place = place_of(Path.cwd())
    if sys.platform != "linux" or place.idle_seconds is None or not _has_files():
        return None
    request = CommandRequest(
        circumstances_of(os.environ), tuple(words), os.getcwd(), _terminal(), tuple(_ignored())
    )
    jvms: list[int] = []  # its input, by a process that has refused: for the next one
    try:
        for _ in range(_TRIES):
            connection = _open(place, program, jvms)
            if connection is None:
                return None
            with connection:
                if _is_taken(connection, request, jvms):
                    return _follow(connection)
    finally:
        for jvm in jvms:
            os.close(jvm)
    return None


def keep_jvm(place: SessionPlace, jvm: int) -> bool:
    """Give the descriptor of a JVM's input to the resident process, which is started if need be: the JVM stays then."""
    with locked(place.folder, START_LOCK):
        connection = _connect(place)
        if connection is not None:
            with connection, suppress(OSError, ValueError):
                connection.settimeout(_ANSWER_SECONDS)
                send_jvm(connection, jvm)
                return receive_all(connection, 1) == TAKEN
        return _start(place, [], jvm)


def stop_session(place: SessionPlace, runtime: Runtime = SYSTEM) -> None:
    """End process and JVM; served commands without Spark end by themselves. Raises RetryError TS1963."""
    place.forget()
    process = place.process()
    if not stop_running(place.folder / PROCESS, runtime):
        raise RetryError(
            "TS1963",
            f"the resident process of {place.working} did not stop",
            why=f"process {process} does not answer SIGTERM",
            fix="stop again, or end that process",
        )
    place.end_jvm(runtime)


def _has_files() -> bool:
    try:
        for file in range(3):
            os.fstat(file)
    except OSError:
        return False
    return True


def _terminal() -> dict[str, str]:
    return {name: os.environ[name] for name in OF_TERMINALS if name in os.environ}


def _ignored() -> Iterator[int]:
    for number in (*PASSED_ON, signal.SIGTSTP):
        if number != signal.SIGSTOP and signal.getsignal(number) == signal.SIG_IGN:
            yield number


def _connect(place: SessionPlace) -> socket.socket | None:
    try:
        connection = open_socket(place.folder, SOCKET, to_listen=False)
    except OSError:
        return None
    if user_of(connection) == os.getuid():
        return connection
    connection.close()
    return None


def _open(place: SessionPlace, program: str, jvms: list[int]) -> socket.socket | None:
    """Of two callers the second one waits, and finds the process of the first. None: it did not come up.

    `jvms`: the input of one, given away.
    """
    connection = _connect(place)
    if connection is None:
        with locked(place.folder, START_LOCK):
            connection = _connect(place)
            if connection is None and _start(place, [program], *jvms):
                connection = _connect(place)
            while jvms:
                os.close(jvms.pop())
    return connection


def _start(place: SessionPlace, words: Sequence[str], jvm: int = subprocess.DEVNULL) -> bool:
    """Under the lock, where no process answers; `jvm`: its input. False: it did not come up."""
    stop_running(place.folder / PROCESS, SYSTEM)
    with (place.folder / PROCESS_LOG).open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", _PROCESS, *words],
            stdin=jvm,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=place.working,
            start_new_session=True,  # Ctrl-C of the command is not meant for it
        )
    deadline = time.monotonic() + _LOAD_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if place.process() == process.pid:
            return True
        time.sleep(_POLL_SECONDS)
    return False


def _is_taken(connection: socket.socket, request: CommandRequest, jvms: list[int]) -> bool:
    """Begun from then on. `jvms` gets what a process that refuses has kept."""
    connection.settimeout(_ANSWER_SECONDS)
    try:
        send_request(connection, request, (0, 1, 2))
        answer, files = receive_files(connection, 1, 1)
        jvms.extend(files)
        if answer != TAKEN:
            return False
        connection.sendall(BEGIN)
    except (OSError, ValueError):  # it has ended just now, or does not answer
        return False
    connection.settimeout(None)
    return True


def _follow(connection: socket.socket) -> int:
    """Until the command has ended."""
    with _passed_on(connection):
        try:
            (status,) = STATUS.unpack(receive_all(connection, STATUS.size))
        except (OSError, ValueError):
            raise RetryError(
                "TS1961",
                "how the command ended is not known",
                why="the process that runs it has ended before it said so",
                fix="look at its results, and run it again; after `tablestore session stop` commands load dbt alone",
            ) from None
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        with suppress(OSError):  # SIGKILL has no handler
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


@contextmanager
def _passed_on(connection: socket.socket) -> Iterator[None]:
    """Signals go to the command. Ctrl-Z stops it, then this process."""

    def send(number: int) -> None:
        with suppress(OSError):  # it has ended
            connection.send(bytes([number]))

    def pass_on(number: int, _: FrameType | None) -> None:
        send(number)

    def pause(_number: int, _: FrameType | None) -> None:
        send(signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        send(signal.SIGCONT)

    before = {}
    for number in (*PASSED_ON, signal.SIGTSTP):
        if number in {signal.SIGSTOP, signal.SIGCONT} or signal.getsignal(number) == signal.SIG_IGN:
            continue
        before[number] = signal.signal(number, pause if number == signal.SIGTSTP else pass_on)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
