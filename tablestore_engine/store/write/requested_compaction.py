"""Requested compaction: step after step, each a COMPACT snapshot, until nothing is left to do.

CHANGE     `tablestore compact`
Steps      newest snapshot → partitions (checked) → a portion of the bucket tasks (compaction_step) → a commit → again
INVARIANT  rows stay as they are; taking in level 0 makes rows of other writers visible, with their changelog.
INVARIANT  the report has the snapshots of this call only, not concurrent compactions of others.
INVARIANT  staged branches stay as they are: publishing one puts its rows on top of what was compacted (stage_rebase).
CRASH      between two steps: those that are claimed stay, the next call goes on. In one: files that nothing names.
RACE       a commit to the same buckets overtakes a step: the step is planned again, on what is there then. What two
           calls at once both want is done by the quicker one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from tablestore_engine.error_values import sql_literal
from tablestore_engine.errors import NotFound
from tablestore_engine.format.cluster_order import ClusterOrder, check_order
from tablestore_engine.format.data_file import DataFileMeta
from tablestore_engine.format.partition import PartitionSpec
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import CommitKind, Snapshot
from tablestore_engine.store.commit.commit import STEP_USER_SUFFIX, Committer
from tablestore_engine.store.commit.commit_report import CommitIdentity
from tablestore_engine.store.commit.conflict_rule import ConflictScope
from tablestore_engine.store.commit.snapshot_files import Planned
from tablestore_engine.store.files.bucket_state import BucketId
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.store.write.compaction_step import compaction_step
from tablestore_engine.store.write.write_checks import check_table_writable
from tablestore_engine.store.write.write_request import WriteMode, plan_extent


@dataclass(frozen=True)
class CompactionRequest:
    """`partition`: column → value (a text stands for its value, the table's default name for NULL); some of the
    partition columns mean all partitions that agree, none the whole table.

    full   one run per bucket without dead rows, all small files joined; else what the rules of a writer call due
    order  append-only: all files sorted by it
    among  these partitions (bytes) instead, whether or not they are there
    """

    partition: Mapping[str, object] = field(default_factory=dict)
    full: bool = False
    among: frozenset[bytes] | None = None
    order: ClusterOrder | None = None


@dataclass(frozen=True)
class FileTotals:
    """Rows are those in the files, dead ones included."""

    files: int = 0
    rows: int = 0
    bytes: int = 0

    @classmethod
    def of(cls, metas: Iterable[DataFileMeta]) -> FileTotals:
        listed = list(metas)
        sizes = sum(meta.file_size for meta in listed)
        return cls(len(listed), sum(meta.row_count for meta in listed), sizes)

    def __add__(self, other: FileTotals) -> FileTotals:
        return FileTotals(self.files + other.files, self.rows + other.rows, self.bytes + other.bytes)


NOTHING = FileTotals()


@dataclass(frozen=True)
class CompactionReport:
    """`before` are the files that were rewritten, `after` those that took their place.

    snapshot_id    the newest snapshot when the call ended; None: the table has none
    snapshot_ids   those that this call made, ascending; () when nothing was due
    """

    snapshot_id: int | None
    snapshot_ids: tuple[int, ...] = ()
    before: FileTotals = NOTHING
    after: FileTotals = NOTHING

    @property
    def is_empty(self) -> bool:
        return not self.snapshot_ids


@dataclass
class _Step:
    """The plan of one commit; `last` is the one that it claimed, once it has."""

    context: TableContext
    request: CompactionRequest
    clustered: frozenset[BucketId] = frozenset()  # by the steps before
    last: Planned | None = None

    def __call__(self, base: Snapshot | None) -> Planned:
        schema = self.context.schema_at(base)
        check_table_writable(self.context.layout, schema)
        covers, order = _covers(schema, self.request), self.request.order
        if order is not None:
            order = check_order(order, schema)
        made = compaction_step(
            self.context,
            base,
            schema,
            lambda key: covers(key) and key not in self.clustered,
            full=self.request.full,
            order=order,
        )
        if made is None:
            self.last = Planned(CommitKind.COMPACT, schema, (), ConflictScope())
        else:
            self.last = replace(made, then_again=False)  # a commit of its own, which reports itself
        return self.last


def compact_table(
    context: TableContext, committer: Committer, request: CompactionRequest
) -> CompactionReport:
    """All steps that are left. Raises NotFound TS1370 for a partition without files, FixRequest TS1311, TS1214 (order),
    Unsupported TS1127, TS1309, what performing a task can raise, and what a commit can: then the steps before it are
    done.
    """
    newest = context.snapshots.find_latest()
    retries_max = TableTraits(context.schema_at(newest)).retries_max
    if request.partition:
        _check_partition(context, newest, request)
    if request.order is not None:
        check_order(request.order, context.schema_at(newest))
    report = CompactionReport(None if newest is None else newest.id)
    clustered: frozenset[BucketId] = frozenset()
    while True:
        step = _Step(context, request, clustered)
        user = context.runtime.new_uuid() + STEP_USER_SUFFIX
        identity = replace(CommitIdentity.of(context.runtime, None, None), user=user)
        done = committer.commit(step, identity, retries_max=lambda: retries_max)
        if done.is_empty or done.snapshot_id is None or step.last is None:
            return replace(report, snapshot_id=done.snapshot_id)
        before, after = _rewritten(step.last)
        if request.order is not None:
            clustered |= {(change.partition_bytes, change.bucket) for change in step.last.changes}
        report = CompactionReport(
            done.snapshot_id,
            (*report.snapshot_ids, done.snapshot_id),
            report.before + before,
            report.after + after,
        )


def has_inbox_rows(context: TableContext, request: CompactionRequest) -> bool:
    """Whether other writers' level 0 waits in these partitions: only taking it in changes what readers see."""
    newest = context.snapshots.find_latest()
    if newest is None:
        return False
    covers = _covers(context.schema_at(newest), request)
    return context.schema_at(newest).is_keyed and any(
        entry.file.level == 0 and covers((entry.partition, entry.bucket))
        for entry in context.scanner.live_entries(newest)
    )


def _rewritten(planned: Planned) -> tuple[FileTotals, FileTotals]:
    """Files that only get another level were not rewritten."""
    before = after = NOTHING
    for change in planned.changes:
        kept = {meta.file_name for meta in change.added} & {meta.file_name for meta in change.removed}
        before += FileTotals.of(meta for meta in change.removed if meta.file_name not in kept)
        after += FileTotals.of(meta for meta in change.added if meta.file_name not in kept)
    return before, after


# ---- partitions --------------------------------------------------------------------------------------------


def _covers(schema: TableSchema, request: CompactionRequest) -> Callable[[BucketId], bool]:
    """Which buckets are meant. Raises FixRequest TS1311."""
    if request.among is not None:
        among = request.among
        return lambda key: key[0] in among
    if not request.partition:
        return lambda _: True
    null_name = PartitionSpec.of(schema).default_name
    values = {name: None if value == null_name else value for name, value in request.partition.items()}
    return plan_extent(WriteMode.OVERWRITE_STATIC, schema, (), values).covers


def _check_partition(context: TableContext, newest: Snapshot | None, request: CompactionRequest) -> None:
    """A partition that is not there is a mistake in a name more often than nothing to do."""
    covers = _covers(context.schema_at(newest), request)
    entries = () if newest is None else context.scanner.live_entries(newest)
    if any(covers((entry.partition, entry.bucket)) for entry in entries):
        return
    named = ", ".join(f"{name}={sql_literal(value)}" for name, value in request.partition.items())
    raise NotFound(
        "TS1370",
        f"{context.layout.location} has no partition {named}",
        why="the newest snapshot has no file in it",
        fix="correct the values (tablestore files lists partitions), or compact the whole table",
    )
