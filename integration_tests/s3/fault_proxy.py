"""An HTTP proxy on loopback in front of the S3 server: it injects faults by a plan and records every request.

Steps      1 a request is read whole  2 the plan picks a fault, or none  3 unless the fault comes before, it goes to the
           server, and the answer comes back  4 the record is complete  5 the client gets its last bytes
INVARIANT  a request reaches the server as the client sent it, `Host` included, which the signature covers. Only headers
           that belong to one connection are left out.
INVARIANT  a record is complete, and its end has a number, before the client can act on the answer. So of two requests
           that a client makes one after the other, the end of the first has the smaller number.
INVARIANT  a server that is away looks to the client like a dropped connection. Any other trouble of the proxy is an
           entry in `errors`, which fixtures assert to be empty.
"""

from __future__ import annotations

import http.client
import itertools
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

_BLOCK = 1 << 16
_UPSTREAM_SECONDS = 60.0
_OF_ONE_CONNECTION = frozenset(
    ("connection", "expect", "keep-alive", "proxy-connection", "trailer", "transfer-encoding", "upgrade")
)


class Kind(Enum):
    """What happens to a request."""

    DROP_BEFORE = "the connection is closed; nothing reaches the server"
    DROP_AFTER = "the server does it; the connection is closed without an answer"
    ERROR_AFTER = "the server does it; the answer is 500 InternalError"
    SLOW_DOWN = "the answer is 503 SlowDown; nothing reaches the server"
    CONFLICT = "the answer is 409 ConditionalRequestConflict; nothing reaches the server"
    FORBIDDEN = "the answer is 403 AccessDenied; nothing reaches the server"
    REFUSED = "the answer is `refusal` of the fault; nothing reaches the server"
    LATE = "the server does it; its answer is held back until `wait` returns"
    ALSO_WON = "the server refuses a put by its condition; the answer says that it was done"
    ALSO_LISTED = "`insert` of the fault stands in the server's answer to a listing too"
    TRUNCATE = "half of the body is sent, then the connection is closed"


_ANSWERS: Mapping[Kind, tuple[int, str]] = {
    Kind.ERROR_AFTER: (500, "InternalError"),
    Kind.SLOW_DOWN: (503, "SlowDown"),
    Kind.CONFLICT: (409, "ConditionalRequestConflict"),
    Kind.FORBIDDEN: (403, "AccessDenied"),
}
_BEFORE = {Kind.DROP_BEFORE, Kind.SLOW_DOWN, Kind.CONFLICT, Kind.FORBIDDEN, Kind.REFUSED}


@dataclass(frozen=True)
class Fault:
    """`wait` is called by LATE alone: a sleep, or the wait for an event of the test. `refusal`: status, error code.

    `insert`: XML of ALSO_LISTED.
    """

    kind: Kind
    wait: Callable[[], object] = lambda: None
    refusal: tuple[int, str] = (0, "")
    insert: bytes = b""


@dataclass(frozen=True)
class Asked:
    """What a plan sees of a request; `count`: 1 for the first of this method and path."""

    method: str
    path: str
    query: str
    count: int


Plan = Callable[[Asked], Fault | None]


def no_faults(_: Asked) -> Fault | None:
    """Pass everything on."""
    return None


def late(seconds: float, sleep: Callable[[float], None] = time.sleep) -> Fault:
    """The answer comes after a delay."""
    return Fault(Kind.LATE, lambda: sleep(seconds))


def refused(status: int, code: str) -> Fault:
    """The answer of a store that does not do it."""
    return Fault(Kind.REFUSED, refusal=(status, code))


def once(kind: Kind, method: str, path_end: str) -> Plan:
    """The first request of this method whose path ends like this, and no other."""
    used = threading.Lock()

    def plan(asked: Asked) -> Fault | None:
        fits = asked.method == method and asked.path.endswith(path_end)
        return Fault(kind) if fits and used.acquire(blocking=False) else None

    return plan


def seeded(seed: int, share: float, kinds: Iterable[Kind]) -> Plan:
    """A share of the requests gets one of `kinds`; which ones depends on method, path and count, not on threads."""
    choice = tuple(kinds)

    def plan(asked: Asked) -> Fault | None:
        dice = random.Random(f"{seed} {asked.method} {asked.path} {asked.query} {asked.count}")
        return Fault(dice.choice(choice)) if dice.random() < share else None

    return plan


@dataclass(frozen=True)
class Request:
    """A request that was answered or dropped. `status`: what the client was sent, None for a dropped connection.

    `start`, `end`: numbers of one row for all requests. `headers`: those of the request, names in lower case.
    """

    asked: Asked
    fault: Kind | None
    status: int | None
    server_status: int | None
    start: int
    end: int
    headers: Mapping[str, str] = field(repr=False)

    @property
    def method(self) -> str:
        """GET, PUT, HEAD, POST, DELETE."""
        return self.asked.method

    @property
    def path(self) -> str:
        """/bucket/key, as it was sent."""
        return self.asked.path

    @property
    def byte_range(self) -> str | None:
        """`bytes=0-9` of a ranged read."""
        return self.headers.get("range")

    @property
    def if_none_match(self) -> str | None:
        """`*` of a conditional create."""
        return self.headers.get("if-none-match")


def longest_chain(requests: Iterable[Request]) -> int:
    """How many requests ran one after the other at least: the most that do not overlap pairwise."""
    chain, end = 0, -1
    for request in sorted(requests, key=lambda one: one.end):
        if request.start > end:
            chain, end = chain + 1, request.end
    return chain


def most_at_once(requests: Iterable[Request]) -> int:
    """How many requests were open at a time at most."""
    marks = sorted([(one.start, 1) for one in requests] + [(one.end, -1) for one in requests])
    return max(itertools.accumulate((step for _, step in marks), initial=0))


class FaultProxy:
    """Listens on 127.0.0.1 from construction to `close`; `url` is the endpoint for clients."""

    def __init__(self, upstream: str, plan: Plan = no_faults) -> None:
        self.plan = plan
        self.upstream = upstream.removeprefix("http://")
        self.errors: list[str] = []
        self._lock = threading.Lock()
        self._marks = itertools.count()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._requests: list[Request] = []
        self._server = _Server(self)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def __enter__(self) -> FaultProxy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all connections."""
        self._server.shutdown()
        self._server.server_close()
        self._server.cut_connections()
        self._thread.join()

    @property
    def requests(self) -> tuple[Request, ...]:
        """Those that are complete, in the order of their ends."""
        with self._lock:
            return tuple(self._requests)

    def forget(self) -> None:
        """Empty the records; counts that plans see begin at 1 again."""
        with self._lock:
            self._requests.clear()
            self._counts.clear()

    def begin(self, method: str, target: str) -> tuple[Asked, int]:
        """A request has come: what it asks and its start."""
        path, _, query = target.partition("?")
        with self._lock:
            self._counts[method, path] += 1
            return Asked(method, path, query, self._counts[method, path]), next(self._marks)

    def end(
        self,
        asked: Asked,
        start: int,
        *,
        fault: Kind | None,
        status: int | None,
        server_status: int | None,
        headers: Mapping[str, str],
    ) -> None:
        """It is done, but for the bytes that let the client go on."""
        with self._lock:
            number = next(self._marks)
            self._requests.append(Request(asked, fault, status, server_status, start, number, headers))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, proxy: FaultProxy) -> None:
        self.proxy = proxy
        self._open: set[socket.socket] = set()
        self._guard = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        with self._guard:
            self._open.add(request)
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._guard:
                self._open.discard(request)

    def cut_connections(self) -> None:
        """Clients keep theirs open for later requests."""
        with self._guard:
            for connection in self._open:
                _cut(connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        raise AssertionError("each handler reports its own errors")


def _cut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # the other side was faster


@dataclass(frozen=True)
class _Answer:
    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = _BLOCK
    server: _Server

    def log_message(self, *_: Any) -> None:
        """Records are kept instead."""

    def handle_expect_100(self) -> bool:
        """A client that asks first sends its body only when it has seen this line."""
        going_on = super().handle_expect_100()
        self.wfile.flush()
        return going_on

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:
            self.close_connection = True  # the client is gone, or the test has closed the proxy
        except Exception as error:  # noqa: BLE001  # a plan of a test may raise anything; fixtures show it
            self.server.proxy.errors.append(f"{self.requestline}: {error!r}")
            self.close_connection = True

    def finish(self) -> None:
        try:
            super().finish()
        except (ConnectionError, ValueError):
            return  # bytes for a client that is gone

    def _pass_on(self) -> None:
        proxy = self.server.proxy
        asked, start = proxy.begin(self.command, self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self._read_body()
        fault = proxy.plan(asked)
        kind = fault.kind if fault is not None else None
        answer = None if kind in _BEFORE else self._ask_server(body)
        if fault is not None and kind is Kind.LATE:
            fault.wait()
        sent = self._sent(fault, answer)
        finished = {"fault": kind, "server_status": answer.status if answer else None, "headers": headers}
        self._reply(sent, kind, lambda status: proxy.end(asked, start, status=status, **finished))

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass_on  # noqa: N815  # names of the base class

    def _read_body(self) -> bytes:
        if "chunked" not in (self.headers.get("Transfer-Encoding") or "").lower():
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts: list[bytes] = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            continue  # headers after the body
        return b"".join(parts)

    def _ask_server(self, body: bytes) -> _Answer | None:
        """None when the server cannot be reached or has broken off: the client sees that as a dropped connection."""
        connection = http.client.HTTPConnection(self.server.proxy.upstream, timeout=_UPSTREAM_SECONDS)
        try:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in _OF_ONE_CONNECTION | {"content-length"}:
                    connection.putheader(name, value)
            if body or self.command in {"PUT", "POST"}:
                connection.putheader("Content-Length", str(len(body)))
            connection.putheader("Connection", "close")
            connection.endheaders(body or None)
            answer = connection.getresponse()
            return _Answer(answer.status, answer.reason, tuple(answer.getheaders()), answer.read())
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def _sent(self, fault: Fault | None, answer: _Answer | None) -> _Answer | None:
        """What the client gets; None for a closed connection."""
        if fault is not None and fault.kind in {Kind.DROP_BEFORE, Kind.DROP_AFTER}:
            return None
        if fault is not None and fault.kind is Kind.ALSO_WON and answer is not None and answer.status == 412:
            return _Answer(200, "OK", (("ETag", '"0"'),), b"")
        if fault is not None and fault.kind is Kind.ALSO_LISTED and answer is not None:
            end = b"</ListBucketResult>"
            return replace(answer, body=answer.body.replace(end, fault.insert + end))
        if fault is None or fault.kind not in {*_ANSWERS, Kind.REFUSED}:
            return answer
        status, code = _ANSWERS.get(fault.kind, fault.refusal)
        body = (
            f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>a fault of the test'
            f"</Message><Resource>{self.path.partition('?')[0]}</Resource><RequestId>0</RequestId></Error>"
        ).encode()
        shown = b"" if self.command == "HEAD" else body
        return _Answer(status, code, (("Content-Type", "application/xml"),), shown)

    def _reply(self, sent: _Answer | None, kind: Kind | None, end: Callable[[int | None], None]) -> None:
        if sent is None:
            end(None)
            self.close_connection = True
            _cut(self.connection)
            return
        self.send_response_only(sent.status, sent.reason)
        for name, value in sent.headers:
            if name.lower() not in _OF_ONE_CONNECTION | {"content-length"}:
                self.send_header(name, value)
        if sent.status not in {204, 304}:
            self.send_header("Content-Length", self._length(sent))
        self.end_headers()
        if kind is not Kind.TRUNCATE:
            self.wfile.write(sent.body[:-1])
            end(sent.status)
            self.wfile.write(sent.body[-1:])
            self.wfile.flush()
            return
        self.wfile.write(sent.body[: len(sent.body) // 2])
        end(sent.status)
        self.wfile.flush()
        self.close_connection = True
        _cut(self.connection)

    def _length(self, sent: _Answer) -> str:
        """Of the body; for HEAD that of the object."""
        stated = {name.lower(): value for name, value in sent.headers}.get("content-length")
        return stated if self.command == "HEAD" and stated is not None else str(len(sent.body))
