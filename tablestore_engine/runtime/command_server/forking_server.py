"""The process that has loaded a program and is forked for each command of one folder.

Steps      a module with the functions `load` and `run` is imported and loaded → the server listens in the folder's
           place in the cache → a command connects, is taken, runs in a process of its own → the server ends when nobody
           came for a while
INVARIANT  a command is taken only if it was started in the same circumstances and no imported file has changed since;
           else it is refused and the server ends.
INVARIANT  the server has one thread and runs no command itself: what is forked is what was imported.
CRASH      killed: running commands go on; the next one starts another server.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tablestore_engine.runtime.command_server.circumstances import circumstances_of
from tablestore_engine.runtime.command_server.command_request import (
    REFUSED,
    SOCKET,
    TAKEN,
    CommandRequest,
    open_socket,
    receive_request,
    user_of,
)
from tablestore_engine.runtime.command_server.loaded_files import LoadedFiles
from tablestore_engine.runtime.command_server.served_command import become_command
from tablestore_engine.runtime.server_process import read_running, write_state
from tablestore_engine.runtime.session_place import SessionPlace, place_of

STATE = "commands.json"
_POLL_SECONDS, _REQUEST_SECONDS = 1.0, 10.0


def main(arguments: Sequence[str]) -> None:
    """`arguments`: the name of the module. Returns in the server at its end, and in each process that is a command."""
    begun_ns, circumstances = time.time_ns(), circumstances_of(os.environ)
    program = importlib.import_module(arguments[0])
    program.load()
    if _serve(begun_ns, circumstances) is not None:
        program.run()


def _serve(begun_ns: int, circumstances: str) -> CommandRequest | None:
    """The request in each process that is a command; in the server None, at its end."""
    place, loaded = place_of(Path.cwd()), LoadedFiles.look()
    changed = loaded.changed_since(begun_ns)
    if changed is not None or threading.active_count() > 1:
        print(f"not served: {changed} has changed; threads: {threading.enumerate()}", file=sys.stderr)
        return None
    gc.collect()
    gc.freeze()  # what was imported stays in pages that all commands share
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = _Server(place, circumstances, loaded, stopped, _listen(place))
    try:
        return server.run()
    finally:
        server.listening.close()


def _listen(place: SessionPlace) -> socket.socket:
    """Writes the state file before the socket gets its name: a client that connects finds both."""
    aside = f".{SOCKET}"
    (place.folder / aside).unlink(missing_ok=True)
    listening = open_socket(place.folder, aside, to_listen=True)
    listening.listen(16)
    listening.settimeout(_POLL_SECONDS)
    write_state(place.folder / STATE, os.getpid(), {})
    (place.folder / aside).replace(place.folder / SOCKET)
    return listening


@dataclass(frozen=True)
class _Server:
    place: SessionPlace
    circumstances: str
    loaded: LoadedFiles
    stopped: list[int]
    listening: socket.socket
    running: set[int] = field(default_factory=set)

    def run(self) -> CommandRequest | None:
        last = time.monotonic()
        while True:
            self._collect()
            if self.running:
                last = time.monotonic()
            if not self._is_wanted(time.monotonic() - last):
                break
            try:
                connection, _ = self.listening.accept()
            except TimeoutError:
                continue
            with connection:
                taken = self._answer(connection)
            if isinstance(taken, CommandRequest):
                return taken
            if not taken:
                break
            last = time.monotonic()
        self._leave()
        return None

    def _is_wanted(self, idle: float) -> bool:
        wanted = self.place.idle_seconds
        return self._is_found() and wanted is not None and idle < wanted and not self.stopped

    def _is_found(self) -> bool:
        """False once another server has the folder."""
        state = read_running(self.place.folder / STATE)
        return state is not None and state["pid"] == os.getpid()

    def _collect(self) -> None:
        for one in list(self.running):
            with suppress(ChildProcessError):
                if os.waitpid(one, os.WNOHANG)[0] == 0:
                    continue
            self.running.discard(one)

    def _answer(self, connection: socket.socket) -> CommandRequest | bool:
        """Returns the request in the process of the command; in the server False when it must end."""
        connection.settimeout(_REQUEST_SECONDS)
        try:
            if user_of(connection) != os.getuid():
                return True
            request, files = receive_request(connection)
        except (OSError, ValueError):  # the caller has ended
            return True
        changed, is_alike = self.loaded.changed(), request.circumstances == self.circumstances
        is_taken = changed is None and is_alike
        if not is_taken:
            print(f"ends: started in the same way: {is_alike}; changed: {changed}", file=sys.stderr)
            self._leave()  # before the answer: the caller starts another server where this one was
        with suppress(OSError):  # the caller has ended
            connection.sendall(TAKEN if is_taken else REFUSED)
        if is_taken and self._fork() == 0:
            self.listening.close()
            connection.settimeout(None)
            become_command(connection, request, files)
            return request
        for file in files:
            os.close(file)
        return is_taken

    def _fork(self) -> int:
        """As os.fork; -1 when the system refuses a process. The caller then sees the connection close."""
        try:
            served = os.fork()
        except OSError as error:
            print(f"not served: {error}", file=sys.stderr)
            return -1
        if served:
            self.running.add(served)
        return served

    def _leave(self) -> None:
        """Nobody finds it any more, unless another server is there by now."""
        if self._is_found():
            for name in (SOCKET, STATE):
                (self.place.folder / name).unlink(missing_ok=True)


if __name__ == "__main__":
    main(sys.argv[1:])
