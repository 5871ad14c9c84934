"""Writers killed with SIGKILL, at random moments and at crash points; every acknowledged commit must be there once.

Steps      1 fork writers from a clean server (no start-up cost, no threads of ours)  2 kill all of them a moment
           after some acks, or when one died at a crash point (or had its turns without meeting it)
           3 with a fresh handle: invariants of the snapshots that are new, and of what is staged
           4 at a table's end the invariants of all files; every snapshot is replayed: commit user and identifier
           name the command, its rows must be what our reader (and a peer, at the end) shows
INVARIANT  what is expected comes from (seed, writer, turn) and the acks, never from the table itself.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

from integration_tests.interop.oracle import Oracle
from integration_tests.interop.ours import Ours
from integration_tests.interop.peers import Peer
from integration_tests.interop.rows import assert_same
from integration_tests.s3.store_mode import store_modules
from integration_tests.soak.killed_writer import (
    SCHEMA,
    ack_file,
    command_of,
    table_of,
    user_of,
    write_turns,
)
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.runtime.outside_world import CRASH_POINTS
from tablestore_engine.store.verify.table_check import verify_snapshot

WRITERS_MAX = 3
TURNS_TO_A_CRASH = 30  # these commands never meet some points; more commits would tell nothing more
POINTS = tuple(sorted(name for name in CRASH_POINTS if not name.startswith("log.")))
_DIE_SECONDS = 60


@dataclass(frozen=True)
class KillReport:
    """Counts of a run: processes killed, commits acknowledged, snapshots replayed."""

    kills: int = 0
    acknowledged: int = 0
    snapshots: int = 0

    def __add__(self, other: KillReport) -> KillReport:
        """Both runs together."""
        return KillReport(
            self.kills + other.kills,
            self.acknowledged + other.acknowledged,
            self.snapshots + other.snapshots,
        )


def kill_writers(seed: int, kills: int, root: Path, peers: Sequence[Peer] = ()) -> KillReport:
    """One table in the empty folder `root`, at least `kills` killed processes.

    Raises AssertionError with the seed at the first fault.
    """
    context = multiprocessing.get_context("forkserver")
    # The server also loads what starts this run, else each child does so again (__mp_main__), dbt and all.
    preload = ["integration_tests.soak.killed_writer", "integration_tests.soak.run"]
    context.set_forkserver_preload([*store_modules(), *preload])
    chance, killed, checked = random.Random(seed), 0, 0
    Ours().create(table_of(root), SCHEMA)
    while killed < kills:
        crash_at = f"{chance.choice(POINTS)}:{chance.randint(1, 3)}" if chance.random() < 0.4 else ""
        writers = list(range(chance.randint(1, WRITERS_MAX)))
        started = [
            context.Process(
                target=write_turns,
                args=(str(root), seed, writer, _next_turn(root, writer), crash_at if not writer else ""),
            )
            for writer in writers
        ]
        turns = chance.randint(1, 4)
        wanted = len(_acks(root, 0)) + (TURNS_TO_A_CRASH if crash_at else turns)
        killed += _kill(started, chance, lambda wanted=wanted: len(_acks(root, 0)) >= wanted)
        checked = _check_news(root, seed, checked)
    return judge(root, seed, killed, peers)


def _kill(processes: list[BaseProcess], chance: random.Random, is_time: Callable[[], bool]) -> int:
    """SIGKILL for all a moment after `is_time`, or after the first died at its crash point; how many there were."""
    for process in processes:
        process.start()
    until = time.monotonic() + _DIE_SECONDS
    while processes[0].is_alive() and not is_time() and time.monotonic() < until:
        time.sleep(0.002)
    time.sleep(chance.uniform(0, 0.08))
    for process in processes:
        if process.is_alive() and process.pid is not None:
            os.kill(process.pid, signal.SIGKILL)
    for process in processes:
        process.join(_DIE_SECONDS)
        assert process.exitcode == -signal.SIGKILL, f"a writer ended with {process.exitcode}, not by a kill"
    return len(processes)


def _acks(root: Path, writer: int) -> dict[int, str]:
    """Turn -> snapshot id as text. A torn last line cannot be: it is one write of a few bytes."""
    path = ack_file(root, writer)
    if not path.exists():
        return {}
    pairs = (line.split() for line in path.read_text().splitlines())
    return {int(turn): snapshot for turn, snapshot in pairs}


def _next_turn(root: Path, writer: int) -> int:
    return max(_acks(root, writer), default=-1) + 1


def _check_news(root: Path, seed: int, after: int) -> int:
    """Invariants of snapshots newer than `after`, and of all that is staged; the newest id."""
    store = Ours().store(table_of(root))
    snapshots = store.snapshots.list_all()
    problems = [
        one
        for snapshot in snapshots
        if snapshot.id > after
        for one in verify_snapshot(store.context, snapshot)
    ]
    for staged in store.staging.list_all():
        problems += [f"staged {staged.name}: {one}" for one in store.on_staged(staged.name).verify()]
    assert not problems, f"seed {seed}: {problems}"
    return max((snapshot.id for snapshot in snapshots), default=after)


def judge(root: Path, seed: int, killed: int, peers: Sequence[Peer] = ()) -> KillReport:
    """Invariants of all files, then all snapshots against their commands, and the acks against the snapshots."""
    ours, location, oracle = Ours(), table_of(root), Oracle(SCHEMA)
    problems = ours.store(location).verify()
    assert not problems, f"seed {seed}: {problems}"
    found: dict[tuple[str, int], int] = {}
    snapshots = ours.store(location).snapshots.list_all()
    for snapshot in snapshots:
        where = f"seed {seed}, snapshot {snapshot.id}"
        changes = _expected(oracle, snapshot, seed)
        if changes is not None:
            identity = (snapshot.commit_user, snapshot.commit_identifier)
            assert identity not in found, f"{where}: {identity} is there twice"
            found[identity] = snapshot.id
            assert_same(changes, ours.changelog(location, snapshot.id - 1, snapshot.id), where)
        assert_same(oracle.rows(), ours.read(location, snapshot.id), where)
    acks = acknowledged(root, seed)
    for identity, snapshot_id in acks.items():
        assert found.get(identity) == snapshot_id, f"seed {seed}: ack {identity}"
    for peer in peers:
        assert_same(oracle.rows(), peer.read(location), f"{peer.name}, seed {seed}")
    return KillReport(killed, len(acks), len(snapshots))


def acknowledged(root: Path, seed: int) -> dict[tuple[str, int], int]:
    """(commit user, identifier) -> snapshot id, of every command that changes something and was acknowledged."""
    return {
        (user_of(writer), turn): int(snapshot_id)
        for writer in range(WRITERS_MAX)
        for turn, snapshot_id in _acks(root, writer).items()
        if command_of(seed, writer, turn).changes
    }


def _expected(oracle: Oracle, snapshot: Snapshot, seed: int) -> list[object] | None:
    """The changes of a command's snapshot; None for a fold, which changes nothing."""
    name, _, number = snapshot.commit_user.rpartition("-")
    if snapshot.commit_kind == "COMPACT" or name != user_of(0).rpartition("-")[0]:
        assert snapshot.commit_kind == "COMPACT", f"seed {seed}: {snapshot.id} of {snapshot.commit_user}"
        return None
    return list(oracle.apply(command_of(seed, int(number), snapshot.commit_identifier).changes))
