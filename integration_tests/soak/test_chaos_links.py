"""The links between nodes of a broker: who is cut off reaches nobody and is reached by nobody, and then again."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from integration_tests.chaos.links import Links, find_owners

OWN, OTHER = 1, 2
_ASK = (
    "import socket, sys\n"
    "for line in sys.stdin:\n"
    "    try:\n"
    "        with socket.create_connection(('127.0.0.1', int(line)), 10) as one:\n"
    "            one.sendall(b'x'); answer = one.recv(1)\n"
    "    except OSError:\n"
    "        answer = b''\n"
    "    print(answer.decode() or '-', flush=True)\n"
)


@dataclass
class Pair:
    """Two nodes: this process and another one; `ports` lead to servers that answer with what they get."""

    links: Links
    other: subprocess.Popen[str]
    ports: dict[int, int]

    def ask(self, target: int) -> str:
        """As this process."""
        try:
            with socket.create_connection(("127.0.0.1", self.ports[target]), 10) as one:
                one.sendall(b"x")
                return one.recv(1).decode() or "-"
        except OSError:
            return "-"

    def ask_as_other(self, target: int) -> str:
        """As the other one."""
        assert self.other.stdin is not None
        assert self.other.stdout is not None
        print(self.ports[target], file=self.other.stdin, flush=True)
        return self.other.stdout.readline().strip()

    def answers(self) -> list[str]:
        """Own to own, own to other, other to own, other to other."""
        return [self.ask(OWN), self.ask(OTHER), self.ask_as_other(OWN), self.ask_as_other(OTHER)]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """See Pair."""
    other = subprocess.Popen(
        [sys.executable, "-c", _ASK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    links = Links(lambda: {OWN: os.getpid(), OTHER: other.pid})
    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_echo, args=(server,), daemon=True).start()
    port = int(server.getsockname()[1])
    yield Pair(links, other, {node: links.add(node, port) for node in (OWN, OTHER)})
    links.close()
    server.close()
    other.kill()
    other.communicate()


def is_lost(connection: socket.socket) -> bool:
    """Whether the other side is gone."""
    try:
        return connection.recv(1) == b""
    except OSError:
        return True


def _echo(server: socket.socket) -> None:
    while True:
        try:
            client, _ = server.accept()
        except OSError:
            return
        with client:
            client.sendall(client.recv(1))


def test_a_node_that_is_cut_off_reaches_only_itself(pair: Pair) -> None:
    """In both directions; the others reach each other, and after `rejoin` all is as before."""
    assert pair.answers() == ["x", "x", "x", "x"]
    pair.links.cut_off(OTHER)
    assert pair.answers() == ["x", "-", "-", "x"]
    pair.links.rejoin()
    assert pair.answers() == ["x", "x", "x", "x"]


def test_open_connections_are_lost_with_the_cut(pair: Pair) -> None:
    """A connection of the other direction stays."""
    with (
        socket.create_connection(("127.0.0.1", pair.ports[OTHER]), 10) as cut,
        socket.create_connection(("127.0.0.1", pair.ports[OWN]), 10) as kept,
    ):
        own = find_owners([cut.getsockname()[1], kept.getsockname()[1]], {OWN: os.getpid()})
        assert sorted(own.values()) == [OWN, OWN]
        pair.links.cut_off(OTHER)
        kept.sendall(b"x")
        assert kept.recv(1) == b"x"
        assert is_lost(cut)
