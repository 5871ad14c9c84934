"""Where the commit of a staged write claims its snapshot: a branch with the base and the staged snapshot (staging).

INVARIANT  of several writers that begin a stage which takes more, one claims its snapshot and the others write into
           it: none of them removes what another one may be making, but what counts for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.store.commit.commit_report import CommitIdentity
from tablestore_engine.store.commit.snapshot_claim import (
    Committed,
    MainDestination,
    NumberTakenError,
    StageExistsError,
)
from tablestore_engine.store.stage.staging import (
    audit_folder,
    based_path,
    find_staged,
    remove_branch,
    stage_context,
    turn_folder,
)
from tablestore_engine.store.table_context import TableContext


@dataclass(frozen=True)
class StagedDestination:
    """Claims in the branch; everything else of the commit is as on main. `takes_more`: further writes may follow."""

    main: TableContext
    name: str
    on_main: MainDestination
    takes_more: bool = False

    @property
    def branch(self) -> TableContext:
        """The branch's schemas and snapshots."""
        return stage_context(self.main, self.name)

    def find_committed(
        self, identity: CommitIdentity, base: Snapshot | None, after: int | None
    ) -> Committed | None:
        """Published already, or staged on the same base."""
        published = self.on_main.find_committed(identity, base, after)
        if published is not None:
            return published
        staged = find_staged(self.main, self.name)
        if staged is None or staged.base != base:
            return None
        same = (staged.snapshot.commit_user, staged.snapshot.commit_identifier)
        is_ours = same == (identity.user, identity.identifier)
        return Committed(staged.snapshot, self.name) if is_ours else None

    def claim(self, snapshot: Snapshot, schema: TableSchema | None) -> bool:
        """A new branch with base and staged snapshot; an older one of that name is dropped, unless it takes more.

        False when main moved since the plan was made: then it is not worth testing. Raises StageExistsError.
        """
        newest = self.main.snapshots.find_latest()
        if (0 if newest is None else newest.id) != snapshot.id - 1:
            return False
        branch, check = self.branch, self.main.guard.check

        def check_files() -> None:
            check()
            branch.sweeps.check(snapshot, newest)

        if branch.snapshots.find_file(snapshot.id) != snapshot:
            check()
            self._make_way(newest)
            self._make_branch(branch, snapshot, schema, newest)
            self.main.runtime.crash_point("stage.made")
        won = branch.snapshots.claim(snapshot, check_files)
        if won:
            self.on_main.check_behind()
        if won and newest is not None and branch.snapshots.find_file(newest.id) is None:
            branch.snapshots.delete_own(snapshot)  # somebody has removed the branch meanwhile
            return False
        return won

    def _make_way(self, newest: Snapshot | None) -> None:
        """Remove what is there. Who takes more removes what counts for nothing; another writer may be at work there."""
        branch = self.branch
        if self.takes_more:
            # before find_staged: an id that appears later belongs to a live writer
            ids = branch.snapshots.list_ids()
            if find_staged(self.main, self.name) is not None:
                raise StageExistsError
            base = None if newest is None else branch.snapshots.find(newest.id)
            is_live = not ids or (newest is not None and ids == (newest.id,) and base == newest)
            if is_live and self._has_schemas_of_main():
                branch.fileio.delete_tree(audit_folder(self.main.layout, self.name))
                return
        remove_branch(branch)

    def _has_schemas_of_main(self) -> bool:
        branch, main = self.branch.schemas, self.main.schemas
        ids, known = branch.list_ids(), main.list_ids()
        return all(number in known and branch.get(number) == main.get(number) for number in ids)

    def _make_branch(
        self, branch: TableContext, snapshot: Snapshot, schema: TableSchema | None, newest: Snapshot | None
    ) -> None:
        """REQUIRES that the table was looked at; the claims of its snapshots look again."""
        check = self.main.guard.check
        branch.fileio.mkdirs(branch.layout.schema_dir)
        branch.fileio.mkdirs(branch.layout.snapshot_dir)
        for known in self._schemas_of(snapshot):
            branch.schemas.copy(known)
        if schema is not None and not branch.schemas.claim_or_find(schema, check):
            raise NumberTakenError
        if self.takes_more:
            branch.fileio.mkdirs(turn_folder(branch.layout))
        if newest is not None and newest.id == 1:
            branch.fileio.replace(based_path(branch.layout), branch.snapshots.own_mark)
        if newest is not None:
            branch.snapshots.claim(newest, check)

    def _schemas_of(self, snapshot: Snapshot) -> list[TableSchema]:
        """Main's schemas that count: files may be written with any of them."""
        known = [self.main.schemas.get(number) for number in self.main.schemas.list_ids()]
        return [one for one in known if one.claim is None or one.id <= snapshot.schema_id]

    def find_claimed(self, snapshot_id: int) -> Snapshot | None:
        """The staged snapshot of that id; when main has moved, main's."""
        return self.branch.snapshots.find(snapshot_id) or self.main.snapshots.find(snapshot_id)

    def settle(self, snapshot: Snapshot) -> str | None:
        """The branch's LATEST."""
        self.main.runtime.crash_point("stage.claimed")
        self.branch.snapshots.write_hints(snapshot.id)
        return self.name
