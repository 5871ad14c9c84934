"""Delta, Iceberg, Paimon, plain Spark and ours on the same rows: each in a process of its own, in turns over rounds.

Steps      1 rows to parquet, what must come out without any table format  2 in each round every system once, each round
           beginning with the next one: benchmarks/peer_spark.py in the system's own environment  3 table of medians,
           docs/performance.json, key "spark peers"
INVARIANT  a recorded figure is of a system whose tables had, in every round, the expected rows and sums, and the hash
           of all columns that plain Spark's has. Any other system is named and left out, and the command fails.
Usage      python -m benchmarks.spark_peers [--small] [--rounds 3] [--only ours,plain] [--no-write]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.data import Sizes, checksum, merge, write_rows
from benchmarks.paimon_connector import connector
from benchmarks.record import keep
from benchmarks.spark_environments import (
    DELTA,
    ICEBERG,
    PAIMON,
    PAIMON_VERSION,
    delta_jars,
    iceberg_jars,
    paimon_bundle,
)
from integration_tests.interop.environments import CannotMake, java_command

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = Path(__file__).parent / "peer_spark.py"
HEADINGS = {
    "ours": "ours, full changelog",
    "paimon": f"Paimon {PAIMON_VERSION}, none",
    "iceberg": "Iceberg 1.12, none",
    "delta": "Delta 4.4, change feed",
    "plain": "plain Spark",
}
# Text, the most that ours may take, and whether that is a multiple of plain Spark's median or seconds
OPERATIONS = {
    "load": ("load of a Parquet file", 0.95, "×"),
    "load of a query": ("load of a query", 0.95, "×"),
    "upsert": ("upsert of 200,000 rows", 1.25, "×"),
    "all upserts": ("five upserts", 3.3, "s"),
    "few rows": ("upsert of 100 rows", 0.15, "s"),
    "full read": ("full read", 1.3, "×"),
    "aggregates": ("three aggregates", 1.3, "×"),
    "groups": ("aggregates by a column", 1.3, "×"),
    "one key": ("one key", 0.05, "s"),
}
SMALL = Sizes(base_rows=200_000, batch_rows=10_000, batches=2, small_batches=2)
_FEW = 5  # upserts of a few rows in a round: Delta needs six seconds for each
_PROCESS_SECONDS = 1200


class Failed(Exception):
    """The process of a system ended with an error, or its rows are wrong."""


@dataclass(frozen=True)
class System:
    """How its process is started."""

    name: str
    python: str
    jars: tuple[str, ...] = ()


@dataclass
class Figures:
    """Of one system, over all rounds."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    files: int = 0
    megabytes: int = 0

    def summary(self) -> dict[str, object]:
        """Operation -> median, least and most of all its values."""
        table = {
            name: [round(one, 3) for one in (statistics.median(values), min(values), max(values))]
            for name, values in self.seconds.items()
        }
        return {"seconds": table, "files": self.files, "megabytes": self.megabytes}


def systems(names: Sequence[str]) -> list[System]:
    """Those of these names that this machine has or can get; the others are named on standard error."""
    found = []
    for name in names:
        try:
            system = _system(name)
        except CannotMake as missing:
            print(f"{name} is left out: {missing}", file=sys.stderr, flush=True)
        else:
            found.append(system)
    return found


def _system(name: str) -> System:
    if name == "delta":
        return System(name, str(DELTA.python()), tuple(map(str, delta_jars())))
    if name == "iceberg":
        return System(name, str(ICEBERG.python()), tuple(map(str, iceberg_jars())))
    if name == "paimon":
        jar = connector()
        if jar is None:
            raise CannotMake("compile its connector once: python -m benchmarks.paimon_connector CHECKOUT")
        return System(name, str(PAIMON.python()), (str(jar), str(paimon_bundle())))
    return System(name, sys.executable)


def measure_spark_peers(
    folder: Path, rows: tuple[Path, list[Path], list[Path]], names: Sequence[str], rounds: int
) -> dict[str, Any]:
    """System -> figures. A system that fails or has other rows is named, and has no figures."""
    base, batches, small = rows
    loaded = pq.read_table(base)
    work = _work(folder, "rows", loaded, batches, small[:_FEW])
    work["warm"] = _work(folder, "warm", loaded.slice(0, loaded.num_rows // 4), batches[:2], small[:2])
    del loaded
    subjects = systems(names)
    found = {one.name: Figures() for one in subjects}
    for turn in range(rounds):
        hashes = {}
        for system in subjects[turn % len(subjects) :] + subjects[: turn % len(subjects)]:
            if system.name not in found:
                continue
            try:
                with tempfile.TemporaryDirectory(prefix=f"{system.name}-", dir=folder) as place:
                    result = _run(system, {**work, "folder": place})
            except (Failed, subprocess.TimeoutExpired) as failed:
                _leave_out(found, system.name, failed)
                continue
            hashes[system.name] = result["hash"]
            _add(found[system.name], result)
            print(f"  round {turn + 1} {system.name:<8} {result['seconds']}", flush=True)
        right = hashes.get("plain", next(iter(hashes.values()), None))
        for name in [one for one, found_hash in hashes.items() if found_hash != right]:
            _leave_out(found, name, Failed(f"hash of all columns {hashes[name]}, expected {right}"))
    return {name: figures.summary() for name, figures in found.items()}


def _leave_out(found: dict[str, Figures], name: str, why: Exception) -> None:
    print(f"{name} is left out, its figures are void: {why}", file=sys.stderr, flush=True)
    del found[name]


def _work(
    folder: Path, name: str, base: pa.Table, batches: list[Path], small: list[Path]
) -> dict[str, object]:
    """What a system does, and what has to come out."""
    final = merge([base, *map(pq.read_table, (*batches, *small))])
    paths = [folder / f"{name}-{part}.parquet" for part in ("base", "final")]
    for path, table in zip(paths, (base, final), strict=True):
        pq.write_table(table, path, row_group_size=500_000, compression="zstd")
    chosen = final.take([final.num_rows * part // 11 for part in range(1, 11)])
    return {
        "base": str(paths[0]),
        "final": str(paths[1]),
        "batches": [str(path) for path in batches],
        "small": [str(path) for path in small],
        "reads": 4,
        "loaded": checksum(base),
        "sums": checksum(final),
        "points": list(zip(chosen["id"].to_pylist(), chosen["quantity"].to_pylist(), strict=True)),
    }


def _run(system: System, work: dict[str, Any]) -> dict[str, Any]:
    plan = Path(work["folder"]) / "plan.json"
    plan.write_text(json.dumps({**work, "system": system.name, "jars": system.jars}))
    environment = {
        name: text for name, text in os.environ.items() if name not in {"PYTHONPATH", "SPARK_HOME"}
    }
    environment["JAVA_HOME"] = str(Path(java_command()).parent.parent)
    if system.python == sys.executable:
        environment["PYTHONPATH"] = str(ROOT)
    # -P: modules of this folder have names of the standard library and of packages
    command = [system.python, "-P", str(SCRIPT), str(plan)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=_PROCESS_SECONDS, check=False, env=environment
    )
    if done.returncode != 0:
        raise Failed(f"exit {done.returncode}\n{done.stderr[-4000:]}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _add(figures: Figures, result: dict[str, Any]) -> None:
    for name, values in result["seconds"].items():
        figures.seconds.setdefault(name, []).extend(values)
    figures.files, figures.megabytes = result["files"], round(result["bytes"] / 1e6)


def table(found: dict[str, Any]) -> str:
    """The table of docs/performance.md: medians, the first one of the table formats in bold."""
    names = [name for name in HEADINGS if name in found]
    lines = [f"| | {' | '.join(HEADINGS[name] for name in names)} | ours / plain | first | goal |"]
    lines.append("|---" * (len(names) + 4) + "|")
    for key, (text, most, unit) in OPERATIONS.items():
        medians = {name: found[name]["seconds"][key][0] for name in names}
        first = min((name for name in names if name != "plain"), key=medians.__getitem__, default="")
        cells = [f"**{taken:.3g}**" if name == first else f"{taken:.3g}" for name, taken in medians.items()]
        ratio = medians["ours"] / medians["plain"] if {"ours", "plain"} <= set(medians) else float("nan")
        reached = (ratio if unit == "×" else medians.get("ours", float("nan"))) <= most
        is_first = "yes" if first == "ours" else "**no**"
        verdict = f"≤ {most} {unit}, {'met' if reached else '**missed**'}"
        lines.append(f"| {text} | {' | '.join(cells)} | {ratio:.2f} | {is_first} | {verdict} |")
    sizes = [f"{found[name]['files']}, {found[name]['megabytes']}" for name in names]
    lines.append(f"| files, MB after | {' | '.join(sizes)} | | | |")
    return "\n".join(lines)


def spread(found: dict[str, Any]) -> str:
    """The least and the most of each cell."""
    lines = []
    for key, (text, *_) in OPERATIONS.items():
        cells = [
            f"{name} {least:.3g} to {most:.3g}"
            for name in found
            for _, least, most in [found[name]["seconds"][key]]
        ]
        lines.append(f"{text}: {', '.join(cells)}")
    return "\n".join(lines)


def record(found: dict[str, Any], sizes: Sizes, rounds: int) -> None:
    """Into docs/performance.json, with date and commit."""
    keep("spark peers", {"rounds": rounds, "sizes": vars(sizes), "systems": found})


def main(words: Sequence[str]) -> int:
    """Measure, print, record. Exit status 1 where a system is left out; a run of chosen systems is not recorded."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_peers", description=__doc__)
    parser.add_argument("--small", action="store_true", help="200,000 rows, one round, nothing recorded")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="names, separated by commas")
    parser.add_argument("--no-write", action="store_true", help="leave docs/performance.json as it is")
    chosen = parser.parse_args(words)
    sizes = SMALL if chosen.small else Sizes()
    rounds = 1 if chosen.small else chosen.rounds
    with tempfile.TemporaryDirectory(prefix="tablestore-peers-") as text:
        rows = write_rows(Path(text), sizes)
        names = chosen.only.split(",") if chosen.only else list(HEADINGS)
        found = measure_spark_peers(Path(text), rows, names, rounds)
    print(table(found), spread(found), sep="\n\n")
    if not (chosen.small or chosen.no_write or chosen.only):
        record(found, sizes, rounds)
    return int(set(found) != set(names))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
