"""A warehouse on a simulated object store: seconds that round trips take, and the right rows while requests fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tablestore_engine.api import Engine, TableSpec, WriteMode, WriteSpec
from tests.doses import examples
from tests.doubles.faults import seeded_runtime
from tests.doubles.simulated_store import SimulatedStore
from tests.doubles.store_faults import StoreFault, seeded_faults
from tests.unit.fileio.simulated_world import ROOT, cached_on, simulated

NAME = "demo.t"
SPEC = WriteSpec(TableSpec(primary_key=("id",)))
Open = Callable[[SimulatedStore, int], Engine]


@pytest.fixture(scope="module")
def opened() -> Open:
    """Engines on a store, each as a process of its own."""

    def make(store: SimulatedStore, number: int) -> Engine:
        runtime = replace(seeded_runtime(number), now_ms=store.time.now_ms, sleep=store.time.sleep)
        with pytest.MonkeyPatch.context() as patch:
            opened = (ROOT, cached_on(store, 1_000 + number))
            patch.setattr("tablestore_engine.warehouse.warehouse.open_root", lambda *_: opened)
            return Engine(ROOT, runtime=runtime)

    return make


def rows(first: int, count: int, value: str) -> pa.Table:
    """Keys from `first` on."""
    return pa.table({"id": range(first, first + count), "value": [value] * count})


@pytest.mark.parametrize(("latency_s", "most_s"), [(0.03, 0.5), (0.2, 2.0)])
def test_upsert_of_a_hundred_rows_is_quick_on_a_slow_store(
    opened: Open, latency_s: float, most_s: float
) -> None:
    """At most 0.5 simulated seconds at 30 ms for each request, and 2 at 200 ms."""
    store = simulated(latency_s=latency_s)
    engine = opened(store, 1)
    engine.write(NAME, rows(0, 10_000, "a"), SPEC)
    engine.write(NAME, rows(9_900, 100, "b"), SPEC)
    begin = store.time.now_s
    assert engine.write(NAME, rows(9_950, 100, "c"), SPEC).updated == 50
    assert store.time.now_s - begin <= most_s


def test_check_of_the_store_with_a_lost_answer_is_repeated(opened: Open) -> None:
    """The answer to the put that must be refused is lost: the warehouse can be written all the same."""
    store = simulated()
    lost = StoreFault.ERROR_AFTER
    store.plan = lambda asked: (
        lost if "/check-" in asked.key and asked.count == 4 and not met(store) else None
    )
    opened(store, 1).create_database("demo")
    assert met(store)


def met(store: SimulatedStore) -> bool:
    """Whether a fault was met."""
    return any(one.outcome == StoreFault.ERROR_AFTER.name for one in store.requests)


def _shown(engine: Engine) -> dict[int, str]:
    found = engine.table(NAME).scan().to_arrow().to_pydict()
    return dict(zip(found["id"], found["value"], strict=True))


@given(seed=st.integers(0, 1_000_000), rate=st.sampled_from([0.02, 0.1]))
@settings(max_examples=examples(3, 150), deadline=None, suppress_health_check=list(HealthCheck))
def test_whole_life_of_a_table_with_faults_shows_the_right_rows(opened: Open, seed: int, rate: float) -> None:
    """Two processes create, upsert, stage, publish, compact, expire, refresh and drop; then the name is used again."""
    store = simulated(seeded_faults(seed, rate), seed, slow_list_rate=0.1)
    first, second = opened(store, 1), opened(store, 2)
    first.create_database("demo")
    for turn in range(2):
        value = f"{turn}-"
        first.write(NAME, rows(0, 50, value + "a"), SPEC)
        second.write(NAME, rows(40, 20, value + "b"), SPEC)
        expected = {n: value + ("a" if n < 40 else "b") for n in range(60)}
        assert _shown(first) == expected
        first.write(NAME, rows(0, 5, value + "c"), WriteSpec(stage="gate"))
        assert _shown(second) == expected
        first.table(NAME).publish_staged("gate")
        expected |= dict.fromkeys(range(5), value + "c")
        second.table(NAME).compact(full=True)
        store.time.sleep(100_000)
        first.table(NAME).expire(keep=1, older_than_ms=0)
        assert _shown(second) == _shown(opened(store, 3 + turn)) == expected
        assert first.table(NAME).verify() == ()
        first.write(NAME, rows(0, 3, value + "d"), replace(SPEC, mode=WriteMode.OVERWRITE_TABLE))
        assert _shown(second) == dict.fromkeys(range(3), value + "d")
        second.drop_table(NAME)
        assert not [name for name in store.objects if "/demo.db/t/" in name]
