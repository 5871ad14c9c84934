"""What the chaos suite attacks: a warehouse on a small disk, brokers behind proxies, and processes that die.

Steps      1 fork from a server that has imported everything 2 until enough is acknowledged, or it took long enough:
           faults as planned; a dead broker is started again on the same data 3 SIGKILL for all that still live, but
           who was stopped stays so for a wave or two: it comes back when others have gone on
INVARIANT  a process ends by SIGKILL, or the run ends with what it says.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path

from integration_tests.chaos.attacker import Job, publish_turns, write_turns
from integration_tests.chaos.brokers import Brokers, NodeStrike
from integration_tests.chaos.judge import read_acks
from integration_tests.chaos.schedule import Life, Wave
from integration_tests.chaos.tables import Kind

_DISK = "96m"
_FILE_LIMIT = 2_000
_DIE_SECONDS = 60
_BACK_SECONDS = 1.5  # what a wave lasts on when the broker is back
_FULL_SECONDS = 0.5


@dataclass
class World:
    """`faults`:  besides those of the proxy."""

    seed: int
    root: Path
    brokers: Brokers
    is_mounted: bool
    kills: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    started: list[BaseProcess] = field(default_factory=list)
    _stopped: list[BaseProcess] = field(default_factory=list)
    _woken: list[BaseProcess] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Of the brokers, by the proxies."""
        return self.brokers.url

    @property
    def disk(self) -> Path:
        """A small file system, or a folder where none may be mounted."""
        return self.root / "disk"

    @property
    def warehouse(self) -> Path:
        """On it."""
        return self.disk / "warehouse"

    def calm(self) -> None:
        """No fault is left over."""
        self.brokers.calm()
        self.fill(full=False)

    def fill(self, *, full: bool) -> None:
        """Whether the disk is."""
        filler = self.disk / ".filler"
        if not full:
            filler.unlink(missing_ok=True)
        elif self.is_mounted:
            facts = os.statvfs(self.disk)
            with contextlib.suppress(OSError):  # others write too: what fits is enough
                filler.write_bytes(bytes(max(0, facts.f_bavail * facts.f_frsize - 8192)))

    def wake(self) -> None:
        """Who was stopped in an earlier wave goes on."""
        for process in self._stopped:
            assert process.pid is not None
            os.kill(process.pid, signal.SIGCONT)
            self.faults["woken"] += 1
        self._woken, self._stopped = self._stopped, []

    def reap(self) -> None:
        """Who was woken dies."""
        for process in self._woken:
            _kill(process)
        self.join(self._woken)
        self._woken = []

    def stop(self, process: BaseProcess) -> None:
        """It stopped itself; a later wave wakes it."""
        self.faults["stopped"] += 1
        self._stopped.append(process)

    def join(self, processes: list[BaseProcess]) -> None:
        """They were killed, or there is something to tell."""
        for process in processes:
            process.join(_DIE_SECONDS)
            failure = self.root / f"failure-{process.pid}"
            said = failure.read_text() if failure.exists() else f"exit status {process.exitcode}"
            assert process.exitcode == -signal.SIGKILL, f"seed {self.seed}: a process ended by itself: {said}"
            self.kills += 1

    def count_traps(self) -> Mapping[str, int]:
        """`action point` -> how often."""
        path = self.root / "traps"
        return Counter(path.read_text().splitlines()) if path.exists() else Counter()

    def count_errors(self) -> Mapping[str, int]:
        """Codes that passed."""
        path = self.root / "errors"
        return Counter(path.read_text().splitlines()) if path.exists() else Counter()

    def close(self, *, keep: bool) -> None:
        """Everything that was started; `keep`: what is on the disk, for whoever has to find out why."""
        for process in self.started:
            _kill(process)
        if keep and self.is_mounted:
            shutil.copytree(self.disk, self.root / "disk-kept")
        self.brokers.close()
        if self.is_mounted:
            subprocess.run(["umount", "--lazy", str(self.disk)], check=True)


def open_world(seed: int, root: Path, say: Callable[[str], None], brokers: int = 1) -> World:
    """In an empty folder; `brokers`: how many."""
    disk = root / "disk"
    disk.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_DISK}", "tmpfs", str(disk)]
    mounted = os.geteuid() == 0 and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    faults: Counter[str] = Counter()
    attacked = Brokers(root / "broker", root, brokers, faults)
    attacked.start(say)
    return World(seed, root, attacked, mounted, faults=faults)


def play_wave(world: World, wave: Wave, epoch: int, chance: random.Random) -> None:
    """All of it."""
    slots = [
        _Slot(world, kind, number, epoch, iter(wave.lives[kind.name, number]))
        for kind in wave.kinds
        for number in range(kind.writers + 1)
        if (kind.name, number) in wave.lives
    ]
    limit = _FILE_LIMIT if wave.fill_after is not None and not world.is_mounted else None
    for slot in slots:
        slot.file_limit = limit if slot.number == 0 else None
    before = _count_acks(world, slots)
    if wave.faults:
        world.brokers.disturb(chance, wave.rate, wave.faults)
    for slot in slots:
        slot.begin()
    if wave.wakes:
        world.wake()
    _Watch(world, wave, slots, epoch, chance).run(lambda: _count_acks(world, slots) - before >= wave.acks)
    for slot in slots:
        time.sleep(chance.uniform(0, wave.stagger))
        slot.end()
    world.reap()
    world.calm()


@dataclass
class _Slot:
    """One process at a time, each the successor of the one before."""

    world: World
    kind: Kind
    number: int
    epoch: int
    lives: Iterator[Life]
    file_limit: int | None = None
    process: BaseProcess | None = None
    until: float = 0.0

    def begin(self) -> None:
        """The next life, if there is one."""
        life = next(self.lives, None)
        if life is None:
            return
        last = max(read_acks(self.world.root, self.kind.table(self.epoch), self.number), default=-1)
        job = Job(
            root=self.world.root,
            warehouse=self.world.warehouse,
            url=self.world.url,
            seed=self.world.seed,
            kind=self.kind,
            epoch=self.epoch,
            number=self.number,
            first=last + 1 + life.gives_up,
            trap=life.trap,
            file_limit=self.file_limit,
        )
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["integration_tests.chaos.attacker", "integration_tests.chaos.world"])
        target = write_turns if self.number < self.kind.writers else publish_turns
        self.process = context.Process(target=target, args=(job,))
        self.process.start()
        self.world.started.append(self.process)
        self.until = time.monotonic() + life.seconds

    def watch(self) -> None:
        """Who died is followed by the next, and who has lived long enough dies."""
        if self.process is None:
            return
        if self.process.is_alive() and time.monotonic() > self.until:
            self.end()
        elif not self.process.is_alive():
            self.world.join([self.process])
            self.process = None
        if self.process is None:
            self.begin()

    def end(self) -> None:
        """SIGKILL, but for who stopped itself."""
        process, self.process = self.process, None
        if process is None:
            return
        if process.pid is not None and process.is_alive() and _state_of(process.pid) == "T":
            self.world.stop(process)
            return
        _kill(process)
        self.world.join([process])


def _kill(process: BaseProcess) -> None:
    """If it lives."""
    if process.is_alive() and process.pid is not None:
        with contextlib.suppress(ProcessLookupError):  # it may die by itself meanwhile
            os.kill(process.pid, signal.SIGKILL)


def _state_of(pid: int) -> str:
    """As the kernel says it; empty of a process that is going."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].strip()[:1]
    except (FileNotFoundError, ProcessLookupError):
        return ""


@dataclass
class _Watch:
    """Over a wave: faults at their time, until it is over."""

    world: World
    wave: Wave
    slots: Sequence[_Slot]
    epoch: int
    chance: random.Random
    full_until: float = 0.0

    def run(self, is_enough: Callable[[], bool]) -> None:
        """Until enough is acknowledged and all faults were there, or it took too long."""
        started = time.monotonic()
        until = started + self.wave.seconds
        todo = sorted(((started + after, act) for after, act in self._plan()), key=lambda one: one[0])
        while time.monotonic() < until and (todo or not is_enough()):
            while todo and todo[0][0] <= time.monotonic():
                todo.pop(0)[1]()
                until = max(until, self.world.brokers.back_at() + _BACK_SECONDS)
            if self.full_until and time.monotonic() > self.full_until:
                self.world.fill(full=False)
            self.world.brokers.find_dead()
            if self.world.brokers.is_due():
                self.world.brokers.come_back()
                until = time.monotonic() + _BACK_SECONDS
            for slot in self.slots:
                slot.watch()
            time.sleep(0.01)

    def _plan(self) -> Iterator[tuple[float, Callable[[], None]]]:
        """(after, act)."""
        wave = self.wave
        if wave.broker_after is not None:
            yield wave.broker_after, self.world.brokers.kill
        if wave.fill_after is not None:
            yield wave.fill_after, self._fill
        if wave.cut_after is not None:
            yield wave.cut_after, self._cut
        for one in wave.strikes:
            yield one.after, partial(self._strike, one)

    def _fill(self) -> None:
        self.world.fill(full=True)
        self.full_until = time.monotonic() + _FULL_SECONDS
        self.world.faults["disk full"] += 1

    def _cut(self) -> None:
        self.world.brokers.cut_all()
        self.world.faults["all connections cut"] += 1

    def _strike(self, strike: NodeStrike) -> None:
        kind = self.chance.choice(self.wave.kinds)
        self.world.brokers.strike(strike, kind.topic(self.epoch, self.world.seed), self.chance)


def _count_acks(world: World, slots: Sequence[_Slot]) -> int:
    return sum(len(read_acks(world.root, slot.kind.table(slot.epoch), slot.number)) for slot in slots)
