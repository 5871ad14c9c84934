"""Ctrl-C and SIGTERM in a running query: dbt ends, its job and its JVM with it, and nothing half-made stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from tablestore_engine.api import Engine, TableSpec, WriteSpec
from tablestore_engine.errors import Stopped

HANG_SECONDS = 300  # not a measure: by then it never ends
POLL_SECONDS = 0.2
EVENTS = {
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}
GATED = "models: [{name: slow, columns: [{name: id, data_tests: [unique]}]}]"
ENDLESS = "select a.id, count(*) as n from range(10000000) a cross join range(10000000) b group by a.id"


class Running:
    """`dbt build` of one model whose query would take years, staged for its data test; stopped by the test."""

    def __init__(self, folder: Path) -> None:
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
        (folder / "models" / "slow.sql").write_text(config + ENDLESS)
        (folder / "models" / "slow.yml").write_text(GATED)
        command = [sys.executable, "-m", "dbt.cli.main", "--no-use-colors", "build", "--profiles-dir", "."]
        self.process = subprocess.Popen(
            command,
            cwd=folder,
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
        tasks = Path(f"/proc/{self.process.pid}/task")
        return [int(pid) for task in tasks.iterdir() for pid in (task / "children").read_text().split()]


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


@pytest.mark.parametrize(("number", "is_there"), [(signal.SIGINT, False), (signal.SIGTERM, True)])
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
