"""Writers of one table in turns: the order, whom nobody waits for, and that losers come through (issue 37, 5.3)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TypeVar

import pytest

from tablestore_engine.fileio.base import FileStatus
from tablestore_engine.fileio.object_cache import CachedFileIO
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.schema import new_schema
from tablestore_engine.store.commit.commit_queue import CommitQueue, patience_ms, turns_ahead
from tablestore_engine.store.table_store import TableStore
from tests.doubles.faults import seeded_runtime
from tests.doubles.memory_store import MemoryFileIO
from tests.doubles.request_counts import CountingFileIO
from tests.unit.catalog.test_flat_store import ARROW, NAME, OPTIONS, catalog
from tests.unit.store.table_world import put, row

T = TypeVar("T")
START_MS = 1_700_000_000_000
REQUEST_S = 0.03


def turn(number: int, modified_ms: int, expected_ms: int = 100) -> FileStatus:
    """A file as it is listed."""
    name = f"turn-{number}-{expected_ms}-0a0b-{number}"
    return FileStatus(f"expire/{name}", name, 0, modified_ms, is_dir=False)


def test_turns_are_ordered_by_the_time_of_the_store() -> None:
    """A writer whose clock is wrong gets no better place; within one second the names decide; other files are none."""
    early, late, later = turn(9, 1_000), turn(1, 2_000), turn(2, 2_000)
    other = replace(early, name="sweep-0a", path="expire/sweep-0a")
    found = [later, other, late, early]
    assert turns_ahead(found, later.name, frozenset()) == (early.name, late.name)
    assert turns_ahead(found, early.name, frozenset()) == ()
    assert turns_ahead(found, None, frozenset({late.name})) == (early.name, later.name)


def test_patience_grows_with_the_work_and_has_a_bound() -> None:
    """A commit of minutes is waited for; a planted name is not, beyond ten minutes."""
    assert patience_ms(turn(1, 0, expected_ms=200).name) == 2_800
    assert patience_ms(turn(1, 0, expected_ms=999_999_999).name) == 600_000


@dataclass
class Lanes:
    """Virtual time of threads that run one at a time: each sleeps until its moment, and the earliest goes on."""

    now_s: float = START_MS / 1000
    _wake: dict[int, float] = field(default_factory=dict)
    _turn: threading.Condition = field(default_factory=threading.Condition)
    _ids: dict[int, int] = field(default_factory=dict)

    def now_ms(self) -> int:
        """Epoch milliseconds."""
        return int(self.now_s * 1000)

    def sleep(self, seconds: float) -> None:
        """Of the calling thread."""
        lane = self._ids.get(threading.get_ident())
        if lane is None:
            self.now_s += seconds
            return
        with self._turn:
            self._wake[lane] += seconds
            self._wait(lane)

    def _wait(self, lane: int) -> None:
        self._turn.notify_all()
        self._turn.wait_for(lambda: min((at, one) for one, at in self._wake.items())[1] == lane)
        self.now_s = self._wake[lane]

    def run(self, works: Sequence[Callable[[], None]]) -> None:
        """Each in a thread of its own."""
        self._wake = dict.fromkeys(range(len(works)), self.now_s)
        problems: list[BaseException] = []

        def lane(number: int, work: Callable[[], None]) -> None:
            self._ids[threading.get_ident()] = number
            try:
                with self._turn:
                    self._wait(number)
                work()
            except BaseException as problem:  # noqa: BLE001 - raised below, when all threads have ended
                problems.append(problem)
            finally:
                with self._turn:
                    del self._wake[number]
                    self._turn.notify_all()

        threads = [threading.Thread(target=lane, args=one) for one in enumerate(works)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        if problems:
            raise problems[0]


class SlowStore(CountingFileIO):
    """Each round trip takes virtual time; requests that are made together take that of one."""

    def __init__(self, inner: MemoryFileIO, lanes: Lanes) -> None:
        super().__init__(inner)
        self.lanes, self._together = lanes, 0

    def _ask(self, method: str, path: str) -> None:
        super()._ask(method, path)
        if not self._together:
            self.lanes.sleep(REQUEST_S)

    def run_together(self, calls: Sequence[Callable[[], T]]) -> Sequence[T]:
        """As FileIO. The time passes before the first of them."""
        before = self._now
        self._together += 1
        try:
            found = super().run_together(calls)
        finally:
            self._together -= 1
        if not self._together:
            self.lanes.sleep(REQUEST_S * (self._now - before))
        return found


def seconds_of_commits(writers: int, commits: int) -> list[list[float]]:
    """How long each commit of each writer took at 30 ms a request, all of them on one bucket."""
    lanes = Lanes()
    store = MemoryFileIO("mem://warehouse", lanes.now_ms)
    catalog(store).create_database("demo")
    catalog(store).create_table(NAME, new_schema(ARROW, primary_keys=["id"], options=OPTIONS))
    taken: list[list[float]] = [[] for _ in range(writers)]

    def work(number: int) -> None:
        runtime = replace(seeded_runtime(number), now_ms=lanes.now_ms, sleep=lanes.sleep)
        table = TableStore(CachedFileIO(SlowStore(store, lanes)), catalog(store).location(NAME), runtime)
        for turn in range(commits):
            began = lanes.now_s
            put(table, row(number * 1_000 + turn))
            taken[number].append(lanes.now_s - began)

    lanes.run([lambda number=number: work(number) for number in range(writers)])  # type: ignore[misc]  # a default
    found = TableStore(store, catalog(store).location(NAME), seeded_runtime())
    assert found.verify() == ()
    assert not [path for path in store.objects if "/expire/turn-" in path]
    return taken


@pytest.mark.parametrize(("writers", "commits"), [(2, 12), (8, 4)])
def test_slowest_commit_of_writers_in_each_others_way_is_bounded(writers: int, commits: int) -> None:
    """Every request takes 30 ms of virtual time: the slowest commit takes at most five times the median."""
    taken = seconds_of_commits(writers, commits)
    every = sorted(one for of_one in taken for one in of_one)
    assert every[-1] <= 5 * median(every), every


def test_turn_of_a_writer_that_died_is_waited_for_once() -> None:
    """Its patience passes, then it is deleted, and the next writer does not wait at all."""
    lanes = Lanes()
    store = MemoryFileIO("mem://warehouse", lanes.now_ms)
    layout = TableLayout("mem://warehouse/demo.db/t")
    store.write(f"{layout.sweeps_dir}/turn-1-100-0a", b"")
    lanes.now_s += 1
    waits = []
    for _ in range(2):
        queue = CommitQueue(store, layout, replace(seeded_runtime(), now_ms=lanes.now_ms, sleep=lanes.sleep))
        began = lanes.now_s
        queue.wait(300)
        waits.append(lanes.now_s - began)
        queue.leave()
    assert 2.4 < waits[0] < 2.6
    assert waits[1] == 0
    assert not store.objects
