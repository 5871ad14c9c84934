"""A table on an S3 server beside the same table on the local disk: load, upserts, open, scan and one key, in Python.

Steps      a server → in turn on both places: load, an upsert of a fifth, upserts of 100 rows, then reads, each by an
           engine of its own → docs/performance.json
INVARIANT  both tables hold the rows that the input says, by count and sums, or the run fails.
Usage      python -m benchmarks.store_writes [--small]
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.store_bench import Place, run_on_server
from benchmarks.store_reads import some_rows
from tablestore_engine.api import Engine, TableSpec, WriteMode, WriteSpec

_TABLE, _BUCKETS, _TURNS, _SMALL_UPSERTS, _FEW = "demo.t", 4, 7, 5, 100
GOALS = {"load": 1.3, "upsert of a fifth": 1.3}
OPEN_SECONDS_MAX = 0.15


@dataclass
class Sheet:
    """Seconds by operation."""

    seconds: dict[str, list[float]] = field(default_factory=dict)

    def time(self, name: str, work: Callable[[], object]) -> None:
        """Run and note."""
        started = time.monotonic()
        work()
        self.seconds.setdefault(name, []).append(time.monotonic() - started)

    def medians(self) -> Mapping[str, float]:
        """Of each operation."""
        return {name: statistics.median(all_) for name, all_ in self.seconds.items()}


def play(place: str, count: int, sheet: Sheet) -> None:
    """One turn on a new warehouse. Raises SystemExit when a row is wrong."""
    spec = WriteSpec(
        table=TableSpec(primary_key=("id",), options={"bucket": str(_BUCKETS)}), mode=WriteMode.UPSERT
    )
    engine = Engine(place)
    ids = np.arange(count, dtype=np.int64)
    base, fifth = some_rows(ids, 0), some_rows(ids[::5], 1)
    sheet.time("load", lambda: engine.write(_TABLE, base, spec))
    sheet.time("upsert of a fifth", lambda: engine.write(_TABLE, fifth, spec))
    for turn in range(_SMALL_UPSERTS):
        few = some_rows(ids[turn::7][:_FEW], 2)
        sheet.time("upsert of 100 rows", lambda few=few: engine.write(_TABLE, few, spec))  # type: ignore[misc]
    sheet.time("open", lambda: Engine(place).columns(_TABLE))
    found: list[pa.Table] = []
    sheet.time("scan", lambda: found.append(Engine(place).table(_TABLE).scan().to_arrow()))
    sheet.time("two columns", lambda: Engine(place).table(_TABLE).scan(columns=["id", "amount"]).to_arrow())
    sheet.time("one key", lambda: found.append(Engine(place).table(_TABLE).scan(filter="id = 77").to_arrow()))
    _check(found, ids)


def _check(found: list[pa.Table], ids: np.ndarray) -> None:
    rounds = np.zeros(len(ids), np.int64)
    rounds[::5] = 1
    for turn in range(_SMALL_UPSERTS):
        rounds[turn::7][:_FEW] = 2
    whole, one = found
    told = (whole.num_rows, pc.sum(whole["id"]).as_py(), pc.sum(whole["round"]).as_py(), one.num_rows)
    wanted = (len(ids), int(ids.sum()), int(rounds.sum()), 1)
    if told != wanted:
        raise SystemExit(f"the rows are wrong: {told}, not {wanted}")


def measure(at: Place, count: int, work: Path) -> dict[str, dict[str, float]]:
    """Seconds on both places and their ratio, by operation."""
    sheets = {"disk": Sheet(), "s3": Sheet()}
    for turn in range(_TURNS + 1):
        kept = sheets if turn else {"disk": Sheet(), "s3": Sheet()}  # the first turn warms up
        play(str(work / f"w{turn}"), count, kept["disk"])
        play(at(f"w{turn}"), count, kept["s3"])
    disk, store = sheets["disk"].medians(), sheets["s3"].medians()
    found = {
        name: {
            "disk": round(disk[name], 3),
            "s3": round(store[name], 3),
            "ratio": round(store[name] / disk[name], 2),
        }
        for name in disk
    }
    for name, figures in found.items():
        sys.stdout.write(f"{name}: {figures}\n")
    return found


def main() -> None:
    """Measure and record."""
    goals = {**GOALS, "open_seconds": OPEN_SECONDS_MAX}
    run_on_server(
        __doc__,
        "store writes",
        lambda at, count, work: {"goals": goals, "operations": measure(at, count, work)},
    )


if __name__ == "__main__":
    main()
