"""Processes that race on one bucket: a claim has one winner, and a commit of each process is in the table once."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import count
from typing import Any

import pytest

from integration_tests.s3 import racing_child
from integration_tests.s3.warehouses import address
from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.devservers.s3_server import S3ServerInfo
from tests.doses import examples

_NUMBERS = count()


@pytest.fixture
def place(bucket: str, s3_server: S3ServerInfo, credentials: None) -> str:
    """A warehouse of its own."""
    return address(bucket, f"races-{next(_NUMBERS)}", s3_server.url)


def _in_processes(count: int, work: Callable[..., Sequence[int]], *arguments: Any) -> list[Sequence[int]]:
    """The same work in processes that begin at once; the client of the store must not cross a fork."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager:
        barrier = manager.Barrier(count)
        with ProcessPoolExecutor(count, mp_context=context) as pool:
            running = [pool.submit(work, *arguments, number, barrier) for number in range(count)]
            return [one.result() for one in running]


@pytest.mark.nightly  # by day commits of processes at once, below
def test_of_32_racing_claims_of_two_processes_one_wins(place: str) -> None:
    """In every round, whoever it is, and the object holds the winner's bytes."""
    rounds = examples(by_day=40, by_night=1000)
    first, second = _in_processes(2, racing_child.claim_rounds, place, rounds, 16)
    assert [one + other for one, other in zip(first, second, strict=True)] == [1] * rounds


def test_commits_of_processes_at_once_are_all_there_once(place: str) -> None:
    """Each acknowledged snapshot is one commit; the ids have no gap, and no row is lost or doubled."""
    count, commits = examples(by_day=4, by_night=8), examples(by_day=2, by_night=12)
    with Engine(place) as engine:
        engine.create_database("demo")
        empty = racing_child.rows_of(0, 0).slice(0, 0)
        engine.write("demo.t", empty, WriteSpec(table=TableSpec(primary_key=("id",))))
    acknowledged = [
        one for ids in _in_processes(count, racing_child.commit_rows, place, commits) for one in ids
    ]
    with Engine(place) as engine:
        rows = engine.table("demo.t").scan().to_arrow()
        appended = [one.id for one in engine.table("demo.t").snapshots() if one.commit_kind == "APPEND"]
        assert engine.table("demo.t").verify() == ()
    assert sorted(acknowledged) == sorted(set(acknowledged))
    assert set(acknowledged) <= set(appended)
    wanted = [
        key
        for p in range(count)
        for n in range(commits)
        for key in racing_child.rows_of(p, n)["id"].to_pylist()
    ]
    assert sorted(rows["id"].to_pylist()) == sorted(wanted)
