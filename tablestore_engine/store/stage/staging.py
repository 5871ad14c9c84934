"""Staged snapshots: the next snapshot of a table is in a branch until its tests pass (decision 0004).

    branch/branch-ts_staged_<name>[@<branch>]               of main, or of a branch that a user made:
                                  /schema/…                 copies, and a new schema if the write changes it
                                  /snapshot/snapshot-<N>    copy of main's newest snapshot: the base
                                  /snapshot/snapshot-<N+1>  the staged one
                                  /based                    when the base is snapshot-1: alone it is no staged one
                                  /audit/<hash>             one file per test: its last outcome
                                  /turn/<uuid>              further writes into the same stage (append_to_stage)

Steps      publish: no further writes → main still at the base? → schema → exclusive create of main's snapshot-(N+1)
           with that very content, and the time of now → LATEST → branch removed. Main was compacted meanwhile → the
           same rows on top (stage_rebase).
           Main's rows or columns changed → RetryError TS1308: plan and test again
INVARIANT  nothing in main's snapshot folder changes before publishing (folds before the write apart); the claim
           itself is the compare-and-set: what the tests saw is what is published.
INVARIANT  a schema that a staged snapshot brings counts for nobody before main's snapshot names it (schemas).
INVARIANT  a branch counts as staged while both its snapshots are there. What they need is written before them and
           deleted after them, the base before the staged one: a process that dies half-way leaves nothing that counts.
CRASH      staged, not published: the branch waits. Published, branch still there: publishing again sees the same
           (user, identifier) in main and only removes the branch.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from tablestore_engine.errors import (
    FixData,
    RetryError,
    StagedSnapshotMissing,
    StagedVersionMissing,
)
from tablestore_engine.fileio.base import FileIO, find
from tablestore_engine.format.checksum import checksummed_json, verify_checksum
from tablestore_engine.format.json_file import DAMAGE, parse_object
from tablestore_engine.format.layout import BRANCH_PREFIX, MAIN_BRANCH, TableLayout, check_stage_name
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.commit.commit_report import CommitReport, report_of
from tablestore_engine.store.metadata.commit_history import find_pair
from tablestore_engine.store.metadata.identity import TABLE_KEY, is_of_another, with_table
from tablestore_engine.store.metadata.seen_table import SeenTable
from tablestore_engine.store.table_context import TableContext

if TYPE_CHECKING:
    from tablestore_engine.store.commit.commit import Committer
    from tablestore_engine.store.stage.stage_rebase import StagedSnapshot

STAGED_PREFIX = "ts_staged_"
CLOSED = b"closed"
_TEST_AGAIN = "delete it and run the tests again"
_OF_BRANCH = "@"


def turn_folder(layout: TableLayout) -> str:
    """Of a branch whose stage takes further writes."""
    return f"{layout.root}/turn"


def turn_path(layout: TableLayout, replaced: Snapshot) -> str:
    """What takes the place of this staged snapshot, or CLOSED."""
    return f"{turn_folder(layout)}/{replaced.uuid}"


def staged_branch(name: str, of: TableLayout) -> str:
    """The branch of a staged snapshot of the line `of`: main, or a branch, which stages for itself.

    Raises FixRequest TS1107.
    """
    check_stage_name(name)
    return STAGED_PREFIX + name + ("" if of.branch == MAIN_BRANCH else _OF_BRANCH + of.branch)


def find_stage_name(branch: str) -> str | None:
    """The name of the staged snapshot that a branch holds; None for other branches."""
    found = find_stage(branch)
    return None if found is None else found[0]


def find_stage(branch: str) -> tuple[str, str] | None:
    """(name, the branch that it was staged for) of the staged snapshot in a branch; None for other branches."""
    if not branch.startswith(STAGED_PREFIX):
        return None
    name, _, line = branch.removeprefix(STAGED_PREFIX).partition(_OF_BRANCH)
    return name, line or MAIN_BRANCH


@dataclass(frozen=True)
class Staging:
    context: TableContext
    committer: Committer

    def list_all(self) -> tuple[StagedSnapshot, ...]:
        """Staged snapshots, oldest first."""
        return list_staged(self.context)

    def find(self, name: str) -> StagedSnapshot | None:
        """One staged snapshot, or None."""
        return find_staged(self.context, name)

    def get(self, name: str) -> StagedSnapshot:
        """One staged snapshot. Raises NotFound TS1316."""
        found = self.find(name)
        if found is None:
            known = ", ".join(one.name for one in self.list_all()) or "none"
            raise StagedSnapshotMissing(
                "TS1316",
                f"{self.context.layout.location} has no staged snapshot {name!r}",
                why=f"staged: {known}",
                fix="it may be published or discarded already; else build the model again",
            )
        return found

    def find_again(self, staged: StagedSnapshot) -> StagedSnapshot | None:
        """The same while it is there, else what has its place."""
        there = self._branch(staged).snapshots.find_file(staged.snapshot.id)
        return staged if there == staged.snapshot else self.find(staged.name)

    def publish(self, name: str, *, keep: bool = False) -> CommitReport:
        """Make it main's next snapshot; `keep` leaves the branch, for a caller who still has to send its log.

        Raises NotFound TS1316, RetryError TS1308, TS1365, TS1389, OutcomeUnknown TS1306.
        """
        return self.publish_found(self.get(name), keep=keep)

    def publish_found(
        self, staged: StagedSnapshot, *, keep: bool = False, only: str | None = None
    ) -> CommitReport:
        """The same for one that the caller has looked up. `only`: the uuid of the snapshot that was tested."""
        self._close(staged, only)
        newest = self.context.newest_snapshot()
        report = (
            self._find_published(staged, newest)
            or self._publish_as_is(staged, newest)
            or self._publish_rebased(staged)
        )
        self.context.runtime.crash_point("stage.published")
        if not keep:
            self.discard(staged.name)
        return report

    def discard(self, name: str) -> None:
        """Forget it; its data files are left to orphan cleaning. A name that does not exist is fine."""
        remove_branch(stage_context(self.context, name))

    def forget_outcomes(self, name: str) -> None:
        """The rows change: what tests said is about others."""
        self.context.fileio.delete_tree(audit_folder(self.context.layout, name))

    def record_outcome(self, name: str, test_id: str, status: str, details: str = "") -> None:
        """Keep the last outcome of a test. Raises NotFound TS1316."""
        self.get(name)
        context = self.context
        made = {"test": test_id, "status": status, "details": details, "timeMillis": context.runtime.now_ms()}
        file_name = hashlib.sha256(test_id.encode()).hexdigest()[:32]
        path = f"{audit_folder(context.layout, name)}/{file_name}"
        context.fileio.replace(path, checksummed_json({**made, **with_table(context.guard.identity)}))

    # --------------------------------------------------------------------------------------------------------

    def _close(self, staged: StagedSnapshot, only: str | None) -> None:
        """From now on nobody writes into it: both take the same turn. Raises RetryError TS1389."""
        layout, fileio = self._branch(staged).layout, self.context.fileio
        path, is_moved = turn_path(layout, staged.snapshot), only not in (None, staged.snapshot.uuid)
        if not is_moved and fileio.exists(turn_folder(layout)):
            won = fileio.create_exclusive(path, CLOSED, check=self.context.guard.check)
            is_moved = not won and fileio.read(path) != CLOSED
        if is_moved:
            raise RetryError(
                "TS1389",
                f"staged snapshot {staged.name} of {self.context.layout.location} is being written",
                why="another process adds rows to it, which no test has read",
                fix="wait until that run ends: its tests publish it",
            )

    def _find_published(self, staged: StagedSnapshot, newest: Snapshot | None) -> CommitReport | None:
        """The report of an earlier call that died behind its claim."""
        found = _find_in_main(self.context, staged, newest)
        if found is None:
            return None
        if found == newest:
            self.committer.main.settle(found)
        return report_of(found)

    def _publish_as_is(self, staged: StagedSnapshot, newest: Snapshot | None) -> CommitReport | None:
        """As it was tested, while main is where it was; None when it is not: also when it has moved since that look.

        Only its time is another: before it is published no reader of main saw these rows.
        """
        from tablestore_engine.store.commit.snapshot_claim import NumberTakenError

        main, base = self.committer.main, staged.base
        if newest != base:
            return None
        earliest = staged.snapshot.time_millis if base is None else base.time_millis
        published = replace(staged.snapshot, time_millis=max(self.context.runtime.now_ms(), earliest))
        known = base is not None and published.schema_id == base.schema_id
        schema = (self.context if known else self._branch(staged)).schemas.get(published.schema_id)
        try:
            won = self.committer.claim(main, published, None if known or schema.claim is None else schema)
        except NumberTakenError:
            won = False
        if not won:
            main.cover_schemas()
            return None
        main.settle(published)
        return replace(report_of(published), seen=SeenTable(main.guard.identity, published, schema))

    def _publish_rebased(self, staged: StagedSnapshot) -> CommitReport:
        from tablestore_engine.store.stage.stage_rebase import publish_rebased

        return publish_rebased(self.context, self._branch(staged), self.committer, staged)

    def _branch(self, staged: StagedSnapshot) -> TableContext:
        return stage_context(self.context, staged.name)


def list_staged(context: TableContext) -> tuple[StagedSnapshot, ...]:
    """Staged snapshots of a table, oldest first."""
    names = () if context.guard.reads_for else list_stage_names(context.fileio, context.layout)
    found = (find_staged(context, name) for name in names)
    complete = [with_outcomes(context, one) for one in found if one is not None]
    return tuple(sorted(complete, key=lambda one: (one.snapshot.time_millis, one.name)))


def list_stage_names(fileio: FileIO, layout: TableLayout) -> tuple[str, ...]:
    """Names of the staged snapshots of a branch, also of those that are not complete; one listing."""
    folders = (one.name for one in fileio.list(layout.branches_dir) if one.is_dir)
    found = (find_stage(name.removeprefix(BRANCH_PREFIX)) for name in folders)
    return tuple(stage[0] for stage in found if stage is not None and stage[1] == layout.branch)


def stage_context(context: TableContext, name: str) -> TableContext:
    """The stores of a staged snapshot of this branch, whether it is there or not."""
    return context.on_branch(staged_branch(name, context.layout))


def find_staged(context: TableContext, name: str) -> StagedSnapshot | None:
    """What lies in the branch, without outcomes, or None while it is not complete."""
    from tablestore_engine.store.stage.stage_rebase import StagedSnapshot

    if (
        context.guard.reads_for
    ):  # main as a run on a branch sees it: what is staged for main is not for that run
        return None
    branch = stage_context(context, name)
    files = branch.snapshots.list_files()[:2]
    if not files:
        return None
    looks = [partial(branch.snapshots.find_listed, file) for file in files]  # counted when they were listed
    newest, *bases = context.fileio.run_together(looks)
    base = bases[0] if bases else None
    if newest is None or (newest.id > 1) != (base is not None):
        return None  # one of the two is not there yet, or not any more
    based = based_path(branch.layout)
    if base is None and context.fileio.exists(based) and branch.snapshots.is_own_mark(based):
        return None  # snapshot-1 is the copy of the base
    return StagedSnapshot(name, newest, base)


def is_out(context: TableContext, staged: StagedSnapshot) -> bool:
    """Whether main has its commit already, and only the log and the branch are left to do."""
    return _find_in_main(context, staged, context.newest_snapshot()) is not None


def _find_in_main(context: TableContext, staged: StagedSnapshot, newest: Snapshot | None) -> Snapshot | None:
    own = staged.snapshot
    if newest is None:
        return None
    return find_pair(context.snapshots, newest, own.commit_user, own.commit_identifier, after=staged.base_id)


def remove_branch(branch: TableContext) -> None:
    """See INVARIANT: snapshots first, in ascending order."""
    for number in branch.snapshots.list_file_ids():
        branch.fileio.delete(branch.layout.snapshot_path(number))
    branch.fileio.delete_tree(branch.layout.root)


def based_path(layout: TableLayout) -> str:
    """Of a branch whose base is snapshot-1."""
    return f"{layout.root}/based"


def staged_context(context: TableContext, name: str) -> TableContext:
    """The branch's stores, to read it. Raises NotFound TS1317."""
    if find_staged(context, name) is None:
        raise StagedVersionMissing(
            "TS1317",
            f"{context.layout.location} has no staged snapshot {name!r} to read",
            why="there is no complete branch of that name",
            fix="it may be published or discarded already; read the table itself",
        )
    return stage_context(context, name)


def audit_folder(layout: TableLayout, name: str) -> str:
    """Where the outcomes of a stage's tests are."""
    return f"{layout.branch_dir(staged_branch(name, layout))}/audit"


def with_outcomes(context: TableContext, staged: StagedSnapshot) -> StagedSnapshot:
    """With what tests said of it, without outcomes of another table's stage of that name."""
    from tablestore_engine.store.stage.stage_rebase import StoredOutcome

    found, fileio = [], context.fileio
    files = fileio.list(audit_folder(context.layout, staged.name))
    read = fileio.run_together([partial(find, fileio, file.path) for file in files])
    for file, data in zip(files, read, strict=True):
        if data is None:
            continue
        try:
            verify_checksum(data, "outcome file", file.path, again=_TEST_AGAIN)
            value = parse_object(data)
            if is_of_another(fileio, context.layout.location, value.get(TABLE_KEY), context.guard.identity):
                continue
            test, status, details = (str(value[key]) for key in ("test", "status", "details"))
            outcome = StoredOutcome(test, status, details, int(value["timeMillis"]))
        except DAMAGE as wrong:
            raise FixData(
                "TS1318",
                f"the outcome file {file.path} cannot be read",
                why=str(wrong),
                fix=_TEST_AGAIN,
            ) from wrong
        found.append(outcome)
    return replace(staged, outcomes=tuple(sorted(found, key=lambda one: one.test_id)))
