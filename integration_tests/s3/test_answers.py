"""Lost, late and false answers of the store: a claim is won once, by its owner, and every other request is repeated."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from integration_tests.s3.fault_proxy import Asked, Fault, FaultProxy, Kind, Plan, late, once
from integration_tests.s3.warehouses import address, hurried, open_files
from tablestore_engine.devservers.s3_server import S3ServerInfo
from tablestore_engine.errors import StorageError, StoreAnswerUnknown
from tablestore_engine.fileio.object_store import ObjectFileIO

_NUMBERS = count()
_AMBIGUOUS = [Kind.DROP_BEFORE, Kind.DROP_AFTER, Kind.ERROR_AFTER, Kind.SLOW_DOWN, Kind.CONFLICT]


@pytest.fixture
def root(bucket: str) -> str:
    """A prefix of its own."""
    return f"s3://{bucket}/answers-{next(_NUMBERS)}"


@pytest.fixture
def behind(root: str, bucket: str, proxy: FaultProxy, credentials: None) -> ObjectFileIO:
    """The file system behind the proxy."""
    return open_files(address(bucket, root.rpartition("/")[2], proxy.url, timeout_s=2))


@pytest.fixture
def direct(root: str, bucket: str, s3_server: S3ServerInfo, credentials: None) -> ObjectFileIO:
    """The same one without the proxy."""
    return open_files(address(bucket, root.rpartition("/")[2], s3_server.url))


@pytest.mark.parametrize("kind", _AMBIGUOUS)
def test_a_claim_without_an_answer_is_won_by_its_owner(
    behind: ObjectFileIO, direct: ObjectFileIO, root: str, proxy: FaultProxy, kind: Kind
) -> None:
    """Whether the put was done or not, the owner of the object learns that he is it, and nobody else wins."""
    proxy.plan = once(kind, "PUT", "/claim")
    assert behind.create_exclusive(f"{root}/claim", b"mine")
    assert direct.read(f"{root}/claim") == b"mine"
    assert not behind.create_exclusive(f"{root}/claim", b"mine")
    assert not direct.create_exclusive(f"{root}/claim", b"other")
    assert [one.fault for one in proxy.requests if one.fault is not None] == [kind]


@pytest.mark.parametrize("kind", _AMBIGUOUS)
def test_a_lost_claim_without_an_answer_stays_lost(
    behind: ObjectFileIO, direct: ObjectFileIO, root: str, proxy: FaultProxy, kind: Kind
) -> None:
    """The name is another's with the very same bytes: they are not taken for our own."""
    assert direct.create_exclusive(f"{root}/claim", b"same")
    proxy.plan = once(kind, "PUT", "/claim")
    assert not behind.create_exclusive(f"{root}/claim", b"same")


@pytest.mark.nightly  # by day claims without an answer, above
def test_an_answer_after_the_time_out_is_read_back(
    behind: ObjectFileIO, root: str, proxy: FaultProxy
) -> None:
    """The put is done, its answer comes when nobody waits any more."""

    def plan(asked: Asked) -> Fault | None:
        return late(3.0) if asked.method == "PUT" and asked.count == 1 else None

    proxy.plan = plan
    assert behind.create_exclusive(f"{root}/claim", b"mine")


def test_a_claim_that_nobody_can_read_back_stays_open(
    behind: ObjectFileIO, direct: ObjectFileIO, root: str, proxy: FaultProxy
) -> None:
    """The put is done, and no request gets an answer: an OSError, on which the caller deletes nothing."""
    proxy.plan = lambda asked: Fault(Kind.DROP_AFTER if asked.method == "PUT" else Kind.DROP_BEFORE)
    with pytest.raises(StoreAnswerUnknown):
        behind.create_exclusive(f"{root}/claim", b"mine")
    assert direct.read(f"{root}/claim") == b"mine"


def test_a_check_that_fails_behind_a_lost_put_leaves_the_outcome_open(
    behind: ObjectFileIO, root: str, proxy: FaultProxy
) -> None:
    """The first put may still land: the error of the check would let the caller delete what the claim names."""
    proxy.plan = once(Kind.DROP_BEFORE, "PUT", "/claim")
    checks = iter([False, True])

    def check() -> None:
        if next(checks):
            raise KeyError("void")

    with pytest.raises(StoreAnswerUnknown):
        behind.create_exclusive(f"{root}/claim", b"mine", check=check)


def test_a_refused_upload_has_an_error_of_the_port(
    behind: ObjectFileIO, root: str, proxy: FaultProxy
) -> None:
    """403 when a large file begins or ends its upload: TS1264, and no object."""

    def upload() -> None:
        with behind.open_output(f"{root}/large") as sink:
            for _ in range(5):
                sink.write(bytes(5 << 20))

    proxy.plan = lambda asked: Fault(Kind.FORBIDDEN) if asked.method in ("POST", "PUT") else None
    with pytest.raises(StorageError, match="TS1264"):
        upload()
    assert not behind.exists(f"{root}/large")


def _every_call_once(files: ObjectFileIO, root: str) -> None:
    files.write(f"{root}/w/a", b"abc")
    files.replace(f"{root}/w/r", b"old")
    files.replace(f"{root}/w/r", b"new")
    with files.open_output(f"{root}/w/o") as sink:
        sink.write(b"0123456789")
    with files.open_input(f"{root}/w/o") as source:
        source.seek(4)
        assert source.read(3) == b"456"
    files.copy(f"{root}/w/a", f"{root}/w/c")
    assert (files.read(f"{root}/w/c"), files.read(f"{root}/w/r"), files.size(f"{root}/w/o")) == (
        b"abc",
        b"new",
        10,
    )
    assert [one.name for one in files.list(f"{root}/w")] == ["a", "c", "o", "r"]
    assert files.exists(f"{root}/w")
    assert not files.exists(f"{root}/none")
    files.delete(f"{root}/w/a")
    files.delete_tree(f"{root}/w")
    assert files.list(root) == []


def _first_of_each(kind: Kind) -> Plan:
    """Every request meets the fault when it is made for the first time."""
    return lambda asked: Fault(kind) if asked.count == 1 else None


@pytest.mark.parametrize("kind", [*_AMBIGUOUS, Kind.TRUNCATE])
def test_every_call_outlives_a_fault_of_each_request(
    behind: ObjectFileIO, root: str, proxy: FaultProxy, kind: Kind
) -> None:
    """Reads, puts, copies, listings and deletes are repeated, and a put that was done is not taken for another's."""
    proxy.plan = _first_of_each(kind)
    _every_call_once(behind, root)
    assert len([one for one in proxy.requests if one.fault is not None]) > 10


def test_a_busy_store_is_asked_again_with_growing_pauses(
    root: str, bucket: str, proxy: FaultProxy, credentials: None, caplog: pytest.LogCaptureFixture
) -> None:
    """503 SlowDown: the pauses grow, bounded and jittered, the user is told once, and the call ends with the store's
    words.
    """
    pauses: list[float] = []
    files = open_files(address(bucket, root.rpartition("/")[2], proxy.url), runtime=hurried(pauses.append))
    proxy.plan = lambda _: Fault(Kind.SLOW_DOWN)
    with pytest.raises(StoreAnswerUnknown, match="SlowDown"):
        files.read(f"{root}/x")
    assert len(pauses) == len(proxy.requests) - 1 > 4
    assert max(pauses) <= 10.0
    assert sum(pauses[3:]) > sum(pauses[:3])
    (told,) = caplog.messages
    assert "SlowDown" in told
    assert f"{root}/x" in told


def test_a_refusal_is_not_repeated(behind: ObjectFileIO, root: str, proxy: FaultProxy) -> None:
    """403: nothing was done, one request, TS1264 with the permissions that are needed."""
    calls: list[Callable[[], object]] = [
        lambda: behind.read(f"{root}/x"),
        lambda: behind.write(f"{root}/y", b"1"),
        lambda: behind.list(root),
        lambda: behind.delete(f"{root}/x"),
        lambda: behind.create_exclusive(f"{root}/claim", b"1"),
    ]
    for call in calls:
        proxy.forget()
        proxy.plan = lambda _: Fault(Kind.FORBIDDEN)
        with pytest.raises(StorageError, match="TS1264") as refused:
            call()
        assert "list, get, put and delete" in str(refused.value)
        assert len(proxy.requests) == 1
