"""Where values of an event time lie: never "none" for an interval with a row, and exact for intervals of an hour."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tablestore_engine.api import Engine, Table, TableSpec, WriteMode, WriteSpec
from tablestore_engine.format.scalar import days_from_date
from tablestore_engine.store.read.value_intervals import ColumnIntervals, FileIntervals

DAY_ZERO = datetime(2026, 1, 1, tzinfo=UTC)
TYPES = {"date": pa.date32(), "ntz": pa.timestamp("us"), "ltz": pa.timestamp("us", "UTC")}


def intervals(table: Table, column: str, read: FileIntervals | None = None) -> ColumnIntervals:
    """Of the newest snapshot."""
    plan = table.scan().plan()
    return ColumnIntervals(table.store.fileio, plan.schema, plan.files, column, read or FileIntervals())


def edge(kind: str, hours: int) -> int:
    """A time in the column's own unit."""
    moment = DAY_ZERO + timedelta(hours=hours)
    return days_from_date(moment.date()) if kind == "date" else int(moment.timestamp()) * 1_000_000


def value(kind: str, minutes: int) -> date | datetime:
    """As Arrow takes it."""
    moment = DAY_ZERO + timedelta(minutes=minutes)
    return moment.date() if kind == "date" else moment if kind == "ltz" else moment.replace(tzinfo=None)


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_random_intervals_are_what_the_rows_say(tmp_path: Path, kind: str) -> None:
    """Several files, NULLs, replaced rows and deleted ones; batches of hours and days, with and without rows."""
    chance = random.Random(f"intervals {kind}")
    engine = Engine(str(tmp_path / "warehouse"))
    stored: dict[int, int | None] = {}
    for _ in range(6):
        some = {
            chance.randrange(40): chance.choice([None, *[chance.randrange(60 * 24 * 20)] * 5])
            for _ in range(5)
        }
        gone = chance.sample(sorted(stored), min(2, len(stored)))
        rows: list[dict[str, Any]] = [
            {"id": key, "at": None if at is None else value(kind, at), "_ROW_KIND": 0}
            for key, at in some.items()
        ]
        rows += [{"id": key, "at": None, "_ROW_KIND": 3} for key in gone if key not in some]
        shape = pa.schema([("id", pa.int64()), ("at", TYPES[kind]), ("_ROW_KIND", pa.int8())])
        spec = WriteSpec(table=TableSpec(primary_key=("id",)))
        engine.write("demo.t", pa.Table.from_pylist(rows, shape), spec)
        stored = {**{key: at for key, at in stored.items() if key not in gone}, **some}
        found = intervals(engine.table("demo.t"), "at")
        for _ in range(60):
            low = chance.randrange(24 * 20)
            high = low + chance.choice([1, 3, 24, 48])
            if kind == "date":
                low, high = low // 24 * 24, low // 24 * 24 + chance.choice([24, 48])
            has = any(at is not None and low * 60 <= at < high * 60 for at in stored.values())
            assert found.may_have(edge(kind, low), edge(kind, high)) is has


def test_files_beyond_the_budget_may_have_any_value(tmp_path: Path) -> None:
    """What is not read is decided by statistics alone, which exclude only what lies outside of them."""
    engine = Engine(str(tmp_path / "warehouse"))
    rows = pa.table({"at": pa.array([value("ltz", 0), value("ltz", 60 * 24 * 10)], TYPES["ltz"])})
    engine.write("demo.t", rows, WriteSpec(table=TableSpec(), mode=WriteMode.APPEND))
    small, large = (intervals(engine.table("demo.t"), "at", FileIntervals(most)) for most in (1, 2))
    inside, outside = (edge("ltz", 48), edge("ltz", 72)), (edge("ltz", 24 * 11), edge("ltz", 24 * 12))
    assert [one.may_have(*inside) for one in (small, large)] == [True, False]
    assert [one.may_have(*outside) for one in (small, large)] == [False, False]
