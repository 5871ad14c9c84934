"""Spark's streams killed everywhere: tables followed into copies, and each copy must be its input, each batch once.

Victims    ROUNDS: driver and JVM at any moment, or when a file of a checkpoint or a snapshot appears · the process
           that commits, at a crash point · workers of tasks, sources, commits, plans · a driver whose commit is held
           (SIGSTOP) and goes on in the middle of the next run · what a dead driver leaves runs on, or dies with it
Steps      1 inputs with a first history  2 for each round: a child runs some of the queries, something is killed,
           inputs change  3 a run to the end, which must succeed  4 what was left ends  5 each copy is judged
INVARIANT  a query fails only where something of it was killed.
INVARIANT  everything that a child starts is in its session, and ends with the world.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from integration_tests.soak.killed_stream_histories import History, judge
from tablestore_engine.api import Engine
from tablestore_engine.runtime.outside_world import CRASH_ENV

WORLD = 20
ROUNDS = ("moment", "file", "crash", "workers", "held")
POINTS = ("write.data_files", "commit.manifests", "commit.claimed", "commit.done")
ROLES = {
    "pyspark.worker": "workers killed",
    "python_streaming_source_runner": "sources killed",
    "python_streaming_sink_runner": "committers killed",
    "pyspark.sql.worker": "planners killed",
}
_COMMITTER = "python_streaming_sink_runner"
_LOST = ("TS1450", "TS1506")  # codes of a query that lost a process of Python: the source's, another
_ROOT = Path(__file__).resolve().parents[2]
_HANGS_SECONDS = 600


def killed_streams(seed: int, count: int, folder: Path) -> dict[str, int]:
    """Worlds of ten until `count` histories were played. Raises AssertionError with seed, world and history."""
    total: Counter[str] = Counter()
    for number, first in enumerate(range(0, count, WORLD)):
        started = time.monotonic()
        place = folder / str(number)
        histories = [History.of(seed, one, place / "c") for one in range(first, min(first + WORLD, count))]
        world = World(place, f"seed {seed}, world {number}", random.Random(f"{seed}/w{number}"), histories)
        total += world.play()
        shutil.rmtree(place)
        print(
            f"killed-streams: {first + len(histories)} so far, {time.monotonic() - started:.0f} s", flush=True
        )
    names = ("drivers killed", *ROLES.values(), "commits crashed", "commits held")
    return {"histories": count, **{name: total[name] for name in names}, **total}


# processes ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Process:
    """One of a session; a daemon forks workers, and leads their group."""

    pid: int
    parent: int
    group: int
    line: str

    @property
    def role(self) -> str | None:
        """What it counts as when it is killed; None: a daemon, or no Python of Spark's."""
        is_daemon = self.group == self.pid or not self.group
        if "pyspark" not in self.line or is_daemon or "spark-submit" in self.line:
            return None
        return next((role for word, role in ROLES.items() if word in self.line), None)


def members(session: int) -> Iterator[Process]:
    """All processes that a child has started, wherever they hang now."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError, IndexError):
            state, parent, group, its = stat.read_text().rpartition(")")[2].split()[:4]
            if int(its) == session and state != "Z":
                line = (stat.parent / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
                yield Process(int(stat.parent.name), int(parent), int(group), line)


def send(pid: int, number: signal.Signals = signal.SIGKILL, *, group: bool = False) -> bool:
    """Whether it was there."""
    with suppress(ProcessLookupError):
        (os.killpg if group else os.kill)(pid, number)
        return True
    return False


# worlds ---------------------------------------------------------------------------------------------------------


@dataclass
class World:
    """`unit`: seconds that a start takes here, by which moments are chosen; `held`: (pid, when it goes on)."""

    folder: Path
    where: str
    chance: random.Random
    histories: list[History]
    counts: Counter[str] = field(default_factory=Counter)
    sessions: list[int] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    unit: float = 5.0
    _release_at: float | None = None

    @property
    def warehouse(self) -> Path:
        """Of all its tables."""
        return self.folder / "warehouse"

    def play(self) -> Counter[str]:
        """All rounds, the last run, the verdict."""
        (self.folder / "scratch").mkdir(parents=True)
        (self.folder / "scratch").chmod(0o700)
        try:
            with Engine(str(self.warehouse)) as engine:
                for history in self.histories:
                    history.make(engine)
            for kind in self.chance.sample(ROUNDS, len(ROUNDS)):
                self._round(kind)
                self._change()
            self._finish()
            with Engine(str(self.warehouse)) as engine:
                for history in self.histories:
                    self.counts.update(judge(engine, history, f"{self.where}, history {history.number}"))
        finally:
            self._end_all()
        return self.counts

    def _change(self) -> None:
        with Engine(str(self.warehouse)) as engine:
            for history in self.histories:
                if self.chance.random() < 0.8:
                    history.change(engine)

    def _finish(self) -> None:
        """What is held goes on in this run at the latest; then whoever is left ends by itself."""
        child = self._start("last", self.histories)
        self._wait(child, lambda: False)
        failed = self._failed()
        assert not failed, f"{self.where}: the last run failed: {failed}"
        assert child.returncode == 0, f"{self.where}: the last run ended with {child.returncode}"
        for pid in self.held:
            send(pid, signal.SIGCONT)
        until = time.monotonic() + 20
        while any(True for one in self.sessions for _ in members(one)) and time.monotonic() < until:
            time.sleep(0.1)

    def _end_all(self) -> None:
        for session in self.sessions:
            while pids := [one.pid for one in members(session)]:
                for pid in pids:
                    send(pid)
                time.sleep(0.02)

    def _start(
        self, name: str, histories: list[History], crash: str = "", master: str = "local[2]"
    ) -> subprocess.Popen[bytes]:
        plan = {
            "warehouse": str(self.warehouse), "master": master, "folder": str(self.folder),
            "queries": [one.query() for one in histories],
        }  # fmt: skip
        path = self.folder / "plan.json"
        path.write_text(json.dumps(plan))
        for left in ("begun", "failed"):
            (self.folder / left).unlink(missing_ok=True)
        env = {**os.environ, "TABLESTORE_SCRATCH": str(self.folder / "scratch"), CRASH_ENV: crash}
        with (self.folder / "child.log").open("ab") as log:
            log.write(f"--- {name} {crash} {master}\n".encode())
            log.flush()
            child = subprocess.Popen(
                [sys.executable, "-m", "integration_tests.soak.killed_stream_child", str(path)],
                cwd=_ROOT, env=env, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self.sessions.append(child.pid)
        started = time.monotonic()
        if self._wait(child, (self.folder / "begun").exists):
            self.unit = time.monotonic() - started
            self._release_at = time.monotonic() + self.chance.uniform(0, 1.5) * self.unit
        return child

    def _wait(
        self, child: subprocess.Popen[bytes], is_time: Callable[[], bool], pause: float = 0.002
    ) -> bool:
        """False: the child ended before it was time."""
        until = time.monotonic() + _HANGS_SECONDS
        while child.poll() is None:
            if is_time():
                return True
            self._release()
            assert time.monotonic() < until, f"{self.where}: a run hangs, see {self.folder / 'child.log'}"
            time.sleep(pause)
        return False

    def _release(self) -> None:
        if self.held and self._release_at is not None and time.monotonic() >= self._release_at:
            for pid in self.held:
                self.counts["commits went on"] += send(pid, signal.SIGCONT)
            self.held.clear()

    def _failed(self) -> list[str]:
        path = self.folder / "failed"
        return path.read_text().splitlines() if path.exists() else []

    def _round(self, kind: str) -> None:
        """One run of some queries, in which something is killed."""
        some = self.chance.sample(self.histories, min(len(self.histories), self.chance.randint(4, 7)))
        crash = f"{self.chance.choice(POINTS)}:{self.chance.choice((1, 1, 1, 2, 3))}"
        master = "local[2, 4]" if self.chance.random() < 0.5 else "local[2]"
        child = self._start(kind, some, crash if kind == "crash" else "", master)
        if self.chance.random() < 0.5 and child.poll() is None:
            with Engine(str(self.warehouse)) as engine:
                self.chance.choice(some).change(engine)
        before = self.counts.total()
        {"moment": self._at_moment, "file": self._at_file, "held": self._hold, "workers": self._kill_workers,
         "crash": self._crash}[kind](child, some)  # fmt: skip
        failed = self._failed()
        wrong = [line for line in failed if line.split()[1] not in _LOST]
        assert not wrong, f"{self.where}, {kind}: {wrong}"
        is_explained = kind in ("workers", "crash") and self.counts.total() > before
        assert is_explained or not failed, f"{self.where}, {kind}: {failed} without a kill"

    def _at_moment(self, child: subprocess.Popen[bytes], some: list[History]) -> None:
        due = time.monotonic() + self.unit * self.chance.uniform(0.1, 0.5 + 0.3 * len(some))
        if self._wait(child, lambda: time.monotonic() >= due):
            self._kill_driver(child, "at any moment")

    def _at_file(self, child: subprocess.Popen[bytes], some: list[History]) -> None:
        paths = [
            one.pick_file(self.chance, self.warehouse) for one in self.chance.sample(some, min(2, len(some)))
        ]
        if self._wait(child, lambda: any(path.exists() for path in paths)):
            time.sleep(self.chance.choice((0, 0, self.chance.uniform(0, 0.1))))
            self._kill_driver(child, "at a file")

    def _kill_driver(self, child: subprocess.Popen[bytes], when: str) -> None:
        """With the JVM, which is in its group; its workers at once too, or when they find nobody."""
        if child.poll() is None and send(child.pid, group=True):
            self.counts["drivers killed"] += 1
            self.counts[f"drivers killed {when}"] += 1
        child.wait()
        if self.chance.random() < 0.5:
            for one in members(child.pid):
                if one.pid not in self.held:
                    send(one.pid)

    def _hold(self, child: subprocess.Popen[bytes], some: list[History]) -> None:
        """A commit makes files: it stops, its driver dies. Its daemon first, whose end would be its own."""
        copies = [self.warehouse / f"demo.db/c{one.number}" for one in some]
        before, skipped = _times(copies), self.chance.choice((0, 0, 1))
        for _ in range(skipped):
            if self._wait(child, lambda: _times(copies) != before):
                time.sleep(0.2)
                before.update(_times(copies))
        if not self._wait(child, lambda: _times(copies) != before):
            return
        for one in [*members(child.pid)]:
            if one.role == ROLES[_COMMITTER]:
                send(one.parent)
                if send(one.pid, signal.SIGSTOP):
                    self.held.append(one.pid)
                    self.counts["commits held"] += 1
        is_claimed = any(
            path.name == "snapshot" for path, at in _times(copies).items() if before.get(path) != at
        )
        self.counts["commits held before their snapshot"] += bool(self.held and not is_claimed)
        self._kill_driver(child, "over a held commit")

    def _kill_workers(self, child: subprocess.Popen[bytes], _: list[History]) -> None:
        """One to four, of any role; the driver goes on."""
        for _turn in range(self.chance.randint(1, 4)):
            due = time.monotonic() + self.unit * self.chance.uniform(0.05, 1)
            wanted = self.chance.choice([*ROLES.values()])
            roles = (wanted,) if wanted != "planners killed" else (*ROLES.values(),)

            def victims(due: float = due, roles: tuple[str, ...] = roles) -> list[Process]:
                return (
                    [] if time.monotonic() < due else [one for one in members(child.pid) if one.role in roles]
                )

            if self._wait(child, lambda victims=victims: bool(victims()), 0.05):  # type: ignore[misc]
                for victim in self.chance.sample(there := victims(), min(1, len(there))):
                    self.counts[victim.role or ""] += send(victim.pid)
        self._wait(child, lambda: False)

    def _crash(self, child: subprocess.Popen[bytes], _: list[History]) -> None:
        """The process that commits kills itself, in this run at the n-th commit of each such process."""
        self._wait(child, lambda: False)
        self.counts["commits crashed"] += sum(line.endswith("crashed") for line in self._failed())


def _times(copies: list[Path]) -> dict[Path, int]:
    """When something was made in the folders of these tables."""
    found = {}
    for path in (path for copy in copies for pattern in ("*", "*/bucket-*") for path in copy.glob(pattern)):
        with suppress(FileNotFoundError):
            found[path] = path.stat().st_mtime_ns
    return found
