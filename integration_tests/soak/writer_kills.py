"""Writers killed with SIGKILL, at random moments and at chosen ones; every acknowledged command must be there once.

Steps      1 fork writers from a clean server (no start-up cost, no threads of ours)  2 when the first one is dead, or
           a moment after some acks, kill it; at times the others go on meanwhile; then kill them
           3 with a fresh handle: invariants of the snapshots that are new, and of what is staged
           4 at a table's end the commands that were cut off are run again, and kill_judge.py judges
INVARIANT  what is expected comes from (table, writer, turn) and the acks, never from the table itself.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

from integration_tests.interop.ours import Ours
from integration_tests.interop.peers import Peer
from integration_tests.s3.store_mode import store_modules
from integration_tests.soak.kill_judge import judge
from integration_tests.soak.kill_moments import Moment, draw_moment
from integration_tests.soak.killed_tables import KilledTable, table_of_seed
from integration_tests.soak.killed_writer import (
    acknowledge,
    acks_of,
    command_of,
    next_turn,
    table_folder,
    turns_of,
    write_turns,
)
from integration_tests.soak.merged_before import leave_versions
from tablestore_engine.store.verify.table_check import verify_snapshot

TURNS_TO_A_CRASH, _TURNS_AHEAD = 7, 5  # some points are never met; more commits would tell nothing more
_DIE_SECONDS, _WRITES_AT_LAST = 120, 40
Mix = Counter[tuple[str, str, str, str]]


@dataclass(frozen=True)
class KillReport:
    """Counts of a run: processes killed, commands acknowledged, snapshots replayed; `mix`: kills by engine, producer,
    buckets and the command that was cut off.
    """

    kills: int = 0
    acknowledged: int = 0
    snapshots: int = 0
    mix: Mix = field(default_factory=Counter)

    def __add__(self, other: KillReport) -> KillReport:
        """Both runs together."""
        return KillReport(
            self.kills + other.kills,
            self.acknowledged + other.acknowledged,
            self.snapshots + other.snapshots,
            self.mix + other.mix,
        )


def kill_writers(
    seed: int, kills: int, root: Path, peers: Sequence[Peer] = (), *, url: str = ""
) -> KillReport:
    """One table in the empty folder `root`, at least `kills` killed processes; with `url` it has a log there.

    Raises AssertionError with the seed at the first fault.
    """
    context = multiprocessing.get_context("forkserver")
    preload = ["integration_tests.soak.killed_writer", "integration_tests.soak.loaded_engine"]
    context.set_forkserver_preload([*store_modules(), *preload, *_started_by()])
    table, chance, mix, checked = table_of_seed(seed, log=bool(url)), random.Random(seed), Counter(), 0
    if table.is_converted:
        leave_versions(table, table_folder(root))
    while mix.total() < kills:
        first = next_turn(root, 0)
        works = [command_of(table, 0, turn).work for turn in range(first, first + _TURNS_AHEAD)]
        moment = draw_moment(chance, works, table.log)
        writers = list(range(chance.randint(1, table.writers)))
        started = {
            writer: context.Process(
                target=write_turns,
                args=(str(root), seed, writer, next_turn(root, writer), Moment() if writer else moment, url),
            )
            for writer in writers
        }
        wanted = len(acks_of(root, 0)) + (TURNS_TO_A_CRASH if moment.is_own else chance.randint(1, 3))
        others_go_on = chance.random() < 0.5
        _kill(root, started, chance, lambda wanted=wanted: len(acks_of(root, 0)) >= wanted, others_go_on)
        mix.update(_cut_off(table, root, writer) for writer in writers)
        checked = _check_news(root, table, checked)
    _end(root, table, url)
    acknowledged, snapshots = judge(root, table, peers, url)
    return KillReport(mix.total(), acknowledged, snapshots, mix)


def _started_by() -> list[str]:
    """What started this run: each child would load it again (as __mp_main__), dbt and all."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return [spec.name] if spec is not None and spec.name.startswith("integration_tests.") else []


def _kill(
    root: Path,
    writers: dict[int, BaseProcess],
    chance: random.Random,
    is_time: Callable[[], bool],
    others_go_on: bool,
) -> None:
    """SIGKILL for the first a moment after `is_time`, unless it died before; then for the others, at once or when each
    has another ack.
    """
    everyone = list(writers.values())
    for process in everyone:
        process.start()
    try:
        _wait(lambda: not writers[0].is_alive() or is_time())
        time.sleep(chance.uniform(0, 0.08))
        _end_process(writers.pop(0))
        if others_go_on:
            wanted = {writer: len(acks_of(root, writer)) + 1 for writer in writers}
            _wait(lambda: all(len(acks_of(root, writer)) >= count for writer, count in wanted.items()))
            time.sleep(chance.uniform(0, 0.05))
        for process in writers.values():
            _end_process(process)
    finally:
        for process in everyone:
            process.kill()


def _wait(is_time: Callable[[], bool]) -> None:
    until = time.monotonic() + _DIE_SECONDS
    while not is_time() and time.monotonic() < until:
        time.sleep(0.005)


def _end_process(process: BaseProcess) -> None:
    if process.is_alive() and process.pid is not None:
        os.kill(process.pid, signal.SIGKILL)
    process.join(_DIE_SECONDS)
    assert process.exitcode == -signal.SIGKILL, f"a writer ended with {process.exitcode}, not by a kill"


def _cut_off(table: KilledTable, root: Path, writer: int) -> tuple[str, str, str, str]:
    work = command_of(table, writer, next_turn(root, writer)).work
    buckets = f"{table.buckets}, log {table.log}" if table.log else table.buckets
    return table.engine, table.producer, buckets, work


def _check_news(root: Path, table: KilledTable, after: int) -> int:
    """Invariants of snapshots newer than `after`, and of all that is staged; the newest id."""
    store = Ours().store(table_folder(root))
    if store.find_seen() is None:  # the first write died before the table was there
        return after
    snapshots = store.snapshots.list_all()
    problems = [
        one
        for snapshot in snapshots
        if snapshot.id > after
        for one in verify_snapshot(store.context, snapshot)
    ]
    for staged in store.staging.list_all():
        problems += [f"staged {staged.name}: {one}" for one in store.on_staged(staged.name).verify()]
    assert not problems, f"seed {table.seed} ({table}): {problems}"
    return max((snapshot.id for snapshot in snapshots), default=after)


def _end(root: Path, table: KilledTable, url: str) -> None:
    """Each writer ends the command that was cut off; the first one goes on to a plain write, which makes up for tags
    and messages that are due.
    """
    for writer in reversed(range(table.writers)):
        with turns_of(root, table, writer, url) as run:
            turn = next_turn(root, writer)
            for _ in range(_WRITES_AT_LAST):
                acknowledge(root, writer, turn, run(turn))
                if writer or command_of(table, writer, turn).work == "write":
                    break
                turn += 1
