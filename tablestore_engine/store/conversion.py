"""A keyed table of another engine, whose readers merge versions, gets deletion vectors: then it is written here.

CHANGE     `tablestore convert`
Steps      merge    each bucket becomes one sorted run without deletes, in the new number of buckets, but under the
                    old schema
           expire   all older snapshots
           switch   a snapshot that names the new schema, and changes no file
INVARIANT  no row changes, so both snapshots are COMPACT, and none has a changelog.
INVARIANT  other engines read every snapshot with the options of the newest schema file, also past ones. So this file
           comes last: each snapshot that is there by then has the same rows for a reader that merges and for one that
           does not. This is why older snapshots expire, and why tags and branches are refused (decision 0106).
CRASH      in each step the table is right in both forms, and the same command resumes. Between the schema file and the
           snapshot we read the old schema, other engines the new one: equal rows.
RACE       a commit between the steps has new versions of rows: the steps begin again. A writer of another engine that
           has the old schema open is not seen here: it must be stopped before (docs/engines.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from tablestore_engine.errors import FixRequest, RetryError
from tablestore_engine.format.layout import POSTPONE_BUCKET
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.schema_change import set_options
from tablestore_engine.format.snapshot import CommitKind, Snapshot
from tablestore_engine.store.commit.commit import CommitIdentity, CommitReport, Committer
from tablestore_engine.store.commit.conflict_rule import ConflictScope
from tablestore_engine.store.commit.snapshot_files import Planned
from tablestore_engine.store.expiry.expire_snapshots import expire_snapshots
from tablestore_engine.store.expiry.expiry_holds import find_holds, list_branches
from tablestore_engine.store.files.bucket_state import BucketChange, BucketId, BucketState
from tablestore_engine.store.merge.hidden_positions import is_one_run
from tablestore_engine.store.metadata.schemas import is_same_schema
from tablestore_engine.store.metadata.tags import TagStore
from tablestore_engine.store.read.scan import bucket_files, is_combined
from tablestore_engine.store.retention import Retention
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.store.tasks.bucket_plan import plan_rescale
from tablestore_engine.store.write.rescale_write import OPERATION, removals
from tablestore_engine.store.write.write_checks import check_table_writable

_ATTEMPTS = 10
_AT_ONCE_MS = -(1 << 60)
_NEWEST_ALONE = Retention(1, 1, retained_ms=_AT_ONCE_MS, grace_ms=_AT_ONCE_MS, limit=None)
SchemaChange = Callable[[TableSchema], TableSchema]


def convert_table(context: TableContext, committer: Committer, change: SchemaChange) -> CommitReport:
    """The commit of the schema that `change` makes of the table's; nothing is committed where it changes nothing.

    Raises FixRequest TS1558, TS1576, Unsupported TS1127, TS1309 before anything changes; RetryError TS1559, and what an
    expiry and a commit can: then the table is right, and the next call resumes there.
    """
    retries = TableTraits(context.latest_schema()).retries_max
    for _ in range(_ATTEMPTS):
        schema = context.schema_at(context.snapshots.find_latest())
        wanted = change(schema)
        if not is_same_schema(wanted, schema):
            _check(context, schema, wanted)
            _commit(context, committer, _Merge(context, change), retries)
            _expire_older(context)
        switch = _Switch(context, change)
        report = _commit(context, committer, switch, retries)
        if not switch.must_merge:
            return report
    raise RetryError(
        "TS1559",
        f"{context.layout.location} could not be converted",
        why=f"others committed to it {_ATTEMPTS} times between the steps; what is done so far changed no row",
        fix="stop the other writers of the table, and run the command again",
    )


def _commit(
    context: TableContext, committer: Committer, plan: Callable[[Snapshot | None], Planned], retries: int
) -> CommitReport:
    identity = CommitIdentity.of(context.runtime, None, None)
    return committer.commit(plan, identity, retries_max=lambda: retries)


def _check(context: TableContext, schema: TableSchema, wanted: TableSchema) -> None:
    """Raises FixRequest TS1558, TS1576, Unsupported TS1127, TS1309."""
    if not schema.is_keyed:
        raise FixRequest(
            "TS1576",
            f"{context.layout.location} cannot be converted",
            why="it has no primary key, so its readers merge nothing",
            fix="write it as it is",
        )
    if schema.bucket_count == POSTPONE_BUCKET:
        raise FixRequest(
            "TS1558",
            f"{context.layout.location} cannot be converted",
            why="its buckets are postponed ('bucket' = '-2'): rows wait for the compaction of another engine",
            fix="copy its rows into a new table, after that compaction",
        )
    check_table_writable(context.layout, wanted)
    snapshot = context.snapshots.find_latest()
    if snapshot is None:
        return
    tags = [f"tag {name}" for name in TagStore(context.fileio, context.layout, context.snapshots).list_all()]
    branches = [f"branch {name}" for name in list_branches(context)]
    holds = [hold.who for hold in find_holds(context) if hold.first < snapshot.id]
    if tags or branches or holds:
        raise FixRequest(
            "TS1558",
            f"{context.layout.location} cannot be converted",
            why="other engines would read past snapshots without merging their rows, so these have to expire, and they "
            f"are needed: {', '.join((*tags, *branches, *holds))}",
            fix="delete these and run the command again, or copy the rows into a new table, which keeps the old one",
        )
    traits = TableTraits(schema)
    told = max(traits.told_level, int(traits.has_inbox))
    untold = [one for one in context.scanner.live_entries(snapshot) if one.file.level < told]
    if untold:
        raise FixRequest(
            "TS1558",
            f"{context.layout.location} cannot be converted",
            why=f"a compaction has to take {len(untold)} file(s) in first: no reader shows their rows yet, or no "
            "changelog has their changes",
            fix="compact the table in the engine that writes it (CALL sys.compact), then run the command again",
        )


@dataclass
class _Merge:
    """One run for each bucket of the new layout, under the old schema."""

    context: TableContext
    change: SchemaChange

    def __call__(self, base: Snapshot | None) -> Planned:
        context, schema = self.context, self.context.schema_at(base)
        count = self.change(schema).bucket_count
        states = _unmerged(context, base, schema, count)
        changes: list[BucketChange] = []
        if base is not None and states:
            layout = replace(
                set_options(schema, {"bucket": str(count)}), id=schema.id
            )  # files are of this schema
            tasks = plan_rescale(
                context.task_table(layout),
                _visible(context, base, schema, states),
                bucket_count=math.gcd(*(state.total_buckets or count for state in states.values())),
            )
            made = [replace(one, total_buckets=count) for one in context.run(tasks)]
            changes = [*removals(states.values()), *made]
        return Planned(
            CommitKind.COMPACT, schema, tuple(changes), ConflictScope(everything=True), operation=OPERATION
        )


@dataclass
class _Switch:
    """The new schema. `must_merge`: the base has rows that are not merged, so nothing was planned."""

    context: TableContext
    change: SchemaChange
    claim: str = field(init=False)
    must_merge: bool = False

    def __post_init__(self) -> None:
        self.claim = self.context.runtime.new_uuid()

    def __call__(self, base: Snapshot | None) -> Planned:
        context, current = self.context, self.context.schema_at(base)
        wanted = self.change(current)
        is_new = not is_same_schema(wanted, current)
        self.must_merge = is_new and (
            bool(_unmerged(context, base, current, wanted.bucket_count)) or _has_older(context, base)
        )
        if not is_new or self.must_merge:
            return Planned(CommitKind.COMPACT, current, (), ConflictScope())
        changed = replace(wanted, time_millis=context.runtime.now_ms())
        return Planned(
            kind=CommitKind.COMPACT,
            schema=context.schemas.numbered(changed, self.claim, above=current),
            changes=(),
            scope=ConflictScope(everything=True),
            is_forced=True,
            claims_schema=True,
        )


def _unmerged(
    context: TableContext, base: Snapshot | None, schema: TableSchema, count: int
) -> Mapping[BucketId, BucketState]:
    """Buckets that a reader with the new schema would read otherwise: several runs, deletes, vectors; all buckets,
    where some lie in another number of them than `count`.
    """
    states = context.scanner.bucket_states(base, schema)
    if any(file.total_buckets != count for state in states.values() for file in state.files):
        return states
    return {
        key: state for key, state in states.items() if state.deletion_vectors or not is_one_run(state.files)
    }


def _visible(
    context: TableContext, base: Snapshot, schema: TableSchema, states: Mapping[BucketId, BucketState]
) -> list[BucketState]:
    """The buckets with the positions that merging hides; under an engine that combines values tasks merge them."""
    if is_combined(schema):
        return list(states.values())
    plan = context.scanner.plan_scan(
        base, schema=schema, takes=lambda entry: (entry.partition, entry.bucket) in states
    )
    return [replace(states[key], files=files) for key, files in bucket_files(plan.files).items()]


def _has_older(context: TableContext, base: Snapshot | None) -> bool:
    return base is not None and any(number < base.id for number in context.snapshots.list_file_ids())


def _expire_older(context: TableContext) -> None:
    """Raises FixRequest TS1558 for what began to hold a snapshot meanwhile, and what an expiry can."""
    newest = context.snapshots.find_latest()
    report = expire_snapshots(context, _NEWEST_ALONE)
    if newest is not None and report.end < newest.id and _has_older(context, newest):
        raise FixRequest(
            "TS1558",
            f"{context.layout.location} cannot be converted",
            why="other engines would read past snapshots without merging their rows, so these have to expire, and "
            f"{report.reason}",
            fix="delete what needs them, and run the command again",
        )
