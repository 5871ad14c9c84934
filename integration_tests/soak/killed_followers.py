"""`dbt run` of models that follow tables, killed with SIGKILL at any moment, and run again: each change once.

Shapes     of each history an input of its own, whose rows are put and deleted, and five models over it: a stream by
           key, a journal of a stream, sums that remember rows, changes() and changed_keys, by deltas
Steps      a project with the models of up to HISTORIES_OF_A_PROJECT histories: in each round the inputs change, and a
           child runs all models and dies at one of its commits or at any moment → at last they run to the end → each
           table against its input
INVARIANT  a history takes its choices from seed and number alone; the first difference ends it, by its names.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from tablestore_demo.dbt_session import DbtSession
from tablestore_engine.api import Engine, SparkSettings, TableSpec, WriteSpec
from tablestore_engine.runtime.outside_world import CRASH_ENV

HISTORIES_OF_A_PROJECT, KILLS = 10, 5
MODELS = ("copy", "journal", "changed", "totals", "sums")
_POINTS = ("write.data_files", "commit.manifests", "commit.claimed", "commit.done", "commit.done", None)
_SECONDS_OF_A_MODEL = 0.7  # about; for moments to die at
_FEED = WriteSpec(table=TableSpec(primary_key=("id",), options={"bucket": "2"}))
_PROJECT = {
    "dbt_project.yml": "name: follow\nversion: '1.0'\nprofile: follow\nflags: {send_anonymous_usage_stats: false}\n",
    "profiles.yml": """follow:
  target: dev
  outputs:
    dev: {type: tablestore, warehouse: ./warehouse, schema: demo, threads: 2,
          spark: {master: 'local[2]', conf: {spark.sql.shuffle.partitions: '2', spark.driver.memory: 1g}}}
""",
}
_TEXTS = {
    "copy": """{{ config(materialized='streaming', unique_key='id', max_snapshots_per_batch=@most@) }}
select id, v, _row_kind, _snapshot_id from {{ stream(source('raw', '@feed@')) }}""",
    "journal": """{{ config(materialized='streaming', row_kinds='all', max_snapshots_per_batch=2) }}
select id, v, _row_kind as kind, _snapshot_id as snapshot from {{ stream(source('raw', '@feed@')) }}""",
    "changed": """{{ config(materialized='incremental', unique_key='id') }}
select * from {{ changes(source('raw', '@feed@')) }}""",
    "totals": """{{ config(materialized='incremental', incremental_strategy='changed_keys',
          unique_key='part', affected_limit=1.0) }}
select id % 3 as part, count(*) as n, sum(v) as total from {{ source('raw', '@feed@') }} group by id % 3""",
    "sums": """{{ config(materialized='streaming', unique_key='part', row_kinds='all') }}
select id % 3 as part, sum(one) as n, sum(one * v) as total
from (select *, if(_row_kind in ('+I', '+U'), 1, -1) as one from {{ stream(source('raw', '@feed@')) }})
group by id % 3""",
}


def killed_followers(seed: int, count: int, folder: Path) -> dict[str, int]:
    """Raises AssertionError at the first difference."""
    counts = {"histories": count, "runs": 0, "killed": 0, "commits of inputs": 0, "rows compared": 0}
    for first in range(0, count, HISTORIES_OF_A_PROJECT):
        numbers = range(first, min(first + HISTORIES_OF_A_PROJECT, count))
        for name, number in _play(seed, numbers, folder / str(first)).items():
            counts[name] += number
        print(f"followers: {numbers.stop} histories, {counts['killed']} killed so far", flush=True)
    return counts


def _play(seed: int, numbers: Sequence[int], folder: Path) -> dict[str, int]:
    """One project."""
    _write_project(seed, numbers, folder)
    dice = {number: random.Random(f"{seed}/{number}") for number in numbers}
    rng = random.Random(f"{seed}/kills/{numbers[0]}")
    commits = sum(_change(folder, number, one) for number, one in dice.items())
    killed = 0
    for _ in range(KILLS):
        killed += _run_killed(folder, rng, len(numbers) * len(MODELS))
        commits += sum(_change(folder, number, one) for number, one in dice.items() if one.random() < 0.8)
    result = DbtSession(folder).invoke("run")
    assert result.success, [(node.name, node.message) for node in result.nodes] or result.error
    rows = 0
    with _opened(folder) as engine:
        for number in numbers:
            rows += _check(engine, number, f"seed {seed}, history {number}")
    return {"runs": KILLS + 1, "killed": killed, "commits of inputs": commits, "rows compared": rows}


def _write_project(seed: int, numbers: Sequence[int], folder: Path) -> None:
    tables = ", ".join(f"{{name: feed_{number}}}" for number in numbers)
    files = {**_PROJECT, "models/sources.yml": f"sources: [{{name: raw, schema: demo, tables: [{tables}]}}]"}
    for number in numbers:
        most = random.Random(f"{seed}/{number}/most").randint(1, 4)
        for model, text in _TEXTS.items():
            named = text.replace("@feed@", f"feed_{number}").replace("@most@", str(most))
            files[f"models/{model}_{number}.sql"] = named
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def _opened(folder: Path) -> Engine:
    """A handle of its own, so that nothing is remembered from before the kill."""
    return Engine(str(folder / "warehouse"), spark=SparkSettings("local[2]"))


def _change(folder: Path, number: int, rng: random.Random) -> int:
    """One to four commits of an input; how many."""
    commits = 0
    with _opened(folder) as engine:
        for _ in range(rng.randint(1, 4)):
            keys = rng.sample(range(12), rng.randint(1, 5))
            rows = {"id": keys, "v": [rng.randrange(1000) for _ in keys]}
            engine.write(f"demo.feed_{number}", pa.table(rows), _FEED)
            commits += 1
            if rng.random() < 0.4:
                gone = {"id": keys[:1], "v": [0]}
                engine.write(f"demo.feed_{number}", pa.table(gone), WriteSpec(delete_when="true"))
                commits += 1
    return commits


def _run_killed(folder: Path, rng: random.Random, models: int) -> bool:
    """A child runs the models and dies at one of its commits, or at any moment; whether it did."""
    point = rng.choice(_POINTS)
    command = [sys.executable, "-u", "-m", "dbt.cli.main", "--no-use-colors", "run"]
    child = subprocess.Popen(
        [*command, "--project-dir", str(folder), "--profiles-dir", str(folder)],
        cwd=folder,
        env={**os.environ, **({} if point is None else {CRASH_ENV: f"{point}:{rng.randint(1, models + 1)}"})},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    if point is None:
        time.sleep(
            5 + rng.random() * (7 + models * _SECONDS_OF_A_MODEL)
        )  # a moment to die at, not a measurement
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    status = child.wait()
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)  # what it has left running
    assert status in (0, -signal.SIGKILL), f"dbt run ended with {status} in {folder}"
    return status != 0


def _check(engine: Engine, number: int, where: str) -> int:
    """Each model against its input: rows, and of the journal every change once; how many rows."""
    rows = {
        name: engine.table(f"demo.{name}_{number}").scan().to_arrow().to_pylist()
        for name in ("feed", *MODELS)
    }
    feed = {row["id"]: row["v"] for row in rows["feed"]}
    for name in ("copy", "changed"):
        assert {row["id"]: row["v"] for row in rows[name]} == feed, f"{where}: {name}"
        assert len(rows[name]) == len(feed), f"{where}: {name}"
    parts: dict[int, list[int]] = {}
    for key, value in feed.items():
        parts.setdefault(key % 3, []).append(value)
    expected = sorted((part, len(values), sum(values)) for part, values in parts.items())
    for name in ("totals", "sums"):  # a sum that is taken back to nothing stays as 0
        found = sorted((row["part"], row["n"], row["total"]) for row in rows[name] if row["n"])
        assert found == expected, f"{where}: {name}"
    _check_journal(engine, number, rows["journal"], where)
    for name in MODELS:
        assert engine.table(f"demo.{name}_{number}").verify() == (), f"{where}: {name}"
    return sum(len(one) for one in rows.values())


def _check_journal(engine: Engine, number: int, journal: list[dict[str, int]], where: str) -> None:
    """Rows that it began with, and each change behind them, once."""
    feed = engine.table(f"demo.feed_{number}")
    start = min(row["snapshot"] for row in journal)
    expected = [
        (one["_snapshot_id"], one["_row_kind"], one["id"], one["v"])
        for one in feed.changes(start).to_pylist()
    ]
    behind = [
        (row["snapshot"], row["kind"], row["id"], row["v"]) for row in journal if row["snapshot"] > start
    ]
    assert sorted(behind) == sorted(expected), f"{where}: journal"
    base = feed.scan(snapshot=start).to_arrow().to_pylist()
    first = [(row["id"], row["v"]) for row in journal if row["snapshot"] == start]
    assert sorted(first) == sorted((row["id"], row["v"]) for row in base), f"{where}: journal"
