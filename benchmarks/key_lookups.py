"""Filters by key and by value in Python, each beside the read of one column of the same table in the same turn.

Steps      a keyed table of 5 M rows in two buckets → for each filter: the filter and the column that it compares, in
           turn → ratios of medians, by wall clock and by processor time → docs/performance.json
INVARIANT  each filter gives exactly the rows that were written, or the run fails.
Usage      python -m benchmarks.key_lookups [--small]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from benchmarks.record import keep
from tablestore_engine.api import Engine, Table
from tablestore_engine.spark.key_reads import KeyReads
from tablestore_engine.sql.key_query import read_key_query

_READ = "tablestore_engine.warehouse.statements.data_test_answer.read_key_query"
_AGAIN = 9
_WARM = 10
_GOALS = {
    "one key": 0.1,
    "100 keys": 0.6,
    "rare value": 1.2,
}  # of the time of one column; one key: 5 ms of 50


def some_rows(count: int) -> pa.Table:
    """Six columns; `id` is the row's number, `score` is drawn, so that few rows have the largest ones."""
    numbers, chance = np.arange(count, dtype=np.int64), np.random.default_rng(1)
    return pa.table(
        {
            "id": numbers,
            "amount": numbers * 7 % 100_003,
            "score": chance.random(count),
            "day": pa.array((numbers % 3650).astype(np.int32), pa.int32()).cast(pa.date32()),
            "state": np.array(["new", "open", "paid", "gone"])[chance.integers(0, 4, count)],
            "note": np.char.add("note ", chance.integers(0, 1 << 40, count).astype(str)),
        }
    )


def filters(rows: pa.Table) -> Mapping[str, tuple[str, str]]:
    """Name → the filter, and the column that it is compared with."""
    keys = np.random.default_rng(2).choice(rows.num_rows, 100, replace=False)
    bound = float(np.partition(np.asarray(rows["score"]), -5)[-5])
    return {
        "one key": (f"id = {keys[0]}", "id"),
        "one key and a value": (f"id = {keys[0]} and score >= 0.0", "id"),
        "100 keys": (f"id in ({', '.join(map(str, keys.tolist()))})", "id"),
        "range of 1,000 keys": (f"id between {rows.num_rows // 2} and {rows.num_rows // 2 + 999}", "id"),
        "rare value": (f"score >= {bound!r}", "score"),
        "one in 100,003": ("amount = 5", "amount"),
    }


def measure(table: Table, rows: pa.Table) -> dict[str, dict[str, float]]:
    """Medians in milliseconds, and ratios to the read of the column."""
    found: dict[str, dict[str, float]] = {}
    for name, (text, column) in filters(rows).items():
        ways: Mapping[str, Callable[[], pa.Table]] = {
            "filter": lambda text=text: table.scan(filter=text).to_arrow(),  # type: ignore[misc]
            "column": lambda column=column: table.scan(columns=[column]).to_arrow(),  # type: ignore[misc]
        }
        _verify(name, text, ways["filter"](), rows)
        taken: dict[str, list[float]] = {}
        for _ in range(_AGAIN):
            for way, work in ways.items():
                clock, processor = time.perf_counter(), time.process_time()
                work()
                taken.setdefault(way, []).append(time.perf_counter() - clock)
                taken.setdefault(f"{way} cpu", []).append(time.process_time() - processor)
        medians = {way: statistics.median(all_) * 1000 for way, all_ in taken.items()}
        ratios = {
            "ratio": medians["filter"] / medians["column"],
            "cpu_ratio": medians["filter cpu"] / medians["column cpu"],
        }
        found[name] = {way: round(value, 3) for way, value in {**medians, **ratios}.items()}
        sys.stdout.write(f"{name}: {found[name]}\n")
    return found


def measure_sql(engine: Engine, rows: pa.Table) -> dict[str, float]:
    """One key in SQL without Spark, by a look-up in Spark's plan, and by a Spark job over the files in turn: medians in
    milliseconds, the processor time of Python and Java together.
    """
    answered, taken = KeyReads.answered, dict[str, list[float]]()
    jvm = int(engine.spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())
    for turn in range(2 * _WARM + _AGAIN):
        for way in ("answer", "look-up", "job"):
            key = (turn * 7919) % rows.num_rows
            with (
                patch(_READ, read_key_query if way == "answer" else lambda _: None),
                patch.object(
                    KeyReads, "answered", (lambda _, frame, __: frame) if way == "job" else answered
                ),
            ):
                clock, processor = time.perf_counter(), _processor(jvm)
                found = engine.sql(f"select * from demo.t where id = {key}").rows
                spent = time.perf_counter() - clock, _processor(jvm) - processor
            if len(found) != 1 or found[0][0] != key:
                raise SystemExit(f"{way}: {found}, expected key {key}")
            if turn >= 2 * _WARM:
                taken.setdefault(way, []).append(spent[0])
                taken.setdefault(f"{way} cpu", []).append(spent[1])
    medians = {way: round(statistics.median(all_) * 1000, 3) for way, all_ in taken.items()}
    sys.stdout.write(f"one key in SQL: {medians}\n")
    return medians


def _processor(pid: int) -> float:
    """Seconds of this process and of another one."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return time.process_time() + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _verify(name: str, text: str, found: pa.Table, rows: pa.Table) -> None:
    """Against numpy over the rows that were written."""
    numbers = np.arange(rows.num_rows)
    if name == "rare value":
        wanted = numbers[np.asarray(rows["score"]) >= float(text.rsplit(maxsplit=1)[-1])]
    elif name == "one in 100,003":
        wanted = numbers[np.asarray(rows["amount"]) == 5]
    elif name.startswith("range"):
        wanted = numbers[rows.num_rows // 2 : rows.num_rows // 2 + 1000]
    else:
        wanted = np.array(
            sorted(int(one) for one in text.split(" and", maxsplit=1)[0].strip("id =n()").split(","))
        )
    if not found.sort_by("id").equals(rows.take(pa.array(wanted)).cast(found.schema)):
        raise SystemExit(f"{name}: {found.num_rows} rows, expected {len(wanted)}")


def main() -> None:
    """Measure and record; `--small`: 200,000 rows, and nothing is recorded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="200,000 rows, nothing recorded")
    is_small = parser.parse_args().small
    rows = some_rows(200_000 if is_small else 5_000_000)
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(folder)
        table = engine.create_table("demo.t", rows.schema, primary_key="id", options={"bucket": 2})
        table.upsert(rows)
        found = measure(table, rows)
        in_sql = measure_sql(engine, rows)
    missed = {name: goal for name, goal in _GOALS.items() if found[name]["cpu_ratio"] > goal}
    sys.stdout.write(f"goals missed, by processor time: {missed or 'none'}\n")
    if not is_small:
        keep("key lookups", {"rows": rows.num_rows, "goals": _GOALS, "filters": found, "sql": in_sql})


if __name__ == "__main__":
    main()
