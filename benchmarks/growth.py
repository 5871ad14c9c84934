"""How the time of each operation grows with rows, snapshots and partitions, beside its limit in the same run.

Steps      1 a table with that history  2 upserts of 100 rows and commits of one new row, through Python  3 the same
           final rows as plain parquet, made without our code  4 open, scan through Python  5 scan, point query and one
           partition through Spark
Limits     a write: pyarrow sorts the same rows into one parquet file and syncs it. Open: pyarrow lists the plain files
           and counts their rows. Reads: pyarrow and Spark on the plain files.
INVARIANT  rows and sums of ours and of the plain rows are those of the input, or the run fails.
Usage      part of `make bench`; alone: python -m benchmarks.growth [--small] [--no-spark]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from benchmarks.data import checksum, rows_of
from tablestore_engine.api import Engine, SparkSettings, TableSpec, WriteSpec

T = TypeVar("T")
REPEATS = 5
CHANGED, STORED = 100, 80  # rows of an upsert, and how many of them have a stored key
HISTORY_ROWS = 10  # new rows of each commit of the history
_UNIT = 250_000
_PLACE = "place"
_ALL_PARTITIONS = 10_000  # pyarrow refuses to write more than 1,024 of them unless it is told


class SheetLike(Protocol):
    """Where figures go."""

    seconds: dict[str, list[float]]
    facts: dict[str, object]

    def time(self, name: str, work: Callable[[], T]) -> T:
        """Run and note."""

    def median(self, name: str) -> float:
        """Of what was noted."""


@dataclass(frozen=True)
class Point:
    """`partitions` 0: the table has none. `rows`: of the load, the history comes on top."""

    series: str
    rows: int = _UNIT
    snapshots: int = 1
    partitions: int = 0

    @property
    def name(self) -> str:
        """As it stands in the figures."""
        return f"{getattr(self, self.series):,} {self.series}"


POINTS = (
    *(Point("rows", rows=_UNIT * times) for times in (1, 4, 16)),
    *(Point("snapshots", snapshots=count) for count in (1, 100, 1_000)),
    *(Point("partitions", partitions=count) for count in (1, 100, 2_000)),
)
SMALL = (
    *(Point("rows", rows=5_000 * times) for times in (1, 4, 16)),
    *(Point("snapshots", rows=5_000, snapshots=count) for count in (1, 10, 40)),
    *(Point("partitions", rows=5_000, partitions=count) for count in (1, 5, 25)),
)


@dataclass
class _Subject:
    """One table, and every table of rows that was written into it, in order."""

    sheet: SheetLike
    point: Point
    engine: Engine
    folder: Path
    written: list[pa.Table] = field(default_factory=list)

    @property
    def table(self) -> str:
        """Each point has a table of its own."""
        return f"growth.{self.point.series}_{getattr(self.point, self.point.series)}"

    @property
    def plain(self) -> Path:
        """The final rows as plain parquet."""
        return self.folder / "plain"

    @property
    def next_key(self) -> int:
        """Keys from here on are new."""
        return max(int(np.max(rows["id"].to_numpy())) for rows in self.written) + 1

    def time(self, operation: str, whose: str, work: Callable[[], T]) -> T:
        """Into the sheet, by a name that _medians takes apart."""
        return self.sheet.time(f"growth, {self.point.name}: {operation}: {whose}", work)

    def rows(self, keys: np.ndarray) -> pa.Table:
        """Rows of these keys, each in its partition."""
        made = rows_of(keys, seed=len(self.written))
        if not self.point.partitions:
            return made
        return made.append_column(_PLACE, pa.array(keys % self.point.partitions, pa.int32()))

    def write(self, rows: pa.Table) -> None:
        """Through the engine."""
        partitioned = (_PLACE,) if self.point.partitions else ()
        spec = TableSpec(primary_key=("id", *partitioned), partition_by=partitioned, options={"bucket": "1"})
        self.engine.write(self.table, rows, WriteSpec(table=spec))
        self.written.append(rows)


def measure_growth(
    sheet: SheetLike, folder: Path, points: Sequence[Point] = POINTS, *, with_spark: bool = True
) -> None:
    """All points; `facts["growth"]` has the medians: point → operation → ours, limit."""
    settings = SparkSettings(master="local[2]", conf={"spark.driver.memory": "4g"})
    engine = Engine(str(folder / "growth-warehouse"), spark=settings)
    engine.create_database("growth")
    try:
        if with_spark:
            engine.spark.range(1000).count()  # the JVM's start is nobody's time
        for number, point in enumerate(points):
            subject = _Subject(sheet, point, engine, folder / f"growth-{number}")
            subject.folder.mkdir()
            _measure(subject, with_spark=with_spark)
    finally:
        engine.close()
    sheet.facts["growth"] = _medians(sheet)


def _measure(subject: _Subject, *, with_spark: bool) -> None:
    subject.write(subject.rows(np.random.default_rng(1).permutation(subject.point.rows)))
    for _ in range(subject.point.snapshots - 1):
        subject.write(subject.rows(np.arange(subject.next_key, subject.next_key + HISTORY_ROWS)))
    _measure_writes(subject)
    final = _merged(subject.written)
    _write_plain(subject, final)
    _measure_python_reads(subject, checksum(final))
    if with_spark:
        _measure_spark_reads(subject, subject.engine.spark, checksum(final))


def _measure_writes(subject: _Subject) -> None:
    chance = np.random.default_rng(2)
    for number in range(REPEATS):
        following = subject.next_key
        old = chance.choice(subject.point.rows, STORED, replace=False)
        changed = subject.rows(np.concatenate([old, np.arange(following, following + CHANGED - STORED)]))
        new = subject.rows(np.array([following + CHANGED]))
        for operation, rows in ((f"upsert of {CHANGED} rows", changed), ("commit of one new row", new)):
            target = subject.folder / f"limit-{number}.parquet"
            subject.time(operation, "limit", lambda r=rows, t=target: _write_synced(r, t))
            subject.time(operation, "ours", lambda r=rows: subject.write(r))


def _measure_python_reads(subject: _Subject, expected: tuple[int, int, int]) -> None:
    plain = str(subject.plain)
    for _ in range(REPEATS):
        files = subject.time("open", "limit", lambda: ds.dataset(plain, partitioning="hive").count_rows())
        opened = subject.time("open", "ours", lambda: _open(subject))
        _check(subject, "rows when opened", (files, opened), (expected[0], expected[0]))
        theirs = subject.time(
            "scan, Python", "limit", lambda: ds.dataset(plain, partitioning="hive").to_table()
        )
        ours = subject.time(
            "scan, Python", "ours", lambda: subject.engine.table(subject.table).scan().to_arrow()
        )
        _check(subject, "plain rows", checksum(theirs), expected)
        _check(subject, "scan", checksum(ours), expected)


def _open(subject: _Subject) -> int:
    """As a new process opens it: nothing is remembered. The number of rows."""
    with Engine(subject.engine.warehouse) as engine:
        return engine.table(subject.table).facts().rows


def _measure_spark_reads(subject: _Subject, spark: SparkSession, expected: tuple[int, int, int]) -> None:
    """One text for both, planned anew each time, as a statement of dbt is."""
    key = subject.point.rows // 2
    sources: dict[str, tuple[Callable[[str], DataFrame], str]] = {
        "limit": (spark.sql, f"parquet.`{subject.plain}`"),
        "ours": (subject.engine.query, subject.table),
    }
    reads: dict[str, tuple[str, tuple[object, ...]]] = {
        "scan, Spark": ("select count(*), sum(id), sum(quantity) from {}", expected),
        "point query": (f"select id from {{}} where id = {key}", (key,)),
    }
    if subject.point.partitions:
        place = key % subject.point.partitions
        count = sum(1 for _ in _keys_in(subject, place))
        reads["one partition"] = (f"select count(id) from {{}} where {_PLACE} = {place}", (count,))
    for operation, (text, right) in reads.items():
        for _ in range(REPEATS):
            for whose, (run, source) in sources.items():
                query = text.format(source)
                found = subject.time(operation, whose, lambda r=run, q=query: r(q).collect())
                _check(subject, f"{operation}, {whose}", [tuple(row) for row in found], [right])


def _keys_in(subject: _Subject, place: int) -> Iterator[int]:
    keys = np.unique(np.concatenate([rows["id"].to_numpy() for rows in subject.written]))
    yield from keys[keys % subject.point.partitions == place].tolist()


def _write_synced(rows: pa.Table, target: Path) -> None:
    pq.write_table(rows.sort_by("id"), target, compression="zstd")
    handle = os.open(target, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_plain(subject: _Subject, rows: pa.Table) -> None:
    """One sorted file, or one in each partition's folder."""
    kept = {"file_options": ds.ParquetFileFormat().make_write_options(compression="zstd")}
    if subject.point.partitions:
        kept["partitioning"] = ds.partitioning(pa.schema([(_PLACE, pa.int32())]), flavor="hive")
        kept |= {"max_partitions": _ALL_PARTITIONS, "max_open_files": _ALL_PARTITIONS}
    ds.write_dataset(rows.sort_by("id"), subject.plain, format="parquet", **kept)


def _merged(written: Sequence[pa.Table]) -> pa.Table:
    """The newest row of each key, without any table format."""
    rows = pa.concat_tables(written)
    keys = rows["id"].to_numpy()
    _, last = np.unique(keys[::-1], return_index=True)
    return rows.take(pa.array(len(keys) - 1 - last))


def _check(subject: _Subject, what: str, got: object, expected: object) -> None:
    if got != expected:
        raise SystemExit(
            f"{subject.point.name}: {what}: expected {expected}, got {got}: the measurement is void"
        )


def _medians(sheet: SheetLike) -> dict[str, dict[str, dict[str, float]]]:
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name in sheet.seconds:
        if name.startswith("growth, "):
            point, operation, whose = name.removeprefix("growth, ").split(": ")
            found.setdefault(point, {}).setdefault(operation, {})[whose] = round(sheet.median(name), 4)
    return found


@dataclass
class _Sheet:
    """For a run of this part alone."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    facts: dict[str, object] = field(default_factory=dict)

    def time(self, name: str, work: Callable[[], T]) -> T:
        """Run, note the wall seconds."""
        started = time.monotonic()
        value = work()
        self.seconds.setdefault(name, []).append(time.monotonic() - started)
        return value

    def median(self, name: str) -> float:
        """Median of the measured seconds."""
        return statistics.median(self.seconds[name])


def main(argv: Sequence[str]) -> int:
    """Print the medians; writes no file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--no-spark", action="store_true")
    arguments = parser.parse_args(argv)
    sheet = _Sheet()
    with tempfile.TemporaryDirectory(prefix="tablestore-growth-") as folder:
        points = SMALL if arguments.small else POINTS
        measure_growth(sheet, Path(folder), points, with_spark=not arguments.no_spark)
    print(json.dumps(sheet.facts["growth"], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
