"""One of several processes that claim, or commit, on one bucket at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.synchronize import Barrier

import pyarrow as pa

from integration_tests.s3.warehouses import open_files
from tablestore_engine.api import Engine, WriteSpec
from tablestore_engine.runtime.outside_world import SYSTEM


def claim_rounds(place: str, rounds: int, threads: int, process: int, barrier: Barrier) -> Sequence[int]:
    """In each round all threads of all processes claim one name; how many of this process won in each.

    The object holds `process/thread` of the winner, which is checked here.
    """
    files, won = [open_files(place, runtime=SYSTEM) for _ in range(threads)], []

    def claim(number: int, thread: int) -> bool:
        name = f"{files[thread].root}/claims/{number}"
        is_won = files[thread].create_exclusive(name, f"{process}/{thread}".encode())
        if is_won:
            assert files[thread].read(name) == f"{process}/{thread}".encode()
        return is_won

    with ThreadPoolExecutor(threads) as pool:
        for number in range(rounds):
            barrier.wait()
            won.append(sum(pool.map(claim, [number] * threads, range(threads))))
    return won


def commit_rows(place: str, commits: int, process: int, barrier: Barrier) -> Sequence[int]:
    """Commits of ten rows of this process's own keys; the ids of their snapshots."""
    with Engine(place) as engine:
        barrier.wait()
        return [
            int(engine.write("demo.t", rows_of(process, number), WriteSpec()).snapshot_id or 0)
            for number in range(commits)
        ]


def rows_of(process: int, number: int) -> pa.Table:
    """Ten rows whose keys nobody else writes."""
    first = process * 1_000 + number * 10
    return pa.table(
        {"id": pa.array(range(first, first + 10), pa.int64()), "text": [f"{process}/{number}"] * 10}
    )
