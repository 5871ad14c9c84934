"""`make bench`: the workloads of docs/performance.md, with limits and peers in the same run, rows and sums verified.

Steps      the parts below, in their order → docs/performance.json. Each part replaces its own figures only
INVARIANT  every subject gives back the same checksum (rows, sum of keys, sum of a column), or the run fails.
Usage      python -m benchmarks.run [--small] [--only python,kafka]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

import pyarrow.parquet as pq

from benchmarks import limits
from benchmarks.changed_keys import measure_changed_keys
from benchmarks.data import Sizes, checksum, merge_expected, write_rows
from benchmarks.dbt_build import measure_dbt_build
from benchmarks.formats import measure_formats
from benchmarks.growth import main as measure_growth
from benchmarks.iceberg import CASES as ICEBERG_CASES
from benchmarks.iceberg import SMALL as ICEBERG_SMALL
from benchmarks.iceberg import measure_iceberg
from benchmarks.ingest import measure_ingest
from benchmarks.kafka import measure_kafka
from benchmarks.log_readers import measure_log_readers
from benchmarks.peers import run_pypaimon
from benchmarks.record import keep, kept
from benchmarks.spark_peers import SMALL as PEERS_SMALL
from benchmarks.spark_peers import main as measure_spark_peers
from benchmarks.streams import measure_streams
from tablestore_engine.api import Engine, TableSpec, WriteMode, WriteSpec

T = TypeVar("T")
ROOT = Path(__file__).resolve().parent.parent
TABLE = "bench.rows"
SPEC = WriteSpec(table=TableSpec(primary_key=("id",), options={"bucket": "2"}), mode=WriteMode.UPSERT)


@dataclass
class Sheet:
    """Seconds by name, in the order measured."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    facts: dict[str, object] = field(default_factory=dict)

    def time(self, name: str, work: Callable[[], T]) -> T:
        """Run, note the wall seconds under `name`, print them."""
        started = time.monotonic()
        value = work()
        took = time.monotonic() - started
        self.seconds.setdefault(name, []).append(took)
        print(f"  {name:<44} {took:8.3f} s", flush=True)
        return value

    def median(self, name: str) -> float:
        """Median of the measured seconds."""
        return statistics.median(self.seconds[name])


def _check(what: str, got: tuple[int, ...], expected: tuple[int, ...]) -> None:
    if got != expected:
        raise SystemExit(f"{what}: expected {expected}, got {got}: the measurement is void")


def _spark_peers(_sheet: Sheet, _folder: Path, small: bool) -> None:
    if measure_spark_peers(["--small"] if small else []):
        print("spark-peers: not every system was measured, see above", file=sys.stderr)


def _growth(_sheet: Sheet, _folder: Path, small: bool) -> None:
    measure_growth(["--small"] if small else [])


def _python(sheet: Sheet, folder: Path, small: bool) -> None:
    """Without Spark: load, upserts, 100 rows and the whole table as Arrow, beside pyarrow and pypaimon."""
    sizes = PEERS_SMALL if small else Sizes()
    base, batches, few = write_rows(folder, sizes)
    few = few[: sizes.small_batches]
    engine = Engine(str(folder / "warehouse"))
    engine.create_database("bench")
    try:
        rows = pq.read_table(base)
        sheet.time("load: ours, Python", lambda: engine.write(TABLE, rows, SPEC))
        sheet.time("load: pyarrow sort and write", lambda: limits.arrow_sort_write(base, folder / "arrow"))
        for path in batches:
            batch = pq.read_table(path)
            sheet.time("upsert 200 k: ours, Python", partial(engine.write, TABLE, batch, SPEC))
        for path in few:
            batch = pq.read_table(path)
            sheet.time("commit 100 rows: ours, Python", partial(engine.write, TABLE, batch, SPEC))
        for _ in range(3):
            found = sheet.time("read to Arrow: ours", lambda: engine.table(TABLE).scan().to_arrow())
        expected = merge_expected([pq.read_table(path) for path in (base, *batches, *few)])
        _check("checksum", checksum(found), expected)
    finally:
        engine.close()
    expected = merge_expected([pq.read_table(path) for path in (base, *batches)])
    run_pypaimon(sheet, folder, base, batches, expected)


def _log_rows(small: bool) -> int:
    return 50_000 if small else 500_000


def _streams(sheet: Sheet, folder: Path, small: bool) -> None:
    measure_streams(sheet, folder / "streams", 10 if small else 60, 200_000 if small else 4_000_000)


PARTS: dict[str, Callable[[Sheet, Path, bool], None]] = {
    "spark-peers": _spark_peers,
    "python": _python,
    "kafka": lambda sheet, folder, small: measure_kafka(sheet, folder, rows=_log_rows(small)),
    "formats": lambda sheet, _folder, small: measure_formats(sheet, rows=_log_rows(small)),
    "log-readers": lambda sheet, folder, small: measure_log_readers(sheet, folder, rows=_log_rows(small)),
    "ingest": lambda sheet, folder, small: measure_ingest(sheet, folder, _log_rows(small)),
    "growth": _growth,
    "iceberg": lambda sheet, folder, small: measure_iceberg(
        sheet, folder, ICEBERG_SMALL if small else ICEBERG_CASES
    ),
    "dbt-build": lambda sheet, folder, _small: measure_dbt_build(sheet, folder),
    "changed-keys": lambda sheet, folder, small: measure_changed_keys(
        sheet, folder, 100_000 if small else 2_000_000
    ),
    "streams": _streams,
}


def _ratios(seconds: dict[str, list[float]]) -> dict[str, float]:
    """Ratios of medians."""
    pairs = {
        "load / pyarrow": ("load: ours, Python", "load: pyarrow sort and write"),
        "kafka: raw / ours": ("kafka: raw producer", "kafka: ours"),
        "changed_keys / full refresh": ("changed_keys: 1 % of keys", "changed_keys: full refresh"),
    }
    return {
        name: round(statistics.median(seconds[ours]) / statistics.median(seconds[limit]), 2)
        for name, (ours, limit) in pairs.items()
        if ours in seconds and limit in seconds
    }


def _machine() -> dict[str, object]:
    names = ("pyspark", "pyarrow", "polars", "confluent-kafka")
    return {
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in names},
    }


def main(argv: list[str]) -> int:
    """Run the parts; --small is a quick look that writes no file."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--only", default=",".join(PARTS), help="names of parts, separated by commas")
    arguments = parser.parse_args(argv)
    chosen = arguments.only.split(",")
    if unknown := set(chosen) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    sheet = Sheet()
    for name in chosen:
        print(name, flush=True)
        with tempfile.TemporaryDirectory(prefix="tablestore-bench-") as folder:
            PARTS[name](sheet, Path(folder), arguments.small)
    print(json.dumps(_ratios(sheet.seconds), indent=2))
    if not arguments.small:
        before = kept("workloads")
        seconds = {**before.get("seconds", {}), **sheet.seconds}
        facts = {**before.get("facts", {}), **sheet.facts}
        made = {"machine": _machine(), "ratios": _ratios(seconds), "seconds": seconds, "facts": facts}
        keep("workloads", made)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
