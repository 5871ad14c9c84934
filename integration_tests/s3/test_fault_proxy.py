"""The fault proxy does to a request what its plan says, no more, and counts what it saw."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError, BaseError, GenericError
from obstore.store import S3Store
from pyarrow.fs import S3FileSystem

from integration_tests.s3.fault_proxy import (
    Asked,
    Fault,
    FaultProxy,
    Kind,
    Request,
    longest_chain,
    most_at_once,
    once,
    seeded,
)
from integration_tests.s3.object_client import open_store
from tablestore_engine.devservers.s3_requests import REGION
from tablestore_engine.devservers.s3_server import S3ServerInfo

_DONE = {Kind.DROP_AFTER, Kind.ERROR_AFTER}
_SENT = {
    Kind.DROP_BEFORE: None,
    Kind.DROP_AFTER: None,
    Kind.ERROR_AFTER: 500,
    Kind.SLOW_DOWN: 503,
    Kind.CONFLICT: 409,
    Kind.FORBIDDEN: 403,
}
_BIG = bytes(range(256)) * 4096


@pytest.fixture
def direct(s3_server: S3ServerInfo, bucket: str) -> S3Store:
    """The bucket without the proxy."""
    return open_store(s3_server, bucket)


@pytest.fixture
def through(s3_server: S3ServerInfo, bucket: str, proxy: FaultProxy) -> S3Store:
    """The bucket by way of the proxy."""
    return open_store(s3_server, bucket, url=proxy.url)


def test_signed_requests_pass_unchanged(through: S3Store, direct: S3Store, proxy: FaultProxy) -> None:
    """Writes, conditional creates, reads, ranges, lists, multipart uploads and deletes give the server's answers."""
    obstore.put(through, "p/a b", b"0123456789", mode="create", attributes={"Content-Type": "text/plain"})
    with pytest.raises(AlreadyExistsError):
        obstore.put(through, "p/a b", b"x", mode="create")
    assert bytes(obstore.get_range(through, "p/a b", start=2, end=5)) == b"234"
    assert obstore.head(through, "p/a b") == obstore.head(direct, "p/a b")
    obstore.put(through, "p/big", _BIG * 8, use_multipart=True, chunk_size=5 << 20)
    assert bytes(obstore.get(direct, "p/big").bytes()) == _BIG * 8
    assert bytes(obstore.get(through, "p/big").bytes()) == _BIG * 8
    assert [one["path"] for one in obstore.list(through, "p").collect()] == ["p/a b", "p/big"]
    obstore.delete(through, ["p/a b", "p/big"])
    assert obstore.list(direct, "p").collect() == []
    assert {one.server_status for one in proxy.requests} >= {200, 206, 412}
    assert all(one.status == one.server_status and one.fault is None for one in proxy.requests)


def test_requests_of_another_client_pass_unchanged(
    s3_server: S3ServerInfo, direct: S3Store, bucket: str, proxy: FaultProxy
) -> None:
    """Arrow's client, which signs its bodies piece by piece, writes an upload in parts and reads it back."""
    files = S3FileSystem(
        access_key=s3_server.access_key,
        secret_key=s3_server.secret_key,
        region=REGION,
        scheme="http",
        endpoint_override=proxy.url.removeprefix("http://"),
    )
    with files.open_output_stream(f"{bucket}/arrow") as stream:
        stream.write(_BIG * 12)
    with files.open_input_file(f"{bucket}/arrow") as read:
        assert read.read() == _BIG * 12
    assert bytes(obstore.get(direct, "arrow").bytes()) == _BIG * 12
    assert all(one.status == one.server_status for one in proxy.requests)


class _Echo(BaseHTTPRequestHandler):
    """A server whose answer is the body of the request."""

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


def test_body_in_chunks_arrives_whole() -> None:
    """A client that waits for 100 Continue, then sends its body in chunks, is served."""
    with HTTPServer(("127.0.0.1", 0), _Echo) as server, FaultProxy(f"127.0.0.1:{server.server_port}") as made:
        answering = threading.Thread(target=server.handle_request)
        answering.start()
        with socket.create_connection(("127.0.0.1", int(made.url.rpartition(":")[2])), 60) as connection:
            connection.sendall(
                b"PUT /b/c HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            answers = connection.makefile("rb")
            assert answers.readline() + answers.readline() == b"HTTP/1.1 100 Continue\r\n\r\n"
            connection.sendall(b"4;x=y\r\nabcd\r\n3\r\nefg\r\n0\r\nTrailer: 1\r\n\r\n")
            assert answers.readline() == b"HTTP/1.1 200 OK\r\n"
            assert b"".join(iter(answers.readline, b"\r\n")).count(b"Content-Length: 7\r\n") == 1
            assert answers.read(7) == b"abcdefg"
            answers.close()
        answering.join()
        assert made.errors == []


def test_records_name_the_conditions(through: S3Store, bucket: str, proxy: FaultProxy) -> None:
    """A record has method, path, query, status, If-None-Match and Range of its request."""
    obstore.put(through, "r/a", b"0123456789", mode="create")
    obstore.get_range(through, "r/a", start=2, end=5)
    obstore.list(through, "r/").collect()
    put, get, listed = proxy.requests
    assert (put.method, put.path, put.status, put.if_none_match) == ("PUT", f"/{bucket}/r/a", 200, "*")
    assert (get.method, get.path, get.status, get.byte_range) == ("GET", f"/{bucket}/r/a", 206, "bytes=2-4")
    assert (listed.method, listed.path, listed.status) == ("GET", f"/{bucket}", 200)
    assert "list-type=2" in listed.asked.query
    proxy.forget()
    assert proxy.requests == ()


@pytest.mark.parametrize("kind", list(_SENT), ids=lambda kind: kind.name.lower())
def test_fault_of_a_write(kind: Kind, through: S3Store, direct: S3Store, proxy: FaultProxy) -> None:
    """The client gets an error; the object exists only if the fault comes after the write; the next write works."""
    key = f"w/{kind.name}"
    proxy.plan = once(kind, "PUT", key)
    with pytest.raises(BaseError) as lost:
        obstore.put(through, key, b"1", mode="create")
    assert isinstance(lost.value, AlreadyExistsError) == (kind is Kind.CONFLICT)
    assert [one["path"] for one in obstore.list(direct, "w").collect() if one["path"] == key] == (
        [key] if kind in _DONE else []
    )
    (seen,) = proxy.requests
    assert (seen.fault, seen.status) == (kind, _SENT[kind])
    assert seen.server_status == (200 if kind in _DONE else None)
    obstore.put(through, key, b"2")
    assert bytes(obstore.get(direct, key).bytes()) == b"2"


def test_truncated_body_is_an_error(through: S3Store, direct: S3Store, proxy: FaultProxy) -> None:
    """Half of a body is no shorter object: the client raises."""
    obstore.put(direct, "t", _BIG)
    proxy.plan = once(Kind.TRUNCATE, "GET", "/t")
    with pytest.raises(GenericError):
        obstore.get(through, "t").bytes()
    assert bytes(obstore.get(through, "t").bytes()) == _BIG


def test_late_answer_comes_after_the_write(through: S3Store, direct: S3Store, proxy: FaultProxy) -> None:
    """While the answer is held back the object is there, and the client has no answer yet."""
    reached, go = threading.Event(), threading.Event()

    def hold() -> None:
        reached.set()
        assert go.wait(60)

    proxy.plan = lambda asked: Fault(Kind.LATE, hold) if asked.method == "PUT" else None
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(obstore.put, through, "late", b"1", mode="create")
        assert reached.wait(60)
        assert bytes(obstore.get(direct, "late").bytes()) == b"1"
        assert not answer.done()
        go.set()
        assert answer.result(60)["e_tag"]


def test_threads_are_served_side_by_side(
    through: S3Store, direct: S3Store, bucket: str, proxy: FaultProxy
) -> None:
    """Eight reads are open at once, since each is held until all have come; a ninth after them makes a chain of two."""
    obstore.put(direct, "side", b"1")
    all_here = threading.Barrier(8)
    proxy.plan = lambda asked: Fault(Kind.LATE, lambda: all_here.wait(60)) if asked.count <= 8 else None
    with ThreadPoolExecutor(8) as pool:
        assert {bytes(one) for one in pool.map(lambda _: obstore.get(through, "side").bytes(), range(8))} == {
            b"1"
        }
    obstore.get(through, "side").bytes()
    assert most_at_once(proxy.requests) == 8
    assert longest_chain(proxy.requests) == 2
    assert [one.asked.count for one in sorted(proxy.requests, key=lambda one: one.start)] == list(
        range(1, 10)
    )


def test_requests_one_after_the_other_are_a_chain(through: S3Store, proxy: FaultProxy) -> None:
    """Ten writes of one thread are a chain of ten, however fast the client is."""
    for number in range(10):
        obstore.put(through, f"chain/{number}", b"1")
    assert longest_chain(proxy.requests) == 10
    assert most_at_once(proxy.requests) == 1


@pytest.mark.parametrize(
    ("spans", "chain", "at_once"),
    [
        ([], 0, 0),
        ([(0, 1)], 1, 1),
        ([(0, 1), (2, 3), (4, 5)], 3, 1),
        ([(0, 5), (1, 2), (3, 4)], 2, 2),
        ([(0, 3), (1, 4), (2, 5)], 1, 3),
        ([(0, 2), (1, 4), (3, 6), (5, 7)], 2, 2),
    ],
)
def test_longest_chain_counts_requests_that_do_not_overlap(
    spans: list[tuple[int, int]], chain: int, at_once: int
) -> None:
    """By hand: two requests are in sequence when one begins after the end of the other."""
    requests = [Request(Asked("GET", "/b/k", "", 1), None, 200, 200, start, end, {}) for start, end in spans]
    assert (longest_chain(requests), most_at_once(requests)) == (chain, at_once)


def test_seeded_plan_depends_on_the_request_alone() -> None:
    """One seed gives the same faults in whatever order requests come, another seed others, and about the share."""
    asked = [Asked("PUT", f"/b/{number}", "", count) for number in range(200) for count in (1, 2)]
    kinds = [Kind.DROP_AFTER, Kind.SLOW_DOWN]

    def faults(seed: int, order: Callable[[list[Asked]], list[Asked]]) -> dict[Asked, Kind | None]:
        plan = seeded(seed, 0.25, kinds)
        return {one: fault.kind if (fault := plan(one)) is not None else None for one in order(list(asked))}

    assert faults(1, list) == faults(1, lambda rows: rows[::-1])
    assert faults(1, list) != faults(2, list)
    hit = [kind for kind in faults(1, list).values() if kind is not None]
    assert 60 <= len(hit) <= 140
    assert set(hit) == set(kinds)


def test_server_that_is_away_is_a_dropped_connection(s3_server: S3ServerInfo, bucket: str) -> None:
    """Without a server the client gets an error and the record says that there was no answer."""
    with FaultProxy("127.0.0.1:1") as alone:
        with pytest.raises(GenericError):
            obstore.get(open_store(s3_server, bucket, url=alone.url), "a")
        (seen,) = alone.requests
        assert (seen.status, seen.server_status, alone.errors) == (None, None, [])
