"""What Iceberg metadata costs: a large upsert and small commits at many files, its share of the commit's own seconds.

Steps      for each case a table with metadata.iceberg.storage → upserts, of which the follower's part is timed apart
           → facts "iceberg", in seconds; the first commit warms up
INVARIANT  DuckDB counts the rows of the newest snapshot over that metadata, and they are the table's, or the run fails.
Usage      python -m benchmarks.iceberg [--small]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks.data import rows_of
from integration_tests.interop.peers import duckdb_peer
from tablestore_engine.api import Engine, TableSpec, WriteMode, WriteSpec
from tablestore_engine.warehouse import iceberg_follower


class SheetLike(Protocol):
    """Where figures go."""

    facts: dict[str, object]


@dataclass(frozen=True)
class Case:
    """`base` rows, then `commits` upserts of `changed` rows each."""

    name: str
    base: int
    changed: int
    buckets: int
    commits: int


CASES = (
    Case("upsert of 200,000 rows", 1_000_000, 200_000, 4, 5),
    Case("upsert of 100 rows at 1,000 files", 200_000, 100, 250, 9),
)
SMALL = (
    Case("upsert of 200,000 rows", 20_000, 4_000, 2, 3),
    Case("upsert of 100 rows at 1,000 files", 5_000, 100, 20, 3),
)


def measure_iceberg(sheet: SheetLike, folder: Path, cases: tuple[Case, ...] = CASES) -> None:
    """Fact `iceberg`: case → medians of the commit and of its metadata, and the most that the metadata took."""
    found = {}
    engine = Engine(str(folder / "iceberg"))
    engine.create_database("bench")
    try:
        for number, case in enumerate(cases):
            found[case.name] = _measure(engine, f"bench.t{number}", case, folder)
            print(f"  iceberg: {case.name:<35} {found[case.name]}", flush=True)
    finally:
        engine.close()
    sheet.facts["iceberg"] = found


def _measure(engine: Engine, name: str, case: Case, folder: Path) -> dict[str, float]:
    options = {"bucket": str(case.buckets), "metadata.iceberg.storage": "table-location"}
    spec = WriteSpec(table=TableSpec(primary_key=("id",), options=options), mode=WriteMode.UPSERT)
    engine.write(name, rows_of(np.arange(case.base), seed=1), spec)
    keys, commits, metadata = np.random.default_rng(2), [], []
    for turn in range(case.commits + 1):
        rows = rows_of(keys.choice(case.base, case.changed, replace=False), seed=turn + 3)
        with _timed() as taken:
            started = time.monotonic()
            report = engine.write(name, rows, spec)
            took = time.monotonic() - started
        if report.iceberg_trouble is not None:
            raise SystemExit(f"{case.name}: {report.iceberg_trouble}")
        if turn:
            commits.append(took)
            metadata.append(sum(taken))
    _check(Path(engine.table(name).store.location), case.base, folder)
    commit, part = statistics.median(commits), statistics.median(metadata)
    return {
        "files": engine.table(name).facts().files,
        "commit": round(commit, 4),
        "metadata": round(part, 4),
        "metadata, most": round(max(metadata), 4),
        "metadata / rest of the commit": round(part / (commit - part), 3),
    }


@contextmanager
def _timed() -> Iterator[list[float]]:
    """Seconds of each call of the follower."""
    taken: list[float] = []
    real: Any = iceberg_follower.sync_iceberg

    def timed(context: Any) -> object:  # noqa: ANN401 - passed on
        started = time.monotonic()
        try:
            return real(context)
        finally:
            taken.append(time.monotonic() - started)

    iceberg_follower.sync_iceberg = timed
    try:
        yield taken
    finally:
        iceberg_follower.sync_iceberg = real


def _check(location: Path, rows: int, folder: Path) -> None:
    peer = duckdb_peer(folder)
    try:
        counted = peer.count(location)
    finally:
        peer.close()
    if counted != rows:
        raise SystemExit(f"{location.name}: DuckDB counts {counted} rows, expected {rows}")


@dataclass
class _Facts:
    facts: dict[str, object]


def main(argv: list[str]) -> int:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true")
    arguments = parser.parse_args(argv)
    sheet = _Facts({})
    with tempfile.TemporaryDirectory(prefix="tablestore-bench-") as folder:
        measure_iceberg(sheet, Path(folder), SMALL if arguments.small else CASES)
    print(json.dumps(sheet.facts, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
