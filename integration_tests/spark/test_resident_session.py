"""`tablestore session`: commands of one folder share a JVM, and nothing else."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tablestore_engine.runtime.java import cache_folder
from tablestore_engine.runtime.server_process import start_time

# by day tests/unit/runtime/test_resident_process.py; adapter/test_loaded_dbt.py and the pages of docs share a session
pytestmark = pytest.mark.nightly
HANG_SECONDS = 300
WRITE = """
import pyarrow as pa
from tablestore_engine.api import TableSpec, WriteSpec
engine.write("demo.t", pa.table({"id": ROWS}), WriteSpec(table=TableSpec(("id",))))
"""
READ = "print(engine.sql('select id from demo.t order by id').rows)"
HOLD = f"""
import sys
from tablestore_engine.api import Engine, SparkSettings
engine = Engine("w", spark=SparkSettings("local[2]"))
engine.spark
print("up", flush=True)
sys.stdin.readline()
{READ}
"""
UP = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
engine.spark
print("up", flush=True)
"""
ENDLESS = f"""{UP}
engine.sql("select count(*) from range(10000000) a cross join range(10000000) b where a.id + b.id < 0")
"""

WATCH = """
import json, sys, time
from py4j.java_gateway import GatewayParameters, JavaGateway
kept = json.load(open(sys.argv[1]))
gateway = JavaGateway(gateway_parameters=GatewayParameters(port=kept["port"], auth_token=kept["secret"]))
jobs = gateway.jvm.org.apache.spark.SparkContext.getOrCreate().statusTracker()
for count, word in ((1, "runs"), (0, "cancelled")):
    while len(jobs.getActiveJobIds()) != count:
        time.sleep(0.05)
    print(word, flush=True)
"""
HANGING = """
import threading
jvm = engine.spark.sparkContext._jvm
threading.Thread(target=jvm.java.lang.Thread.sleep, args=[3_600_000], daemon=True).start()
threads = jvm.java.lang.management.ManagementFactory.getThreadMXBean()
while True:
    told = [one.toString() for one in threads.dumpAllThreads(False, False)]
    if any("Thread.sleep" in one and "py4j" in one for one in told):
        break
print("hangs", flush=True)
threading.Event().wait()
"""


@dataclass
class Folder:
    """A working folder with a cache of its own."""

    path: Path
    environment: dict[str, str]

    def start(self, program: str, warehouse: str = "w", conf: str = "") -> subprocess.Popen[str]:
        """A Python program with an engine, as a command is one."""
        opened = f"spark=SparkSettings('local[2]', {{{conf}}})"
        head = f"from tablestore_engine.api import Engine, SparkSettings\nengine = Engine({warehouse!r}, {opened})\n"
        return subprocess.Popen(
            [sys.executable, "-c", head + program],
            cwd=self.path,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, program: str, warehouse: str = "w", conf: str = "") -> str:
        """What it prints."""
        process = self.start(program, warehouse, conf)
        said, wrong = process.communicate(timeout=HANG_SECONDS)
        assert process.returncode == 0, wrong
        return said.strip()

    def session(self, *words: str) -> dict[str, object]:
        """`tablestore session`."""
        done = subprocess.run(
            [sys.executable, "-m", "tablestore_engine.cli.main", "session", *words, "--json"],
            cwd=self.path,
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
        )
        found: dict[str, object] = json.loads(done.stdout)
        return found

    def jvm(self) -> int:
        """Its process id."""
        pid = self.session("status")["java_pid"]
        assert isinstance(pid, int)
        return pid


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    """With a session asked for; it ends with the test."""
    cache, working = tmp_path / "cache", tmp_path / "working"
    for made in (cache, working):
        made.mkdir()
    archive = cache_folder() / "class-archive"
    if archive.exists():
        (cache / "class-archive").symlink_to(archive)
    roots = os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]))
    made = Folder(working, {**os.environ, "TABLESTORE_CACHE": str(cache), "PYTHONPATH": roots})
    made.session("start")
    yield made
    made.session("stop")


def wait_until(is_so: Callable[[], bool]) -> None:
    """Fails only when it would hang."""
    pause = threading.Event()
    for _ in range(HANG_SECONDS * 5):
        if is_so():
            return
        pause.wait(0.2)
    raise AssertionError("it does not come")


def wait_until_gone(pid: int) -> None:
    """A process that has ended."""
    wait_until(lambda: start_time(pid) is None)


def test_commands_share_a_jvm_and_no_names(folder: Folder) -> None:
    """Two warehouses have a table of one name; temporary views and settings of a command end with it."""
    folder.run(WRITE.replace("ROWS", "[1, 2]"), "one")
    folder.run(WRITE.replace("ROWS", "[3]"), "two")
    assert folder.run(READ, "one") == "((1,), (2,))"
    pid = folder.jvm()
    view, off = "create temporary view v as select 1", "s.conf.set('spark.sql.ansi.enabled', False)"
    leave = f"s = engine.spark; s.sql('{view}'); {off}"
    assert folder.run(f"{READ}; {leave}", "two") == "((3,),)"
    look = "s = engine.spark; print(s.catalog.listTables(), s.conf.get('spark.sql.ansi.enabled'))"
    assert folder.run(look, "one") == "[] true"
    assert folder.run(READ, "one") == "((1,), (2,))"
    assert folder.jvm() == pid
    places = [*(Path(folder.environment["TABLESTORE_CACHE"]) / "sessions").iterdir()]
    assert [stat.S_IMODE(one.stat().st_mode) for one in places] == [0o700]
    assert stat.S_IMODE((places[0] / "spark.json").stat().st_mode) == 0o600


def test_a_second_command_at_once_has_a_session_of_its_own(folder: Folder) -> None:
    """It neither waits nor disturbs the first one."""
    folder.run(WRITE.replace("ROWS", "[1, 2]"))
    folder.run(READ)
    first = subprocess.Popen(
        [sys.executable, "-c", HOLD],
        cwd=folder.path,
        env=folder.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert first.stdout is not None
    assert first.stdout.readline() == "up\n"
    pid = folder.jvm()
    assert folder.run(READ) == "((1,), (2,))"
    assert folder.jvm() == pid
    assert first.communicate("go\n", timeout=HANG_SECONDS)[0].strip() == "((1,), (2,))"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_session_of_a_stopped_query_stays_for_the_next_command(
    folder: Folder, number: signal.Signals
) -> None:
    """The query's job is cancelled; the same JVM serves the next command, and a third one after it. A view of a command
    has ended with it.
    """
    folder.run(WRITE.replace("ROWS", "[1]") + READ)
    before = folder.jvm()
    folder.run("engine.spark.sql('create temporary view v as select 1')")
    process = folder.start(ENDLESS)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.send_signal(number)
    process.communicate()
    assert folder.jvm() == before
    running = "s = engine.spark; print([*s.sparkContext.statusTracker().getActiveJobsIds()], s.catalog.listTables())"
    assert folder.run(running) == "[] []"
    assert folder.run(READ) == "((1,),)"
    assert folder.jvm() == before


def test_session_with_a_call_that_does_not_end_is_replaced(folder: Folder) -> None:
    """As the analysis of a deep plan: no cancelled job ends it. The next command has another JVM."""
    folder.run(WRITE.replace("ROWS", "[1]") + READ)
    before = folder.jvm()
    process = folder.start(HANGING)
    assert process.stdout is not None
    assert process.stdout.readline() == "hangs\n"
    process.kill()
    process.communicate()
    assert folder.run(READ) == "((1,),)"
    assert folder.jvm() != before
    wait_until_gone(before)


def test_session_whose_jvm_was_killed_is_not_named(folder: Folder) -> None:
    """The process that kept it ends by itself, and the next command starts another one."""
    folder.run(WRITE.replace("ROWS", "[1]") + READ)
    before, process = folder.jvm(), folder.session("status")["pid"]
    os.kill(before, signal.SIGKILL)
    wait_until_gone(before)
    assert folder.session("status")["java_pid"] is None
    assert isinstance(process, int)
    wait_until_gone(process)
    assert folder.run(READ) == "((1,),)"
    assert folder.jvm() != before


def test_jvm_of_a_killed_process_ends(folder: Folder) -> None:
    """Nobody else holds its input. The next command starts another one."""
    folder.run(WRITE.replace("ROWS", "[1]") + READ)
    before, process = folder.jvm(), folder.session("status")["pid"]
    assert isinstance(process, int)
    os.kill(process, signal.SIGKILL)
    wait_until_gone(before)
    assert folder.run(READ) == "((1,),)"
    assert folder.jvm() != before


def test_jobs_of_a_killed_command_are_cancelled_by_the_process(folder: Folder) -> None:
    """No other command comes for that."""
    folder.run("engine.spark")
    process = folder.start(ENDLESS)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    [kept] = Path(folder.environment["TABLESTORE_CACHE"]).glob("sessions/*/spark.json")
    watch = subprocess.Popen([sys.executable, "-c", WATCH, str(kept)], stdout=subprocess.PIPE, text=True)
    assert watch.stdout is not None
    assert watch.stdout.readline() == "runs\n"
    process.kill()
    process.communicate()
    assert watch.communicate(timeout=HANG_SECONDS)[0] == "cancelled\n"


def test_other_settings_are_another_session(folder: Folder) -> None:
    """A JVM takes its settings when it starts."""
    folder.run(WRITE.replace("ROWS", "[1]"))
    folder.run(READ)
    pid = folder.jvm()
    show = "print(engine.spark.conf.get('spark.sql.session.timeZone'))"
    assert folder.run(show, conf="'spark.sql.session.timeZone': 'Asia/Tokyo'") == "Asia/Tokyo"
    assert folder.jvm() != pid
    wait_until_gone(pid)


def test_a_session_ends_by_itself_and_when_it_is_stopped(folder: Folder) -> None:
    """After the idle time; by `stop`, after which commands start Spark themselves."""
    folder.session("start", "--idle", "0.05")
    folder.run("engine.spark")
    wait_until(lambda: folder.session("status")["pid"] is None)
    folder.session("start")
    folder.run("engine.spark")
    pid = folder.jvm()
    assert folder.session("stop") == {
        "folder": str(folder.path),
        "wanted": False,
        "pid": None,
        "java_pid": None,
        "program": None,
        "idle_seconds": None,
    }
    wait_until_gone(pid)
    folder.run("engine.spark")
    assert folder.session("status")["pid"] is None
