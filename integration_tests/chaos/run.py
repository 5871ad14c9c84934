"""`make chaos`: kills, a bad network, a dying broker, deleted topics and full disks, over tables of both consistencies.

Usage      python -m integration_tests.chaos.run [--kills 2000] [--seconds S] [--seed N] [--brokers 3] [--record]
Steps      1 an epoch: new tables  2 a round: waves of processes that are killed, then calm; what is pending is
           published, every table and topic is checked  3 an accident to a topic, refused first, then recovered as
           documented  4 tables are dropped, until there were enough kills  5 workers of Spark are killed
INVARIANT  the first fault ends the run with a status other than 0, the seed in its message; nothing is tried again.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from integration_tests.chaos.accidents import ACCIDENTS, play_accident
from integration_tests.chaos.executors import kill_workers
from integration_tests.chaos.judge import Judge
from integration_tests.chaos.patience import patiently
from integration_tests.chaos.report import make_report, save_report
from integration_tests.chaos.schedule import FULL, Size, plan_wave
from integration_tests.chaos.tables import KINDS
from integration_tests.chaos.world import World, open_world, play_wave
from tablestore_engine.api import Engine
from tablestore_engine.devservers.kafka_broker import BROKERS


@dataclass
class Attack:
    """One run; `counts` of what was checked."""

    world: World
    size: Size
    say: Callable[[str], None]
    counts: Counter[str] = field(default_factory=Counter)
    accidents: Counter[str] = field(default_factory=Counter)
    epochs: int = 0
    seconds: float = 0.0
    workers: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Choices that are no part of the schedule."""
        self.chance = random.Random(self.world.seed)

    def report(self) -> dict[str, Any]:
        """Everything that happened."""
        made = make_report(self.world, self.counts, self.accidents, self.epochs, self.seconds)
        return {**made, "workers of Spark": self.workers}

    def play_epoch(self, epoch: int) -> None:
        """New tables, until their rounds are played."""
        judges = [Judge(kind, epoch, self.world.seed, self.world.root) for kind in KINDS]
        with self._engine() as engine:
            engine.create_database("chaos")
            for round_ in range(self.size.rounds):
                for number in range(self.size.waves):
                    wave = round_ * self.size.waves + number
                    chance = random.Random(f"{self.world.seed}/{epoch}/{wave}/play")
                    play_wave(self.world, plan_wave(self.world.seed, epoch, wave, self.size), epoch, chance)
                self.check(engine, judges)
                self.say(f"  round {round_}: {self.world.kills} kills")
                self.play_accident(engine, judges, f"{epoch}/{round_}")
            self.end_epoch(engine, judges)

    def play_accident(self, engine: Engine, judges: Sequence[Judge], place: str) -> None:
        """One of them, to one of the tables; all is checked again."""
        chance = random.Random(f"{self.world.seed}/{place}/accident")
        there = [judge for judge in judges if _has_snapshots(engine, judge.name)]
        if not there:
            return
        accident, judge = chance.choice(ACCIDENTS), chance.choice(there)
        play_accident(accident, judge, engine, self.world.url, self.world.warehouse, chance)
        self.accidents[accident.name] += 1
        self.check(engine, [judge])

    def check(self, engine: Engine, judges: Sequence[Judge]) -> None:
        """Publish what is pending, then look at everything."""
        for judge in judges:
            if not _has_snapshots(engine, judge.name):
                continue
            self._heal(engine, judge.name)
            judge.check_table(engine)
            patiently(partial(judge.check_log, engine, self.world.url))
            patiently(partial(judge.check_readers, engine, self.chance))

    def _heal(self, engine: Engine, name: str) -> None:
        """By a publisher that others have fenced meanwhile, or by a new one."""
        if self.chance.random() < 0.5:
            patiently(engine.table(name).publish)
            return
        with self._engine() as fresh:
            patiently(fresh.table(name).publish)

    def end_epoch(self, engine: Engine, judges: Sequence[Judge]) -> None:
        """The last look; then the tables go."""
        self.world.wake()
        self.world.reap()
        self.check(engine, judges)
        for judge in judges:
            if _has_snapshots(engine, judge.name):
                patiently(partial(judge.check_promises, engine, self.world.url))
                judge.count_rows(self.world.url)
                self.counts += judge.counts
            if engine.find_table(judge.name) is not None:
                patiently(partial(engine.drop_table, judge.name))

    def _engine(self) -> Engine:
        log = {"kafka.bootstrap.servers": self.world.url}
        return Engine(str(self.world.warehouse), log=log)


def _has_snapshots(engine: Engine, name: str) -> bool:
    """Whoever was to make it may have been killed each time."""
    found = engine.find_table(name)
    return found is not None and found.latest_snapshot_id() is not None


def attack(
    seed: int, kills: int, seconds: float, size: Size, folder: Path, say: Callable[[str], None]
) -> Attack:
    """In an empty folder; AssertionError at the first fault."""
    world, started = open_world(seed, folder, say, size.brokers), time.monotonic()
    run = Attack(world, size, say)

    def is_over() -> bool:
        return world.kills >= kills or time.monotonic() - started > seconds

    try:
        while run.epochs == 0 or not is_over():
            run.play_epoch(run.epochs)
            run.epochs, run.seconds = run.epochs + 1, time.monotonic() - started
            say(json.dumps(run.report()))
        if size.worker_kills:
            run.workers = kill_workers(seed, size.worker_kills, folder, world.url)
            say(json.dumps(run.workers))
    except BaseException:
        world.close(keep=True)
        raise
    world.close(keep=False)
    return run


def main(words: Sequence[str]) -> int:
    """0 when nothing was found."""
    parser = argparse.ArgumentParser(prog="python -m integration_tests.chaos.run", description=__doc__)
    parser.add_argument("--kills", type=int, default=2_000)
    parser.add_argument("--seconds", type=float, default=4 * 3600)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument(
        "--record",
        action="store_true",
        help="write the counts into docs/chaos.json, with 3 brokers into docs/chaos-three.json",
    )
    parser.add_argument("--rounds", type=int, default=FULL.rounds, help="of each five tables")
    parser.add_argument("--worker-kills", type=int, default=FULL.worker_kills)
    parser.add_argument("--brokers", type=int, choices=BROKERS, default=1)
    chosen = parser.parse_args(words)
    print(f"chaos: seed {chosen.seed}, {chosen.kills} kills, {chosen.brokers} broker(s)", flush=True)
    size = replace(FULL, rounds=chosen.rounds, brokers=chosen.brokers, worker_kills=chosen.worker_kills)
    folder = Path(tempfile.mkdtemp(prefix="chaos-"))

    def say(text: str) -> None:
        print(text, flush=True)

    try:
        report = attack(chosen.seed, chosen.kills, chosen.seconds, size, folder, say).report()
    except BaseException:
        print(f"kept: {folder}", flush=True)
        raise
    shutil.rmtree(folder)
    if chosen.record:
        save_report(report)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
