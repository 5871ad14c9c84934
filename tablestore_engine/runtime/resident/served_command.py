"""The two processes of a served command: its supervisor, and the one that becomes the command.

Steps      the resident process forks the supervisor → BEGIN → that forks the command, passes signals of the caller on
           to it and answers with its wait status
INVARIANT  a signal is sent only to a command that the supervisor has not collected yet: the id cannot be another's.
INVARIANT  the command has a process group of its own, which gets the signals, as the foreground group of a terminal
           does.
CRASH      caller killed: the command gets SIGTERM. Supervisor killed: too, by the kernel. Resident
           process killed: nothing.
"""

from __future__ import annotations

import ctypes
import io
import os
import selectors
import signal
import socket
import sys
import types
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

from tablestore_engine.runtime.resident.circumstances import OF_TERMINALS
from tablestore_engine.runtime.resident.process_request import BEGIN, STATUS, CommandRequest

# What a caller may pass on; each of them has its default effect in the command unless the caller ignores it.
PASSED_ON = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT),
    *(signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH, signal.SIGSTOP, signal.SIGCONT),
)
_PR_SET_PDEATHSIG = 1


def become_command(connection: socket.socket, request: CommandRequest, files: Sequence[int]) -> None:
    """Called in a process forked for the command: returns in another one, which is the command; the first one ends
    with it.
    """
    supervisor = os.getpid()
    for number in (signal.SIGTERM, signal.SIGINT):  # the resident process's handlers
        signal.signal(number, signal.SIG_DFL)
    ended, wakes = socket.socketpair()
    command = -1
    try:
        _wake_by(wakes)
        if connection.recv(1) == BEGIN:
            command = os.fork()
        if command > 0:
            _supervise(connection, ended, command, files)
    finally:
        if command:  # nothing of the resident process's is done at the end of this process
            os._exit(0)
    signal.set_wakeup_fd(-1)
    for one in (connection, ended, wakes):
        one.close()
    _end_with(supervisor)
    os.setpgid(0, 0)
    _take_files(files)
    _take_signals(request)
    for name in OF_TERMINALS:
        os.environ.pop(name, None)
    os.environ.update(request.terminal)
    os.chdir(request.working)
    sys.argv[:] = request.words
    sys.modules["__main__"] = script = types.ModuleType("__main__")  # by which programs name themselves
    script.__file__ = request.words[0]


def _wake_by(wakes: socket.socket) -> None:
    """A byte for each child that ends, stops or continues."""
    wakes.setblocking(False)
    signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)


def _supervise(connection: socket.socket, ended: socket.socket, command: int, files: Sequence[int]) -> None:
    for file in files:
        os.close(file)
    with suppress(OSError):  # the command does it as well; one of both is first
        os.setpgid(command, command)
    with selectors.DefaultSelector() as either:
        either.register(connection, selectors.EVENT_READ)
        either.register(ended, selectors.EVENT_READ)
        while True:
            collected, status = os.waitpid(command, os.WNOHANG)
            if collected:
                break
            ready = {key.fileobj for key, _ in either.select()}
            if ended in ready:
                ended.recv(64)
            if connection in ready and not _pass_on(connection, command):
                either.unregister(connection)
    with suppress(OSError):
        connection.sendall(STATUS.pack(status))


def _pass_on(connection: socket.socket, command: int) -> bool:
    """The signals that have come; SIGTERM and False where the caller has ended."""
    try:
        numbers = connection.recv(64)
    except OSError:
        numbers = b""
    for number in numbers or (signal.SIGTERM,):
        with suppress(ProcessLookupError):  # it has ended
            os.killpg(command, number)
    return bool(numbers)


def _end_with(supervisor: int) -> None:
    """SIGTERM once the supervisor is gone."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != supervisor:
        os.kill(os.getpid(), signal.SIGTERM)


def _take_files(files: Sequence[int]) -> None:
    """The caller's, as Python opens them at its start."""
    for target, file in enumerate(files):
        os.dup2(file, target)
        os.close(file)
    sys.stdin = _as_text(io.FileIO(0, "rb", closefd=False), sys.stdin)
    sys.stdout = _as_text(io.FileIO(1, "wb", closefd=False), sys.stdout)
    sys.stderr = _as_text(io.FileIO(2, "wb", closefd=False), sys.stderr, always_by_lines=True)


def _as_text(file: io.FileIO, like: TextIO, *, always_by_lines: bool = False) -> TextIO:
    buffered = io.BufferedWriter(file) if file.writable() else io.BufferedReader(file)
    by_lines = always_by_lines or file.isatty()
    return io.TextIOWrapper(buffered, like.encoding, like.errors, line_buffering=by_lines)


def _take_signals(request: CommandRequest) -> None:
    for number in (*PASSED_ON, signal.SIGTSTP, signal.SIGCHLD):
        if number in {signal.SIGSTOP, signal.SIGKILL}:
            continue
        default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN if number in request.ignored else default)
