"""The process of a resident session: it keeps the JVM of one folder, and is forked for each command of a program.

Steps      a module with the functions `load` and `run` is imported and loaded, if one is named → the process listens in
           the state folder → it takes JVMs, and commands, which run in processes of their own → it ends when nobody
           came for a while, when `stop` asks for it, or when it has neither a program nor a JVM
INVARIANT  a JVM lives as long as a process holds its input: the one that started it, and this one.
INVARIANT  a command is taken only if it was started in the same circumstances and no imported file has changed since;
           else it is refused, gets the JVM's input for the next process, and this one ends.
INVARIANT  the process has one thread and runs no command itself: what is forked is what was imported.
INVARIANT  jobs of a command that was stopped or killed are cancelled within a second.
CRASH      killed: its JVM ends, commands without one go on; the next command starts another process.
CHANGE     when a loaded process is loaded again
INVARIANT  each file counts by change time, size and inode, the .pth files of the import path too.
INVARIANT  a folder of the import path counts by its names: a package that is added or removed may change what is
           imported. Compiled files do not count: the first import of a module writes them.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import socket
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tablestore_engine.runtime.resident.circumstances import circumstances_of
from tablestore_engine.runtime.resident.process_request import (
    REFUSED,
    TAKEN,
    CommandRequest,
    open_socket,
    receive_request,
    user_of,
)
from tablestore_engine.runtime.resident.served_command import become_command
from tablestore_engine.runtime.resident.session_place import PROCESS, SOCKET, KeptJvm, SessionPlace, place_of
from tablestore_engine.runtime.server_process import read_running, write_state

_Facts = tuple[int, int, int]
_COMPILED = "__pycache__"


@dataclass(frozen=True)
class LoadedFiles:
    """`files`: path → change time in ns, size in bytes, inode; `folders`: path → names in it. None: it is missing."""

    files: Mapping[str, _Facts | None]
    folders: Mapping[str, frozenset[str] | None]

    @classmethod
    def look(cls) -> LoadedFiles:
        """At what is imported now."""
        folders = {path for path in sys.path if os.path.isdir(path)}
        files = {*_modules(), *_path_files(), *sys.path} - folders
        return cls({path: _look_at(path) for path in files}, {path: _names_in(path) for path in folders})

    def changed_since(self, moment_ns: int) -> str | None:
        """A file that has changed since then; None where none has."""
        found = (path for path, facts in self.files.items() if facts is not None and facts[0] >= moment_ns)
        return next(found, None)

    def changed(self) -> str | None:
        """A file or folder that is another one by now; None where none is."""
        for path, facts in self.files.items():
            if _look_at(path) != facts:
                return path
        return next((path for path, names in self.folders.items() if _names_in(path) != names), None)


def _modules() -> Iterator[str]:
    for module in list(sys.modules.values()):
        path = getattr(getattr(module, "__spec__", None), "origin", None)
        if isinstance(path, str) and os.path.isabs(path):
            yield path


def _path_files() -> Iterator[str]:
    for folder in sys.path:
        yield from map(str, Path(folder).glob("*.pth"))


def _look_at(path: str) -> _Facts | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ctime_ns, found.st_size, found.st_ino


def _names_in(path: str) -> frozenset[str] | None:
    try:
        return frozenset(os.listdir(path)) - {_COMPILED}
    except OSError:
        return None


_POLL_SECONDS, _REQUEST_SECONDS = 1.0, 10.0


def main(arguments: Sequence[str], cancel: Callable[[KeptJvm], None]) -> None:
    """`arguments`: the name of the module, or none; stdin: the input of a JVM, or no pipe; `cancel`: all jobs of a JVM.

    Returns in the resident process at its end, and in each process that is a command.
    """
    jvm, begun_ns = _take_jvm(), time.time_ns()
    if not arguments:
        _ResidentProcess.listen(cancel, jvm).run()
        return
    circumstances, before = circumstances_of(os.environ), LoadedFiles.look()
    program = importlib.import_module(arguments[0])
    program.load()
    loaded = LoadedFiles.look()
    changed = before.changed() or loaded.changed_since(begun_ns)
    if changed is not None or threading.active_count() > 1:
        print(f"not served: {changed} has changed; threads: {threading.enumerate()}", file=sys.stderr)
        return
    gc.collect()
    gc.freeze()  # what was imported stays in pages that all commands share
    if _ResidentProcess.listen(cancel, jvm, _Program(arguments[0], circumstances, loaded)).run() is not None:
        program.run()


def _take_jvm() -> list[int]:
    """The descriptor of its input, which no program that is started later gets."""
    if not stat.S_ISFIFO(os.fstat(0).st_mode):
        return []
    taken, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return [taken]


@dataclass(frozen=True)
class _Program:
    """`name`: its module; `circumstances`, `loaded`: what has to be the same for each command."""

    name: str
    circumstances: str
    loaded: LoadedFiles

    def find_difference(self, request: CommandRequest) -> str | None:
        """Why a command cannot be a fork of this process."""
        changed = self.loaded.changed()
        if changed is not None:
            return f"{changed} has changed"
        return None if request.circumstances == self.circumstances else "started in another way"


@dataclass(frozen=True)
class _ResidentProcess:
    """`jvm`: none or one descriptor; `running`: supervisors of commands; `stopped`: signals that ask for the end."""

    place: SessionPlace
    cancel: Callable[[KeptJvm], None]
    jvm: list[int]
    program: _Program | None
    listening: socket.socket | None
    stopped: list[int] = field(default_factory=list)
    running: set[int] = field(default_factory=set)

    @classmethod
    def listen(
        cls, cancel: Callable[[KeptJvm], None], jvm: list[int], program: _Program | None = None
    ) -> _ResidentProcess:
        """The socket has its name before the state file is there: a client that finds the process can connect."""
        place, aside = place_of(Path.cwd()), f".{SOCKET}"
        listening = None
        if sys.platform == "linux":
            (place.folder / aside).unlink(missing_ok=True)
            listening = open_socket(place.folder, aside, to_listen=True)
            listening.listen(16)
            listening.settimeout(_POLL_SECONDS)
            (place.folder / aside).replace(place.folder / SOCKET)
        write_state(place.folder / PROCESS, os.getpid(), {"program": program and program.name})
        made = cls(place, cancel, jvm, program, listening)
        signal.signal(signal.SIGTERM, lambda number, _: made.stopped.append(number))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return made

    def run(self) -> CommandRequest | None:
        """The request in each process that is a command; in the resident process None, at its end."""
        last = time.monotonic()
        while not self.stopped and self._is_found():
            self._collect()
            if self._is_jvm_used() or self.running:
                last = time.monotonic()
            if not self._is_wanted(time.monotonic() - last):
                break
            connection = self._accept()
            if connection is None:
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

    def _is_found(self) -> bool:
        """False once another process has the folder."""
        state = read_running(self.place.folder / PROCESS)
        return state is not None and state["pid"] == os.getpid()

    def _is_wanted(self, idle: float) -> bool:
        wanted = self.place.idle_seconds
        has_use = self.program is not None or bool(self.jvm)
        return wanted is not None and idle < wanted and has_use

    def _collect(self) -> None:
        for one in list(self.running):
            with suppress(ChildProcessError):
                if os.waitpid(one, os.WNOHANG)[0] == 0:
                    continue
            self.running.discard(one)

    def _is_jvm_used(self) -> bool:
        """Whether a command works in it. Jobs that one has left are cancelled: its plan may begin one later, too."""
        kept = self.place.jvm()
        if kept is None:  # it has died, or a command replaces it
            self._drop_jvm()
        if kept is None or not self.place.mark.exists():
            return False
        lock = self.place.try_lock()
        if lock is None:
            return True
        with lock:
            if self.place.mark.exists():
                self.cancel(kept)
        return False

    def _drop_jvm(self) -> None:
        while self.jvm:
            os.close(self.jvm.pop())

    def _accept(self) -> socket.socket | None:
        """None where nobody came for the time of a poll."""
        if self.listening is None:
            time.sleep(_POLL_SECONDS)
            return None
        try:
            return self.listening.accept()[0]
        except TimeoutError:
            return None

    def _answer(self, connection: socket.socket) -> CommandRequest | bool:
        """Returns the request in the process of the command; in the resident process False when it must end."""
        connection.settimeout(_REQUEST_SECONDS)
        try:
            if user_of(connection) != os.getuid():
                return True
            request, files = receive_request(connection)
        except (OSError, ValueError):  # the caller has ended
            return True
        if request is None:
            self._drop_jvm()
            self.jvm.extend(files)
            self._send(connection, TAKEN)
            return True
        difference = "no program" if self.program is None else self.program.find_difference(request)
        if difference is not None:
            print(f"ends: {difference}", file=sys.stderr)
            self._leave()  # before the answer: the caller starts another process where this one was
            self._send(connection, REFUSED, self.jvm)
        else:
            self._send(connection, TAKEN)
            if self._fork() == 0:
                self._become(connection, request, files)
                return request
        for file in files:
            os.close(file)
        return difference is None

    def _send(self, connection: socket.socket, word: bytes, files: Sequence[int] = ()) -> None:
        with suppress(OSError):  # the caller has ended
            if files:
                socket.send_fds(connection, [word], list(files))
            else:
                connection.sendall(word)

    def _become(self, connection: socket.socket, request: CommandRequest, files: Sequence[int]) -> None:
        self._drop_jvm()  # it would live as long as the command
        assert self.listening is not None
        self.listening.close()
        connection.settimeout(None)
        become_command(connection, request, files)

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
        """Nobody finds it any more, unless another process is there by now."""
        if self._is_found():
            for name in (SOCKET, PROCESS):
                (self.place.folder / name).unlink(missing_ok=True)
