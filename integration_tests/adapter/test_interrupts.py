"""Ctrl-C and SIGTERM in a running query: dbt ends, its job and its JVM with it, and nothing half-made stays."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.views import ViewDefinition
from tablestore_engine.errors import Stopped
from tablestore_engine.runtime.scratch import SCRATCH_ENV

HANG_SECONDS = 300  # not a measure: by then it never ends
POLL_SECONDS = 0.2
EVENTS = {
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}
GATED = "models: [{name: slow, columns: [{name: id, data_tests: [unique]}]}]"
ENDLESS = "select a.id, count(*) as n from range(10000000) a cross join range(10000000) b group by a.id"


DEEP = (
    30  # views, each a self join of the one before: a plan of 2 ** 30 reads, which takes for ever to analyse
)


def make_deep_views(warehouse: Path) -> None:
    """demo.v0 to demo.v29 over demo.t."""
    with Engine(str(warehouse)) as engine:
        engine.write("demo.t", pa.table({"id": [1, 2]}), WriteSpec(table=TableSpec(("id",))))
        names = ["t", *(f"v{number}" for number in range(DEEP))]
        for before, name in pairwise(names):
            text = f"select a.id from demo.{before} a join demo.{before} b on a.id = b.id"
            engine._warehouse.catalog.views.put(Identifier("demo", name), ViewDefinition(text))


def wait_for_analysis(children: Callable[[], list[int]], scratch: Path) -> int:
    """Until the JVM's own thread dump shows an analysis; the JVM's process id."""
    found: list[int] = []

    def is_analysing() -> bool:
        found[:] = [pid for pid in children() if _name_of(pid) == "java"]
        logs = list(scratch.glob("**/spark.log"))
        if not found or not logs:
            return False
        text = logs[0].read_text("utf-8", "replace")
        if _catches(found[0], signal.SIGQUIT):  # a JVM that has not set its handlers yet would die of it
            os.kill(found[0], signal.SIGQUIT)
        return "catalyst.analysis" in text and "Dataset$.ofRows" in text

    _wait_until(is_analysing)
    return found[0]


def _name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _catches(pid: int, number: signal.Signals) -> bool:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return False
    mask = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt:"))
    return bool(mask >> (number - 1) & 1)


def children_of(pid: int) -> list[int]:
    """Process ids of its children."""
    found = list[int]()
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


class Running:
    """`dbt build` of one model whose query would take years, staged for its data test; stopped by the test."""

    def __init__(self, folder: Path, sql: str = ENDLESS) -> None:
        self.warehouse, self.scratch = folder / "warehouse", folder / "scratch"
        output = {
            "type": "tablestore",
            "warehouse": "./warehouse",
            "scratch": "./scratch",
            "schema": "demo",
            "threads": 2,
            "spark": {
                "master": "local[2]",
                "conf": {**EVENTS, "spark.eventLog.dir": (folder / "events").as_uri()},
            },
        }
        (folder / "profiles.yml").write_text(yaml.safe_dump({"p": {"target": "t", "outputs": {"t": output}}}))
        (folder / "dbt_project.yml").write_text("name: p\nversion: '1.0'\nprofile: p\n")
        (folder / "models").mkdir()
        self.events = folder / "events"
        self.events.mkdir()
        config = "{{ config(materialized='tablestore', primary_key=['id']) }}\n"
        (folder / "models" / "slow.sql").write_text(config + sql)
        (folder / "models" / "slow.yml").write_text(GATED)
        self.folder = folder
        self.process = self.start()

    def start(self) -> subprocess.Popen[str]:
        """`dbt build` of the project."""
        command = [sys.executable, "-m", "dbt.cli.main", "--no-use-colors", "build", "--profiles-dir", "."]
        return subprocess.Popen(
            command,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "TABLESTORE_FAST_START": "0"},  # its builder outlives the run
        )

    def wait_for_job(self) -> None:
        """Until Spark writes down that a job began; it does so before the first task."""
        pause = threading.Event()
        while self.process.poll() is None:
            told = "".join(
                path.read_text("utf-8", "replace") for path in self.events.iterdir() if path.is_file()
            )
            if told.count("SparkListenerJobStart") > told.count("SparkListenerJobEnd"):
                return
            pause.wait(POLL_SECONDS)
        raise AssertionError(self.process.communicate()[0])

    def children(self) -> list[int]:
        """Process ids of its children: the JVM among them."""
        return children_of(self.process.pid)


def _wait_until(is_so: Callable[[], bool]) -> None:
    """Fails only when it would hang."""
    pause = threading.Event()
    for _ in range(int(HANG_SECONDS / POLL_SECONDS)):
        if is_so():
            return
        pause.wait(POLL_SECONDS)
    raise AssertionError("never")


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.parametrize(
    ("number", "is_there"),
    [(signal.SIGINT, False), pytest.param(signal.SIGTERM, True, marks=pytest.mark.nightly)],
)
def test_a_signal_in_a_query_ends_dbt(
    number: signal.Signals, is_there: bool, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """dbt hears the signal while its thread waits for rows; stage, scratch and JVM are gone, the table is as it was."""
    if is_there:
        rows = pa.table({"id": [7], "n": [1]})
        Engine(str(tmp_path / "warehouse")).write("demo.slow", rows, WriteSpec(table=TableSpec(("id",))))
    run = Running(tmp_path)
    try:
        run.wait_for_job()
        children = run.children()
        assert children
        sent = time.monotonic()
        run.process.send_signal(number)
        told = run.process.communicate(timeout=HANG_SECONDS)[0]
        seconds = round(time.monotonic() - sent, 2)
    finally:
        run.process.kill()
    print(f"{number.name}: {seconds} s until dbt has ended")  # a figure, no check
    record_property("seconds_until_end", seconds)
    assert run.process.returncode == 2, told  # dbt's own status for an interrupted run
    _wait_until(lambda: not any(_is_alive(pid) for pid in children))  # the JVM ends with its input
    assert list(run.scratch.iterdir()) == []
    if not is_there:
        assert list(run.warehouse.glob("demo.db/*")) == []
        return
    after = Engine(str(run.warehouse))
    assert after.staged("demo") == ()
    assert after.table("demo.slow").scan().to_arrow().to_pylist() == [{"id": 7, "n": 1}]
    assert list(run.warehouse.glob("demo.db/slow/branch/*")) == []


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(20))
def test_a_signal_at_a_random_moment(seed: int, tmp_path: Path) -> None:
    """While dbt parses, Spark starts, a model is written, tested or published: the process and its JVM end, nothing
    half-made is seen, and the next build is whole.
    """
    chance = random.Random(seed)
    run = Running(tmp_path, "select id, 1 as n from range(1000)")
    try:
        threading.Event().wait(chance.uniform(0, 20))
        children = run.children()
        run.process.send_signal(chance.choice((signal.SIGINT, signal.SIGTERM)))
        told = run.process.communicate(timeout=HANG_SECONDS)[0]
    finally:
        run.process.kill()
    assert run.process.returncode in {0, 1, 2, 130, 143, -signal.SIGINT, -signal.SIGTERM}, told
    _wait_until(lambda: not any(_is_alive(pid) for pid in children))
    with Engine(str(run.warehouse)) as engine:
        seen = engine.find_table("demo.slow")
        assert seen is None or seen.latest_snapshot_id() is None or seen.facts().rows == 1000
    again = run.start()
    told = again.communicate(timeout=HANG_SECONDS)[0]
    assert again.returncode == 0, told
    with Engine(str(run.warehouse)) as engine:
        table = engine.table("demo.slow")
        assert (table.facts().rows, table.verify(), engine.staged("demo")) == (1000, (), ())


@pytest.mark.nightly
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_in_an_analysis_ends_dbt(number: signal.Signals, tmp_path: Path) -> None:
    """The JVM cannot be told to end an analysis: dbt ends without waiting for it, and the JVM ends with it."""
    make_deep_views(tmp_path / "warehouse")
    run = Running(tmp_path, f"select id, 1 as n from demo.v{DEEP - 1}")
    try:
        java = wait_for_analysis(run.children, run.scratch)
        sent = time.monotonic()
        run.process.send_signal(number)
        told = run.process.communicate(timeout=HANG_SECONDS)[0]
    finally:
        run.process.kill()
    print(f"{number.name}: {time.monotonic() - sent:.1f} s until dbt has ended")  # a figure, no check
    assert run.process.returncode == 2, told
    assert "CANCEL query model.p.slow" in told, told
    _wait_until(lambda: not _is_alive(java))
    assert Engine(str(run.warehouse)).find_relation("demo.slow") is None


@pytest.mark.nightly
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_in_an_analysis_ends_the_sql_command(
    number: signal.Signals, status: int, tmp_path: Path
) -> None:
    """`tablestore sql` ends with the status of the signal, a line instead of a traceback, and without leftovers."""
    make_deep_views(tmp_path / "warehouse")
    scratch = tmp_path / "scratch"
    command = [sys.executable, "-m", "tablestore_engine.cli.main", "sql", "--trusted-sql"]
    command += ["--warehouse", str(tmp_path / "warehouse"), f"select count(*) from demo.v{DEEP - 1}"]
    environment = {**os.environ, "TABLESTORE_FAST_START": "0", SCRATCH_ENV: str(scratch)}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )
    try:
        java = wait_for_analysis(lambda: children_of(process.pid), scratch)
        sent = time.monotonic()
        process.send_signal(number)
        told = process.communicate(timeout=HANG_SECONDS)[0]
    finally:
        process.kill()
    print(f"{number.name}: {time.monotonic() - sent:.1f} s until the command has ended")  # a figure, no check
    assert process.returncode == status, told
    assert "Traceback" not in told, told
    _wait_until(lambda: not _is_alive(java))
    assert list(scratch.iterdir()) == []


@pytest.mark.nightly
def test_a_stopped_thread_in_an_analysis_ends_and_spark_goes_on(tmp_path: Path) -> None:
    """engine.stop() ends the thread of a statement that Spark still analyses; other threads are served at once."""
    make_deep_views(tmp_path / "w")
    engine = Engine(str(tmp_path / "w"), trusted_sql=True)
    ended: list[BaseException] = []

    def work() -> None:
        try:
            engine.sql(f"select count(*) from demo.v{DEEP - 1}")
        except Stopped as error:
            ended.append(error)

    thread = threading.Thread(target=work, daemon=True)
    java: Any = engine.spark._jvm.java  # type: ignore[union-attr]
    thread.start()

    def is_analysing() -> bool:
        stacks = java.lang.Thread.getAllStackTraces().values()
        return any("catalyst.analysis" in frame.toString() for frames in stacks for frame in frames)

    _wait_until(lambda: is_analysing() or not thread.is_alive())
    assert thread.is_alive()
    engine.stop(thread)
    thread.join(HANG_SECONDS)
    assert len(ended) == 1
    assert engine.sql("select count(*) from demo.t").rows == ((2,),)


def test_a_stopped_thread_ends_and_spark_goes_on(tmp_path: Path) -> None:
    """engine.stop() cancels the job of one thread's write; the session runs the next statement of another."""
    engine = Engine(str(tmp_path / "w"))
    engine.create_database("demo")
    ended: list[BaseException] = []

    def work() -> None:
        try:
            engine.sql(f"create table demo.slow as {ENDLESS}")
        except Stopped as error:
            ended.append(error)

    thread = threading.Thread(target=work, daemon=True)
    tracker = engine.spark.sparkContext.statusTracker()
    thread.start()
    _wait_until(lambda: bool(tracker.getActiveStageIds()) or not thread.is_alive())
    assert thread.is_alive()
    engine.stop(thread)
    thread.join(HANG_SECONDS)
    assert len(ended) == 1
    assert engine.find_relation("demo.slow") is None
    assert engine.sql("select 1").rows == ((1,),)
    _wait_until(lambda: not tracker.getActiveStageIds())
