"""A store in which several writers can win one name is refused before anything is committed there."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import pyarrow as pa
import pytest

from integration_tests.s3.fault_proxy import Asked, Fault, FaultProxy, Kind, Plan
from integration_tests.s3.warehouses import address, hurried, open_files
from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.devservers.s3_server import S3ServerInfo
from tablestore_engine.errors import StorageError, Unsupported
from tablestore_engine.fileio.store_races import MAX_AGE_MS, ROUNDS, WRITERS, RaceCheck
from tests.doses import cases

NAME = "demo.t"
TABLE = WriteSpec(TableSpec(primary_key=("id",)))
_NUMBERS = itertools.count()


@pytest.fixture
def prefix() -> str:
    """A warehouse of its own."""
    return f"raced-{next(_NUMBERS)}"


def ignores_the_condition(asked: Asked) -> Fault | None:
    """As s3rver does."""
    return Fault(Kind.ALSO_WON) if asked.method == "PUT" else None


def two_winners_in_one_race(asked: Asked) -> Fault | None:
    """As S3Mock does: puts in sequence keep the condition."""
    is_raced = "/race-" in asked.path and asked.count <= 2
    return Fault(Kind.ALSO_WON) if asked.method == "PUT" and is_raced else None


def rows(value: str) -> pa.Table:
    """One row."""
    return pa.table({"id": [1], "value": [value]})


@pytest.mark.nightly  # by day test_bad_inputs.py: a store without conditional puts
@pytest.mark.usefixtures("credentials")
@pytest.mark.parametrize("plan", cases([two_winners_in_one_race, ignores_the_condition], 1))
def test_upsert_in_an_existing_database_of_an_unsafe_store_is_refused(
    bucket: str, s3_server: S3ServerInfo, proxy: FaultProxy, prefix: str, plan: Plan
) -> None:
    """TS1203 although the database and the table are there; no snapshot was put, and the rows are as before."""
    with Engine(address(bucket, prefix, s3_server.url)) as safe:
        safe.write(NAME, rows("before"), TABLE)
        proxy.plan = plan
        for _ in range(2):  # a failed check is not remembered
            with (
                Engine(address(bucket, prefix, proxy.url)) as unsafe,
                pytest.raises(Unsupported, match=rf"TS1203[\s\S]*of {WRITERS} conditional puts"),
            ):
                unsafe.write(NAME, rows("after"), TABLE)
        assert not [one for one in proxy.requests if one.method == "PUT" and "/snapshot/" in one.path]
        assert safe.table(NAME).scan().to_arrow()["value"].to_pylist() == ["before"]
        assert safe.table(NAME).verify() == ()


@pytest.mark.usefixtures("credentials")
def test_passed_check_is_remembered_in_the_warehouse_for_its_store_and_a_while(
    bucket: str, proxy: FaultProxy, prefix: str
) -> None:
    """Another process reads one object; after a week, under another store's name, or damaged, it races again."""
    files = open_files(address(bucket, prefix, proxy.url))
    day = 1_000 * MAX_AGE_MS

    def puts(store: str, now_ms: int) -> int:
        proxy.forget()
        check = RaceCheck(store, replace(hurried(), now_ms=lambda: now_ms), passed=set())
        check.ensure(files)
        first = len(proxy.requests)
        check.ensure(files)
        assert len(proxy.requests) == first  # this process knows
        return sum(one.method == "PUT" for one in proxy.requests)

    raced = ROUNDS * WRITERS + 1
    assert puts("s3 one", day) == raced
    assert puts("s3 one", day + MAX_AGE_MS) == 0
    assert len(proxy.requests) == 1
    assert puts("s3 one", day + MAX_AGE_MS + 1) == raced
    assert puts("s3 one", day) == raced  # the date is in the future
    assert puts("s3 two", day) == raced
    for damaged in (b"{", b"[]", json.dumps({"store": "s3 two"}).encode()):
        files.replace(f"{files.root}/.tablestore/races-passed.json", damaged)
        assert puts("s3 two", day) == raced
    assert list(files.list(files.root)) == []


@pytest.mark.usefixtures("credentials")
@pytest.mark.parametrize("kind", cases([Kind.SLOW_DOWN, Kind.FORBIDDEN], 1))
def test_check_without_any_answered_put_is_no_pass(
    bucket: str, proxy: FaultProxy, prefix: str, kind: Kind
) -> None:
    """Refused puts are an error; the same store is checked again and passes when it answers."""
    files = open_files(address(bucket, prefix, proxy.url))
    passed: set[str] = set()
    proxy.plan = lambda asked: Fault(kind) if asked.method == "PUT" else None
    with pytest.raises((StorageError, OSError), match=r"TS126[46]"):
        RaceCheck("s3 one", hurried(), passed).ensure(files)
    assert passed == set()
    proxy.plan = lambda _: None
    RaceCheck("s3 one", hurried(), passed).ensure(files)
    assert passed == {"s3 one"}
