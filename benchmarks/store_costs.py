"""What operations cost on an object store: requests, bytes, money and seconds, on a simulated one.

Steps      tables of three shapes -> each operation at 30 ms and at 200 ms for each request -> upserts after 10, 100 and
           1,000 snapshots, and with failing requests -> the tables of docs/object-store-costs.md, which are replaced
INVARIANT  both latencies make the same requests, or the run fails.
Usage      python -m benchmarks.store_costs [--small]
           --small takes seconds and writes nothing
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.simulated_warehouse import Cost, SimulatedWarehouse, keyed_rows
from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tests.doubles.store_faults import FaultPlan, StoreFault, no_faults, seeded_faults

PAGE = Path(__file__).resolve().parent.parent / "docs" / "object-store-costs.md"
NAME = "demo.t"
LATENCIES_S = (0.03, 0.2)
_DAY_S = 86_400.0
_COLUMNS = (
    "operation",
    "GET, HEAD",
    "LIST",
    "PUT, COPY",
    "DELETE",
    "read",
    "written",
    "USD for 1,000",
    "30 ms",
    "200 ms",
)
_OPERATIONS_HEADER = f"| {' | '.join(_COLUMNS)} |"
_GROWTH_HEADER = "| snapshots | process | requests | read | seconds at 30 ms | seconds at 200 ms |"
_FAULTS_HEADER = "| requests that fail | requests | median | 99 of 100 | slowest |"
_FAULT_KINDS = (StoreFault.SLOW_DOWN, StoreFault.LOST_BEFORE, StoreFault.LOST_AFTER, StoreFault.ERROR_AFTER)


@dataclass(frozen=True)
class Shape:
    """A table: `days` partitions (0: none), and commits of ten new rows on top of the load."""

    title: str
    rows: int
    days: int = 0
    commits: int = 2

    def spec(self) -> WriteSpec:
        """One bucket for each partition."""
        by = ("day",) if self.days else ()
        return WriteSpec(TableSpec(primary_key=("id", *by), partition_by=by, options={"bucket": "1"}))

    def changed(self, turn: int) -> pa.Table:
        """A hundred rows, a part of them new; with partitions those of one."""
        step = self.days or 1
        first = (self.rows // step - 20 - 50 * turn) * step
        found = keyed_rows(first, 100 * step, self.days)
        return found.take(pa.array(np.arange(100) * step))


SHAPES = (
    Shape("Small: 10,000 rows, one file, 3 snapshots", 10_000),
    Shape("Many files: 1,000,000 rows in 1,000 partitions", 1_000_000, days=1_000),
    Shape("Long history: 10,000 rows, 1,000 snapshots", 10_000, commits=999),
)
SMALL_SHAPES = (Shape("Small", 1_000), Shape("Files", 5_000, days=20), Shape("History", 1_000, commits=30))


def load(warehouse: SimulatedWarehouse, shape: Shape, engine: Engine) -> Cost:
    """Make the table, and its commits."""
    first = warehouse.measure(lambda: engine.write(NAME, keyed_rows(0, shape.rows, shape.days), shape.spec()))
    for number in range(shape.commits):
        key = 10 * shape.rows + 10 * number
        engine.write(NAME, keyed_rows(key, 10, shape.days), shape.spec())
    return first


def operations(shape: Shape, latency_s: float) -> dict[str, Cost]:
    """Each operation once, in this order."""
    warehouse = SimulatedWarehouse(latency_s)
    engine = warehouse.open()
    found = {"create and load": load(warehouse, shape, engine)}

    def note(name: str, work: Callable[[], object]) -> None:
        found[name] = warehouse.measure(work)

    def upsert(process: Engine, turn: int) -> Callable[[], object]:
        rows = shape.changed(turn)
        return lambda: process.write(NAME, rows, shape.spec())

    upsert(engine, 0)()
    note("upsert 100 rows", upsert(engine, 1))
    new = warehouse.open()
    note("upsert 100 rows, first of a process", upsert(new, 2))
    new = warehouse.open()
    note("open: columns", lambda: new.columns(NAME))
    new = warehouse.open()
    note("plan a scan", lambda: plan(new))
    new = warehouse.open()
    note("scan all rows, first of a process", lambda: new.table(NAME).scan().to_arrow())
    note("compact, full", lambda: new.table(NAME).compact(full=True))
    note("expire, nothing due", lambda: new.table(NAME).expire())
    warehouse.store.time.sleep(_DAY_S)  # readers of the old snapshots have their time of grace
    note("expire all but one", lambda: new.table(NAME).expire(keep=1, older_than_ms=0))
    rows = shape.changed(3)
    note("stage 100 rows", lambda: new.write(NAME, rows, WriteSpec(stage="gate")))
    note("publish them", lambda: new.table(NAME).publish_staged("gate"))
    note("drop", lambda: new.drop_table(NAME))
    return found


def plan(engine: Engine) -> None:
    """Find the files of the newest snapshot."""
    engine.table(NAME).store.plan_scan()


def operation_table(shape: Shape) -> list[str]:
    """Lines of the page."""
    short, long = (operations(shape, latency_s) for latency_s in LATENCIES_S)
    lines = [_OPERATIONS_HEADER, "|---" * 10 + "|"]
    for name, cost in short.items():
        if cost.methods != long[name].methods:
            raise SystemExit(f"{name}: {cost.methods} at 30 ms, {long[name].methods} at 200 ms")
        methods = cost.methods
        cells = [
            name,
            f"{methods['GET'] + methods['HEAD']:,}",
            f"{methods['LIST']:,}",
            f"{methods['PUT'] + methods['COPY']:,}",
            f"{methods['DELETE'] + methods['POST']:,}",
            amount(cost.read_bytes),
            amount(cost.written_bytes),
            f"{cost.usd * 1000:.2f}",
            f"{cost.seconds:.2f} s",
            f"{long[name].seconds:.2f} s",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def amount(count: float) -> str:
    """Bytes for readers."""
    for unit in ("B", "KB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 10 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def growth_table(points: tuple[int, ...], repeats: int = 5) -> list[str]:
    """Medians of upserts of 100 rows at so many snapshots."""
    found: dict[tuple[int, str], list[list[Cost]]] = {}
    for latency_s in LATENCIES_S:
        shape = Shape("growth", 10_000, commits=0)
        warehouse = SimulatedWarehouse(latency_s)
        engine = warehouse.open()
        load(warehouse, shape, engine)
        for point in points:
            while (engine.table(NAME).facts().snapshot_id or 0) < point:
                count = engine.table(NAME).facts().snapshot_id or 0
                engine.write(NAME, keyed_rows(200_000 + 10 * count, 10), shape.spec())
            for name, same in (("has upserted", engine), ("new", None)):
                costs = []
                for turn in range(repeats):
                    process = same or warehouse.open()
                    with warehouse.measured() as cost:
                        process.write(NAME, shape.changed(turn), shape.spec())
                    costs += cost
                found.setdefault((point, name), []).append(costs)
    lines = [_GROWTH_HEADER, "|---" * 6 + "|"]
    for (point, name), (short, long) in found.items():
        cells = [
            f"{point:,}",
            name,
            f"{statistics.median(one.requests for one in short):.0f}",
            amount(statistics.median(one.read_bytes for one in short)),
            *(f"{statistics.median(one.seconds for one in each):.2f}" for each in (short, long)),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def fault_table(count: int) -> list[str]:
    """Upserts of 100 rows at 30 ms, while a share of the requests fails."""
    lines = [_FAULTS_HEADER, "|---|---|---|---|---|"]
    plans: dict[str, FaultPlan] = {
        "none": no_faults,
        "1 %, 503 SlowDown": seeded_faults(7, 0.01, (StoreFault.SLOW_DOWN,)),
        "1 %, lost answers too": seeded_faults(7, 0.01, _FAULT_KINDS),
        "10 %, lost answers too": seeded_faults(7, 0.1, _FAULT_KINDS),
    }
    for name, plan in plans.items():
        shape = Shape("faults", 10_000)
        warehouse = SimulatedWarehouse(0.03)
        engine = warehouse.open()
        load(warehouse, shape, engine)
        warehouse.store.plan = plan
        costs: list[Cost] = []
        for turn in range(count):
            with warehouse.measured() as cost:
                engine.write(NAME, shape.changed(turn % 50), shape.spec())
            costs += cost
        seconds = sorted(one.seconds for one in costs)
        requests = sum(one.requests for one in costs) / count
        times = (statistics.median(seconds), seconds[int(len(seconds) * 0.99) - 1], seconds[-1])
        lines.append(f"| {name} | {requests:.1f} | {' | '.join(f'{one:.2f} s' for one in times)} |")
    return lines


def write_tables(tables: dict[str, list[str]]) -> None:
    """Replace what lies under each of these headings of the page, up to its end."""
    text = PAGE.read_text()
    for heading, lines in tables.items():
        before, found, after = text.partition(f"\n### {heading}\n")
        if not found:
            raise SystemExit(f"{PAGE.name} has no heading: {heading}")
        old = after.split("\n")
        first = next(at for at, line in enumerate(old) if line.startswith("|"))
        end = next((at for at in range(first, len(old)) if not old[at].startswith("|")), len(old))
        text = before + found + "\n".join([*old[:first], *lines, *old[end:]])
    PAGE.write_text(text)


def main() -> None:
    """Measure, then write or show."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--small", action="store_true", help="small tables, and nothing is written")
    is_small = asked.parse_args().small
    tables = {shape.title: operation_table(shape) for shape in (SMALL_SHAPES if is_small else SHAPES)}
    tables["Upserts after many snapshots"] = growth_table((5, 20) if is_small else (10, 100, 1_000))
    tables["Upserts while requests fail"] = fault_table(20 if is_small else 300)
    for heading, lines in tables.items():
        sys.stdout.write("\n".join([heading, *lines, "", ""]))
    if not is_small:
        write_tables(tables)


if __name__ == "__main__":
    main()
