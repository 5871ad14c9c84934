"""The proxy of the chaos suite does to a connection what it says, and nothing when it is calm."""

from __future__ import annotations

import random
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from integration_tests.chaos.proxy import DECIDING, OF_REQUESTS, Fault, Proxy, Weather

PRODUCE = 0


class Server:
    """Answers each request with itself; `heard` is what arrived whole."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.news = threading.Condition()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        with client:
            while (frame := receive(client)) is not None:
                with self.news:
                    self.heard.append(frame)
                    self.news.notify_all()
                try:
                    client.sendall(frame)
                except OSError:
                    return

    def wait_for(self, count: int) -> list[bytes]:
        """What was heard, once it is that much."""
        with self.news:
            assert self.news.wait_for(lambda: len(self.heard) >= count, 30)
        return list(self.heard)

    def close(self) -> None:
        """No new clients."""
        self._socket.close()


def request(number: int) -> bytes:
    """A produce request, as far as the proxy looks."""
    body = struct.pack(">hi", PRODUCE, number) + b"x" * 50
    return struct.pack(">i", len(body)) + body


def receive(client: socket.socket) -> bytes | None:
    """One whole frame; None when the connection is gone before its end."""
    found = b""
    wanted = 4
    while len(found) < wanted:
        try:
            more = client.recv(wanted - len(found))
        except OSError:
            return None
        if not more:
            return None
        found += more
        if len(found) == 4:
            wanted = 4 + int(struct.unpack(">i", found)[0])
    return found


@pytest.fixture
def server() -> Iterator[Server]:
    """Behind the proxy."""
    made = Server()
    yield made
    made.close()


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    """Before the server."""
    made = Proxy()
    made.target = server.port
    yield made
    made.close()


def ask(proxy: Proxy, number: int) -> bytes | None:
    """The answer over a new connection."""
    with socket.create_connection(("127.0.0.1", proxy.port)) as client:
        client.sendall(request(number))
        return receive(client)


def disturb(proxy: Proxy, *faults: Fault) -> None:
    """All requests that decide are hit; connections are accepted."""

    class Always(Weather):
        def refuses(self) -> bool:
            return False

    proxy.disturb(Always(random.Random(1), 1.0, faults))


def test_calm_is_a_plain_connection(proxy: Proxy, server: Server) -> None:
    """Requests and answers go through, in order and whole."""
    with socket.create_connection(("127.0.0.1", proxy.port)) as client:
        for number in range(5):
            client.sendall(request(number))
        assert [receive(client) for _ in range(5)] == [request(number) for number in range(5)]
    assert server.wait_for(5) == [request(number) for number in range(5)]
    assert not proxy.counts


@pytest.mark.parametrize(
    ("fault", "answer", "heard"),
    [
        (Fault.DELAY, request(7), 1),
        (Fault.CUT_REQUEST, None, 0),
        (Fault.CUT_ANSWER, None, 1),
        (Fault.DROP, None, 0),
        (Fault.LATE, None, 1),
        (Fault.TWIN, None, 2),
    ],
)
def test_each_fault(proxy: Proxy, server: Server, fault: Fault, answer: bytes | None, heard: int) -> None:
    """How often the broker gets the request, and whether the client hears of it; afterwards all is well again."""
    disturb(proxy, fault)
    assert ask(proxy, 7) == answer
    assert (proxy.counts[fault], proxy.requests["Produce"]) == (1, 1)
    proxy.calm()
    assert server.heard == [request(7)] * heard, "behind calm() nothing is under way"
    assert ask(proxy, 8) == request(8)
    assert server.wait_for(heard + 1) == [request(7)] * heard + [request(8)]


def test_refused_and_cut(proxy: Proxy) -> None:
    """A refused connection and one that is cut are closed, and the next one works."""
    proxy.disturb(Weather(random.Random(1), 8.0, ()))
    assert ask(proxy, 1) is None
    assert proxy.counts[Fault.REFUSE] == 1
    proxy.calm()
    with socket.create_connection(("127.0.0.1", proxy.port)) as client:
        client.sendall(request(2))
        assert receive(client) == request(2)
        proxy.cut_all()
        assert receive(client) is None
    assert ask(proxy, 3) == request(3)


def test_weather_comes_from_its_seed() -> None:
    """The same seed strikes the same requests, all faults occur, and what decides is hit most."""
    first, again = (Weather(random.Random(5), 0.2) for _ in range(2))
    asked = [0, 26, 3] * 2_000
    struck = [first.strike(one) for one in asked]
    assert struck == [again.strike(one) for one in asked]
    assert set(struck) == {None, *OF_REQUESTS}
    hits = {one: sum(f is not None for f, a in zip(struck, asked, strict=True) if a == one) for one in (0, 3)}
    assert hits[0] > 4 * hits[3] > 0
    assert 3 not in DECIDING
