"""The server as a stranger meets it: other hosts, other methods, no token, long and slow requests."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from tablestore_engine.api import FixRequest
from tablestore_engine.ui import page_server
from tablestore_engine.ui.page_answers import NAMES_MAX, PageAnswers
from tablestore_engine.ui.page_server import LOOPBACK, PageServer
from tests.unit.ui.conftest import World

TOKEN = "secret-token"


@pytest.fixture
def server(shop: World) -> Iterator[PageServer]:
    """It answers for the shop."""
    made = PageServer(PageAnswers(shop.engine, lambda: shop.clock.ms), token=TOKEN)
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def ask(
    server: PageServer, path: str, method: str = "GET", headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body."""
    connection = http.client.HTTPConnection(LOOPBACK, server.server_address[1], timeout=30)
    connection.request(method, path, headers=headers or {})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, {name.lower(): text for name, text in answer.getheaders()}, body


def raw(server: PageServer, request: bytes) -> bytes:
    """All that comes back for these bytes."""
    with socket.create_connection((LOOPBACK, server.server_address[1]), timeout=30) as client:
        client.sendall(request)
        found = b""
        while piece := client.recv(65_536):
            found += piece
    return found


def test_page_and_its_data(server: PageServer) -> None:
    """The address gives the page; every route gives JSON."""
    status, headers, body = ask(server, f"/{TOKEN}/")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b"tablestore" in body
    for route in (
        "tables",
        "summaries?name=demo.orders",
        "table?name=demo.orders",
        "snapshots?name=demo.orders",
    ):
        status, headers, body = ask(server, f"/{TOKEN}/api/{route}")
        assert (status, headers["content-type"]) == (200, "application/json")
        assert "trouble" not in json.loads(body)
    for route in ("streams", "topic?name=demo.orders", "difference?name=demo.orders&from=1&to=2"):
        assert "value" in json.loads(ask(server, f"/{TOKEN}/api/{route}")[2])


def test_headers_keep_the_page_to_itself(server: PageServer) -> None:
    """Nothing is cached, framed, sniffed or loaded from elsewhere; refusals have the same."""
    for path in (f"/{TOKEN}/", f"/{TOKEN}/api/tables", "/"):
        headers = ask(server, path)[1]
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'sha256-")
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")
        assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/favicon.ico",
        "/wrong/",
        f"/{TOKEN[:-1]}/",
        f"/{TOKEN}x/",
        f"/x/../{TOKEN}/",
        "/\xe4/",
    ],
)
def test_without_the_token_nothing_is_answered(server: PageServer, path: str) -> None:
    """Another user of the machine reaches the port, and no more."""
    status, _, body = ask(server, quote(path, safe="/."))
    assert (status, body) == (403, b"Forbidden")


@pytest.mark.parametrize(
    "path", ["x", "api/", "api/nothing", "../etc/passwd", "assets/page.js", "%2e%2e/x", "api/tables/"]
)
def test_unknown_routes(server: PageServer, path: str) -> None:
    """There are no files to reach."""
    assert ask(server, f"/{TOKEN}/{path}")[0] == 404


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "evil.example:{port}", ""])
def test_another_host_is_refused(server: PageServer, host: str) -> None:
    """A site whose name leads to 127.0.0.1 sends its own name."""
    port = str(server.server_address[1])
    assert ask(server, f"/{TOKEN}/", headers={"Host": host.format(port=port)})[0] == 421


def test_host_twice_or_missing_is_refused(server: PageServer) -> None:
    """Neither says where the request wants to go."""
    line = f"GET /{TOKEN}/ HTTP/1.1\r\n".encode()
    end = b"Connection: close\r\n\r\n"
    own = f"Host: {server.host}\r\n".encode()
    assert b" 421 " in raw(server, line + end).split(b"\r\n")[0]
    assert b" 421 " in raw(server, line + own + b"Host: evil.example\r\n" + end).split(b"\r\n")[0]
    assert b" 200 " in raw(server, line + own + end).split(b"\r\n")[0]


def test_localhost_is_another_name(server: PageServer) -> None:
    """As people type it."""
    assert ask(server, f"/{TOKEN}/", headers={"Host": f"localhost:{server.server_address[1]}"})[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"])
def test_only_reading_methods(server: PageServer, method: str) -> None:
    """The page writes nothing."""
    assert ask(server, f"/{TOKEN}/api/tables", method)[0] == 405


def test_head_has_no_body(server: PageServer) -> None:
    """But the same headers."""
    status, headers, body = ask(server, f"/{TOKEN}/", "HEAD")
    assert (status, body) == (200, b"")
    assert int(headers["content-length"]) > 1000


@pytest.mark.parametrize(
    ("site", "mode", "path", "status"),
    [
        ("same-origin", "cors", "api/tables", 200),
        ("cross-site", "navigate", "", 200),
        ("cross-site", "navigate", "api/tables", 403),
        ("cross-site", "no-cors", "", 403),
        ("same-site", "cors", "api/tables", 403),
    ],
)
def test_requests_of_other_sites(server: PageServer, site: str, mode: str, path: str, status: int) -> None:
    """A page of another server on this machine, too: its site is the same, its origin is not."""
    assert (
        ask(server, f"/{TOKEN}/{path}", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode})[0] == status
    )


def test_huge_requests_are_refused(server: PageServer) -> None:
    """A long address, a longer one, many parameters, many headers."""
    assert ask(server, f"/{TOKEN}/api/tables?x=" + "a" * 9_000)[0] == 414
    assert ask(server, f"/{TOKEN}/api/tables?x=" + "a" * 70_000)[0] == 414
    assert ask(server, f"/{TOKEN}/api/table?" + "&".join(["name=a.b"] * 100))[0] == 400
    assert ask(server, f"/{TOKEN}/", headers={f"X-{at}": "x" for at in range(200)})[0] == 431
    assert json.loads(ask(server, f"/{TOKEN}/api/table?name=a.b&name=c.d")[2])["trouble"]["code"] == "TS1954"
    names = "&".join(f"name=demo.x{at}" for at in range(NAMES_MAX + 20))
    assert len(json.loads(ask(server, f"/{TOKEN}/api/summaries?{names}")[2])) == NAMES_MAX


@pytest.mark.parametrize(
    "junk", [b"\r\n\r\n", b"nonsense\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", b"GET\r\n\r\n"]
)
def test_junk_ends_its_own_connection(server: PageServer, junk: bytes) -> None:
    """And no other one."""
    with socket.create_connection((LOOPBACK, server.server_address[1]), timeout=30) as client:
        client.sendall(junk)
        client.shutdown(socket.SHUT_WR)
        while client.recv(65_536):
            pass
    assert ask(server, f"/{TOKEN}/")[0] == 200


def test_slow_and_many_clients(server: PageServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients that send half a request keep nobody out; those beyond the limit are closed, and room comes back."""
    monkeypatch.setattr(page_server, "CONNECTIONS_MAX", 4)
    monkeypatch.setattr(page_server.PageRequest, "timeout", 0.2)
    address = (LOOPBACK, server.server_address[1])
    slow = [socket.create_connection(address, timeout=30) for _ in range(8)]
    for client in slow:
        try:
            client.sendall(b"GET / HT")
        except OSError:
            continue
    for client in slow:
        try:
            assert client.recv(100) == b""  # closed: at once, or after the time that a client has
        except ConnectionResetError:
            continue
        finally:
            client.close()
    assert ask(server, f"/{TOKEN}/")[0] == 200


@pytest.mark.nightly  # by day slow and many clients
def test_many_tabs_at_once(server: PageServer) -> None:
    """Each gets its answer."""
    found: list[Any] = []

    def tab(number: int) -> None:
        route = ("table?name=demo.orders", "difference?name=demo.orders&from=1&to=36", "tables")[number % 3]
        found.append(ask(server, f"/{TOKEN}/api/{route}")[0])

    tabs = [threading.Thread(target=tab, args=(at,)) for at in range(18)]
    for one in tabs:
        one.start()
    for one in tabs:
        one.join()
    assert found == [200] * 18


def test_listing_that_fails_is_an_answer(server: PageServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page shows it."""
    monkeypatch.setattr(type(server.answers.engine), "databases", lambda _: 1 / 0)
    status, _, body = ask(server, f"/{TOKEN}/api/tables")
    assert status == 200
    assert "ZeroDivisionError" in json.loads(body)["trouble"]["why"]


def test_bound_to_loopback_with_a_token_of_its_own(shop: World) -> None:
    """Two servers share neither port nor token."""
    answers = PageAnswers(shop.engine, lambda: 0)
    one, two = PageServer(answers), PageServer(answers)
    try:
        assert one.server_address[0] == LOOPBACK
        assert one.token != two.token
        assert len(one.token) >= 32
    finally:
        one.server_close()
        two.server_close()


@pytest.mark.parametrize("port", [-1, 70_000, None])
def test_port_that_cannot_be_had(shop: World, port: int | None) -> None:
    """Out of range, or taken."""
    answers = PageAnswers(shop.engine, lambda: 0)
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        with pytest.raises(FixRequest, match="TS1955"):
            PageServer(answers, taken.getsockname()[1] if port is None else port)


def test_address_for_a_browser_works_once(server: PageServer) -> None:
    """Every user sees the arguments of a process: the second one who comes with it is refused."""
    opening = server.make_opening()
    assert TOKEN not in opening
    path = opening.removeprefix(f"http://{server.host}")
    assert ask(server, path + "x")[0] == 403
    assert ask(server, path, headers={"Host": "evil.example"})[0] == 421
    status, headers, _ = ask(server, path)
    assert (status, headers["location"]) == (302, f"/{TOKEN}/")
    assert ask(server, path)[0] == 403
    assert ask(server, "/open/")[0] == 403
