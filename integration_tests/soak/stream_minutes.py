"""`tablestore run-stream` for a long time under a steady load: nothing grows, and at the end each table is right.

Shapes     a stream by key · sums that remember rows · changed_keys, over one keyed table: 1,000 rows a second of
           20,000 keys, some of them deleted; old snapshots expire
Steps      1 feed a commit each second, in this process, while run-stream goes on in a child  2 sizes every 30 seconds
           3 SIGTERM, which must end it with status 0, and one more run  4 tables against the input
INVARIANT  of the second half no size is larger than of the first by more than a tenth and some headroom.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from tablestore_engine.api import Engine, TableSpec, WriteSpec

KEYS, ROWS = 20_000, 1_000
_OPTIONS = {
    "bucket": "1", "snapshot.num-retained.min": "5", "snapshot.num-retained.max": "30",
    "tablestore.expire-grace": "30 s",
}  # fmt: skip
FILES = {
    "dbt_project.yml": "name: follow\nversion: '1.0'\nprofile: follow\nflags: {send_anonymous_usage_stats: false}\n",
    "profiles.yml": """follow:
  target: dev
  outputs:
    dev: {type: tablestore, warehouse: ./warehouse, schema: demo, threads: 1,
          spark: {master: 'local[2]', conf: {spark.sql.shuffle.partitions: '2', spark.driver.memory: 1g}}}
""",
    "models/sources.yml": "sources: [{name: raw, schema: demo, tables: [{name: feed}]}]",
    "models/copy.sql": """{{ config(materialized='streaming', unique_key='id', @) }}
select id, v, _row_kind, _snapshot_id from {{ stream(source('raw', 'feed')) }}""",
    "models/sums.sql": """{{ config(materialized='streaming', unique_key='part', row_kinds='all', @) }}
select id % 100 as part, sum(one) as n, sum(one * v) as total
from (select *, if(_row_kind in ('+I', '+U'), 1, -1) as one from {{ stream(source('raw', 'feed')) }})
group by id % 100""",
    "models/totals.sql": """{{ config(materialized='incremental', incremental_strategy='changed_keys',
          unique_key='part', affected_by={'feed': 'id % 100'}, affected_limit=1.0, @) }}
select id % 100 as part, count(*) as n, sum(v) as total from {{ source('raw', 'feed') }} group by id % 100""",
}  # fmt: skip
_TABLE = f"table_properties={_OPTIONS}"


@dataclass(frozen=True)
class Sizes:
    """Memory in MB; numbers of files."""

    python: int
    jvm: int
    warehouse: int
    scratch: int
    target: int


class _Feeder(threading.Thread):
    """A commit each second, until it is told to end."""

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(daemon=True)
        self._folder, self._rng, self.ended = folder, random.Random(seed), threading.Event()
        self.commits = 0

    def run(self) -> None:
        with Engine(str(self._folder / "warehouse")) as engine:
            while not self.ended.wait(1):
                self.put(engine)

    def put(self, engine: Engine) -> None:
        """One commit."""
        keys = self._rng.sample(range(KEYS), ROWS)
        rows = {"id": keys, "v": [self._rng.randrange(1000) for _ in keys]}
        is_delete = self.commits % 10 == 9
        spec = WriteSpec(delete_when="true") if is_delete else WriteSpec(
            table=TableSpec(primary_key=("id",), options=_OPTIONS)
        )  # fmt: skip
        engine.write("demo.feed", pa.table(rows), spec)
        self.commits += 1


def stream_minutes(minutes: int, seed: int, folder: Path) -> dict[str, int]:
    """Raises AssertionError where something grows, or is wrong."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text.replace("@", _TABLE))
    feeder = _Feeder(folder, seed)
    with Engine(str(folder / "warehouse")) as engine:
        feeder.put(engine)
    scratch = folder / "scratch"
    scratch.mkdir(mode=0o700)
    child = subprocess.Popen(
        [*_command(), "--select", "copy sums totals", "--interval", "1"],
        cwd=folder,
        env={**os.environ, "TABLESTORE_SCRATCH": str(scratch), "DBT_PROFILES_DIR": str(folder)},
        stdout=(folder / "out.log").open("wb"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    feeder.start()
    sizes = []
    try:
        for _ in range(minutes * 2):
            time.sleep(30)  # how long a soak is, not a measurement
            assert child.poll() is None, (folder / "out.log").read_text()[-3000:]
            sizes.append(_sizes(folder, child.pid))
            print(f"stream: {len(sizes) / 2:.1f} min, {feeder.commits} commits, {sizes[-1]}", flush=True)
    finally:
        feeder.ended.set()
        feeder.join()
        child.send_signal(signal.SIGTERM)
        status = child.wait(300)
    assert status == 0, (folder / "out.log").read_text()[-3000:]
    subprocess.run(
        [sys.executable, "-m", "dbt.cli.main", "run", "--project-dir", str(folder), "--profiles-dir", str(folder)],
        cwd=folder, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    _check(folder)
    _check_level(sizes)
    last = sizes[-1]
    return {
        "minutes": minutes, "commits of the input": feeder.commits, "python MB": last.python, "jvm MB": last.jvm,
        "files of the warehouse": last.warehouse, "files of scratch": last.scratch,
    }  # fmt: skip


def _command() -> list[str]:
    return [str(Path(sys.executable).parent / "tablestore"), "run-stream"]


def _sizes(folder: Path, pid: int) -> Sizes:
    told = subprocess.run(
        ["ps", "-o", "pid=,ppid=,rss=,comm=", "-A"], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(None, 3) for line in told.splitlines()]
    inside = {str(pid)}
    for _ in range(4):
        inside |= {row[0] for row in rows if row[1] in inside}
    memory = {"python": 0, "java": 0}
    for row in rows:
        if row[0] in inside:
            kind = "java" if row[3].startswith("java") else "python"
            memory[kind] += int(row[2]) // 1024
    counts = [
        sum(len(files) for _, _, files in os.walk(folder / place))
        for place in ("warehouse", "scratch", "target")
    ]
    return Sizes(memory["python"], memory["java"], *counts)


def _check_level(sizes: list[Sizes]) -> None:
    """Against the second quarter: the first is the way up."""
    quarter = max(1, len(sizes) // 4)
    early, late = sizes[quarter : 2 * quarter] or sizes[:1], sizes[-quarter:]
    for name, headroom in (("python", 40), ("jvm", 300), ("warehouse", 150), ("scratch", 100), ("target", 5)):
        before, after = (max(getattr(one, name) for one in part) for part in (early, late))
        assert after <= before * 1.1 + headroom, f"{name} grows: {before} → {after}"


def _check(folder: Path) -> None:
    with Engine(str(folder / "warehouse")) as engine:
        feed = {row["id"]: row["v"] for row in engine.table("demo.feed").scan().to_arrow().to_pylist()}
        rows = engine.table("demo.copy").scan().to_arrow().to_pylist()
        assert {row["id"]: row["v"] for row in rows} == feed
        parts: dict[int, list[int]] = {}
        for key, value in feed.items():
            parts.setdefault(key % 100, []).append(value)
        expected = sorted((part, len(values), sum(values)) for part, values in parts.items())
        for name in ("sums", "totals"):
            found = engine.table(f"demo.{name}").scan().to_arrow().to_pylist()
            assert sorted((row["part"], row["n"], row["total"]) for row in found if row["n"]) == expected, (
                name
            )
