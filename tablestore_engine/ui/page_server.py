"""HTTP on 127.0.0.1 for one page: reads, never writes, and answers the person who started it alone.

CHANGE     the requests that the page answers; the drawing is in ui/assets/
Checks     method GET or HEAD → Host is this very address (else another site's name leads here: DNS rebinding) → the
           token of the path, by a comparison of constant time → a known route. Anything else is refused without work.
INVARIANT  bound to 127.0.0.1. Another user of the machine reaches the port and lacks the token.
INVARIANT  the token is never an argument of a process, which all users see: a browser is started with an address that
           leads to the page once, and is refused afterwards.
INVARIANT  no answer is cached or framed, and no Referer has the token.
INVARIANT  a client that sends or reads nothing is dropped after IDLE_S, and CONNECTIONS_MAX of them are served at once.
"""

from __future__ import annotations

import hmac
import secrets
import socket
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tablestore_engine.errors import FixRequest
from tablestore_engine.runtime.locks import OrderedLock, Rank
from tablestore_engine.ui.page_answers import PageAnswers, Query
from tablestore_engine.ui.page_file import policy, render_page
from tablestore_engine.ui.page_json import render_json
from tablestore_engine.ui.page_section import read_part

LOOPBACK = "127.0.0.1"
IDLE_S = 15.0
CONNECTIONS_MAX = 64
_OPEN = "open/"
_TARGET_MAX, _FIELDS_MAX = 8_000, 64
_HTML, _JSON, _TEXT = "text/html; charset=utf-8", "application/json", "text/plain; charset=utf-8"
_HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class PageServer(ThreadingHTTPServer):
    """`address` is what the person opens. `serve_forever` answers, `shutdown` and `server_close` end it."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, answers: PageAnswers, port: int = 0, token: str | None = None) -> None:
        self.answers = answers
        self.token = secrets.token_urlsafe(24) if token is None else token
        self._codes: set[str] = set()
        self._open, self._counting = 0, OrderedLock("connections of the page", Rank.PROCESS)
        try:
            super().__init__((LOOPBACK, port), PageRequest)
        except (OSError, OverflowError) as error:
            raise FixRequest(
                "TS1955",
                f"the page cannot be served on port {port}",
                why=str(error),
                fix="name another port, or leave out --port for a free one",
            ) from error

    @property
    def host(self) -> str:
        """As the header Host has to name it."""
        return f"{LOOPBACK}:{self.server_address[1]}"

    @property
    def other_host(self) -> str:
        return f"localhost:{self.server_address[1]}"

    @property
    def address(self) -> str:
        """With the token."""
        return f"http://{self.host}/{self.token}/"

    def make_opening(self) -> str:
        """An address that leads to the page, once."""
        code = secrets.token_urlsafe(24)
        with self._counting:
            self._codes.add(code)
        return f"http://{self.host}/{_OPEN}{code}"

    def take_opening(self, path: str) -> bool:
        """Whether it is such an address; it is none from now on."""
        code = path.removeprefix(f"/{_OPEN}")
        with self._counting:
            is_known = code != path and code in self._codes
            self._codes.discard(code)
        return is_known

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the base's signature
        """A thread for it, unless too many are open."""
        with self._counting:
            self._open += 1
            is_full = self._open > CONNECTIONS_MAX
        if is_full:
            self.shutdown_request(request)
        else:
            super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 - the base's signature
        with self._counting:
            self._open -= 1
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - the base's signature
        """A client that went away is no news."""


def _answer(answer: Callable[[Query], object], query: Query) -> object:
    """Also when the listing itself cannot be read."""
    part = read_part(lambda: answer(query))
    return part.value if part.trouble is None else part.as_record()


class PageRequest(BaseHTTPRequestHandler):
    server: PageServer
    protocol_version = "HTTP/1.1"
    timeout = IDLE_S
    server_version, sys_version = "tablestore", ""

    def setup(self) -> None:
        """Small answers leave at once."""
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def do_GET(self) -> None:
        """The page, or a part of its data."""
        refused = self._refusal()
        if refused is HTTPStatus.FORBIDDEN and self.server.take_opening(self.path):
            self._send(HTTPStatus.FOUND, _TEXT, "", {"Location": f"/{self.server.token}/"})
            return
        if refused is not None:
            self._send(refused, _TEXT, refused.phrase)
            return
        target = urlsplit(self.path)
        route = target.path.removeprefix(f"/{self.server.token}/")
        if not route:
            self._send(HTTPStatus.OK, _HTML, render_page({"mode": "live"}, connects=True))
            return
        answer = self.server.answers.find(route.removeprefix("api/")) if route.startswith("api/") else None
        if answer is None:
            self._send(HTTPStatus.NOT_FOUND, _TEXT, "no such page")
            return
        try:
            query = parse_qs(target.query, keep_blank_values=True, max_num_fields=_FIELDS_MAX)
        except ValueError:
            self._send(HTTPStatus.BAD_REQUEST, _TEXT, "too many parameters")
            return
        self._send(HTTPStatus.OK, _JSON, render_json(_answer(answer, query)))

    def do_HEAD(self) -> None:
        """The same without its body."""
        self.do_GET()

    def _refusal(self) -> HTTPStatus | None:
        if (self.headers.get_all("Host") or []) not in ([self.server.host], [self.server.other_host]):
            return HTTPStatus.MISDIRECTED_REQUEST
        if len(self.path) > _TARGET_MAX:
            return HTTPStatus.REQUEST_URI_TOO_LONG
        site = self.headers.get("Sec-Fetch-Site", "none")
        token = self.path.split("/", 2)[1] if self.path.count("/") >= 2 else ""
        is_known = hmac.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode())
        is_ours = site in ("none", "same-origin") or self._is_navigation()
        return None if is_known and is_ours else HTTPStatus.FORBIDDEN

    def _is_navigation(self) -> bool:
        """A link that the person followed from elsewhere: it may open the page, and no data."""
        return self.headers.get("Sec-Fetch-Mode") == "navigate" and "/api/" not in self.path

    def _send(
        self, status: HTTPStatus, kind: str, text: str, more: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        body = text.encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", f"{policy(connects=True)}; frame-ancestors 'none'")
        for name, value in {**_HEADERS, **more}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """Of the base: a request that is no HTTP, or a method that is not served."""
        self.close_connection = True
        self.command = self.command or ""
        status = HTTPStatus.METHOD_NOT_ALLOWED if code == HTTPStatus.NOT_IMPLEMENTED else HTTPStatus(code)
        self._send(status, _TEXT, status.phrase)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002, ANN401 - the base's signature
        """Nothing: the terminal belongs to the address."""
