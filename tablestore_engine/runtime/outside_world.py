"""The outside world as one frozen argument, so that any failure replays from its seed.

INVARIANT  below `spark` nothing calls time, uuid, sleep or random directly.
CRASH      `TABLESTORE_CRASH_AT=<name>[:<n>]` kills this very process with SIGKILL when it reaches the
           point for the n-th time (default 1): no handler runs, no buffer is flushed.
"""

from __future__ import annotations

import os
import random
import signal
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tablestore_engine.errors import EngineBug
from tablestore_engine.runtime.ownership import USERS, Users
from tablestore_engine.runtime.progress import NO_PROGRESS, WorkProgress

CRASH_ENV = "TABLESTORE_CRASH_AT"

CRASH_POINTS: Mapping[str, str] = {
    "write.data_files": "data, changelog and index files are written, no manifest yet",
    "commit.manifests": "manifests and lists are written, the snapshot is not claimed",
    "commit.schema": "the new schema is claimed, the snapshot that names it is not",
    "commit.claimed": "snapshot-N exists, the LATEST hint is not written",
    "commit.done": "snapshot and hint exist, nothing is published",
    "stage.made": "the branch has its base, the staged snapshot does not exist: nothing counts as staged",
    "stage.claimed": "the staged snapshot exists in its branch, main is untouched",
    "stage.published": "main's snapshot-N exists, the staged branch is not removed yet",
    "stage.dropping": "the drop of a staged snapshot that is past its retention is decided, nothing is deleted",
    "stage.dropped": "such a staged snapshot is deleted, those that it was built from are not",
    "replace.moved": "the old table has left its name, the new one is not there yet: the next look-up finishes it",
    "replace.placed": "the new table has the name, nothing of it is in its log, the old one is not deleted yet",
    "replace.sent": "all rows of the new table are in its log, the old table and its log are not deleted yet",
    "rollback.kept": "nobody expires the target of the rollback any more, no snapshot is deleted yet",
    "expire.hidden": "the snapshots do not count any more, all their files are there",
    "expire.data": "data and changelog files of the snapshots are deleted, their metadata is not",
    "expire.metadata": "manifests, lists and index files are deleted as well, the snapshot files are not",
    "expire.snapshots": "the snapshot files are deleted, the floor that hides them is there",
    "orphans.begun": "the names of orphan files are written down, none is deleted",
    "orphans.looked": "temporary files are deleted, orphan files were looked for again, none else is deleted",
    "branch.copied": "the branch has its first snapshot (or its tag), no schema: there is no branch yet",
    "branch.schema": "the branch has some of its schemas; it exists from the last one on",
    "branch.created": "the branch exists, nobody has looked yet whether its source still counts",
    "branch.hidden": "the branch has lost a schema, its other files are there",
    "branch.forward": "main has the snapshots of the branch up to one of them, or none yet",
    "branch.forward_schema": "main has a new schema of the branch, no snapshot that names it",
    "iceberg.files": "manifests and vectors of an Iceberg version are written, the version is not claimed",
    "iceberg.claimed": "the Iceberg version exists, the hint names the one before, files of dropped states are there",
    "log.begin": "the Kafka transaction is open, no row was produced",
    "log.rows": "some rows of the snapshot are produced, more are to come",
    "log.marker": "rows and marker are flushed, the transaction is not committed",
    "log.repairs": "what the table says under keys of lost rows is produced, no marker yet",
    "log.early": "some rows of a change are in the topic, the change is not committed",
    "log.committed": "the Kafka transaction is committed, nothing else was done",
}


def _kill_self(name: str) -> None:
    """SIGKILL this process at the point that TABLESTORE_CRASH_AT names, else do nothing."""
    wanted = os.environ.get(CRASH_ENV)
    if not wanted:
        return
    point, _, nth = wanted.partition(":")
    if point != name:
        return
    _HITS[name] = _HITS.get(name, 0) + 1
    if _HITS[name] >= int(nth or "1"):
        os.kill(os.getpid(), signal.SIGKILL)


_HITS: dict[str, int] = {}


@dataclass(frozen=True)
class Runtime:
    """The replaceable outside: `now_ms` epoch milliseconds, `new_uuid` text, `sleep` seconds."""

    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    new_uuid: Callable[[], str] = lambda: str(uuid.uuid4())
    sleep: Callable[[float], None] = time.sleep
    random: random.Random = field(default_factory=random.Random)
    users: Users = USERS
    on_crash_point: Callable[[str], None] = _kill_self
    progress: WorkProgress = NO_PROGRESS

    def crash_point(self, name: str) -> None:
        """Mark a place where the process may die; the name must be listed in CRASH_POINTS."""
        if name not in CRASH_POINTS:
            raise EngineBug(
                "TS1901",
                f"crash point {name!r} is not listed",
                why="a point that is not in CRASH_POINTS is never tested",
                fix="add it to tablestore_engine/runtime/outside_world.py",
            )
        self.on_crash_point(name)


SYSTEM = Runtime()
# else all processes that are forked from one would draw the same numbers
os.register_at_fork(after_in_child=SYSTEM.random.seed)
