"""Random grouping expressions and keys: what the proof accepts identifies groups, with Python as the oracle."""

from __future__ import annotations

import datetime as dt
import itertools
import os
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tablestore_engine.api import ChangesBetween, Engine, SparkSettings, TableVersion, WriteSpec
from tablestore_engine.errors import Unsupported
from tablestore_engine.spi import OutputMode

STREAM = "demo__changes_start_to_now.events"
CASES = int(os.environ.get("TABLESTORE_GROUP_KEYS", "40"))
Event = tuple[str, int, dt.datetime]
_BEGIN = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
_EVENTS: list[Event] = [
    (c, v, _BEGIN + dt.timedelta(minutes=minutes))
    for c, v, minutes in itertools.product(
        ("a", "A", "ab", "aB", "b"), (0, 1, 9, 10, 11), (0, 7, 30, 65, 1500)
    )
]


@dataclass(frozen=True)
class Part:
    """An expression over an event, in SQL and in Python."""

    sql: str
    value: Callable[[Event], object]


def _start(event: Event, minutes: int) -> dt.datetime:
    return event[2] - (event[2] - _BEGIN) % dt.timedelta(minutes=minutes)


GROUPS = (
    Part("c", lambda e: e[0]),
    Part("lower(c)", lambda e: e[0].lower()),
    Part("substr(c, 1, 1)", lambda e: e[0][:1]),
    Part("v", lambda e: e[1]),
    Part("v % 10", lambda e: e[1] % 10),
    Part("v div 10", lambda e: e[1] // 10),
    Part("window(ts, '1 hour')", lambda e: _start(e, 60)),
    Part("window(ts, '30 minutes')", lambda e: _start(e, 30)),
    Part("date(ts)", lambda e: e[2].date()),
    Part("ts", lambda e: e[2]),
)
OVER: dict[str, tuple[Part, ...]] = {  # the first one is the whole grouping expression
    "c": (
        Part("c", lambda e: e[0]),
        Part("lower(c)", lambda e: e[0].lower()),
        Part("substr(c, 1, 1)", lambda e: e[0][:1]),
        Part("concat(c, '!')", lambda e: e[0] + "!"),
        Part("length(c)", lambda e: len(e[0])),
    ),
    "lower(c)": (Part("lower(c)", lambda e: e[0].lower()), Part("upper(lower(c))", lambda e: e[0].upper())),
    "substr(c, 1, 1)": (Part("substr(c, 1, 1)", lambda e: e[0][:1]),),
    "v": (
        Part("v", lambda e: e[1]),
        Part("cast(v as string)", lambda e: str(e[1])),
        Part("cast(v / 10 as int)", lambda e: e[1] // 10),
        Part("v % 10", lambda e: e[1] % 10),
        Part("-v", lambda e: -e[1]),
    ),
    "v % 10": (Part("v % 10", lambda e: e[1] % 10), Part("cast(v % 10 as string)", lambda e: str(e[1] % 10))),
    "v div 10": (Part("v div 10", lambda e: e[1] // 10),),
    "window(ts, '1 hour')": (
        Part("window(ts, '1 hour').start", lambda e: _start(e, 60)),
        Part("window(ts, '1 hour').end", lambda e: _start(e, 60)),
        Part("date(window(ts, '1 hour').start)", lambda e: _start(e, 60).date()),
        Part("hour(window(ts, '1 hour').start)", lambda e: _start(e, 60).hour),
    ),
    "window(ts, '30 minutes')": (
        Part("window(ts, '30 minutes').start", lambda e: _start(e, 30)),
        Part("date_trunc('hour', window(ts, '30 minutes').start)", lambda e: _start(e, 60)),
    ),
    "date(ts)": (Part("date(ts)", lambda e: e[2].date()), Part("day(date(ts))", lambda e: e[2].day)),
    "ts": (Part("ts", lambda e: e[2]), Part("date(ts)", lambda e: e[2].date())),
}


@pytest.fixture(scope="module")
def engine(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """One table."""
    del spark
    made = Engine(str(tmp_path_factory.mktemp("random_keys")), spark=SparkSettings("local[2]"))
    made.create_database("demo")
    rows = pa.table(
        {"c": ["a"], "v": pa.array([1], pa.int64()), "ts": pa.array([0], pa.timestamp("us", "UTC"))}
    )
    made.write("demo.events", rows, WriteSpec())
    return made


def identifies(groups: list[Part], key: list[Part]) -> bool:
    """Whether events have the same key exactly when they have the same group."""
    pairs = {(tuple(p.value(e) for p in groups), tuple(p.value(e) for p in key)) for e in _EVENTS}
    return len(pairs) == len({group for group, _ in pairs}) == len({made for _, made in pairs})


def accepts(engine: Engine, groups: list[Part], key: list[Part]) -> bool:
    """The proof's answer. One window function is allowed in a query."""
    items = ", ".join(f"{part.sql} as k{n}" for n, part in enumerate(key))
    sql = f"select {items}, count(*) as n from {STREAM} group by {', '.join(part.sql for part in groups)}"
    names, versions = [f"k{n}" for n in range(len(key))], {STREAM: TableVersion(changes=ChangesBetween(None))}
    try:
        engine.stateful.choose_mode(sql, [STREAM], wanted=[OutputMode.UPDATE], key=names, versions=versions)
    except Unsupported as refusal:
        if "take each other's place" not in refusal.why:
            raise
        return False
    return True


def random_case(rng: random.Random) -> tuple[list[Part], list[Part]]:
    """Grouping expressions, at most one window among them, and a key that is made of them."""
    groups = rng.sample(GROUPS, rng.randrange(1, 4))
    windows = [part for part in groups if part.sql.startswith("window")]
    groups = [part for part in groups if part not in windows[1:]]
    key = [rng.choice(OVER[part.sql]) for part in groups if rng.random() < 0.85]
    return groups, key or [rng.choice(OVER[groups[0].sql])]


def test_random_keys_that_are_accepted_identify_their_groups(engine: Engine) -> None:
    """An accepted key is equal exactly where the group is; keys that have all grouping expressions are accepted."""
    rng, counts = random.Random(20261125), Counter[str]()
    for _ in range(CASES):
        groups, key = random_case(rng)
        told, right = accepts(engine, groups, key), identifies(groups, key)
        shown = f"{[part.sql for part in key]} for groups {[part.sql for part in groups]}"
        assert right or not told, shown
        whole = [OVER[group.sql][0] for group in groups]
        assert told or key != whole, shown
        counts["accepted" if told else "refused, unproven" if right else "refused"] += 1
    assert counts["accepted"] > CASES // 10, counts
    assert counts["refused"] > CASES // 10, counts
