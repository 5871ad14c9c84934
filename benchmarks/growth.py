"""How each operation grows with rows, snapshots and partitions: one table, and the exponent of each operation.

Steps      for each point of an axis: a table of so many rows, snapshots and partitions → upserts → reads, diff, verify
           → expire → the exponents → docs/performance.json, key "growth"
Exponent   the slope of the line through (log size, log processor seconds) of all points, by least squares: 0 is
           constant, 1 linear. `end`: the slope between the last two points, where fixed costs weigh least.
INVARIANT  counts and sums of every read are those of numpy, and verify finds nothing, or the run fails.
WHY        exponents are of processor seconds (this process and those that it started, Spark among them): other work on
           the machine changes them little. Wall seconds stand in the table.
Usage      python -m benchmarks.growth [--axis rows|snapshots|partitions]... [--small] [--no-write]
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.data import checksum, rows_of
from benchmarks.record import keep
from tablestore_engine.api import Engine, SparkSettings, TableSpec, WriteSpec

T = TypeVar("T")
Keys = npt.NDArray[np.int64]
OPERATIONS = (
    "load", "upsert", "100 rows", "open", "scan", "aggregate", "key", "diff", "verify", "expire",
)  # fmt: skip
REPEATS, ENOUGH_SECONDS = 3, 6.0  # an operation is repeated while it has taken less than this in all
CHANGED, STORED = 100, 80  # rows of a small upsert, and how many of them have a stored key
HISTORY_ROWS = 10  # rows of each commit of the history, all of them new
PLACE = "place"
_UNIT, _PIECE = 250_000, 4_000_000
_OPTIONS = {"tablestore.expire-on-commit": "false", "tablestore.expire-grace": "0 s"}
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Point:
    """`partitions` 0: the table has none. `rows` are those of the load; `changed`: those of an upsert."""

    axis: str
    rows: int = _UNIT
    snapshots: int = 1
    partitions: int = 0
    changed: int = _UNIT // 20

    @property
    def size(self) -> int:
        """Along the axis."""
        return int(getattr(self, self.axis))


def points_of(
    unit: int, rows: Sequence[int], snapshots: Sequence[int], partitions: Sequence[int]
) -> list[Point]:
    """An upsert has a twentieth of the rows; on the axis of partitions a fifth of them, so that it meets them all."""
    return [
        *(Point("rows", rows=unit * times, changed=unit * times // 20) for times in rows),
        *(Point("snapshots", rows=unit, snapshots=count, changed=unit // 20) for count in snapshots),
        *(
            Point("partitions", rows=2 * unit, partitions=count, changed=2 * unit // 5)
            for count in partitions
        ),
    ]


POINTS = points_of(_UNIT, (1, 4, 16, 80), (1, 100, 10_000), (1, 100, 1_000, 20_000))
SMALL = points_of(10_000, (1, 4, 16), (1, 5, 25), (1, 5, 25))


@dataclass
class Sheet:
    """Wall and processor seconds of each operation at one point."""

    wall: dict[str, list[float]] = field(default_factory=dict)
    cpu: dict[str, list[float]] = field(default_factory=dict)

    def time(self, operation: str, work: Callable[[], T]) -> T:
        """Run and note."""
        before, started = used_ticks(), time.monotonic()
        made = work()
        self.wall.setdefault(operation, []).append(time.monotonic() - started)
        self.cpu.setdefault(operation, []).append(seconds_between(before, used_ticks()))
        return made

    def again(self, operation: str) -> bool:
        """Whether to measure it once more."""
        took = self.wall.get(operation, [])
        return len(took) < REPEATS and sum(took) < ENOUGH_SECONDS

    def medians(self) -> dict[str, dict[str, float]]:
        """Operation → wall and processor seconds."""
        return {
            one: {
                "seconds": round(statistics.median(self.wall[one]), 4),
                "cpu": round(statistics.median(self.cpu[one]), 4),
            }
            for one in self.wall
        }


def used_ticks() -> dict[int, float]:
    """Process → clock ticks that it and the children used that it waited for; this process and all that it started."""
    me, parents = os.getpid(), dict[int, int]()
    ticks = dict[int, float]()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                words = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended
            parents[int(name)], ticks[int(name)] = int(words[1]), sum(int(word) for word in words[11:15])
            if int(name) == me:  # a tick is too long for an operation of this process alone
                ticks[me] = time.process_time() * _TICKS + sum(int(word) for word in words[13:15])
    ours = {}
    for process, used in ticks.items():
        above = process
        while above not in (0, me):
            above = parents.get(above, 0)
        if above == me:
            ours[process] = used
    return ours


def seconds_between(before: Mapping[int, float], after: Mapping[int, float]) -> float:
    """Processor seconds. A process that ended and that none of ours waited for takes its past along: then the sum
    falls, and what the others used is the better figure.
    """
    whole = sum(after.values()) - sum(before.values())
    of_others = sum(used - before[process] for process, used in after.items() if process in before)
    return max(whole, of_others) / _TICKS


@dataclass
class Subject:
    """One table, and what it has to hold: `quantity` by key, keys are 0, 1, …"""

    point: Point
    engine: Engine
    folder: Path
    sheet: Sheet = field(default_factory=Sheet)
    quantity: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    writes: int = 0

    @property
    def table(self) -> str:
        """Each point has a table of its own."""
        return f"growth.{self.point.axis}_{self.point.size}"

    @property
    def expected(self) -> tuple[int, int, int]:
        """Rows, sum of keys, sum of quantities."""
        count = len(self.quantity)
        return count, count * (count - 1) // 2, int(self.quantity.sum())

    @property
    def spec(self) -> WriteSpec:
        """Of every write."""
        by = (PLACE,) if self.point.partitions else ()
        buckets = "2" if self.point.axis == "rows" else "1"
        options = {"bucket": buckets, **_OPTIONS}
        return WriteSpec(table=TableSpec(primary_key=("id", *by), partition_by=by, options=options))

    def rows(self, keys: Keys) -> pa.Table:
        """Rows of these keys, each in its partition; the table has to have them from now on."""
        self.writes += 1
        made = rows_of(keys, seed=self.writes)
        self.quantity = np.resize(self.quantity, max(len(self.quantity), int(keys.max()) + 1))
        self.quantity[keys] = made["quantity"].to_numpy()
        if not self.point.partitions:
            return made
        return made.append_column(PLACE, pa.array(keys % self.point.partitions, pa.int32()))

    def changed(self, count: int, stored: int, chance: np.random.Generator) -> pa.Table:
        """Of so many keys, `stored` of which the load has."""
        old, following = chance.choice(self.point.rows, stored, replace=False), len(self.quantity)
        return self.rows(np.concatenate([old, np.arange(following, following + count - stored)]))

    def check(self, what: str, got: object, expected: object) -> None:
        """Or the run ends."""
        if got != expected:
            raise SystemExit(f"{self.table}: {what}: expected {expected}, got {got}: the measurement is void")


def measure_point(subject: Subject) -> dict[str, dict[str, float]]:
    """Operation → medians; the table is dropped."""
    _load(subject)
    loaded = subject.engine.table(subject.table).facts().snapshot_id
    assert loaded is not None
    for _ in range(subject.point.snapshots - 1):
        first = len(subject.quantity)
        rows = subject.rows(np.arange(first, first + HISTORY_ROWS))
        subject.engine.write(subject.table, rows, subject.spec)
    _upserts(subject)
    _reads(subject)
    _whole_history(subject, loaded)
    subject.engine.drop_table(subject.table)
    return subject.sheet.medians()


def _load(subject: Subject) -> None:
    """Of Parquet files, through Spark."""
    source = subject.folder / subject.table
    source.mkdir()
    keys = np.random.default_rng(1).permutation(subject.point.rows)
    for at in range(0, len(keys), _PIECE):
        pq.write_table(subject.rows(keys[at : at + _PIECE]), source / f"{at}.parquet")
    frame = subject.engine.spark.read.parquet(str(source))
    subject.sheet.time("load", lambda: subject.engine.write(subject.table, frame, subject.spec))
    shutil.rmtree(source)


def _upserts(subject: Subject) -> None:
    chance, point = np.random.default_rng(2), subject.point
    for operation, count in (("upsert", point.changed), ("100 rows", CHANGED)):
        while subject.sheet.again(operation):
            rows = subject.changed(count, count * STORED // CHANGED, chance)
            work = partial(subject.engine.write, subject.table, rows, subject.spec)
            made = subject.sheet.time(operation, work)
            subject.check(operation, made.inserted + made.updated, count)


def _reads(subject: Subject) -> None:
    sheet, table, key = subject.sheet, subject.engine.table(subject.table), subject.point.rows // 2
    text = f"select count(*), sum(id), sum(quantity) from {subject.table}"
    while sheet.again("open"):
        subject.check("rows when opened", sheet.time("open", lambda: _open(subject)), len(subject.quantity))
    while sheet.again("scan"):
        found = sheet.time("scan", lambda: _scan(table.scan().to_batches()))
        subject.check("scan", found, subject.expected)
    while sheet.again("aggregate"):
        sums = sheet.time("aggregate", lambda: tuple(subject.engine.query(text).collect()[0]))
        subject.check("aggregate", sums, subject.expected)
    while sheet.again("key"):
        one = sheet.time("key", lambda: table.scan(filter=f"id = {key}").to_arrow())
        subject.check("key", one["quantity"].to_pylist(), [int(subject.quantity[key])])


def _open(subject: Subject) -> int:
    """As a new process opens it: nothing is remembered. The number of rows."""
    with Engine(subject.engine.warehouse) as engine:
        return engine.table(subject.table).facts().rows


def _scan(batches: Iterator[pa.RecordBatch]) -> tuple[int, int, int]:
    found = np.zeros(3, np.int64)
    for batch in batches:
        found += np.array(checksum(pa.Table.from_batches([batch])))
    return int(found[0]), int(found[1]), int(found[2])


def _whole_history(subject: Subject, loaded: int) -> None:
    """What looks at all snapshots, and takes them away in the end."""
    sheet, table = subject.sheet, subject.engine.table(subject.table)
    while sheet.again("diff"):
        counts = sheet.time("diff", lambda: table.diff(loaded))
        new = len(subject.quantity) - subject.point.rows
        subject.check("diff", (counts.inserted, counts.deleted), (new, 0))
    while sheet.again("verify"):
        subject.check("verify", sheet.time("verify", table.verify), ())
    expired = sheet.time("expire", lambda: table.expire(keep=1))
    subject.check("the first snapshot that stays", expired.end, table.facts().snapshot_id)
    subject.check("rows in the end", _scan(table.scan().to_batches()), subject.expected)


# ---- exponents ---------------------------------------------------------------------------------------------------


def exponents(sizes: Sequence[int], seconds: Sequence[float]) -> dict[str, float]:
    """Slopes in logarithms: of the line through all points, and between the last two."""
    x, y = [math.log(size) for size in sizes], [math.log(max(one, 1 / _TICKS)) for one in seconds]
    mean_x, mean_y = statistics.fmean(x), statistics.fmean(y)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    slope /= sum((a - mean_x) ** 2 for a in x)
    return {"exponent": round(slope, 2), "end": round((y[-1] - y[-2]) / (x[-1] - x[-2]), 2)}


def summary(found: Mapping[int, Mapping[str, Mapping[str, float]]]) -> dict[str, object]:
    """Size → operation → seconds, as it is recorded."""
    sizes = list(found)
    operations = {
        one: {
            "seconds": [found[size][one]["seconds"] for size in sizes],
            "cpu": [found[size][one]["cpu"] for size in sizes],
            **(exponents(sizes, [found[size][one]["cpu"] for size in sizes]) if len(sizes) > 1 else {}),
        }
        for one in OPERATIONS
    }
    return {"sizes": sizes, "operations": operations}


def table_text(axes: Mapping[str, Mapping[str, object]]) -> str:
    """One table in Markdown: wall seconds at each size, then exponent and end, axis after axis."""
    heads, lines = ["operation"], [[one] for one in OPERATIONS]
    for axis, record in axes.items():
        sizes, operations = record["sizes"], record["operations"]
        assert isinstance(sizes, list)
        assert isinstance(operations, dict)
        heads += [f"{size:,} {axis}" if at == 0 else f"{size:,}" for at, size in enumerate(sizes)]
        heads += ["exponent", "end"]
        for line in lines:
            figures = operations[line[0]]
            line += [f"{one:.3g}" for one in figures["seconds"]]
            line += [f"{figures.get(name, math.nan):.2f}" for name in ("exponent", "end")]
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


class Facts(Protocol):
    """Where `make bench` keeps what it measured."""

    facts: dict[str, object]


def _measure_axes(folder: Path, points: Sequence[Point]) -> dict[str, dict[str, object]]:
    found: dict[str, dict[int, dict[str, dict[str, float]]]] = {}
    settings = SparkSettings(master="local[2]", conf={"spark.driver.memory": "4g"})
    with Engine(str(folder / "warehouse"), spark=settings) as engine:
        engine.create_database("growth")
        measure_point(Subject(Point("rows", rows=20_000, changed=1_000), engine, folder))  # a JVM warms up
        for point in points:
            started = time.monotonic()
            figures = measure_point(Subject(point, engine, folder))
            found.setdefault(point.axis, {})[point.size] = figures
            took = time.monotonic() - started
            words = ", ".join(
                f"{one} {each['seconds']:.3g}/{each['cpu']:.3g}" for one, each in figures.items()
            )
            print(f"{point.size:>12,} {point.axis:<10} {took:7.1f} s  wall/cpu: {words}", flush=True)
    return {axis: summary(each) for axis, each in found.items()}


def main(argv: Sequence[str]) -> int:
    """Measure, print the table, record it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--axis", action="append", choices=("rows", "snapshots", "partitions"))
    parser.add_argument("--small", action="store_true", help="a quick look, which writes no file")
    parser.add_argument("--no-write", action="store_true", help="leave docs/performance.json as it is")
    asked = parser.parse_args(argv)
    points = [one for one in (SMALL if asked.small else POINTS) if not asked.axis or one.axis in asked.axis]
    with tempfile.TemporaryDirectory(prefix="tablestore-growth-") as folder:
        found = _measure_axes(Path(folder), points)
    print(table_text(found))
    if not (asked.small or asked.no_write):
        keep("growth", found, beside=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
