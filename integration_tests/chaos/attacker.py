"""Processes that are meant to be killed: a writer and a publisher of one table, each a loop without an end.

Steps      1 short time-outs 2 a turn 3 what may pass is counted and tried again, under the same identity; anything else
           is written into the failures, and ends the run
INVARIANT  an ack is one append of a few bytes, made behind the commit.
"""

from __future__ import annotations

import os
import resource
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from integration_tests.chaos.tables import Command, Kind, command_of
from tablestore_engine.api import Engine, WriteSpec
from tablestore_engine.errors import (
    Fenced,
    OutcomeUnknown,
    PublishPending,
    RetryError,
    StorageError,
    TablestoreError,
)
from tablestore_engine.log.kafka import kafka_sink
from tablestore_engine.log.kafka.settings import LogSettings
from tablestore_engine.runtime.outside_world import Runtime

PASSING = (RetryError, Fenced, OutcomeUnknown, StorageError)
_PAUSE_SECONDS = 0.05
_TIMEOUT_SECONDS = 2.5
FAILED = 3


@dataclass(frozen=True)
class Trap:
    """At the `nth` time at `point`; `action`: die, stop, broker, broker-and-die."""

    point: str
    nth: int
    action: str


@dataclass(frozen=True)
class Job:
    """`root` has everything but the warehouse; `file_limit`: larger files fail as on a full disk."""

    root: Path
    warehouse: Path
    url: str
    seed: int
    kind: Kind
    epoch: int
    number: int
    first: int = 0
    trap: Trap | None = None
    file_limit: int | None = None

    @property
    def table(self) -> str:
        """Its table."""
        return self.kind.table(self.epoch)


def ack_file(root: Path, table: str, writer: int) -> Path:
    """What a writer has acknowledged."""
    return root / f"acks-{table}-{writer}"


def note(root: Path, file: str, line: str) -> None:
    """One line, in one write; a limit on the size of files is for the table's."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (before[1], before[1]))
    handle = os.open(root / file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(handle, f"{line}\n".encode())
    os.close(handle)
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def write_turns(job: Job) -> None:
    """A writer."""
    turn = job.first
    acks = ack_file(job.root, job.table, job.number).name

    def step(engine: Engine) -> None:
        nonlocal turn
        command = command_of(job.seed, job.kind, job.number, turn)
        snapshot = _perform(engine, job, command, turn)
        note(job.root, acks, f"{turn} {'-' if snapshot is None else snapshot}")
        turn += 1

    _run(job, step)


def publish_turns(job: Job) -> None:
    """A publisher."""

    def step(engine: Engine) -> None:
        found = engine.find_table(job.table)
        if found is not None and found.latest_snapshot_id() is not None:
            found.publish()
        time.sleep(_PAUSE_SECONDS)

    _run(job, step)


def _perform(engine: Engine, job: Job, command: Command, turn: int) -> int | None:
    """The snapshot; None when nothing changed. A compaction is no commit of the writer's."""
    if not command.changes:
        found = engine.find_table(job.table)
        if found is not None:
            found.compact(full=True)
        return None
    spec = command.spec(job.kind.spec(job.epoch, job.seed), job.number, turn)
    try:
        if command.gated:
            return _perform_gated(engine, job.table, command.rows(job.kind), spec)
        return engine.write(job.table, command.rows(job.kind), spec).snapshot_id
    except PublishPending as pending:
        note(job.root, "errors", pending.code)
        return int(pending.facts["snapshot"])


def _perform_gated(engine: Engine, name: str, rows: pa.Table, spec: WriteSpec) -> int | None:
    """By a staged snapshot; an earlier process may have published it. Its name is this turn's own: a process that was
    stopped here goes on when others have staged later turns.
    """
    stage = f"{spec.commit_user}-{spec.commit_identifier}"
    report = engine.write(name, rows, replace(spec, stage=stage))
    table = engine.table(name)
    if stage not in [one.name for one in table.staged()]:
        return report.snapshot_id
    try:
        return table.publish_staged(stage).snapshot_id
    except RetryError:
        table.drop_staged(stage)
        raise


def _run(job: Job, step: Callable[[Engine], None]) -> None:
    """Until it is killed, or something happens that must not."""
    try:
        if job.file_limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (job.file_limit, resource.RLIM_INFINITY))
        log = {"kafka.bootstrap.servers": job.url, "kafka.socket.timeout.ms": "3000"}
        runtime = Runtime(on_crash_point=_Trapped(job)) if job.trap is not None else Runtime()
        opened = Engine(str(job.warehouse), log=log, runtime=runtime)
        with shortened(job.kind.chunk_rows), opened as engine:
            while True:
                try:
                    step(engine)
                except PASSING as error:
                    note(job.root, "errors", error.code)
                    time.sleep(_PAUSE_SECONDS)
    except BaseException as error:  # noqa: BLE001 - whatever ends it is a finding, told by who joins this process
        code = f"{error.code}: " if isinstance(error, TablestoreError) else ""
        text = f"{job.table} {job.number}: {code}{error}\n{traceback.format_exc()}"
        (job.root / f"failure-{os.getpid()}").write_text(text)
        os._exit(FAILED)


@contextmanager
def shortened(chunk_rows: int | None = None) -> Iterator[None]:
    """Brokers that are away are told of soon; snapshots may be large when they have a few rows."""
    resolve = kafka_sink.resolve_log

    def resolve_short(*given: Any, **named: Any) -> LogSettings | None:
        found = resolve(*given, **named)
        short = (
            None
            if found is None
            else replace(found, client=replace(found.client, timeout_s=_TIMEOUT_SECONDS))
        )
        return short if short is None or chunk_rows is None else replace(short, chunk_rows=chunk_rows)

    kafka_sink.resolve_log = resolve_short
    try:
        yield
    finally:
        kafka_sink.resolve_log = resolve


def _kill_broker(root: Path, number: int) -> None:
    """A node, unless it is dead already; another process that has its number by now is left alone."""
    pids = (root / "broker.pid").read_text().split()
    pid = int(pids[number % len(pids)])
    with suppress(FileNotFoundError, ProcessLookupError):
        if str(root).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGKILL)


class _Trapped:
    """The crash points of a process with a trap."""

    def __init__(self, job: Job) -> None:
        self._job, self._hits = job, 0

    def __call__(self, name: str) -> None:
        trap = self._job.trap
        if trap is None or name != trap.point:
            return
        self._hits += 1
        if self._hits != trap.nth:
            return
        note(self._job.root, "traps", f"{trap.action} {name}")
        if trap.action.startswith("broker"):
            _kill_broker(self._job.root, self._job.number)
        if trap.action.endswith("die"):
            os.kill(os.getpid(), signal.SIGKILL)
        if trap.action == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
