"""The commit: a plan becomes exactly one snapshot, whoever else writes, whatever answer is lost.

CHANGE     the steps of a commit; what a writer does after a lost claim (option commit.max-retries)
Steps      1 newest snapshot = base  2 committed before under this identity → its report  3 plan, or keep the plan if
           nobody touched its buckets (conflict_rule.can_rebase)  4 write delta files once, base files per base
           5 claim snapshot-(N+1) exclusively (destination)  6 lost → 1, after a jittered pause, on an object
           store in the order of commit_queue  7 won → hints, report
INVARIANT  an outcome is read back, never guessed (P4): after an error of the claim the file that lies there decides,
           by its uuid. While nobody can say, nothing is deleted and OutcomeUnknown is raised.
INVARIANT  only files that this commit created are ever deleted, and only when its claim surely lost; its schema file
           stays, counts for nothing, and is covered (schemas).
CRASH      before the claim: files that nothing names. After it: the commit is there, the next run finds it by identity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from tablestore_engine.errors import FileMissing, OutcomeUnknown, RetryError, StorageError, TablestoreError
from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.store.commit.commit_queue import LOSSES, CommitQueue
from tablestore_engine.store.commit.commit_report import (
    CommitIdentity,
    CommitReport,
    count_properties,
    early_answers,
    report_of,
    report_of_nothing,
)
from tablestore_engine.store.commit.conflict_rule import Step, can_rebase, touched_buckets
from tablestore_engine.store.commit.snapshot_claim import (
    Destination,
    MainDestination,
    NumberTakenError,
    OvertakenError,
    StageExistsError,
)
from tablestore_engine.store.commit.snapshot_files import DeltaFiles, Planned, SnapshotFiles
from tablestore_engine.store.metadata.commit_history import following_properties
from tablestore_engine.store.metadata.manifests import ManifestStore
from tablestore_engine.store.metadata.rows_read import check_rows_read
from tablestore_engine.store.metadata.seen_table import SeenTable
from tablestore_engine.store.metadata.source_positions import check_steps, steps_on

__all__ = ["CommitIdentity", "CommitReport", "Committer", "Plan"]

STEP_USER_SUFFIX = "_compact"
_READ_BACKS = 5
_STEPS_MAX = 1_000  # preparing steps of one commit; more means that a fold does not help
_PAUSE_MS, _PAUSE_DOUBLINGS = 5, 6

Plan = Callable[[Snapshot | None], Planned]


@dataclass(frozen=True)
class Committer:
    """Commits plans to one table. `main` also takes the preparing steps of a staged commit."""

    fileio: FileIO
    layout: TableLayout
    files: SnapshotFiles
    manifests: ManifestStore
    main: MainDestination
    runtime: Runtime

    def commit(
        self,
        plan: Plan,
        identity: CommitIdentity,
        *,
        destination: Destination | None = None,
        properties: Mapping[str, str] | None = None,
        retries_max: Callable[[], int] = lambda: 100,
        seen: SeenTable | None = None,
    ) -> CommitReport:
        """Run `plan` until its snapshot is claimed; `retries_max` is asked once somebody was quicker.

        `seen`: what this operation saw of the table; the first turn plans on it.

        Raises RetryError TS1305, TS1365, TS1471, TS1489, OutcomeUnknown TS1306, StorageError, FixRequest TS1470,
        StageExistsError.
        """
        queue = CommitQueue(self.fileio, self.layout, self.runtime)
        committer = replace(self, main=replace(self.main, queue=queue))
        attempt = _Attempt(
            committer, plan, identity, destination or committer.main, properties or {}, queue, seen
        )
        try:
            return self._run(attempt, retries_max)
        except (FileNotFoundError, FileMissing):
            self.main.guard.check()  # its folder went away under the write: that is what there is to tell
            raise
        except TablestoreError:
            if attempt.claimed_schema:
                with suppress(OSError, TablestoreError):  # the error to tell is the first one
                    self.main.cover_schemas()
            raise
        finally:
            queue.leave()

    def _run(self, attempt: _Attempt, retries_max: Callable[[], int]) -> CommitReport:
        lost = lost_max = steps = 0
        while steps < _STEPS_MAX:
            began_ms = self.runtime.now_ms()
            try:
                report = attempt.run()
            except FileMissing:
                if not attempt.has_lost_base():
                    raise
                report, attempt.lost = None, True
            except StorageError:
                attempt.give_up()  # nothing was claimed, and its files would keep the disk full
                raise
            if report is not None:
                return report
            if not attempt.lost or attempt.queue.must_wait:
                steps += 1
                if attempt.queue.must_wait:  # it has not lost: it lets an older one through
                    attempt.queue.wait(self.runtime.now_ms() - began_ms)
                continue
            lost += 1
            lost_max = retries_max() if lost == 1 else lost_max
            if lost > lost_max:
                break
            if lost >= LOSSES and attempt.queue.is_used:
                attempt.queue.wait(self.runtime.now_ms() - began_ms)
            else:
                self.pause(lost)
        attempt.give_up()
        raise overtaken(self.layout.location, lost)

    def claim(self, destination: Destination, snapshot: Snapshot, schema: TableSchema | None) -> bool:
        """Claim and resolve a lost answer by reading back.

        Raises OutcomeUnknown TS1306, RetryError TS1365, NumberTakenError, StageExistsError.
        """
        problem: BaseException | None = None
        for turn in range(_READ_BACKS):
            try:
                if destination.claim(snapshot, schema):
                    return True
                found = destination.find_claimed(snapshot.id)
            except OvertakenError:
                if problem is None:
                    return False
                found = self._read_back(destination, snapshot.id)
                if found is None:
                    break  # an earlier put of this very claim may still land: nothing it names may be deleted
            except OSError as failure:
                if problem is None or isinstance(problem, StorageError):
                    problem = failure  # a lost answer stays lost, whatever a later try is refused for
                found = self._read_back(destination, snapshot.id)
            if found is not None:
                if found.uuid == snapshot.uuid:
                    self._check_behind(snapshot.id)
                return found.uuid == snapshot.uuid
            if problem is None:
                self.main.guard.check()  # else what lies there is another table's, which counts as nothing
            if isinstance(problem, StorageError):
                raise problem  # read back: nobody is there, and the next try would meet the same full disk
            self.pause(turn + 1)  # nobody is there: the same claim may be made again
        raise self._unknown(snapshot.id, "creating it failed and it cannot be read back", problem)

    def _check_behind(self, snapshot_id: int) -> None:
        """Of a claim that is won: no refusal of this look may say that it was lost, else its files are deleted."""
        try:
            self.main.check_behind()
        except OSError as failure:
            raise self._unknown(snapshot_id, "its table cannot be looked up", failure) from failure

    def _unknown(self, snapshot_id: int, what: str, problem: BaseException | None) -> OutcomeUnknown:
        cause = problem.fix if isinstance(problem, StorageError) else "when the file system answers"
        return OutcomeUnknown(
            "TS1306",
            f"whether snapshot {snapshot_id} of {self.layout.location} exists is unknown",
            why=f"{what}: {problem}",
            fix=f"nothing was deleted: run the same command again, it finds out ({cause})",
        )

    def _read_back(self, destination: Destination, snapshot_id: int) -> Snapshot | None:
        for turn in range(_READ_BACKS - 1):
            try:
                return destination.find_claimed(snapshot_id)
            except (OSError, TablestoreError):
                self.pause(turn + 1)
        try:
            return destination.find_claimed(snapshot_id)
        except (OSError, TablestoreError) as failure:
            what = "the claim's answer was lost and it cannot be read back"
            raise self._unknown(snapshot_id, what, failure) from failure

    def pause(self, lost: int) -> None:
        """Before the next try of a claim that was lost so often: twice as long, up to a bound."""
        bound = _PAUSE_MS << min(lost - 1, _PAUSE_DOUBLINGS)
        self.runtime.sleep(self.runtime.random.uniform(0.2, 1.0) * bound / 1000)

    def steps_between(self, base: Snapshot | None, latest: Snapshot) -> list[Step] | None:
        """What happened after `base` up to `latest`; None when history was rewritten meanwhile."""
        first = 1 if base is None else base.id + 1
        if base is not None and self.main.snapshots.find(base.id) != base:
            return None
        looks = [partial(self.main.snapshots.find, number) for number in range(first, latest.id)]
        found = [*self.fileio.run_together(looks), latest]
        line = [one for one in found if one is not None]
        if len(line) < len(found):
            return None
        self._read_ahead(line)
        steps, before = [], base
        for snapshot in line:
            entries = [
                *self.manifests.read_entries(snapshot.delta_manifest_list),
                *self.manifests.read_changelog_entries(snapshot),
            ]
            index_before = self.manifests.read_index(before.index_manifest if before else None)
            index_after = self.manifests.read_index(snapshot.index_manifest)
            steps.append(Step(snapshot.schema_id, touched_buckets(entries, index_before, index_after)))
            before = snapshot
        return steps

    def _read_ahead(self, line: Sequence[Snapshot]) -> None:
        """What the steps of these snapshots need, together: a writer that has lost must not fall further behind."""
        lists = [
            name for one in line for name in (one.delta_manifest_list, one.changelog_manifest_list) if name
        ]
        reads: list[Callable[[], object]] = [partial(self.manifests.read_all_entries, lists)]
        reads += [partial(self.manifests.read_index, one.index_manifest) for one in line]
        self.fileio.run_together(reads)

    def delete(self, paths: Sequence[str]) -> None:
        """Remove files of a plan that surely lost. REQUIRES that this process created them."""
        self.fileio.delete_many(paths)


def overtaken(location: str, lost: int) -> RetryError:
    """TS1305: others were quicker each time."""
    return RetryError(
        "TS1305",
        f"commit to {location} was overtaken {lost} times",
        why="other writers claimed the next snapshot each time",
        fix="run it again, with fewer writers at once, or raise commit.max-retries",
    )


@dataclass
class _Attempt:
    """The state of one commit between its turns."""

    committer: Committer
    plan: Plan
    identity: CommitIdentity
    destination: Destination
    properties: Mapping[str, str]
    queue: CommitQueue
    seen: SeenTable | None = None
    lost: bool = False
    claimed_schema: bool = False
    _first_base: int | None = None
    _searched: bool = False
    _looked: Snapshot | None = None
    _base: Snapshot | None = None
    _planned: Planned | None = None
    _delta: DeltaFiles | None = field(default=None)
    _kept: Mapping[str, str] = field(
        default_factory=dict
    )  # properties, with positions as they are on the base

    def run(self) -> CommitReport | None:
        """One turn: a report, or None when another turn is needed."""
        self.lost = False
        self.queue.begin_try()
        base = self._look()
        done = self.destination.find_committed(
            self.identity, base, self._first_base if self._searched else None
        )
        if done is not None:
            self.give_up()
            return replace(report_of(done.snapshot), staged=done.staged)
        if not self._searched:
            self._first_base, self._searched = 0 if base is None else base.id, True
        check_rows_read(self.committer.main.snapshots, base, self.properties)
        steps = steps_on(self.committer.main.snapshots, base, self.properties)
        self._kept = check_steps(self.committer.main.snapshots, base, self.properties, steps)
        planned = self._plan_on(base)
        if planned.is_nothing and not steps:
            nothing = report_of_nothing(base, planned, self.identity)
            return replace(nothing, seen=SeenTable(self.committer.main.guard.identity, base, planned.schema))
        return self._claim(base, planned)

    def _look(self) -> Snapshot | None:
        """The newest snapshot: once as the operation saw it, then as it is."""
        seen, self.seen = self.seen, None
        self._looked = self.committer.main.snapshots.find_latest() if seen is None else seen.snapshot
        return self._looked

    def has_lost_base(self) -> bool:
        """Whether the snapshot that this turn planned on has expired meanwhile, with its files: conversions do so."""
        looked, snapshots = self._looked, self.committer.main.snapshots
        if looked is None:
            return False
        return snapshots.find_floor() > looked.id or snapshots.find_file(looked.id) is None

    def give_up(self) -> None:
        """Forget the plan and delete its files. REQUIRES that its claim surely lost."""
        if self._planned is not None:
            self.committer.delete(self._planned.file_paths(self.committer.layout))
        if self._delta is not None:
            self.committer.delete(self._delta.paths)
        self._planned = self._delta = None

    def _plan_on(self, base: Snapshot | None) -> Planned:
        """The plan from before if it is still right on this base, else a new one."""
        if self._planned is not None and not self._is_still_right(self._planned, base):
            self.give_up()
        if self._planned is None:
            self._planned = self.plan(base)
        self._base = base
        return self._planned

    def _is_still_right(self, planned: Planned, base: Snapshot | None) -> bool:
        if base == self._base:
            return True
        if base is None or planned.claims_schema:
            return False
        steps = self.committer.steps_between(self._base, base)
        return steps is not None and can_rebase(planned.scope, planned.schema.id, steps)

    def _claim(self, base: Snapshot | None, planned: Planned) -> CommitReport | None:
        committer = self.committer
        with committer.files.written_together() as files:
            delta = self._delta or files.write_delta(planned)
            draft, base_paths = files.write_base(base, planned, delta)
        self._delta = delta
        snapshot = self._signed(base, draft, planned)
        committer.runtime.crash_point("commit.manifests")
        target = committer.main if planned.then_again else self.destination
        try:
            self.claimed_schema |= planned.claims_schema
            won = committer.claim(target, snapshot, planned.schema if planned.claims_schema else None)
        except (
            RetryError,
            StorageError,
            NumberTakenError,
            StageExistsError,
        ) as refused:  # no snapshot was claimed
            committer.delete(base_paths)
            self.give_up()
            if not isinstance(refused, NumberTakenError):
                raise
            self.lost = True
            return None
        if not won:
            self.lost = True
            committer.delete(base_paths)
            return None
        self._planned = self._delta = None  # claimed: whatever happens now, nothing of it may be deleted
        staged = target.settle(snapshot)
        if planned.then_again:  # its own snapshot is the next base; a quicker writer shows in the claim
            self.seen = SeenTable(committer.main.guard.identity, snapshot, planned.schema)
            return None
        seen = SeenTable(committer.main.guard.identity, snapshot, planned.schema) if staged is None else None
        return replace(report_of(snapshot), staged=staged, early=early_answers(planned), seen=seen)

    def _signed(self, base: Snapshot | None, draft: Snapshot, planned: Planned) -> Snapshot:
        """Identity and properties; a preparing step has its own user, else recovery would take it for the commit."""
        if planned.then_again:
            return replace(
                draft,
                commit_user=self.identity.user + STEP_USER_SUFFIX,
                commit_identifier=self.identity.identifier,
                properties={
                    **check_steps(
                        self.committer.main.snapshots, base, {}, {}
                    ),  # as they are: the step moves none
                    **following_properties(base, self.committer.main.guard.identity),
                },
            )
        return replace(
            draft,
            commit_user=self.identity.user,
            commit_identifier=self.identity.identifier,
            properties={
                **self._kept,
                **count_properties(planned),
                **following_properties(base, self.committer.main.guard.identity),
            },
        )
