"""Several writes in one staged snapshot: each is planned on what is staged, and the stage becomes both together.

    branch/branch-ts_staged_<name>/snapshot/snapshot-<N+1>   the stage: all writes so far as one snapshot
                                  /turn/<uuid>               what takes the place of the stage that has this uuid

CHANGE     several batches in one staged snapshot
Steps      1 plan on the staged snapshot, compactions too  2 what was staged and what comes → one change of the base
           3 the turn: one exclusive create, named by the snapshot that it replaces; who loses it plans again
           4 what tests said goes, since it is about other rows  5 the turn's content becomes the staged snapshot
INVARIANT  the stage holds whole writes, and a write that was reported is in it: publishing stays one claim.
INVARIANT  a file that came and went between two writes is in no manifest of the stage.
CRASH      between 3 and 5: the next writer does 4 and 5. The write was not reported; made again, it finds its rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tablestore_engine.errors import (
    NotFound,
    StagedSnapshotClosed,
    StorageError,
)
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import CommitKind, Snapshot, decode_snapshot, encode_snapshot
from tablestore_engine.store.commit.commit import Committer, Plan, overtaken
from tablestore_engine.store.commit.commit_report import (
    CommitIdentity,
    CommitReport,
    added_counts,
    count_properties,
    report_of,
    report_of_nothing,
)
from tablestore_engine.store.commit.conflict_rule import ConflictScope
from tablestore_engine.store.commit.snapshot_files import Planned
from tablestore_engine.store.files.bucket_state import BucketChange
from tablestore_engine.store.metadata.commit_history import following_properties
from tablestore_engine.store.metadata.source_positions import check_steps, joined_steps, steps_of, steps_on
from tablestore_engine.store.stage.stage_rebase import StagedSnapshot, staged_changes
from tablestore_engine.store.stage.staging import CLOSED, Staging, stage_context, turn_path
from tablestore_engine.store.table_context import TableContext

_STEPS_MAX = 1_000


@dataclass(frozen=True)
class More:
    """`plan` is made for the branch of the stage; REQUIRES that the stage exists."""

    context: TableContext
    committer: Committer
    name: str
    plan: Plan
    identity: CommitIdentity
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    retries_max: int = 100

    @property
    def branch(self) -> TableContext:
        return stage_context(self.context, self.name)


def write_more(more: More) -> CommitReport:
    """The report of this write alone; `staged` is the stage's name.

    Raises NotFound TS1316 when the stage was published or dropped meanwhile, RetryError TS1305, TS1388,
    Unsupported TS1152 of a table whose keys may move between partitions.
    """
    staging, lost = Staging(more.context, more.committer), 0
    for _ in range(more.retries_max + _STEPS_MAX):
        staged = _settled(more, staging.get(more.name))
        own = staged.snapshot
        if (own.commit_user, own.commit_identifier) == (more.identity.user, more.identity.identifier):
            return replace(report_of(own), staged=more.name)
        _check_open(more, staged)
        _check_one_write(more.branch.schemas.get(own.schema_id), more.context.layout.location)
        steps = steps_on(more.branch.snapshots, own, more.properties)
        check_steps(more.branch.snapshots, own, {}, steps)
        planned = more.plan(own)
        if planned.is_nothing and not steps:
            return replace(report_of_nothing(own, planned, more.identity), staged=more.name)
        made = _take_turn(more, staged, planned)
        if made is None:
            lost += 1
            if lost > more.retries_max:
                break
            more.committer.pause(lost)
        elif not planned.then_again:
            changed = sum(meta.row_count for change in planned.changes for meta in change.changelog)
            report = report_of(replace(made, properties=count_properties(planned)))
            return replace(report, staged=more.name, changelog_rows=changed)
    raise overtaken(more.branch.layout.root, lost)


def _check_one_write(schema: TableSchema, location: str) -> None:
    if schema.crosses_partitions:
        from tablestore_engine.store.write.moved_rows import check_stage  # noqa: PLC0415 - few tables need it (decision 0137)

        check_stage(schema, location)


def merged_changes(changes: Sequence[BucketChange]) -> tuple[BucketChange, ...]:
    """One change for each bucket, in the order of their first appearance."""
    made: dict[tuple[bytes, int], BucketChange] = {}
    for change in changes:
        key = (change.partition_bytes, change.bucket)
        made[key] = _after(made[key], change) if key in made else change
    return tuple(made.values())


def _after(first: BucketChange, then: BucketChange) -> BucketChange:
    came, went = ({meta.file_name for meta in metas} for metas in (first.added, then.removed))
    return BucketChange(
        first.partition_bytes,
        first.bucket,
        added=(*(meta for meta in first.added if meta.file_name not in went), *then.added),
        removed=(*first.removed, *(meta for meta in then.removed if meta.file_name not in came)),
        changelog=(*first.changelog, *then.changelog),
        deletion_vectors=first.deletion_vectors if then.deletion_vectors is None else then.deletion_vectors,
        hashes=then.hashes or first.hashes,
        inserted=first.inserted + then.inserted,
        updated=first.updated + then.updated,
        deleted=first.deleted + then.deleted,
        unchanged=first.unchanged + then.unchanged,
    )


def _merged_plan(more: More, staged: StagedSnapshot, planned: Planned) -> Planned:
    """What the stage will have changed of its base."""
    changes = merged_changes((*staged_changes(more.context.manifests, staged), *planned.changes))
    takes_away = any(change.removed or change.deletion_vectors is not None for change in changes)
    is_overwrite = takes_away if not planned.schema.is_keyed else _is_overwrite(staged.snapshot)
    return Planned(
        kind=CommitKind.OVERWRITE if is_overwrite else CommitKind.APPEND,
        schema=planned.schema,
        changes=changes,
        scope=ConflictScope(everything=True),
        is_forced=True,
        operation=staged.snapshot.operation,
    )


def _is_overwrite(snapshot: Snapshot) -> bool:
    return snapshot.commit_kind is CommitKind.OVERWRITE


def _take_turn(more: More, staged: StagedSnapshot, planned: Planned) -> Snapshot | None:
    """Steps 2 to 5; None when somebody else took it."""
    branch, committer = more.branch, more.committer
    merged = _merged_plan(more, staged, planned)
    written = [*planned.file_paths(more.context.layout)]
    try:
        delta = committer.files.write_delta(merged)
        written += delta.paths
        draft, paths = committer.files.write_base(staged.base, merged, delta)
        written += paths
        snapshot = _signed(more, staged, draft, planned)
        won = _claim(more, branch, staged.snapshot, snapshot, planned)
    except StorageError:  # nothing was claimed, and its files would keep the disk full
        committer.delete(written)
        raise
    if not won:
        committer.delete(written)
        return None
    more.context.runtime.crash_point("stage.claimed")
    _settled(more, replace(staged, snapshot=snapshot), is_in_place=False)
    return snapshot


def _claim(more: More, branch: TableContext, old: Snapshot, new: Snapshot, planned: Planned) -> bool:
    """The schema, when the write brings one, and the turn."""
    check = more.context.guard.check
    if planned.claims_schema and not branch.schemas.claim_or_find(planned.schema, check):
        return False

    def check_files() -> None:
        check()
        branch.sweeps.check(new, old)

    try:
        return branch.fileio.create_exclusive(
            turn_path(branch.layout, old), encode_snapshot(new), check=check_files
        )
    except NotFound:  # its folder went away: dropped, or out
        return False


def _settled(more: More, staged: StagedSnapshot, *, is_in_place: bool = True) -> StagedSnapshot:
    """The stage after all turns that were taken, with its file in place.

    Who puts an older one in place meanwhile looks for the next turn afterwards, as everybody does: the last file that
    is put there is that of the last turn.
    """
    branch, newest = more.branch, staged.snapshot
    while True:
        if not is_in_place:
            Staging(more.context, more.committer).forget_outcomes(more.name)
            branch.fileio.replace(branch.layout.snapshot_path(newest.id), encode_snapshot(newest))
        taken = _read_turn(branch, newest)
        if taken is None:
            return replace(staged, snapshot=newest)
        newest, is_in_place = taken, False


def _check_open(more: More, staged: StagedSnapshot) -> None:
    """Raises RetryError TS1388."""
    path = turn_path(more.branch.layout, staged.snapshot)
    if more.branch.fileio.exists(path) and more.branch.fileio.read(path) == CLOSED:
        raise StagedSnapshotClosed(
            "TS1388",
            f"staged snapshot {staged.name} of {more.context.layout.location} takes no further write",
            why="it is being published, or its publishing has failed",
            fix="publish or drop it (tablestore staged), then run this again",
        )


def _signed(more: More, staged: StagedSnapshot, draft: Snapshot, planned: Planned) -> Snapshot:
    """Identity and properties of the newest write, and the counts of all; a compaction leaves both as they are."""
    old = staged.snapshot
    kept = dict(old.properties or {})
    counts = added_counts(kept, count_properties(planned))
    given = {} if planned.then_again else more.properties
    steps = joined_steps(steps_of(kept), steps_on(more.branch.snapshots, old, given))
    said = check_steps(more.branch.snapshots, staged.base, {**kept, **given, **counts}, steps)
    return replace(
        draft,
        commit_user=old.commit_user if planned.then_again else more.identity.user,
        commit_identifier=old.commit_identifier if planned.then_again else more.identity.identifier,
        properties={**said, **following_properties(staged.base, more.context.guard.identity)},
    )


def _read_turn(branch: TableContext, replaced: Snapshot) -> Snapshot | None:
    """What takes its place; None when nothing does. A stage that is closed keeps its last content."""
    path = turn_path(branch.layout, replaced)
    if not branch.fileio.exists(path):
        return None
    data = branch.fileio.read(path)
    return None if data == CLOSED else decode_snapshot(data, path)
