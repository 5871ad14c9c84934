"""Requests that a real S3 server gets: as many as are counted without one, and at once (decision 0065)."""

from __future__ import annotations

import itertools
import threading
from collections import Counter

import pyarrow as pa
import pytest

from integration_tests.s3.fault_proxy import Asked, Fault, FaultProxy, Kind, most_at_once
from integration_tests.s3.warehouses import address
from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.fileio.object_cache import CachedFileIO
from tests.doubles.memory_store import MemoryFileIO
from tests.doubles.request_counts import CountingFileIO

NAME = "demo.t"
TABLE = WriteSpec(TableSpec(primary_key=("id",)))
WAIT_SECONDS = 60


def _rows(first: int, count: int, value: str) -> pa.Table:
    return pa.table({"id": range(first, first + count), "value": [value] * count})


def _prepare(engine: Engine) -> None:
    engine.write(NAME, _rows(0, 10_000, "a"), TABLE)
    engine.write(NAME, _rows(9_900, 100, "b"), TABLE)


def _kinds(requests: Counter[str]) -> Counter[str]:
    """A listing is a GET, a copy a PUT."""
    same = {"LIST": "GET", "COPY": "PUT"}
    found: Counter[str] = Counter()
    for method, count in requests.items():
        found[same.get(method, method)] += count
    return found


@pytest.mark.usefixtures("credentials")
def test_requests_are_those_that_are_counted_without_a_server(
    bucket: str, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upsert of 100 rows by a process that stays, and by a new one: request by request, by method."""
    place = address(bucket, "counted", proxy.url)
    store = MemoryFileIO("mem://warehouse", itertools.count(1_700_000_000_000).__next__)
    counter = CountingFileIO(store)
    real = Engine(place)
    with monkeypatch.context() as patch:
        opened = ("mem://warehouse", CachedFileIO(counter))
        patch.setattr("tablestore_engine.warehouse.warehouse.open_root", lambda *_: opened)
        modelled = Engine("warehouse")
    for engine in (real, modelled):
        _prepare(engine)
    proxy.forget()
    counter.restart()
    for engine in (real, modelled):
        engine.write(NAME, _rows(9_950, 100, "c"), TABLE)
    assert Counter(one.method for one in proxy.requests) == _kinds(counter.by_method())
    assert len(proxy.requests) == counter.total


@pytest.mark.usefixtures("credentials")
def test_files_of_one_step_are_put_at_once(bucket: str, proxy: FaultProxy) -> None:
    """The first put of a manifest is answered when the second one is there: a sequence would wait for ever."""
    engine = Engine(address(bucket, "at-once", proxy.url))
    _prepare(engine)
    both = threading.Barrier(2)
    waited: list[str] = []

    def plan(asked: Asked) -> Fault | None:
        if asked.method != "PUT" or "/manifest/" not in asked.path or len(waited) == 2:
            return None
        waited.append(asked.path)
        return Fault(Kind.LATE, lambda: both.wait(WAIT_SECONDS))

    proxy.forget()
    proxy.plan = plan
    engine.write(NAME, _rows(9_950, 100, "c"), TABLE)
    assert len(waited) == 2
    assert most_at_once(proxy.requests) >= 2
    assert engine.table(NAME).verify() == ()
