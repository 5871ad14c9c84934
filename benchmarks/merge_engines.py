"""Upserts of each merge engine beside deduplicate, full compactions and merging reads beside plain Parquet.

Steps      1 a table of each engine is loaded, and upserted with a fifth of its rows, engine after engine in each turn
           2 full compaction of what a load and five upserts left, beside reading these files and writing the rows that
           stay  3 a table without deletion vectors with ten runs is read, beside one Parquet file of the same rows
           4 docs/performance.json, key "merge engines"
INVARIANT  rows and sums of every subject are what numpy says, or the run fails.
WHY        processor seconds, of this process and its threads, decide: a busy machine does not change them much. Wall
           seconds stand beside them.
Usage      python -m benchmarks.merge_engines [--rows 1000000] [--turns 5] [--record]
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.data import SCHEMA, rows_of
from benchmarks.record import keep
from tablestore_engine.fileio.local import LocalFileIO
from tablestore_engine.format.schema import new_schema
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.write.write_request import WriteRequest
from tests.unit.store.table_world import KEYED
from tests.unit.store.test_changelog import foreign_run

T = TypeVar("T")
GOALS = {"upsert": 1.3, "full compaction": 1.5, "merging read": 3.0}
ENGINES: Mapping[str, Mapping[str, str]] = {
    "deduplicate": {},
    "partial-update": {},
    "partial-update, group": {
        "merge-engine": "partial-update",
        "fields.updated_at.sequence-group": "name,amount,quantity",
        "fields.quantity.aggregate-function": "sum",
    },
    "aggregation": {
        "fields.quantity.aggregate-function": "sum",
        "fields.price.aggregate-function": "sum",
        "fields.amount.aggregate-function": "max",
        "fields.updated_at.aggregate-function": "max",
    },
}
_UPSERTS, _RUNS = 5, 10


@dataclass
class Sheet:
    """Processor and wall seconds by name."""

    cpu: dict[str, list[float]] = field(default_factory=dict)
    wall: dict[str, list[float]] = field(default_factory=dict)

    def time(self, name: str, work: Callable[[], T]) -> T:
        """Run and note."""
        before, started = _cpu(), time.monotonic()
        made = work()
        self.cpu.setdefault(name, []).append(_cpu() - before)
        self.wall.setdefault(name, []).append(time.monotonic() - started)
        return made

    def compare(self, name: str, limit: str) -> dict[str, float]:
        """Medians, and the median of the ratios of each turn."""
        pairs = list(zip(self.cpu[name], self.cpu[limit], strict=True))
        walls = list(zip(self.wall[name], self.wall[limit], strict=True))
        return {
            "cpu": round(statistics.median(self.cpu[name]), 3),
            "limit cpu": round(statistics.median(self.cpu[limit]), 3),
            "ratio cpu": round(statistics.median(a / b for a, b in pairs), 2),
            "ratio wall": round(statistics.median(a / b for a, b in walls), 2),
        }


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def options_of(engine: str) -> dict[str, str]:
    """Of a table with one bucket."""
    return {**KEYED, **merging_options(engine)}


def merging_options(engine: str) -> dict[str, str]:
    """The merge engine and what goes with it."""
    return {"merge-engine": engine, **ENGINES[engine]}


def make_table(folder: Path, engine: str, **more: str) -> TableStore:
    """A new one."""
    store = open_table(folder)
    fields = [pa.field("id", pa.int64(), nullable=False), *list(SCHEMA)[1:]]
    named = {name.replace("_", "-").replace("--", "."): value for name, value in more.items()}
    schema = new_schema(pa.schema(fields), primary_keys=["id"], options={**options_of(engine), **named})
    assert store.context.schemas.claim(schema)
    return store


def open_table(folder: Path) -> TableStore:
    """A fresh handle."""
    return TableStore(LocalFileIO(str(folder)), f"{folder}/bench.db/rows")


def partial_rows(keys: np.ndarray, seed: int) -> pa.Table:
    """Rows of which every second lacks `city` and `score`."""
    rows = rows_of(keys, seed)
    there = pa.array(keys % 2 == 0)
    for name in ("city", "score"):
        column = pc.if_else(there, rows[name], pa.scalar(None, rows[name].type))
        rows = rows.set_column(rows.column_names.index(name), name, column)
    return rows


def _check(what: str, rows: pa.Table, batches: list[pa.Table], *, sums: bool) -> None:
    """Count, keys and quantities: the newest of each key, or all of them added up."""
    keys = np.concatenate([one["id"].to_numpy() for one in batches])
    values = np.concatenate([one["quantity"].to_numpy() for one in batches]).astype(np.int64)
    unique, last = np.unique(keys[::-1], return_index=True)
    total = values.sum() if sums else values[::-1][last].sum()
    wanted = (len(unique), int(unique.sum()), int(total))
    got = (rows.num_rows, pc.sum(rows["id"]).as_py(), pc.sum(rows["quantity"].cast(pa.int64())).as_py())
    if got != wanted:
        raise SystemExit(f"{what}: {got}, not {wanted}: the measurement is void")


def _adds_up(engine: str) -> bool:
    return ENGINES[engine].get("fields.quantity.aggregate-function") == "sum"


def _copy(folder: Path, name: str) -> Path:
    target = folder.parent / name
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target)
    return target


def _upserts(work: Path, count: int, turns: int) -> dict[str, dict[str, float]]:
    base, batch = (
        rows_of(np.random.default_rng(1).permutation(count), 1),
        partial_rows(np.arange(0, count, 5), 2),
    )
    for engine in ENGINES:
        make_table(work / engine, engine).write(WriteRequest(base))
    sheet = Sheet()
    for turn in range(turns + 1):
        kept = sheet if turn else Sheet()  # the first turn warms up
        for engine in ENGINES:
            store = open_table(_copy(work / engine, "turn"))
            kept.time(engine, lambda store=store: store.write(WriteRequest(batch)))  # type: ignore[misc]
            if not turn:
                _check(f"upsert, {engine}", store.read(), [base, batch], sums=_adds_up(engine))
    return {engine: sheet.compare(engine, "deduplicate") for engine in ENGINES}


def _compactions(work: Path, count: int, turns: int) -> dict[str, dict[str, float]]:
    batches = [rows_of(np.random.default_rng(1).permutation(count), 1)]
    batches += [partial_rows(np.arange(number, count, 10), 3 + number) for number in range(_UPSERTS)]
    found = {}
    for engine in ENGINES:
        place, sheet = work / f"compacted {engine}", Sheet()
        store = make_table(place, engine)
        for one in batches:
            store.write(WriteRequest(one))
        files = [file.path for file in store.plan_scan().files]
        final = store.read()
        for turn in range(turns + 1):
            kept = sheet if turn else Sheet()
            copied = open_table(_copy(place, "turn"))
            kept.time("full compaction", lambda copied=copied: copied.compact(full=True))  # type: ignore[misc]
            kept.time("limit", lambda: _read_and_write(files, final.num_rows, work / "limit.parquet"))  # noqa: B023
            if not turn:
                _check(f"compaction, {engine}", copied.read(), batches, sums=_adds_up(engine))
        found[engine] = sheet.compare("full compaction", "limit")
    return found


def _read_and_write(files: list[str], rows: int, target: Path) -> None:
    """All bytes once, and as many rows as stay, as the engine writes them."""
    read = pa.concat_tables([pq.read_table(one) for one in files])
    assert read.num_rows >= rows
    pq.write_table(read.slice(0, rows), target, compression="zstd")


def _merging_reads(work: Path, count: int, turns: int) -> dict[str, dict[str, float]]:
    found = {}
    batches = [rows_of(np.arange(count), 1)]
    batches += [partial_rows(np.arange(number, count, _RUNS), 3 + number) for number in range(_RUNS - 1)]
    for engine in ENGINES:
        place, sheet = work / f"merged {engine}", Sheet()
        merged = {"deletion-vectors__enabled": "false", "changelog_producer": "none", "write_only": "false"}
        store = make_table(place, engine, **merged)
        for one in batches:
            foreign_run(store, one)
        runs = {file.meta.file_name for state in store.bucket_states(store.latest()) for file in state.files}
        assert len(runs) >= _RUNS, len(runs)
        rows = store.read()
        _check(f"merging read, {engine}", rows, batches, sums=_adds_up(engine))
        plain = work / "plain.parquet"
        pq.write_table(rows.sort_by("id"), plain, compression="zstd")
        for turn in range(turns + 1):
            kept = sheet if turn else Sheet()
            kept.time("merging read", lambda: open_table(place).read())  # noqa: B023 - run at once
            kept.time("limit", lambda: pq.read_table(plain))  # noqa: B023
        found[engine] = sheet.compare("merging read", "limit")
    return found


def measure(rows: int, turns: int) -> dict[str, dict[str, dict[str, float]]]:
    """Operation -> engine -> figures."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="merge-engines-") as folder:
        for name, work in (
            ("upsert", _upserts),
            ("full compaction", _compactions),
            ("merging read", _merging_reads),
        ):
            place = Path(folder) / name
            place.mkdir()
            found[name] = work(place, rows, turns)
            for engine, figures in found[name].items():
                state = "met" if figures["ratio cpu"] <= GOALS[name] else "MISSED"
                print(f"{name:<16} {engine:<22} {figures}  goal {GOALS[name]}: {state}", flush=True)
            shutil.rmtree(place)
    return found


def main(words: list[str]) -> None:
    """Measure, and record where asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.merge_engines", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--record", action="store_true")
    chosen = parser.parse_args(words)
    found = measure(chosen.rows, chosen.turns)
    if chosen.record:
        keep("merge engines", {"rows": chosen.rows, "goals": GOALS, "operations": found})


if __name__ == "__main__":
    main(sys.argv[1:])
