"""Peak memory of each kind of work on one bucket of many rows: `python -m benchmarks.memory [--rows 20000000]`.

`--engine` takes a merge engine of benchmarks.merge_engines; its figures stand under "memory of merge engines".

Steps      1 a table of one bucket is filled by upserts of LOAD_ROWS  2 each operation runs in its own process, which
           reports its peak (ru_maxrss) and its seconds, on a copy by links of the same table  3 the process that only
           imports is measured too: what an operation needs is what it has above that
           4 docs/performance.json, key "memory"
INVARIANT  rows that are read are counted and their keys summed: a wrong answer makes the figure void.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.data import SCHEMA, rows_of
from benchmarks.merge_engines import ENGINES, merging_options
from benchmarks.record import keep
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.schema import new_schema
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.write_request import WriteMode, WriteRequest
from tablestore_engine.warehouse.compared_states import compare_states
from tablestore_engine.warehouse.snapshot_diff import read_change_batches

ROOT = Path(__file__).resolve().parent.parent
LOAD_ROWS = 1_000_000
_OPTIONS = {"bucket": "1", "deletion-vectors.enabled": "true", "changelog-producer": "lookup"}
_OF_ENGINES = ("nothing", "scan", "fold", "upsert of a quarter")  # what merges or reads merged rows


def _open(folder: Path) -> TableStore:
    return TableStore(LocalFileIO(str(folder)), f"{folder}/bench.db/rows")


def _fill(folder: Path, rows: int, engine: str) -> None:
    """Keys 0 … rows - 1, each load a stripe of them, so that every run spans all keys."""
    store = _open(folder)
    fields = [pa.field("id", pa.int64(), nullable=False), *list(SCHEMA)[1:]]
    schema = new_schema(
        pa.schema(fields), primary_keys=["id"], options={**_OPTIONS, **merging_options(engine)}
    )
    assert store.context.schemas.claim(schema)
    loads = max(1, rows // LOAD_ROWS)
    for number in range(loads):
        keys = np.arange(number, rows, loads)
        store.write(WriteRequest(rows_of(np.random.default_rng(number).permutation(keys), seed=number)))


def _expect(rows: int, got: tuple[int, int]) -> None:
    expected = (rows, rows * (rows - 1) // 2)
    if got != expected:
        raise SystemExit(f"expected {expected}, got {got}: the measurement is void")


def _nothing(_: TableStore, _rows: int) -> None:
    """What a process is that only imports."""


def _scan(store: TableStore, rows: int) -> None:
    count = total = 0
    for batch in store.read_batches(store.plan_scan()):
        count, total = count + batch.num_rows, total + (pc.sum(batch.column("id")).as_py() or 0)
    _expect(rows, (count, total))


def _verify(store: TableStore, _: int) -> None:
    assert store.verify() == ()


def _fold(store: TableStore, _: int) -> None:
    store.compact(full=True)


def _changes(store: TableStore, rows: int) -> None:
    count = total = 0
    for batch in read_change_batches(store, 0, None):
        count, total = count + batch.num_rows, total + (pc.sum(batch.column("id")).as_py() or 0)
    _expect(rows, (count, total))


def _diff(store: TableStore, rows: int) -> None:
    newest = store.snapshots.find_latest_id()
    assert newest is not None
    assert compare_states(store, 0, newest).count().inserted == rows


def _upsert(store: TableStore, rows: int) -> None:
    """A quarter of the rows, all of them stored; the batch itself is in the figure."""
    keys = np.arange(0, rows, 4)
    store.write(WriteRequest(rows_of(keys, seed=77)))


def _overwrite(store: TableStore, rows: int) -> None:
    """A quarter of the rows take the place of all: every old row is read for the changelog."""
    store.write(WriteRequest(rows_of(np.arange(0, rows, 4), seed=78), mode=WriteMode.OVERWRITE_TABLE))


OPERATIONS: dict[str, Callable[[TableStore, int], None]] = {
    "nothing": _nothing,
    "scan": _scan,
    "verify": _verify,
    "fold": _fold,
    "changes": _changes,
    "diff": _diff,
    "upsert of a quarter": _upsert,
    "overwrite by a quarter": _overwrite,
}


def _child(operation: str, folder: Path, rows: int) -> None:
    started = time.monotonic()
    OPERATIONS[operation](_open(folder), rows)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    print(json.dumps({"peak_gib": round(peak / 2**30, 2), "seconds": round(time.monotonic() - started, 2)}))


def _run(*arguments: str) -> str:
    command = [sys.executable, "-m", "benchmarks.memory", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout


def measure(rows: int, folder: Path, engine: str) -> dict[str, dict[str, float]]:
    """Operation → peak in GiB and seconds."""
    _run("--fill", str(folder / "filled"), "--rows", str(rows), "--engine", engine)
    found = {}
    for operation in OPERATIONS if engine == "deduplicate" else _OF_ENGINES:
        copy = folder / "copy"
        shutil.copytree(folder / "filled", copy, copy_function=_link)
        found[operation] = json.loads(_run("--child", operation, "--fill", str(copy), "--rows", str(rows)))
        shutil.rmtree(copy)
        print(f"{rows:>11,} rows  {operation:<24} {found[operation]['peak_gib']:6.2f} GiB", flush=True)
    return found


def _link(source: str, target: str) -> None:
    """Data files never change, so one set serves all; what is replaced by rename is replaced in one copy only."""
    Path(target).hardlink_to(source)


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, action="append")
    parser.add_argument("--fill", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--engine", choices=sorted(ENGINES), default="deduplicate")
    parser.add_argument("--no-write", action="store_true", help="leave docs/performance.json as it is")
    arguments = parser.parse_args()
    sizes = arguments.rows or [4_000_000, 8_000_000, 20_000_000]
    if arguments.child:
        _child(arguments.child, arguments.fill, sizes[0])
        return
    if arguments.fill:
        _fill(arguments.fill, sizes[0], arguments.engine)
        return
    found = {}
    for rows in sizes:
        with tempfile.TemporaryDirectory() as folder:
            found[str(rows)] = measure(rows, Path(folder), arguments.engine)
    if not arguments.no_write:
        keep("memory", {arguments.engine: found}, beside=True)


if __name__ == "__main__":
    main()
