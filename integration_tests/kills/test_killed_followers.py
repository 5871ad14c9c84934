"""`dbt run` of models that follow a table, killed with SIGKILL at any moment, and run again: each change once.

Steps      for each history: a project of its own with a stream by key, a journal of a stream, sums that remember
           rows, changes() and changed_keys over one input; the input changes; a child runs the models and dies at one
           of its commits or at any moment; that a few times; at last they run to the end here, and each table is held
           against the input
Size       TABLESTORE_HISTORIES=N histories; `make test` takes 1
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from dbt.adapters.tablestore.demo.dbt_session import DbtSession
from tablestore_engine.api import Engine, SparkSettings, TableSpec, WriteSpec
from tablestore_engine.runtime.outside_world import CRASH_ENV

HISTORIES = int(os.environ.get("TABLESTORE_HISTORIES", "1"))
KILLS = 3
POINTS = ("write.data_files", "commit.manifests", "commit.claimed", "commit.done", "commit.done", None)
SEED = int(os.environ.get("TABLESTORE_SEED", "20261123"))
FEED = WriteSpec(table=TableSpec(primary_key=("id",), options={"bucket": "2"}))
FILES = {
    "dbt_project.yml": "name: follow\nversion: '1.0'\nprofile: follow\nflags: {send_anonymous_usage_stats: false}\n",
    "profiles.yml": """follow:
  target: dev
  outputs:
    dev: {type: tablestore, warehouse: ./warehouse, schema: demo, threads: 2,
          spark: {master: 'local[2]', conf: {spark.sql.shuffle.partitions: '2'}}}
""",
    "models/sources.yml": "sources: [{name: raw, schema: demo, tables: [{name: feed}]}]",
    "models/copy.sql": """{{ config(materialized='streaming', unique_key='id', max_snapshots_per_batch=1) }}
select id, v, _row_kind, _snapshot_id from {{ stream(source('raw', 'feed')) }}""",
    "models/journal.sql": """{{ config(materialized='streaming', row_kinds='all', max_snapshots_per_batch=2) }}
select id, v, _row_kind as kind, _snapshot_id as snapshot from {{ stream(source('raw', 'feed')) }}""",
    "models/changed.sql": """{{ config(materialized='incremental', unique_key='id') }}
select * from {{ changes(source('raw', 'feed')) }}""",
    "models/totals.sql": """{{ config(materialized='incremental', incremental_strategy='changed_keys',
          unique_key='part', affected_by={'feed': 'id % 3'}, affected_limit=1.0) }}
select id % 3 as part, count(*) as n, sum(v) as total from {{ source('raw', 'feed') }} group by id % 3""",
    "models/sums.sql": """{{ config(materialized='streaming', unique_key='part', row_kinds='all') }}
select id % 3 as part, sum(one) as n, sum(one * v) as total
from (select *, if(_row_kind in ('+I', '+U'), 1, -1) as one from {{ stream(source('raw', 'feed')) }})
group by id % 3""",
}


def opened(folder: Path) -> Engine:
    """A handle of its own, so that nothing is remembered from before the kill."""
    return Engine(str(folder / "warehouse"), spark=SparkSettings("local[2]"))


def change(folder: Path, rng: random.Random) -> None:
    """One to four commits of the input."""
    with opened(folder) as engine:
        for _ in range(rng.randint(1, 4)):
            keys = rng.sample(range(12), rng.randint(1, 5))
            rows = {"id": keys, "v": [rng.randrange(1000) for _ in keys]}
            engine.write("demo.feed", pa.table(rows), FEED)
            if rng.random() < 0.4:
                gone = {"id": keys[:1], "v": [0]}
                engine.write("demo.feed", pa.table(gone), WriteSpec(delete_when="true"))


def run_killed(folder: Path, rng: random.Random) -> bool:
    """A child runs the models and dies at one of its commits, or at any moment; whether it did."""
    point = rng.choice(POINTS)
    command = [sys.executable, "-u", "-m", "dbt.cli.main", "--no-use-colors", "run"]
    child = subprocess.Popen(
        [*command, "--project-dir", str(folder), "--profiles-dir", str(folder)],
        cwd=folder,
        env={**os.environ, **({} if point is None else {CRASH_ENV: f"{point}:{rng.randint(1, 6)}"})},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    if point is None:
        time.sleep(5 + rng.random() * 12)  # a moment to die at, not a measurement
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    status = child.wait()
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)  # what it has left running
    assert status in (0, -signal.SIGKILL)
    return status != 0


def check(folder: Path) -> None:
    """Each model against the input: rows, and of the journal every change once."""
    with opened(folder) as engine:
        feed = {row["id"]: row["v"] for row in engine.table("demo.feed").scan().to_arrow().to_pylist()}
        for name in ("copy", "changed"):
            rows = engine.table(f"demo.{name}").scan().to_arrow().to_pylist()
            assert {row["id"]: row["v"] for row in rows} == feed, name
            assert len(rows) == len(feed), name
        parts: dict[int, list[int]] = {}
        for key, value in feed.items():
            parts.setdefault(key % 3, []).append(value)
        for name in ("totals", "sums"):  # a sum that is taken back to nothing stays as 0
            totals = engine.table(f"demo.{name}").scan().to_arrow().to_pylist()
            found = sorted((row["part"], row["n"], row["total"]) for row in totals if row["n"])
            assert found == sorted((part, len(values), sum(values)) for part, values in parts.items()), name
        journal = engine.table("demo.journal").scan().to_arrow().to_pylist()
        start = min(row["snapshot"] for row in journal)
        expected = [
            (one["_snapshot_id"], one["_row_kind"], one["id"], one["v"])
            for one in engine.table("demo.feed").changes(start).to_pylist()
        ]
        behind = [
            (row["snapshot"], row["kind"], row["id"], row["v"]) for row in journal if row["snapshot"] > start
        ]
        assert sorted(behind) == sorted(expected)
        base = engine.table("demo.feed").scan(snapshot=start).to_arrow().to_pylist()
        first = [(row["id"], row["v"]) for row in journal if row["snapshot"] == start]
        assert sorted(first) == sorted((row["id"], row["v"]) for row in base)
        for name in ("copy", "changed", "totals", "journal", "sums"):
            assert engine.table(f"demo.{name}").verify() == ()


@pytest.mark.parametrize("number", range(HISTORIES))
def test_killed_anywhere_each_change_comes_once(tmp_path: Path, number: int) -> None:
    """Streams, with and without state, changes() and changed_keys: at the end every table is what its input says."""
    rng = random.Random(f"{SEED}/{number}")
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    change(tmp_path, rng)
    died = 0
    for _ in range(KILLS):
        died += run_killed(tmp_path, rng)
        change(tmp_path, rng)
    result = DbtSession(tmp_path).invoke("run")
    assert result.success, [(node.name, node.message) for node in result.nodes] or result.error
    check(tmp_path)
    print(f"history {number}: {died} of {KILLS} killed while they ran")
