"""Requests of each operation on an object store: counted, so the figures are the same on every machine.

Steps      a table of 10,000 rows in a store in memory -> each operation -> the table of
           docs/object-stores.md, whose rows are replaced
Usage      python -m benchmarks.requests [--steps]
           --steps shows which requests each operation makes in each round trip, and writes nothing
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pyarrow as pa

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.fileio.disk_cache import DiskCache
from tablestore_engine.fileio.object_cache import CachedFileIO
from tablestore_engine.runtime.outside_world import SYSTEM
from tests.doubles.memory_store import MemoryFileIO
from tests.doubles.request_counts import CountingFileIO

PAGE = Path(__file__).resolve().parent.parent / "docs" / "object-stores.md"
HEADER = "| operation | GET | HEAD | LIST | PUT | other | all | in sequence |"
NAME = "demo.t"
KEYED = WriteSpec(TableSpec(primary_key=("id",)))


def rows(first: int, count: int) -> pa.Table:
    """Keys from `first` on."""
    return pa.table({"id": range(first, first + count), "value": ["v"] * count})


class Bench:
    """One warehouse; `open` is a new process."""

    def __init__(self, root: str) -> None:
        self.objects = MemoryFileIO(root, SYSTEM.now_ms)
        self.root, self.lines, self.steps = root, [HEADER, "|---|---|---|---|---|---|---|---|"], []

    lines: list[str]
    steps: list[str]

    def open(self, disk: DiskCache | None = None) -> tuple[Engine, CountingFileIO]:
        """An engine and what it asks for."""
        counter = CountingFileIO(self.objects)
        opened = (self.root, CachedFileIO(counter, disk=disk))
        with mock.patch("tablestore_engine.warehouse.warehouse.open_root", return_value=opened):
            return Engine(self.root), counter

    def measure_with_disk(self, name: str, work: Callable[[Engine], object]) -> None:
        """In a new process, where another one has read and written the table before; in a copy of the warehouse."""
        with tempfile.TemporaryDirectory() as folder:
            other = Bench(f"{folder}/warehouse")
            for first, count in ((0, 10_000), (9_900, 100), (9_950, 100)):
                engine, _ = other.open(DiskCache("requests", Path(folder), 256 << 20))
                engine.write(NAME, rows(first, count), KEYED)
            engine, counter = other.open(DiskCache("requests", Path(folder), 256 << 20))
            other.measure(f"{name}, first of a process with a disk cache", counter, lambda: work(engine))
        self.lines.append(other.lines[-1])
        self.steps += other.steps

    def measure(self, name: str, counter: CountingFileIO, work: Callable[[], object]) -> None:
        """A line of the table."""
        counter.restart()
        work()
        found = counter.by_method()
        shown = [found.pop(method, 0) for method in ("GET", "HEAD", "LIST", "PUT")]
        cells = [*shown, sum(found.values()), counter.total, counter.depth]
        self.lines.append(f"| {name} | {' | '.join(map(str, cells))} |")
        self.steps += [name, *counter.steps()]


def run(bench: Bench) -> None:
    """All operations, in this order."""
    engine, counter = bench.open()
    bench.measure(
        "create a table with 10,000 rows", counter, lambda: engine.write(NAME, rows(0, 10_000), KEYED)
    )
    engine.write(NAME, rows(9_900, 100), KEYED)
    bench.measure(
        "upsert 100 rows, in a process that has upserted",
        counter,
        lambda: engine.write(NAME, rows(9_950, 100), KEYED),
    )
    new, counter = bench.open()
    bench.measure(
        "upsert 100 rows, first of a process", counter, lambda: new.write(NAME, rows(9_950, 100), KEYED)
    )
    bench.measure_with_disk("upsert 100 rows", lambda new: new.write(NAME, rows(9_950, 100), KEYED))
    new, counter = bench.open()
    bench.measure("open a table: its columns", counter, lambda: new.columns(NAME))
    new, counter = bench.open()
    bench.measure("read all rows, first of a process", counter, lambda: new.table(NAME).scan().to_arrow())
    bench.measure("read all rows again", counter, lambda: new.table(NAME).scan().to_arrow())
    bench.measure_with_disk("read all rows", lambda new: new.table(NAME).scan().to_arrow())
    new, counter = bench.open()
    bench.measure("compact, full", counter, lambda: new.table(NAME).compact(full=True))
    bench.measure("expire, nothing due", counter, lambda: new.table(NAME).expire())
    bench.measure("verify", counter, lambda: new.table(NAME).verify())
    bench.measure("stage 100 rows", counter, lambda: new.write(NAME, rows(0, 100), WriteSpec(stage="gate")))
    bench.measure("publish them", counter, lambda: new.table(NAME).publish_staged("gate"))
    bench.measure("drop the table", counter, lambda: new.drop_table(NAME))


def write_page(lines: list[str]) -> None:
    """Replace the table of the page."""
    before, _, behind = PAGE.read_text().partition(HEADER)
    rest = behind.split("\n")
    end = next(at for at, line in enumerate(rest) if at and not line.startswith("|"))
    PAGE.write_text(before + "\n".join([*lines, *rest[end:]]))


def main() -> None:
    """Measure, then write or show."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument(
        "--steps", action="store_true", help="show the requests of each round trip, write nothing"
    )
    with tempfile.TemporaryDirectory() as root:
        bench = Bench(root)
        run(bench)
    print("\n".join(bench.lines))
    if asked.parse_args().steps:
        print("\n".join(bench.steps))
    else:
        write_page(bench.lines)


if __name__ == "__main__":
    main()
