"""The simulated object store keeps the port's promises with and without faults; its times and its log are exact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore_engine.fileio.object_errors import StoreAnswerUnknown
from tablestore_engine.fileio.object_store import ObjectFileIO
from tests.doses import examples
from tests.doubles.faults import seeded_runtime
from tests.doubles.simulated_client import SimulatedFileIO
from tests.doubles.simulated_store import SimulatedStore
from tests.doubles.store_faults import AskedRequest, StoreFault, seeded_faults, stable_name
from tests.unit.fileio.conditional_promises import ConditionalPromises
from tests.unit.fileio.port_promises import PortPromises
from tests.unit.fileio.simulated_world import ROOT, cached_on, process_on, simulated
from tests.unit.store.table_world import make_table, put, row, rows_of

F = f"{ROOT}/f"


@pytest.fixture
def root() -> str:
    """The root of every simulated store."""
    return ROOT


@pytest.fixture
def fileio() -> SimulatedFileIO:
    """The port on a store without faults."""
    return process_on(simulated(), 1)


class TestSimulatedPromises(PortPromises, ConditionalPromises):
    """All promises of a store without folders."""


class TestPromisesWithFaults(PortPromises):
    """Retries and tokens of ObjectFileIO keep them while requests fail and answers are lost."""

    @pytest.fixture(params=[0.05, 0.2])
    def fileio(self, request: pytest.FixtureRequest) -> SimulatedFileIO:
        """The port on a store with faults."""
        return process_on(simulated(seeded_faults(5, request.param), slow_list_rate=0.1), 1)


def first(kind: StoreFault, method: str = "PUT") -> Callable[[AskedRequest], StoreFault | None]:
    """The first request of the method on each name meets the fault."""
    return lambda asked: kind if asked.method == method and asked.count == 1 else None


@pytest.mark.parametrize("kind", StoreFault)
def test_create_with_any_fault_has_one_winner(kind: StoreFault) -> None:
    """The owner of the object learns that he is it, though its answer is lost or late; nobody else wins."""
    store = simulated(first(kind))
    mine, other = process_on(store, 1), process_on(store, 2)
    assert mine.create_exclusive(F, b"same bytes")
    assert not other.create_exclusive(F, b"same bytes")
    assert not mine.create_exclusive(F, b"same bytes")
    assert store.requests[0].outcome == kind.name


@pytest.mark.parametrize("kind", StoreFault)
def test_create_of_a_taken_name_with_any_fault_is_lost(kind: StoreFault) -> None:
    """The name is another's with the very same bytes: they are not taken for the caller's."""
    store = simulated(lambda asked: kind if asked.method == "PUT" and asked.count == 2 else None)
    assert process_on(store, 1).create_exclusive(F, b"same bytes")
    assert not process_on(store, 2).create_exclusive(F, b"same bytes")


@pytest.mark.parametrize("kind", StoreFault)
def test_compare_and_set_with_any_fault_is_acknowledged(kind: StoreFault) -> None:
    """The writer learns that its content is there, though the first answer is lost or late."""
    store = simulated()
    process = process_on(store, 1)
    process.write(F, b"1")
    seen = process.read_seen(F)
    store.plan = lambda asked: kind if asked.method == "PUT" and asked.count == 2 else None
    assert process.replace_if(F, b"2", seen)
    assert process.read(F) == b"2"
    assert kind.name in {one.outcome for one in store.requests}


def test_late_put_of_a_repeated_claim_changes_nothing() -> None:
    """The first put is done after the repeated one has won: its condition fails, and the object stays."""
    store = simulated(first(StoreFault.LATE))
    process = process_on(store, 1)
    assert process.create_exclusive(F, b"1")
    assert process.replace_if(F, b"2", process.read_seen(F))
    for _ in range(30):
        assert process.read(F) == b"2"


def _claims(store: SimulatedStore, seed: int, count: int) -> list[bool | None]:
    """Claims of so many processes on one name, in threads; None for an outcome that stays open."""

    def claim(number: int) -> bool | None:
        try:
            return process_on(store, seed * 100 + number).create_exclusive(F, b"%d" % number)
        except StoreAnswerUnknown:
            return None

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(claim, range(count)))


@given(seed=st.integers(0, 10_000), rate=st.sampled_from([0.1, 0.5]))
@settings(max_examples=examples(25, 1_000), deadline=None)
def test_claims_at_once_with_faults_have_one_winner(seed: int, rate: float) -> None:
    """Of eight processes exactly one wins, and the object has its bytes; an open outcome may be the winner's."""
    store = simulated(seeded_faults(seed, rate), seed)
    won = _claims(store, seed, 8)
    winner = int(store.objects["warehouse/f"].data)
    assert won.count(True) <= 1
    assert won[winner] is not False
    assert won[winner] is True or True not in won


@given(seed=st.integers(0, 10_000), rate=st.sampled_from([0.1, 0.5]))
@settings(max_examples=examples(25, 1_000), deadline=None)
def test_counter_by_compare_and_set_with_faults_loses_nothing(seed: int, rate: float) -> None:
    """Each acknowledged replacement is counted once; one whose outcome stays open at most once."""
    store = simulated(seed=seed)
    process = process_on(store, seed)
    process.write(F, b"0 first")
    store.plan = seeded_faults(seed, rate)
    done, is_open = 0, 0
    for number in range(12):
        try:
            seen = process.read_seen(F)
            count = int(seen.data.split()[0]) + 1
            done += process.replace_if(F, b"%d by %d" % (count, number), seen)
        except StoreAnswerUnknown:
            is_open += 1
    store.plan = lambda _: None
    assert done <= int(process.read(F).split()[0]) <= done + is_open


def test_same_seed_gives_the_same_log() -> None:
    """Requests, outcomes and times of two runs are equal; another seed has other faults."""

    def run(seed: int) -> list[object]:
        store = simulated(seeded_faults(seed, 0.2), seed, slow_list_rate=0.3)
        process = process_on(store, 1)
        process.run_together([partial(process.write, f"{ROOT}/{n}", bytes(n)) for n in range(40)])
        process.list(ROOT)
        process.delete_tree(f"{ROOT}/7")
        return list(store.requests)

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_same_seed_gives_the_same_run_of_a_table() -> None:
    """Faults, retries and names of a table's commits are equal, though the bytes of Avro files are not."""

    def run() -> list[tuple[str, str, str]]:
        store = simulated(seeded_faults(3, 0.1), 3)
        table = make_table(ROOT, runtime=seeded_runtime(1), fileio=cached_on(store, 2))
        for number in range(5):
            put(table, row(number), row(number + 1, f"v{number}"))
        table.compact(full=True)
        assert len(rows_of(table)) == 6
        return [(one.method, stable_name(one.key), one.outcome) for one in store.requests]

    assert run() == run()


def test_time_of_calls_at_once_is_that_of_the_lanes(fileio: SimulatedFileIO) -> None:
    """Forty puts on sixteen lanes take three latencies; one after the other they take forty."""
    fileio.run_together([partial(fileio.write, f"{ROOT}/{n}", b"") for n in range(40)])
    begin = fileio.store.requests[0].begin_s
    assert fileio.store.time.now_s - begin == pytest.approx(3 * 0.03)
    for n in range(40):
        fileio.read(f"{ROOT}/{n}")
    assert fileio.store.time.now_s - begin == pytest.approx(43 * 0.03)


def test_bytes_take_time_by_the_bandwidth() -> None:
    """A put of two million bytes over a connection of a million bytes each second."""
    store = simulated(latency_s=0.5, bytes_per_s=1e6)
    begin = store.time.now_s
    process_on(store, 1).write(F, bytes(2_000_000))
    assert store.time.now_s - begin == pytest.approx(2.5)


def test_pauses_of_retries_take_simulated_time(fileio: SimulatedFileIO) -> None:
    """Three refused puts: four latencies, and three pauses of at least 0.02, 0.04 and 0.08 s."""
    fileio.store.plan = lambda asked: StoreFault.SLOW_DOWN if asked.count <= 3 else None
    begin = fileio.store.time.now_s
    fileio.replace(F, b"")
    taken = fileio.store.time.now_s - begin
    assert 4 * 0.03 + 0.14 <= taken <= 4 * 0.03 + 0.7


def test_too_many_requests_in_a_second_are_throttled_and_repeated() -> None:
    """A limit of ten writes each second: all sixty land, over several seconds."""
    store = simulated(latency_s=0.01, writes_per_s=10)
    process = process_on(store, 1)
    begin = store.time.now_s
    process.run_together([partial(process.write, f"{ROOT}/{n}", b"") for n in range(60)])
    assert len(store.objects) == 60
    assert Counter(one.outcome for one in store.requests)["SLOW_DOWN"] > 0
    assert store.time.now_s - begin >= 5


def test_a_listing_has_pages_of_a_thousand_names(fileio: SimulatedFileIO) -> None:
    """2,500 files and a folder of as many: three pages with the folder as one name; delete_tree lists five more."""
    for n in range(2_500):
        fileio.store.put(f"warehouse/t/{n:04}", b"", {})
        fileio.store.put(f"warehouse/t/m/{n:04}", b"", {})
    assert len(fileio.list(f"{ROOT}/t")) == 2_501
    assert Counter(one.method for one in fileio.store.requests) == {"LIST": 3}
    fileio.delete_tree(f"{ROOT}/t")
    assert Counter(one.method for one in fileio.store.requests) == {"LIST": 8, "POST": 5, "DELETE": 1}
    assert fileio.store.objects == {}


@pytest.mark.parametrize("kind", StoreFault)
def test_a_large_file_is_uploaded_in_parts_with_any_fault(kind: StoreFault) -> None:
    """30 MiB: begin, three parts, end; the object appears whole though an answer is lost."""
    store = simulated(lambda asked: kind if asked.count == 2 else None)
    process, block = process_on(store, 1), bytes(range(256)) * 4096
    with process.open_output(F) as sink:
        for _ in range(30):
            sink.write(block)
        assert store.objects == {}
    assert process.read(F) == block * 30


def test_simulated_client_gives_what_the_port_does_not_add() -> None:
    """Only ObjectFileIO repeats: without it a refused request is refused once."""
    assert SimulatedFileIO.create_exclusive is ObjectFileIO.create_exclusive
    assert SimulatedFileIO.read is ObjectFileIO.read
