"""A writer that is meant to be killed: its commands are numbered, each a pure function of (seed, writer, turn).

Steps      1 build the command  2 commit under (writer's name, turn)  3 acknowledge by one append to the ack file
CRASH      between 2 and 3 the commit is there and not acknowledged: the next process begins with the same turn.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from integration_tests.interop.oracle import Kinded
from integration_tests.interop.ours import Ours
from integration_tests.interop.rows import arrow_rows
from integration_tests.interop.schemas import Schema, schema
from tablestore_engine.errors import OutcomeUnknown, RetryError
from tablestore_engine.runtime.outside_world import CRASH_ENV

SHARED_KEYS, OWN_KEYS = 12, 40
SCHEMA: Schema = schema(
    {"id": "BIGINT", "writer": "STRING", "turn": "INT", "text": "STRING"},
    keys=("id",),
    options={"bucket": "2", "num-levels": "6", "manifest.merge-min-count": "4"},
)


@dataclass(frozen=True)
class Command:
    """One turn. Without changes it is a compaction; a gated one goes through a staged snapshot."""

    changes: tuple[Kinded, ...]
    gated: bool


def user_of(writer: int) -> str:
    """The commit user of a writer."""
    return f"writer-{writer}"


def command_of(seed: int, writer: int, turn: int) -> Command:
    """Every turn names keys of the writer's own and keys that all writers share."""
    chance = random.Random(f"{seed}/{writer}/{turn}")
    if turn % 9 == 8:
        return Command((), gated=False)
    own = [1_000 * (writer + 1) + key for key in chance.sample(range(OWN_KEYS), chance.randint(1, 6))]
    shared = chance.sample(range(SHARED_KEYS), chance.randint(0, 3))
    changes: list[Kinded] = []
    for number, key in enumerate([*own, *shared]):
        row = {"id": key, "writer": user_of(writer), "turn": turn, "text": "x" * chance.randint(0, 200)}
        changes.append(("-D" if number and chance.random() < 0.3 else "+U", row))
    return Command(tuple(changes), gated=chance.random() < 0.3)


def write_turns(root: str, seed: int, writer: int, first: int, crash_at: str) -> None:
    """Turns from `first` until the process is killed; `crash_at` as TABLESTORE_CRASH_AT, '' for none."""
    os.environ[CRASH_ENV] = crash_at
    ours, location = Ours(), table_of(Path(root))
    acks = os.open(ack_file(Path(root), writer), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    turn = first
    while True:
        snapshot = _run_until_answered(ours, location, command_of(seed, writer, turn), writer, turn)
        os.write(acks, f"{turn} {snapshot}\n".encode())
        turn += 1


def table_of(root: Path) -> Path:
    """Where the table lies."""
    return root / "warehouse" / "soak.db" / "t"


def ack_file(root: Path, writer: int) -> Path:
    """What a writer has acknowledged."""
    return root / f"acks-{writer}"


def _run_until_answered(ours: Ours, location: Path, command: Command, writer: int, turn: int) -> int | None:
    """A store that gives no clear answer is asked again, by the same command."""
    while True:
        try:
            return _run(ours, location, command, writer, turn)
        except OutcomeUnknown as unknown:
            print(f"writer {writer}, turn {turn}: {unknown.code}", flush=True)


def _run(ours: Ours, location: Path, command: Command, writer: int, turn: int) -> int | None:
    if not command.changes:
        return ours.store(location).compact(full=True).snapshot_id
    rows = arrow_rows(SCHEMA, [row for _, row in command.changes])
    kinds = [kind for kind, _ in command.changes]
    identity: Mapping[str, object] = {"commit_user": user_of(writer), "commit_identifier": turn}
    if not command.gated:
        return int(ours.write(location, rows, kinds, **identity).snapshot_id)
    return _run_gated(ours, location, rows, kinds, user_of(writer), identity)


def _run_gated(
    ours: Ours,
    location: Path,
    rows: pa.Table,
    kinds: list[str],
    stage: str,
    identity: Mapping[str, object],
) -> int:
    """Stage, then publish; others commit meanwhile, so it is planned anew until its base stands still."""
    while True:
        report = ours.write(location, rows, kinds, stage=stage, **identity)
        staging = ours.store(location).staging
        if staging.find(stage) is None:
            return int(report.snapshot_id)  # an earlier process published it
        try:
            return int(staging.publish(stage).snapshot_id or 0)
        except RetryError:
            staging.discard(stage)
