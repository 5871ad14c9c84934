"""Scans in threads: beside each other, and beside commits, compactions and expiry."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Event

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tablestore_engine.api import Engine, NotFound, Table
from tablestore_engine.runtime.outside_world import SYSTEM
from tests.doses import cases, examples

SCHEMA = pa.schema({"id": pa.int64(), "version": pa.int64()})
ROWS = 500
READERS, COMMITS = 4, examples(8, 150)
_DAY_MS = 86_400_000


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Each commit gives all rows its number: a scan that mixes two states is seen."""
    made = Engine(str(tmp_path)).create_table("demo.t", SCHEMA, primary_key="id", options={"bucket": 3})
    made.upsert(_version(0))
    return made


def _version(number: int) -> pa.Table:
    return pa.table({"id": range(ROWS), "version": [number] * ROWS}, SCHEMA)


def _tomorrow(table: Table) -> Table:
    """The same table, for somebody whose clock is a day ahead."""
    runtime = replace(SYSTEM, now_ms=lambda: SYSTEM.now_ms() + _DAY_MS)
    return Engine(table.warehouse.address, runtime=runtime).table(str(table.identifier))


def test_scan_in_threads_at_once_gives_each_its_rows(table: Table) -> None:
    """Of one Scan object and of one handle: text filters, expressions, batches and limits beside each other."""
    scan, barrier = table.scan(filter="id < 100"), Barrier(READERS)

    def read(number: int) -> list[int]:
        barrier.wait()
        found = []
        for low in range(number, 400, 40):
            text = table.scan(filter=f"id >= {low} and id < {low + 50}").to_arrow().num_rows
            by_value = (
                table.scan(filter=(pc.field("id") >= low) & (pc.field("id") < low + 50)).to_arrow().num_rows
            )
            batches = sum(one.num_rows for one in scan.to_batches())
            limited = table.scan(limit=low + 1).to_arrow().num_rows
            found += [text - 50, by_value - 50, batches - 100, limited - low - 1]
        return found

    with ThreadPoolExecutor(READERS) as pool:
        for found in pool.map(read, range(READERS)):
            assert set(found) == {0}


@pytest.mark.parametrize("name", cases(["to_arrow", "to_batches", "filtered"], 1))
def test_scan_beside_commits_and_expiry_gives_one_state_or_an_error(table: Table, name: str) -> None:
    """Each answer is all rows of one commit; a scan whose snapshot has expired is NotFound, and never a part."""
    done, answers, expired = Event(), list[int](), list[int]()

    def write() -> None:
        """The clock of expiry is a day ahead, so that no grace period protects readers."""
        ahead = _tomorrow(table)
        try:
            for number in range(1, COMMITS + 1):
                table.upsert(_version(number))
                expired.append(ahead.expire(keep=1, older_than_ms=0).snapshots)
                if number % 5 == 0:
                    table.compact(full=True)
        finally:
            done.set()

    reads: dict[str, Callable[[], pa.Table]] = {
        "to_arrow": lambda: table.scan().to_arrow(),
        "to_batches": lambda: pa.table(table.scan(columns=["version", "id"])),
        "filtered": lambda: table.scan(filter="version >= 0 and id >= 0").to_arrow(),
    }

    def read(seed: int) -> None:
        chance, seen = random.Random(seed), -1
        while not done.is_set() or not answers:
            try:
                rows = reads[name]()
            except NotFound:
                continue
            except pa.ArrowInvalid as error:  # a stream carries an error as its text
                if "NotFound" not in str(error):
                    raise
                continue
            versions = set(rows["version"].to_pylist())
            assert (rows.num_rows, len(versions)) == (ROWS, 1)
            assert versions.pop() >= seen
            seen = rows["version"][0].as_py()
            answers.append(seen)
            done.wait(chance.random() * 0.002)

    with ThreadPoolExecutor(READERS + 1) as pool:
        work = [pool.submit(write), *(pool.submit(read, seed) for seed in range(READERS))]
        for one in work:
            one.result()
    assert table.scan().to_arrow()["version"].to_pylist() == [COMMITS] * ROWS
    assert answers
    assert sum(expired) > COMMITS / 2


def test_scan_whose_snapshot_expires_between_two_reads_is_an_error(table: Table) -> None:
    """The handle stays pinned: it never moves on to another state by itself."""
    scan = table.scan()
    assert scan.to_arrow()["version"][0].as_py() == 0
    for number in (1, 2):
        table.upsert(_version(number))
    table.compact(full=True)
    assert _tomorrow(table).expire(keep=1, older_than_ms=0).snapshots
    with pytest.raises(NotFound):
        scan.to_arrow()
