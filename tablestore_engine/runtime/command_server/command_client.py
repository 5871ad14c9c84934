"""A command that runs in a process with the program loaded: the caller waits, and passes signals on to it.

Steps      connect to the folder's server, or start it → request with the three files → signals there, wait status back
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
from tablestore_engine.runtime.command_server.circumstances import OF_TERMINALS, circumstances_of
from tablestore_engine.runtime.command_server.command_request import (
    BEGIN,
    LOG,
    SOCKET,
    STATUS,
    TAKEN,
    CommandRequest,
    open_socket,
    receive_all,
    send_request,
    user_of,
)
from tablestore_engine.runtime.command_server.forking_server import STATE
from tablestore_engine.runtime.command_server.served_command import PASSED_ON
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime
from tablestore_engine.runtime.server_process import locked, read_running, stop_running
from tablestore_engine.runtime.session_place import SessionPlace, place_of

_SERVER = "tablestore_engine.runtime.command_server.forking_server"
_LOCK = "commands.lock"
_LOAD_SECONDS, _ANSWER_SECONDS, _POLL_SECONDS = 120.0, 30.0, 0.02
_TRIES = 2  # a server that was loaded in other circumstances refuses once


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
    for _ in range(_TRIES):
        connection = _connect(place) or _start(place, program)
        if connection is None:
            return None
        with connection:
            if _is_taken(connection, request):
                return _follow(connection)
    return None


def find_server(place: SessionPlace) -> int | None:
    """Process id of the folder's server."""
    state = read_running(place.folder / STATE)
    return None if state is None else int(state["pid"])


def stop_server(place: SessionPlace, runtime: Runtime = SYSTEM) -> None:
    """Commands that run end by themselves. Raises RetryError TS1963."""
    if not stop_running(place.folder / STATE, runtime):
        raise RetryError(
            "TS1963",
            f"the process that has dbt loaded for {place.working} did not stop",
            why=f"process {find_server(place)} does not answer SIGTERM",
            fix="stop again, or end that process",
        )


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


def _start(place: SessionPlace, program: str) -> socket.socket | None:
    """Of two callers the second one waits, and finds the server of the first. None: it did not come up."""
    with locked(place.folder, _LOCK):
        connection = _connect(place)
        if connection is not None:
            return connection
        with (place.folder / LOG).open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", _SERVER, program],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=place.working,
                start_new_session=True,
            )
        deadline = time.monotonic() + _LOAD_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            if find_server(place) == process.pid:
                connection = _connect(place)
                if connection is not None:
                    return connection
            time.sleep(_POLL_SECONDS)
    return None


def _is_taken(connection: socket.socket, request: CommandRequest) -> bool:
    """Begun from then on."""
    connection.settimeout(_ANSWER_SECONDS)
    try:
        send_request(connection, request, (0, 1, 2))
        if receive_all(connection, 1) != TAKEN:
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
