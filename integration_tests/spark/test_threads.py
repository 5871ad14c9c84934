"""Eight threads on one engine: whatever they do, all of them end, and each query sees whole states."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tablestore_engine.api import Engine, TableSpec, TableVersion, WriteMode, WriteSpec
from tablestore_engine.errors import FixRequest, NotFound, RetryError

THREADS, TURNS, TABLES = 8, 12, 4
HANG_SECONDS = 300  # not a measure: a thread that has not ended by then waits for ever
APPENDED = WriteSpec(mode=WriteMode.APPEND, table=TableSpec(partition_by=("state",)))
KEYED = WriteSpec(table=TableSpec(primary_key=("id",), options={"bucket": "1"}))


@pytest.fixture
def engine(spark: SparkSession, tmp_path: Path) -> Iterator[Engine]:
    """A warehouse of its own in the shared session."""
    del spark
    with Engine(str(tmp_path / "w")) as engine:
        engine.create_database("demo")
        yield engine


def _ends(work: Callable[[], None]) -> bool:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(HANG_SECONDS)
    return not thread.is_alive()


def test_a_look_up_does_not_wait_for_an_analysis(engine: Engine) -> None:
    """While one thread analyses SQL, others look up names that are missing: neither waits for the other."""
    names = engine._warehouse.resolver._registry.lock
    found: list[object] = []
    with names:
        assert _ends(lambda: found.append(engine.find_relation("demo.missing")))
    assert found == [None]


def _rows(value: int) -> pa.Table:
    return pa.table({"id": pa.array(range(20), pa.int64()), "v": pa.array([value] * 20, pa.int64())})


def _turn(engine: Engine, dice: random.Random, number: int) -> None:
    """One thing that dbt's threads do at the same time."""
    table = f"t{dice.randrange(TABLES)}"
    what = dice.randrange(6)
    if what == 0:
        engine.write(f"demo.{table}", _rows(number), KEYED)
    elif what == 1:
        engine.sql(f"drop table if exists demo.{table}")
    elif what == 2:
        engine.create_view(f"demo.v_{table}", f"select id, v from demo.{table}")
    elif what == 3:
        rows = engine.sql(f"select count(*), count(distinct v) from demo.v_{table}").rows
        assert rows in (((20, 1),), ((0, 0),)), rows
    elif what == 4:
        rows = engine.sql(f"select count(*), count(distinct v) from demo.{table}").rows
        assert rows in (((20, 1),), ((0, 0),)), rows
    else:
        engine.relations("demo")
        engine.find_relation(f"demo.{table}")


def _work(engine: Engine, seed: int) -> int:
    """Turns of one thread; names that come and go are refused by our own errors, nothing else."""
    dice = random.Random(seed)
    done = 0
    for turn in range(TURNS):
        try:
            _turn(engine, dice, seed * 1000 + turn)
            done += 1
        except (NotFound, RetryError, FixRequest):
            continue
    return done


def test_views_new_tables_drops_and_queries_in_eight_threads(engine: Engine) -> None:
    """Views, new tables, drops and queries of the same names on 8 threads: all end, and no state is half."""
    for table in range(TABLES):
        engine.write(f"demo.t{table}", _rows(table), KEYED)
        engine.create_view(f"demo.v_t{table}", f"select id, v from demo.t{table}")
    with ThreadPoolExecutor(THREADS) as pool:
        futures = [pool.submit(_work, engine, seed) for seed in range(THREADS)]
        done = [future.result(HANG_SECONDS) for future in futures]
    assert sum(done) > THREADS * TURNS // 4, done
    assert engine.write("demo.t0", _rows(1), WriteSpec(table=KEYED.table, mode=WriteMode.OVERWRITE_TABLE))


STATES, ADDED, READERS, QUERIES = 24, 10, 6, 12


def _append(engine: Engine, state: int) -> int:
    """ADDED rows more in demo.log, in a partition of their own, so that queries leave files out; the snapshot."""
    ids = pa.array(range((state - 1) * ADDED, state * ADDED), pa.int64())
    rows = pa.table({"id": ids, "state": [state] * ADDED})
    return engine.write("demo.log", rows, APPENDED).snapshot_id or 0


def _update(engine: Engine, state: int) -> int:
    """20 rows in demo.orders: the first ADDED of them have value `state`, the others 1; the snapshot."""
    rows = _rows(state).slice(0, 20 if state == 1 else ADDED)
    return engine.write("demo.orders", rows, KEYED).snapshot_id or 0


def _read_past(engine: Engine, log: Sequence[int], orders: Sequence[int], seed: int) -> list[str]:
    """Counts of past states by a clause and by an override of the plain name; what is not the known truth."""
    dice, wrong = random.Random(seed), list[str]()
    for _ in range(QUERIES):
        state, other, least = dice.randint(1, STATES), dice.randint(1, STATES), dice.randrange(5 * ADDED)
        text = (
            f"select count(*), (select sum(v) from demo.orders), "
            f"(select count(*) from demo.log version as of {log[other - 1]} where id >= {least}) "
            f"from demo.log where id >= {least}"
        )
        at = {"demo.log": log[state - 1], "demo.orders": orders[state - 1]}
        expected = (max(0, ADDED * state - least), ADDED * (state + 1), max(0, ADDED * other - least))
        versions = {name: TableVersion(snapshot=number) for name, number in at.items()}
        [found] = engine.sql(text, versions=versions).rows
        if found != expected:
            wrong.append(f"{text} at {state}: {found}, expected {expected}")
    return wrong


@pytest.mark.nightly
def test_time_travel_in_six_threads_returns_the_rows_of_each_state(engine: Engine) -> None:
    """Threads that read past states of the same tables, each state many times: no query fails, and every count and sum
    is that of its state.
    """
    log = [_append(engine, state) for state in range(1, STATES + 1)]
    orders = [_update(engine, state) for state in range(1, STATES + 1)]
    with ThreadPoolExecutor(READERS) as pool:
        futures = [pool.submit(_read_past, engine, log, orders, seed) for seed in range(READERS)]
        wrong = [line for future in futures for line in future.result(HANG_SECONDS)]
    assert wrong == []
