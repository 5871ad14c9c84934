"""Tables of many partitions: queries beside plain parquet of the same rows in the same session, and a write over all.

Steps      for each point: the same rows to a table of ours and to a parquet folder → open (first look at a state) → one
           partition → the whole → one key, ours and plain in turn → upserts of rows of all partitions
           → docs/performance.json, key "partitions"
INVARIANT  both give the same count and sums for each query, or the run fails; ours opens files of that partition only.
Usage      python -m benchmarks.partitions [--small]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from benchmarks.record import keep
from tablestore_engine.api import Engine, SparkSettings, TableSpec, WriteMode, WriteSpec

_AGAIN, _UPSERTS = 5, 3
_SUMS = ("count(*)", "sum(id)", "sum(amount)", "max(name)")


@dataclass(frozen=True)
class Point:
    """One table; `changed` rows of all partitions are upserted at once."""

    rows: int
    partitions: int
    buckets: int
    changed: int

    @property
    def name(self) -> str:
        """As the page has it."""
        return (
            f"{self.rows:,} rows, {self.partitions:,} partitions, {self.partitions * self.buckets:,} buckets"
        )


POINTS = (Point(2_000_000, 1_000, 1, 100_000), Point(2_000_000, 2_000, 5, 0))
SMALL = (Point(50_000, 50, 1, 5_000), Point(50_000, 50, 5, 0))


def partitioned_rows(ids: np.ndarray, partitions: int) -> pa.Table:
    """`id` is the key; neighbours in `id` lie in different partitions `p`."""
    return pa.table(
        {
            "p": pa.array((ids % partitions).astype(np.int32)),
            "id": ids,
            "name": [f"customer {number % 5000}" for number in ids.tolist()],
            "amount": pa.array(ids * 7 % 100_000),
        }
    )


def _seconds(work: Callable[[], object]) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started


def _sums(frame: DataFrame) -> tuple[object, ...]:
    return tuple(frame.selectExpr(*_SUMS).collect()[0])


def measure(engine: Engine, folder: Path, point: Point) -> dict[str, dict[str, float]]:
    """Operation → medians of ours and plain."""
    name, plain = (
        f"bench.p{point.partitions}_{point.buckets}",
        str(folder / f"plain{point.partitions}_{point.buckets}"),
    )
    source = partitioned_rows(np.arange(point.rows, dtype=np.int64), point.partitions)
    table = TableSpec(primary_key=("p", "id"), partition_by=("p",), options={"bucket": str(point.buckets)})
    spec = WriteSpec(table=table, mode=WriteMode.UPSERT)
    frame = engine.spark.createDataFrame(source)
    found = {
        "load": {
            "ours": _seconds(lambda: engine.write(name, frame, spec)),
            "plain": _seconds(
                lambda: (
                    frame.repartition("p").write.partitionBy("p").option("compression", "zstd").parquet(plain)
                )
            ),
        },
        "open": {
            "ours": _seconds(lambda: engine.query(f"select * from {name}")),
            "plain": _seconds(lambda: engine.spark.read.parquet(plain).createOrReplaceTempView("plain")),
        },
    }
    some = point.partitions // 2
    for what, where in (
        ("one partition", f"p = {some}"),
        ("the whole", "true"),
        ("one key", f"p = {some} and id = {some}"),
    ):
        found[what] = _compare(engine, what, f"select * from {{}} where {where}", name)
    _check_opened(engine, name, some)
    if point.changed:
        found["upsert over all partitions"] = {"ours": _upserts(engine, name, spec, point)}
    engine.spark.catalog.dropTempView("plain")
    return found


def _check_opened(engine: Engine, name: str, partition: int) -> None:
    files = engine.table(name).scan().plan().files
    opened = len(engine.query(f"select * from {name} where p = {partition}").inputFiles())
    expected = sum(file.partition == (partition,) for file in files)
    if opened != expected:
        raise SystemExit(f"one partition has {expected} files, {opened} were opened: the measurement is void")


def _compare(engine: Engine, what: str, text: str, name: str) -> dict[str, float]:
    ours: list[float] = []
    plain: list[float] = []
    mine, theirs = text.format(name), text.format("plain")
    got, expected = _sums(engine.query(mine)), _sums(engine.spark.sql(theirs))
    if got != expected:
        raise SystemExit(f"{what}: expected {expected}, got {got}: the measurement is void")
    for _ in range(_AGAIN):
        ours.append(_seconds(lambda: _sums(engine.query(mine))))
        plain.append(_seconds(lambda: _sums(engine.spark.sql(theirs))))
    return {"ours": statistics.median(ours), "plain": statistics.median(plain)}


def _upserts(engine: Engine, name: str, spec: WriteSpec, point: Point) -> float:
    chance = np.random.default_rng(7)
    took = []
    for _ in range(_UPSERTS):
        ids = chance.choice(point.rows, point.changed, replace=False).astype(np.int64)
        rows = partitioned_rows(ids, point.partitions)
        took.append(_seconds(lambda r=rows: engine.write(name, r, spec)))
    left = engine.query(f"select count(*), sum(id) from {name}").collect()[0]
    if tuple(left) != (point.rows, point.rows * (point.rows - 1) // 2):
        raise SystemExit(f"after the upserts {tuple(left)} were found: the measurement is void")
    return statistics.median(took)


def main(argv: Sequence[str]) -> int:
    """The whole run; --small is a quick look that writes no file."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--small", action="store_true")
    small = asked.parse_args(argv).small
    found = {}
    with tempfile.TemporaryDirectory(prefix="tablestore-partitions-") as folder:
        settings = SparkSettings("local[2]", {"spark.driver.memory": "4g"})
        with Engine(str(Path(folder) / "warehouse"), spark=settings) as engine:
            engine.create_database("bench")
            engine.spark.range(1000).count()  # the JVM's start is nobody's time
            for point in SMALL if small else POINTS:
                found[point.name] = measure(engine, Path(folder), point)
    rounded = {
        point: {what: {whose: round(took, 3) for whose, took in pair.items()} for what, pair in each.items()}
        for point, each in found.items()
    }
    print(json.dumps(rounded, indent=1))
    if not small:
        keep("partitions", rounded)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
