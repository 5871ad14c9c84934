"""What planning costs when a table has very many files: bytes of manifests, memory and seconds for each file.

Steps      a table of eight columns -> manifests of synthetic files, whose statistics are those of a real one -> a new
           process plans a scan twice from a simulated store and upserts 100 rows into a new partition -> a table of
           docs/object-store-costs.md, which is replaced, with what follows for 1,000,000 files
INVARIANT  each plan has as many files as were written, or the run fails.
Usage      python -m benchmarks.planning_costs [--small]
           --small writes nothing
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import tracemalloc
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from benchmarks.simulated_warehouse import Cost, SimulatedWarehouse
from benchmarks.store_costs import amount, write_tables
from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.format.manifest import ManifestEntry
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.store.table_store import TableStore
from tests.doubles.simulated_store import StoreTraits

NAME = "demo.t"
HEADING = "Planning a scan, by number of files"
_COLUMNS = (
    "files",
    "manifests",
    "bytes",
    "memory",
    "plan: requests",
    "plan: processor",
    "again: processor",
    "upsert: read",
    "upsert: processor",
    "upsert: simulated",
)
_PAPER_FILES = 1_000_000
_TARGET_BYTES = 8 << 20  # manifest.target-file-size
_TOGETHER, _LATENCY_S = 16, 0.03
_NEW_DAY = 999  # no file has it


@dataclass(frozen=True)
class PlanCost:
    """`plan_s`: the first plan of a process, `again_s` the second, `upsert_s` the third upsert: of the processor.

    `simulated_s`: of that upsert, round trips and bytes.
    """

    files: int
    manifests: int
    manifest_bytes: int
    peak_bytes: int
    requests: int
    plan_s: float
    again_s: float
    upsert_bytes: int
    upsert_s: float
    simulated_s: float


def some_rows(first: int, count: int) -> pa.Table:
    """Eight columns, texts among them."""
    ids = list(range(first, first + count))
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "day": pa.array([number % 365 for number in ids], pa.int32()),
            "amount": pa.array([number * 7 % 100_000 for number in ids], pa.int64()),
            "score": [(number % 1000) / 8 for number in ids],
            "city": [f"city {number % 500}" for number in ids],
            "name": [f"customer {number % 50_000}" for number in ids],
            "flag": [number % 2 == 0 for number in ids],
            "note": [f"note {number}" for number in ids],
        }
    )


def synthetic(entries: tuple[ManifestEntry, ...], count: int) -> Iterator[ManifestEntry]:
    """`count` files: partitions and statistics of real ones in turn, names and ranges of keys of their own."""
    chance = random.Random(1)
    for number in range(count):
        entry = entries[number % len(entries)]
        name = f"data-{uuid.UUID(int=chance.getrandbits(128), version=4)}-0.parquet"
        file = replace(
            entry.file,
            file_name=name,
            file_size=100_000_000 + chance.randrange(1 << 20),
            row_count=1_000_000 + chance.randrange(1 << 16),
            min_key=chance.randbytes(len(entry.file.min_key)),
            max_key=chance.randbytes(len(entry.file.max_key)),
            min_sequence_number=number * 1_000_000,
            max_sequence_number=number * 1_000_000 + 999_999,
        )
        yield replace(entry, bucket=number, file=file)


def with_files(engine: Engine, count: int) -> list[int]:
    """The table's newest snapshot names so many files, which nobody may read; the bytes of its manifests."""
    table = WriteSpec(TableSpec(primary_key=("id", "day"), partition_by=("day",), options={"bucket": "1"}))
    engine.write(NAME, some_rows(0, 3_650), table)
    store: TableStore = engine.table(NAME).store
    snapshot = store.latest()
    if snapshot is None:
        raise SystemExit("the table has no snapshot")
    manifests = store.context.manifests
    real = store.context.scanner.live_entries(snapshot)
    metas = manifests.write_manifests(
        synthetic(real, count),
        PartitionSpec.of(store.schema).types,
        compression="zstd",
        target_bytes=_TARGET_BYTES,
    )
    base = manifests.write_list(metas, "zstd")
    delta = manifests.write_list((), "zstd")
    claimed = store.snapshots.claim(
        replace(
            snapshot,
            id=snapshot.id + 1,
            uuid=str(uuid.UUID(int=1)),
            base_manifest_list=base[0],
            base_manifest_list_size=base[1],
            delta_manifest_list=delta[0],
            delta_manifest_list_size=delta[1],
            commit_identifier=1,
        )
    )
    if not claimed:
        raise SystemExit("the snapshot is not claimed")
    store.snapshots.write_hints(snapshot.id + 1)
    return [one.file_size for one in metas]


def plan_cost(warehouse: SimulatedWarehouse, files: int, sizes: list[int]) -> PlanCost:
    """By a process that plans twice and then upserts into a new partition, and one whose memory is measured."""
    peak = peak_memory(warehouse.open())
    engine = warehouse.open()
    store: TableStore = engine.table(NAME).store
    plans = [used(warehouse, store.plan_scan) for _ in range(2)]
    found = len(store.plan_scan().files)
    if found != files:
        raise SystemExit(f"{found} files are planned instead of {files}")
    rows = some_rows(files * 10, 100)
    rows = rows.set_column(1, "day", pa.array([_NEW_DAY] * 100, pa.int32()))
    upserts = [used(warehouse, lambda: engine.write(NAME, rows, WriteSpec())) for _ in range(3)]
    return PlanCost(
        files,
        len(sizes),
        sum(sizes),
        peak,
        plans[0][1].requests,
        plans[0][0],
        plans[1][0],
        upserts[2][1].read_bytes,
        upserts[2][0],
        upserts[2][1].seconds,
    )


def used(warehouse: SimulatedWarehouse, work: Callable[[], object]) -> tuple[float, Cost]:
    """Seconds of the processor, and what the store was asked for."""
    begin = time.process_time()
    cost = warehouse.measure(work)
    return time.process_time() - begin, cost


def peak_memory(engine: Engine) -> int:
    """Bytes of Python's objects at the peak of a plan."""
    store = engine.table(NAME).store
    tracemalloc.start()
    plan = store.plan_scan()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del plan
    return peak


def on_paper(last: PlanCost) -> PlanCost:
    """All in proportion to a table that is larger than the memory of manifests, but the round trips.

    They come in waves of 16 manifests, each as long as its largest answer.
    """
    factor = _PAPER_FILES / last.files
    manifest_bytes = round(last.manifest_bytes * factor)
    manifests = -(-manifest_bytes // _TARGET_BYTES)
    more_waves = -(-manifests // _TOGETHER) - 1
    return PlanCost(
        _PAPER_FILES,
        manifests,
        manifest_bytes,
        round(last.peak_bytes * factor),
        last.requests - last.manifests + manifests,
        last.plan_s * factor,
        last.again_s * factor,
        round(last.upsert_bytes * factor),
        last.upsert_s * factor,
        last.simulated_s + more_waves * (_LATENCY_S + _TARGET_BYTES / StoreTraits().bytes_per_s),
    )


def table_lines(costs: list[PlanCost]) -> list[str]:
    """Lines of the page; the last one is the paper calculation."""
    paper = on_paper(costs[-1])
    lines = [f"| {' | '.join(_COLUMNS)} |", "|---" * len(_COLUMNS) + "|"]
    for one in (*costs, paper):
        cells = [
            f"{one.files:,}" + (", calculated" if one is paper else ""),
            f"{one.manifests:,}",
            f"{amount(one.manifest_bytes)}, {one.manifest_bytes / one.files:.0f} B a file",
            f"{amount(one.peak_bytes)}, {one.peak_bytes / one.files:,.0f} B a file",
            f"{one.requests:,}",
            f"{one.plan_s:.1f} s",
            f"{one.again_s:.1f} s",
            amount(one.upsert_bytes),
            f"{one.upsert_s:.2f} s",
            f"{one.simulated_s:.2f} s",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Measure, then write or show."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--small", action="store_true", help="few files, and nothing is written")
    is_small = asked.parse_args().small
    costs = []
    for files in (100, 1_000) if is_small else (10_000, 100_000, 250_000):
        warehouse = SimulatedWarehouse(_LATENCY_S)
        sizes = with_files(warehouse.open(), files)
        costs.append(plan_cost(warehouse, files, sizes))
    lines = table_lines(costs)
    sys.stdout.write("\n".join([*lines, ""]))
    if not is_small:
        write_tables({HEADING: lines})


if __name__ == "__main__":
    main()
