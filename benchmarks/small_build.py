"""What a new user waits for: one model and two tests, whole processes, beside dbt-duckdb and dbt-spark (session).

Steps      1 an environment of its own for the peers, kept in the cache; one for our wheel  2 rounds in which each
           subject runs once, in turn: ours cold, in a resident session, by `tablestore dbt`, its tests alone, and
           dbt-duckdb, dbt-spark
           3 each result is compared (rows, sum)  4 docs/performance.json, `facts.small_build`
INVARIANT  every subject runs the same SELECT and the same tests; what an environment does once (dbt's first parse, our
           archive of Spark's classes) is not measured.
Usage      python -m benchmarks.small_build [--rounds 7] [--write]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.record import keep
from integration_tests.interop.environments import SMALL_BUILD_PEERS, java_command
from tablestore_engine.api import Engine
from tablestore_engine.runtime.java import cache_folder

ROOT = Path(__file__).resolve().parent.parent
ROWS = 10_000
COLD, RESIDENT, TESTS = "ours, cold", "ours, resident session", "ours, dbt test alone"
LOADED = "ours, tablestore dbt"
DUCKDB, SPARK = "dbt-duckdb", "dbt-spark, session"
_SCHEMA = """
models:
  - name: orders
    columns: [{name: id, data_tests: [unique, not_null]}]
"""
_PROJECT = """
name: bench
version: "1.0.0"
profile: bench
flags: {send_anonymous_usage_stats: false}
"""
_COLUMNS = "id, id % 100 as customer, cast(id * 1.5 as decimal(10, 2)) as amount"
_SPARK_ROWS = f"select {_COLUMNS} from range({ROWS})"
_DUCKDB_ROWS = f"select {_COLUMNS} from range({ROWS}) as r(id)"


@dataclass(frozen=True)
class Subject:
    """One adapter on one project. `dbt`: the program; `command`: what is measured, after one build; `resident`: a
    session of ours is kept for it.
    """

    name: str
    dbt: Path
    profile: str
    model: str
    read: Callable[[Path], tuple[int, int]]
    resident: bool = False
    loaded: bool = False
    command: str = "build"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and with `--write` keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        seconds = _measure(_subjects(_install(Path(folder))), Path(folder), options.rounds)
    facts = _facts(seconds)
    print(json.dumps(facts, indent=2))
    if options.write:
        keep("small build", facts)


def _install(folder: Path) -> Path:
    """The `dbt` of an environment with our wheel: the peers are wheels too, and those are imported faster."""
    bin_folder, pip = folder / "ours" / "bin", [sys.executable, "-m", "pip", "--quiet", "wheel", "--no-deps"]
    subprocess.run([*pip, "--wheel-dir", str(folder), str(ROOT)], check=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "ours")], check=True)
    wheel = next(folder.glob("dbt_tablestore-*.whl"))
    install = [str(bin_folder / "pip"), "install", "--quiet", str(wheel), "-c", str(ROOT / "constraints.txt")]
    subprocess.run(install, check=True)
    return bin_folder / "dbt"


def _subjects(ours: Path) -> tuple[Subject, ...]:
    theirs = SMALL_BUILD_PEERS.python().with_name("dbt")
    key = "{{ config(materialized='tablestore', primary_key='id') }}\n"
    ours_profile = "{type: tablestore, warehouse: warehouse, schema: bench}"
    return (
        Subject(COLD, ours, ours_profile, key + _SPARK_ROWS, _our_rows),
        Subject(RESIDENT, ours, ours_profile, key + _SPARK_ROWS, _our_rows, resident=True),
        Subject(LOADED, ours, ours_profile, key + _SPARK_ROWS, _our_rows, resident=True, loaded=True),
        Subject(TESTS, ours, ours_profile, key + _SPARK_ROWS, _our_rows, command="test"),
        Subject(DUCKDB, theirs, "{type: duckdb, path: bench.duckdb}", _TABLE + _DUCKDB_ROWS, _duckdb_rows),
        Subject(
            SPARK,
            theirs,
            "{type: spark, method: session, host: NA, schema: bench}",
            "{{ config(materialized='table', file_format='parquet') }}\n" + _SPARK_ROWS,
            _spark_rows,
        ),
    )


_TABLE = "{{ config(materialized='table') }}\n"


def _await_archive() -> None:
    """The first build of an environment starts the builder of its class archive, which needs a core for a minute."""
    marks = list((cache_folder() / "class-archive").glob("*.building"))
    deadline = time.monotonic() + 300  # a builder that died leaves its mark
    while any(mark.exists() for mark in marks) and time.monotonic() < deadline:
        time.sleep(1)


def _measure(subjects: Sequence[Subject], folder: Path, rounds: int) -> dict[str, list[float]]:
    """Seconds of each build by subject, after one that is not measured; the rows of each build are checked."""
    seconds: dict[str, list[float]] = {one.name: [] for one in subjects}
    for number, subject in enumerate(subjects):
        _make_project(subject, folder / str(number))
        if subject.resident:
            _session(subject, "start", folder / str(number))
    try:
        for round_number in range(rounds + 1):
            if round_number == 1:
                _await_archive()
            for number, subject in enumerate(subjects):
                command = subject.command if round_number else "build"
                took = _run(subject, command, folder / str(number))
                if round_number:
                    seconds[subject.name].append(took)
                    print(f"  {round_number} {subject.name:<26} {took:8.2f} s", flush=True)
    finally:
        for number, subject in enumerate(subjects):
            if subject.resident:
                _session(subject, "stop", folder / str(number))
    return seconds


def _make_project(subject: Subject, project: Path) -> None:
    files = {
        "dbt_project.yml": _PROJECT,
        "profiles.yml": f"bench:\n  target: dev\n  outputs:\n    dev: {subject.profile}\n",
        "models/orders.sql": subject.model,
        "models/schema.yml": _SCHEMA,
    }
    for name, text in files.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _session(subject: Subject, action: str, project: Path) -> None:
    program = subject.dbt.with_name("tablestore")
    subprocess.run([str(program), "session", action], cwd=project, check=True, capture_output=True)


def _run(subject: Subject, name: str, project: Path) -> float:
    program = [str(subject.dbt.with_name("tablestore")), "dbt"] if subject.loaded else [str(subject.dbt)]
    command = [*program, name, "--profiles-dir", "."]
    started = time.monotonic()
    done = subprocess.run(
        command, cwd=project, env=_environment(), capture_output=True, text=True, check=False
    )
    took = time.monotonic() - started
    if done.returncode != 0 or f"PASS={3 if name == 'build' else 2}" not in done.stdout:
        raise SystemExit(f"{subject.name} failed:\n{done.stdout}\n{done.stderr}")
    expected = (ROWS, ROWS * (ROWS - 1) // 2)
    if subject.read(project) != expected:
        raise SystemExit(
            f"{subject.name}: expected {expected}, got {subject.read(project)}: the measurement is void"
        )
    return took


def _environment() -> dict[str, str]:
    """Every subject gets the Java that ours would find."""
    return {**os.environ, "JAVA_HOME": str(Path(java_command()).parent.parent)}


def _our_rows(project: Path) -> tuple[int, int]:
    with Engine(str(project / "warehouse")) as engine:
        ids = engine.table("bench.orders").scan(columns=["id"]).to_arrow()["id"]
    return len(ids), sum(ids.to_pylist())


def _duckdb_rows(project: Path) -> tuple[int, int]:
    query = "select count(*), sum(id) from orders"
    code = f"import duckdb; print(*duckdb.connect('bench.duckdb').sql('{query}').fetchall()[0])"
    return _printed(code, project)


def _spark_rows(project: Path) -> tuple[int, int]:
    code = (
        "import pyarrow.dataset as ds; ids = ds.dataset('spark-warehouse/bench.db/orders', format='parquet')"
        ".to_table(columns=['id'])['id'].to_pylist(); print(len(ids), sum(ids))"
    )
    return _printed(code, project, Path(sys.executable))


def _printed(code: str, project: Path, python: Path | None = None) -> tuple[int, int]:
    program = python or SMALL_BUILD_PEERS.python()
    done = subprocess.run([str(program), "-c", code], cwd=project, check=True, capture_output=True, text=True)
    rows, total = done.stdout.split()[-2:]
    return int(rows), int(total)


def _facts(seconds: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    """Median, least and most seconds of each subject, and its median to dbt-duckdb's."""
    peer = statistics.median(seconds[DUCKDB])
    return {
        name: {
            "median": round(statistics.median(values), 2),
            "least": round(min(values), 2),
            "most": round(max(values), 2),
            "to dbt-duckdb": round(statistics.median(values) / peer, 2),
        }
        for name, values in seconds.items()
    }


if __name__ == "__main__":
    main()
