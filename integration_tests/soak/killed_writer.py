"""A writer that is meant to be killed: its commands are numbered, each a pure function of (table, writer, turn).

Steps      1 build the command  2 commit under (writer's name, turn)  3 acknowledge by one append to the ack file
CRASH      between 2 and 3 the commit is there and not acknowledged: the next process begins with the same turn.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from integration_tests.interop.oracle import Kinded
from integration_tests.interop.ours import KINDS
from integration_tests.interop.rows import arrow_rows
from integration_tests.soak.kill_moments import Moment, die_at
from integration_tests.soak.killed_tables import KilledTable, day_of, table_of_seed
from tablestore_engine.api import Engine, SparkSettings, Table, TableSpec, WriteSpec
from tablestore_engine.errors import (
    CommitExpired,
    Fenced,
    FixRequest,
    OutcomeUnknown,
    PublishPending,
    RetryError,
)
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime
from tablestore_engine.store.rows.row_filter import SameKeys
from tablestore_engine.store.write.write_request import WriteMode

SHARED_KEYS, OWN_KEYS = 12, 40
NAME = "soak.t"
HOUR_MS = 3_600_000
_TURNS_OF_AN_HOUR, _BRANCH_TRIES = 3, 4


@dataclass(frozen=True)
class Command:
    """One turn: `work` is what is done with the changes."""

    work: str
    changes: tuple[Kinded, ...] = ()
    buckets: int = 0


def user_of(writer: int) -> str:
    """The commit user of a writer."""
    return f"writer-{writer}"


def command_of(table: KilledTable, writer: int, turn: int) -> Command:
    """Every turn names keys of the writer's own and keys that all writers share."""
    chance = random.Random(f"{table.seed}/{writer}/{turn}")
    if turn == 0:
        return (
            Command("convert") if table.is_converted else Command("write", _changes(table, writer, 0, chance))
        )
    work = chance.choice(_works(table))
    if work in ("compact", "compact due", "tag"):
        return Command(work)
    if work == "rescale":
        grown = min(table.few_buckets + turn // 8, 12)  # partitions of a topic never go
        return Command(work, buckets=grown if table.log else chance.randint(1, 6))
    return Command(work, _changes(table, writer, turn, chance, kinds=work != "replace"))


def _works(table: KilledTable) -> list[str]:
    works = ["write"] * 6 + ["gated"] * 3 + ["replace"] * 2 + ["compact", "compact due"]
    if table.buckets != "dynamic" and table.log != "eventual":
        works += ["rescale"]
    if (
        not table.is_converted
    ):  # a conversion refuses branches and tags, and another writer may still be at its own
        works += ["branch"] * 2 + ["tag"]
    return works


def _changes(
    table: KilledTable, writer: int, turn: int, chance: random.Random, *, kinds: bool = True
) -> tuple[Kinded, ...]:
    own = [1_000 * (writer + 1) + key for key in chance.sample(range(OWN_KEYS), chance.randint(1, 6))]
    shared = chance.sample(range(SHARED_KEYS), chance.randint(0, 3))
    made: list[Kinded] = []
    for number, key in enumerate([*own, *shared]):
        row = {"id": key, "day": day_of(table, key, chance), **_values(chance, turn, f"{writer}.{turn}")}
        is_retraction = kinds and table.takes_retractions and number and chance.random() < 0.3
        made.append(("-D" if is_retraction else "+U", row))
    return tuple(made)


def _values(chance: random.Random, turn: int, name: str) -> dict[str, Any]:
    """A row without `g` has no value of its group."""
    g = None if chance.random() < 0.2 else max(0, turn + chance.randint(-4, 2))
    return {
        "g": g,
        "s": None if g is None or chance.random() < 0.2 else chance.randint(-9, 99),
        "a": None if g is None or chance.random() < 0.3 else name,
        "b": None if chance.random() < 0.3 else "x" * chance.randint(0, 200),
    }


def table_folder(root: Path) -> Path:
    """Where the table lies."""
    return root / "warehouse" / "soak.db" / "t"


def ack_file(root: Path, writer: int) -> Path:
    """What a writer has acknowledged."""
    return root / f"acks-{writer}"


def acks_of(root: Path, writer: int) -> dict[int, str]:
    """Turn -> snapshot id as text. A torn last line cannot be: it is one write of a few bytes."""
    path = ack_file(root, writer)
    if not path.exists():
        return {}
    pairs = (line.split() for line in path.read_text().splitlines())
    return {int(turn): snapshot for turn, snapshot in pairs}


def acknowledge(root: Path, writer: int, turn: int, snapshot: int | None) -> None:
    """One append, of a process that is killed or of the one that ends its work."""
    acks = os.open(ack_file(root, writer), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(acks, f"{turn} {snapshot}\n".encode())
    os.close(acks)


def next_turn(root: Path, writer: int) -> int:
    """The first that is not acknowledged."""
    return max(acks_of(root, writer), default=-1) + 1


@dataclass
class TurnClock:
    """A few turns are an hour, so that automatic tags fall due."""

    turn: int = 0

    def now_ms(self) -> int:
        """Epoch milliseconds."""
        return time.time_ns() // 1_000_000 + self.turn * HOUR_MS // _TURNS_OF_AN_HOUR


def write_turns(root: str, seed: int, writer: int, first: int, moment: Moment, url: str) -> None:
    """Turns from `first` until the process is killed; `url`: brokers of the log, '' without one."""
    table = table_of_seed(seed, log=bool(url))
    with turns_of(Path(root), table, writer, url) as run:
        die_at(moment)
        turn = first
        while True:
            acknowledge(Path(root), writer, turn, run(turn))
            turn += 1


@contextmanager
def turns_of(
    root: Path, table: KilledTable, writer: int, url: str, spark: SparkSettings | None = None
) -> Iterator[Callable[[int], int | None]]:
    """A function that runs one turn to its answer; the snapshot that it made."""
    clock = TurnClock()
    runtime = Runtime(now_ms=clock.now_ms, random=SYSTEM.random) if table.makes_tags else SYSTEM
    log = {"kafka.bootstrap.servers": url} if url else None
    with Engine(str(root / "warehouse"), log=log, runtime=runtime, spark=spark) as engine:
        writing = _Writer(engine, table, writer)

        def run(turn: int) -> int | None:
            clock.turn = turn
            return writing.run(turn)

        yield run


@dataclass
class _Writer:
    """One writer of one process."""

    engine: Engine
    table: KilledTable
    writer: int

    def run(self, turn: int) -> int | None:
        """A store that gives no clear answer is asked again, by the same command; so is one that was overtaken, or
        has sent nothing to the log yet.
        """
        command = command_of(self.table, self.writer, turn)
        while True:
            try:
                return self._perform(command, turn)
            except (OutcomeUnknown, RetryError, PublishPending, Fenced) as again:
                print(f"writer {self.writer}, turn {turn}: {again.code}", flush=True)

    def _perform(self, command: Command, turn: int) -> int | None:
        rows, spec = self._rows(command), self._spec(command, turn)
        name = f"{user_of(self.writer)}-{turn}"
        if command.work in ("write", "replace"):
            return self.engine.write(NAME, rows, spec).snapshot_id
        table = self.engine.table(NAME)
        if command.work == "gated":
            return self._write_gated(table, rows, spec, name)
        if command.work == "branch":
            return self._write_branch(table, rows, spec, name)
        if command.work == "tag":
            if name not in table.list_tags():
                table.create_tag(name)
            return table.list_tags()[name]
        if command.work == "rescale":
            return table.rescale(command.buckets).snapshot_id
        if command.work == "convert":
            return table.convert(2).snapshot_id
        table.compact(full=command.work == "compact")
        return table.latest_snapshot_id()

    def _rows(self, command: Command) -> pa.Table:
        rows = arrow_rows(self.table.schema, [row for _, row in command.changes])
        kinds = pa.array([int(KINDS[kind]) for kind, _ in command.changes], pa.int8())
        return rows if command.work == "replace" else rows.append_column("_ROW_KIND", kinds)

    def _spec(self, command: Command, turn: int) -> WriteSpec:
        partitions = ("day",) if self.table.is_partitioned else ()
        target = TableSpec(primary_key=self.table.keys, partition_by=partitions, options=self.table.options)
        words: dict[str, Any] = {
            "commit_user": user_of(self.writer),
            "commit_identifier": turn,
            "always": True,
        }
        if command.work == "replace":
            words |= {"mode": WriteMode.REPLACE, "replaces": SameKeys(self.table.keys)}
        is_there = (
            self.engine.find_table(NAME) is not None
        )  # whose number of buckets may be another one by now
        return WriteSpec(table=TableSpec() if is_there else target, **words)

    def _write_gated(self, table: Table, rows: pa.Table, spec: WriteSpec, stage: str) -> int | None:
        """Stage, then publish; others commit meanwhile, so it is planned anew until its base stands still."""
        while True:
            report = self.engine.write(NAME, rows, replace(spec, stage=stage))
            if stage not in {one.name for one in table.staged()}:
                return report.snapshot_id  # an earlier process published it
            try:
                return table.publish_staged(stage).snapshot_id
            except RetryError:
                table.drop_staged(stage)

    def _create_branch(self, table: Table, name: str) -> None:
        """Of a branch whose creation was killed there are files, and main may have moved: they are deleted, as the
        error says.
        """
        try:
            table.create_branch(name, snapshot=table.latest_snapshot_id())
        except FixRequest:
            table.delete_branch(name)
            table.create_branch(name, snapshot=table.latest_snapshot_id())

    def _write_branch(self, table: Table, rows: pa.Table, spec: WriteSpec, name: str) -> int | None:
        """In a branch that main is fast-forwarded to; where main is ahead each time, in main. An earlier process may
        have died anywhere, so the same command goes to main at last: it is there already, once.
        """
        plain = replace(spec, table=TableSpec())
        for _ in range(_BRANCH_TRIES):
            try:
                if name not in table.branches():
                    self._create_branch(table, name)
                    table.branch(name).write(rows, plain)
                table.fast_forward(name)
            except CommitExpired:  # it is in main, before the snapshot that the branch was made from
                break
            except RetryError:
                table.delete_branch(name)
                continue
            break
        if name in table.branches():
            table.delete_branch(name)
        return self.engine.write(NAME, rows, spec).snapshot_id
