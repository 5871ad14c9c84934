"""`make bench`: the first workload — ours, the limits and a peer in one run, with rows and sums verified.

Steps      1 rows to parquet  2 load: plain Spark and ours in turn  3 five upserts of 200 k  4 100-row commits, through
           Spark and through Python  5 reads against plain parquet of the same final rows  6 Kafka against a raw
           producer, encoders of its formats, readers of a log against plain ones  7 how each operation grows
           8 Iceberg metadata  9 dbt builds of two small models  10 pypaimon in its own environment
           11 docs/performance.json
INVARIANT  every subject gives back the same checksum (rows, sum of keys, sum of a column), or the run fails.
Usage      python -m benchmarks.run [--small] [--no-peer] [--no-kafka] [--no-growth]
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
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

import pyarrow.parquet as pq

from benchmarks import limits
from benchmarks.changed_keys import measure_changed_keys
from benchmarks.data import Sizes, base_rows, merge_expected, upsert_rows
from benchmarks.dbt_build import measure_dbt_build
from benchmarks.formats import measure_formats
from benchmarks.growth import POINTS, SMALL, measure_growth
from benchmarks.iceberg import CASES as ICEBERG_CASES
from benchmarks.iceberg import SMALL as ICEBERG_SMALL
from benchmarks.iceberg import measure_iceberg
from benchmarks.ingest import measure_ingest
from benchmarks.kafka import measure_kafka
from benchmarks.log_readers import measure_log_readers
from benchmarks.peers import run_pypaimon
from benchmarks.streams import measure_streams
from tablestore_engine.api import Engine, SparkSettings, TableSpec, WriteMode, WriteSpec

T = TypeVar("T")
ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "docs" / "performance.json"
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


def _check(what: str, got: object, expected: object) -> None:
    if tuple(got) != tuple(expected):  # type: ignore[call-overload]
        raise SystemExit(f"{what}: expected {expected}, got {got}: the measurement is void")


def _write_rows(folder: Path, sizes: Sizes) -> tuple[Path, list[Path], list[Path]]:
    base = folder / "base.parquet"
    pq.write_table(base_rows(sizes), base, row_group_size=500_000, compression="zstd")
    batches = []
    for number in range(sizes.batches):
        path = folder / f"batch{number}.parquet"
        pq.write_table(upsert_rows(sizes, number), path, compression="zstd")
        batches.append(path)
    small = []
    for number in range(sizes.small_batches * 2):
        path = folder / f"small{number}.parquet"
        rows = upsert_rows(sizes, sizes.batches + number, rows=sizes.small_rows)
        pq.write_table(rows, path, compression="zstd")
        small.append(path)
    return base, batches, small


def _load(sheet: Sheet, engine: Engine, folder: Path, base: Path) -> None:
    spark = engine.spark
    sheet.time("warm-up: plain Spark read", lambda: limits.noop_scan(spark.read.parquet(str(base))))
    for name in (f"{TABLE}_warm", f"{TABLE}_second", TABLE):
        sheet.time("load: plain Spark write", lambda: limits.spark_write(spark, base, folder / "plain"))
        sheet.time("load: ours", lambda name=name: engine.write(name, spark.read.parquet(str(base)), SPEC))
        if name != TABLE:
            engine.drop_table(name)
    sheet.time(
        "load: pyarrow sort and write (limit)", lambda: limits.arrow_sort_write(base, folder / "arrow")
    )


def _upserts(sheet: Sheet, engine: Engine, folder: Path, batches: list[Path], small: list[Path]) -> None:
    spark = engine.spark
    for path in batches:
        sheet.time(
            "upsert 200 k: plain Spark write",
            lambda p=path: limits.spark_write(spark, p, folder / "plain_batch"),
        )
        report = sheet.time(
            "upsert 200 k: ours", lambda p=path: engine.write(TABLE, spark.read.parquet(str(p)), SPEC)
        )
        expected = (pq.read_metadata(path).num_rows // 5, pq.read_metadata(path).num_rows * 4 // 5)
        _check("rows of the upsert", (report.inserted, report.updated), expected)
    half = len(small) // 2
    for path in small[:half]:
        sheet.time(
            "commit 100 rows: ours, Spark",
            lambda p=path: engine.write(TABLE, spark.read.parquet(str(p)), SPEC),
        )
        sheet.time(
            "commit 100 rows: plain Spark write",
            lambda p=path: limits.spark_write(spark, p, folder / "plain_small"),
        )
    for path in small[half:]:
        rows = pq.read_table(path)
        sheet.time("commit 100 rows: ours, Python", lambda r=rows: engine.write(TABLE, r, SPEC))


def _reads(sheet: Sheet, engine: Engine, folder: Path, expected: tuple[int, int, int]) -> None:
    spark = engine.spark
    final = folder / "final.parquet"
    sheet.time(
        "copy: final rows as plain parquet",
        lambda: limits.spark_final(engine.query(f"select * from {TABLE}"), final),
    )
    plain = spark.read.parquet(str(final))
    text, where = "select * from", f" where id = {1_234_567 % expected[0]}"
    for _ in range(4):
        ours = engine.query(f"select * from {TABLE}")
        sheet.time("scan: plain parquet", lambda: limits.noop_scan(plain))
        sheet.time("scan: ours", lambda o=ours: limits.noop_scan(o))
        theirs = sheet.time("aggregate: plain parquet", lambda: limits.aggregate(plain))
        mine = sheet.time("aggregate: ours", lambda o=ours: limits.aggregate(o))
        _check("aggregate", mine[:2], theirs[:2])
        _check("checksum", (mine[0], mine[1], mine[-1]), expected)
        sheet.time("point: plain parquet", lambda: spark.sql(f"{text} parquet.`{final}`{where}").collect())
        _check(
            "point",
            (sheet.time("point: ours", lambda: len(engine.query(f"{text} {TABLE}{where}").collect())),),
            (1,),
        )
    sheet.time("read to Arrow: ours, Python", lambda: engine.table(TABLE).scan().to_arrow())


def _ratios(sheet: Sheet) -> dict[str, float]:
    """What docs/performance.md quotes: medians, ours against the limit of the same run."""
    pairs = {
        "load / plain Spark": ("load: ours", "load: plain Spark write"),
        "load / pyarrow": ("load: ours", "load: pyarrow sort and write (limit)"),
        "upsert / plain Spark": ("upsert 200 k: ours", "upsert 200 k: plain Spark write"),
        "scan / plain": ("scan: ours", "scan: plain parquet"),
        "aggregate / plain": ("aggregate: ours", "aggregate: plain parquet"),
        "point / plain": ("point: ours", "point: plain parquet"),
        "kafka: raw / ours": ("kafka: raw producer", "kafka: ours"),
        "changed_keys / full refresh": ("changed_keys: 1 % of keys", "changed_keys: full refresh"),
    }
    return {
        name: round(sheet.median(ours) / sheet.median(limit), 2)
        for name, (ours, limit) in pairs.items()
        if ours in sheet.seconds and limit in sheet.seconds
    }


def _machine() -> dict[str, object]:
    names = ("pyspark", "pyarrow", "polars", "confluent-kafka")
    return {
        "cpus": os.cpu_count(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in names},
    }


def main(argv: list[str]) -> int:
    """Run the workload; --small is a quick look that writes no file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--no-peer", action="store_true")
    parser.add_argument("--no-kafka", action="store_true")
    parser.add_argument("--no-growth", action="store_true")
    arguments = parser.parse_args(argv)
    sizes = (
        Sizes(base_rows=200_000, batch_rows=10_000, batches=2, small_batches=3)
        if arguments.small
        else Sizes()
    )
    sheet = Sheet()
    with tempfile.TemporaryDirectory(prefix="tablestore-bench-") as text:
        folder = Path(text)
        print("rows …", flush=True)
        base, batches, small = _write_rows(folder, sizes)
        expected = merge_expected([pq.read_table(path) for path in (base, *batches, *small)])
        peer_expected = merge_expected([pq.read_table(path) for path in (base, *batches)])
        settings = SparkSettings(master="local[2]", conf={"spark.driver.memory": "6g"})
        engine = Engine(str(folder / "warehouse"), spark=settings)
        engine.create_database("bench")
        try:
            _load(sheet, engine, folder, base)
            _upserts(sheet, engine, folder, batches, small)
            _reads(sheet, engine, folder, expected)
            if not arguments.no_kafka:
                measure_kafka(sheet, folder, rows=50_000 if arguments.small else 500_000)
                measure_formats(sheet, rows=50_000 if arguments.small else 500_000)
                measure_log_readers(sheet, folder, rows=50_000 if arguments.small else 500_000)
                measure_ingest(sheet, folder, 50_000 if arguments.small else 500_000)
        finally:
            engine.close()
        if not arguments.no_growth:
            measure_growth(sheet, folder, SMALL if arguments.small else POINTS)
        measure_iceberg(sheet, folder, ICEBERG_SMALL if arguments.small else ICEBERG_CASES)
        measure_dbt_build(sheet, folder)
        measure_changed_keys(sheet, folder, 100_000 if arguments.small else 2_000_000)
        if not arguments.no_kafka:
            rows = 200_000 if arguments.small else 4_000_000
            measure_streams(sheet, folder / "streams", 10 if arguments.small else 60, rows)
        if not arguments.no_peer:
            run_pypaimon(sheet, folder, base, batches, peer_expected)
    result = {
        "machine": _machine(),
        "sizes": vars(sizes),
        "ratios": _ratios(sheet),
        "seconds": sheet.seconds,
        "facts": sheet.facts,
    }
    print(json.dumps(result["ratios"], indent=2))
    if not arguments.small:
        others = json.loads(RESULT.read_text()) if RESULT.exists() else {}  # figures of benchmarks.memory
        RESULT.write_text(json.dumps({**others, **result}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
