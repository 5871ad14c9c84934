"""Dropping a staged snapshot that is past its retention, while another process may publish it or write into it.

    branch/branch-ts_staged_<name>/dropping-<uuid>-<id>   a process drops the staged snapshot with this uuid
                                  /publishing             when a publication of it began last, in epoch ms

CHANGE     a drop of a staged snapshot beside a publication or a write
Steps      drop: `dropping` → a publication in progress, or another write? then withdraw → no further writes → the
           caller deletes it
           publish: `publishing` → refused when there is a `dropping` (asked before the first claim)
INVARIANT  each side writes its own file before it looks for the other's: of two at the same moment at most one
           continues.
INVARIANT  a publication that began within IN_USE_MS is in progress. A staged snapshot that was written within half of
           that cannot be past a retention, which is at least IN_USE_MS: publishing it writes no file.
INVARIANT  each process that drops has a `dropping` of its own: one that withdraws takes no other one's away.
CRASH      after `dropping`: the staged snapshot is complete, is not published, and the next process drops it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tablestore_engine.errors import NotFound, RetryError
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.stage.stage_rebase import StagedSnapshot
from tablestore_engine.store.stage.staging import (
    CLOSED,
    find_staged,
    stage_context,
    turn_folder,
    turn_path,
)
from tablestore_engine.store.table_context import TableContext

IN_USE_MS = 3_600_000


@dataclass(frozen=True)
class StageDrop:
    """A drop that is decided: the caller deletes the staged snapshot, or withdraws."""

    branch: TableContext
    path: str

    def withdraw(self) -> None:
        """The staged snapshot stays."""
        self.branch.fileio.delete(self.path)


def is_long_staged(written_ms: int, now_ms: int) -> bool:
    """Whether a publication has to look for a drop."""
    return now_ms - written_ms >= IN_USE_MS // 2


def begin_publishing(context: TableContext, staged: StagedSnapshot) -> None:
    """From now on no process begins to drop it. Raises RetryError TS1548 when one has begun."""
    now = context.runtime.now_ms()
    if not is_long_staged(staged.snapshot.time_millis, now):
        return
    branch = stage_context(context, staged.name)
    branch.fileio.replace(_publishing_path(branch.layout), str(now).encode())
    mark = _mark_of(staged.snapshot)
    if any(one.name.startswith(mark) for one in branch.fileio.list(branch.layout.root)):
        raise RetryError(
            "TS1548",
            f"staged snapshot {staged.name} of {context.layout.location} cannot be published",
            why="it is older than tablestore.staged-retention of its table, and another process drops it",
            fix="build the model again",
        )


def begin_drop(context: TableContext, staged: StagedSnapshot) -> StageDrop | None:
    """None when it is published, written or gone: then it must stay as it is. Raises RetryError TS1365."""
    branch = stage_context(context, staged.name)
    path = f"{branch.layout.root}/{_mark_of(staged.snapshot)}{context.runtime.new_uuid()}"
    try:
        branch.fileio.create_exclusive(path, b"", check=context.guard.check)
    except NotFound:  # its folder is gone
        return None
    drop = StageDrop(branch, path)
    if not _is_free(context, branch, staged):
        drop.withdraw()
        return None
    context.runtime.crash_point("stage.dropping")
    return drop


def _is_free(context: TableContext, branch: TableContext, staged: StagedSnapshot) -> bool:
    found = find_staged(context, staged.name)
    if found is None or found.snapshot.uuid != staged.snapshot.uuid or _is_in_publication(branch):
        return False
    if not branch.fileio.exists(turn_folder(branch.layout)):
        return True
    turn = turn_path(branch.layout, staged.snapshot)
    won = branch.fileio.create_exclusive(turn, CLOSED, check=context.guard.check)
    return won or branch.fileio.read(turn) == CLOSED


def _is_in_publication(branch: TableContext) -> bool:
    try:
        began = branch.fileio.read(_publishing_path(branch.layout)).decode()
    except NotFound:
        return False
    return began.isdigit() and branch.runtime.now_ms() - int(began) < IN_USE_MS


def _mark_of(snapshot: Snapshot) -> str:
    return f"dropping-{snapshot.uuid}-"


def _publishing_path(layout: TableLayout) -> str:
    return f"{layout.root}/publishing"
