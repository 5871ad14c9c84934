"""What goes over the socket of a resident process, which only its user can open.

    a command   → request with stdin, stdout, stderr   ← TAKEN   → BEGIN   → a byte for each signal
                ← wait status, 4 bytes
                ← REFUSED, with the input of the JVM that the process has kept: it ends
    a JVM       → an empty request with the JVM's input   ← TAKEN

INVARIANT  nothing is begun before BEGIN: a caller that gave up has not sent it.
INVARIANT  the end of the connection before the wait status means: one side has died.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

TAKEN, REFUSED, BEGIN = b"+", b"-", b"!"
STATUS = struct.Struct(">i")
_LENGTH = struct.Struct(">I")
_FILES = 3
_PEER = struct.Struct("3i")  # Linux' ucred: process, user, group


@dataclass(frozen=True)
class CommandRequest:
    """`circumstances`: digest of how the caller was started; `words`: the whole argv; `working`: its folder;
    `terminal`: its variables OF_TERMINALS, all others are equal; `ignored`: numbers of the signals that it ignores.
    """

    circumstances: str
    words: tuple[str, ...]
    working: str
    terminal: Mapping[str, str]
    ignored: tuple[int, ...]


def send_request(connection: socket.socket, request: CommandRequest, files: Sequence[int]) -> None:
    """`files`: the three descriptors. Raises OSError."""
    told = json.dumps(asdict(request)).encode()
    socket.send_fds(connection, [_LENGTH.pack(len(told))], list(files))
    connection.sendall(told)


def send_jvm(connection: socket.socket, jvm: int) -> None:
    """`jvm`: the descriptor of its input. Raises OSError."""
    socket.send_fds(connection, [_LENGTH.pack(0)], [jvm])


def receive_request(connection: socket.socket) -> tuple[CommandRequest | None, list[int]]:
    """With open descriptors; None: the one of a JVM. Raises OSError, ValueError for what is none."""
    head, files = receive_files(connection, _LENGTH.size, _FILES)
    try:
        if head == _LENGTH.pack(0) and len(files) == 1:
            return None, files
        if len(files) != _FILES or len(head) != _LENGTH.size:
            raise ValueError("the request has no files")
        told = json.loads(receive_all(connection, *_LENGTH.unpack(head)))
        words, ignored = tuple(told["words"]), tuple(told["ignored"])
        return CommandRequest(told["circumstances"], words, told["working"], told["terminal"], ignored), files
    except BaseException:
        for file in files:
            os.close(file)
        raise


def receive_files(connection: socket.socket, size: int, most: int) -> tuple[bytes, list[int]]:
    """Up to `size` bytes, and up to `most` descriptors, which programs started later do not get. Raises OSError."""
    told, files, _, _ = socket.recv_fds(connection, size, most)
    for file in files:
        os.set_inheritable(file, False)
    return told, files


def receive_all(connection: socket.socket, size: int) -> bytes:
    """Raises OSError, ValueError where the other side ends before."""
    parts = []
    while size:
        part = connection.recv(min(size, 1 << 20))
        if not part:
            raise ValueError("the other side has ended")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def user_of(connection: socket.socket) -> int:
    """Of the process at the other end."""
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    return int(_PEER.unpack(told)[1])


def open_socket(folder: Path, name: str, *, to_listen: bool) -> socket.socket:
    """A socket of a folder whose path may be longer than an address: it is reached through its descriptor.

    Raises OSError: nobody listens there.
    """
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        address = f"/proc/self/fd/{place}/{name}"
        opened.bind(address) if to_listen else opened.connect(address)
    except BaseException:
        opened.close()
        raise
    finally:
        os.close(place)
    return opened
