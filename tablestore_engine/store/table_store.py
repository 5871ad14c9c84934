"""One table's files: the handle that everything above uses.

Names      TableStore   scan, read, write, compact, changes, staging, tags, rollback, both expiries, orphans,
           verify of one branch
           committer_of   its commit loop
INVARIANT  the handle keeps no table state but caches of immutable files: any number of handles may be open.
INVARIANT  it stands for a name: when another table lies there, the next call begins with fresh caches, and a write
           that had begun is refused (TS1365).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa

from tablestore_engine.fileio.base import FileIO
from tablestore_engine.format.layout import MAIN_BRANCH, TableLayout
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime
from tablestore_engine.store.alter import SchemaChange, alter_table
from tablestore_engine.store.branch_stores import Parts
from tablestore_engine.store.changelog import ChangelogBatch, ChangelogReader, TakesBucket, every_bucket
from tablestore_engine.store.commit.commit import CommitIdentity, CommitReport, Committer, Plan
from tablestore_engine.store.commit.snapshot_claim import MainDestination
from tablestore_engine.store.commit.snapshot_files import SnapshotFiles
from tablestore_engine.store.expiry.expire_partitions import PartitionReport, expire_partitions
from tablestore_engine.store.expiry.expire_snapshots import ExpireReport, expire_snapshots
from tablestore_engine.store.expiry.expire_tag import delete_tag
from tablestore_engine.store.expiry.expiry_rules import Hold
from tablestore_engine.store.files.bucket_state import BucketId, BucketState
from tablestore_engine.store.files.parquet_input import FooterChecks
from tablestore_engine.store.metadata.identity import find_identity, table_gone
from tablestore_engine.store.metadata.schemas import SchemaStore
from tablestore_engine.store.metadata.snapshots import SnapshotStore
from tablestore_engine.store.metadata.source_positions import encode_steps, positions_of, steps_back
from tablestore_engine.store.metadata.tags import TagStore
from tablestore_engine.store.orphan_files.clean_orphans import OrphanReport, OrphanRequest, clean_orphans
from tablestore_engine.store.read.filtered_read import Condition, parse_conditions, read_matching
from tablestore_engine.store.read.key_lookup import find_rows
from tablestore_engine.store.read.scan import PartitionFilter, ScanPlan
from tablestore_engine.store.read.scan_rows import read_batches, read_plan
from tablestore_engine.store.retention_options import Retention
from tablestore_engine.store.rollback import roll_back
from tablestore_engine.store.stage.append_to_stage import More, write_more
from tablestore_engine.store.stage.staging import (
    StagedDestination,
    Staging,
    find_staged,
    staged_branch,
    staged_parts,
)
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.store.tasks.prepublish_rows import TaskReceiver, with_commit
from tablestore_engine.store.tasks.task_runner import RunTasks, run_tasks
from tablestore_engine.store.verify import verify_table
from tablestore_engine.store.write.requested_compaction import (
    CompactionReport,
    CompactionRequest,
    compact_table,
    has_inbox_rows,
)
from tablestore_engine.store.write.rescale_write import RescaleWrite
from tablestore_engine.store.write.restore_write import RestoreWrite
from tablestore_engine.store.write.write_on_base import ChangesWrite, MakeChanges, RowsWrite
from tablestore_engine.store.write.write_request import WriteRequest


@dataclass(frozen=True)
class TableStore:
    """A table at `location` (absolute folder); `branch` other than main is for reading staged snapshots.

    `runner` performs bucket tasks: threads of this process, or whoever was put in their place.
    """

    fileio: FileIO
    location: str
    runtime: Runtime = field(default=SYSTEM, compare=False)
    branch: str = MAIN_BRANCH
    runner: RunTasks = field(default=run_tasks, compare=False, repr=False)
    _held: list[Parts] = field(default_factory=list, init=False, compare=False, repr=False)

    @property
    def parts(self) -> Parts:
        """The stores of this branch of the table that lies here now. One operation takes them once."""
        identity = find_identity(self.fileio, self.location)
        for held in self._held:
            if held.guard.identity == identity:
                return held
        layout = TableLayout(self.location, self.branch)
        made = Parts.of(self.fileio, layout, self.runtime, identity, self.runner)
        self._held[:] = [made]
        return made

    @property
    def identity(self) -> str | None:
        """Which table lies here now; None when there is none."""
        return find_identity(self.fileio, self.location)

    @cached_property
    def _footers(self) -> FooterChecks:
        return FooterChecks(self.fileio)

    @property
    def snapshots(self) -> SnapshotStore:
        """Snapshot files of this branch."""
        return self.parts.snapshots

    @property
    def schemas(self) -> SchemaStore:
        """Schema files of this branch."""
        return self.parts.schemas

    @property
    def layout(self) -> TableLayout:
        """Paths of this branch."""
        return self.parts.layout

    @property
    def schema(self) -> TableSchema:
        """The table's schema: of its newest snapshot (see schemas). Raises NotFound TS1310."""
        return self.parts.latest_schema()

    def schema_at(self, newest: Snapshot | None) -> TableSchema:
        """The same when the caller has the newest snapshot at hand."""
        return self.parts.schema_at(newest)

    def latest(self) -> Snapshot | None:
        """The newest snapshot."""
        return self.snapshots.find_latest()

    # ---- reading -------------------------------------------------------------------------------------------

    def plan_scan(
        self,
        snapshot: Snapshot | None = None,
        *,
        partitions: PartitionFilter | None = None,
        buckets: Collection[int] | None = None,
        schema: TableSchema | None = None,
    ) -> ScanPlan:
        """Files to read: of a given snapshot with its schema, or (None) of the newest one with the table's."""
        parts = self.parts
        if snapshot is None:
            snapshot = parts.snapshots.find_latest()
            schema = schema or parts.schema_at(snapshot)
        elif schema is None:
            schema = parts.schemas.get(snapshot.schema_id)
        return parts.scanner.plan_scan(snapshot, schema=schema, partitions=partitions, buckets=buckets)

    def plan_native_scan(self, snapshot: Snapshot | None, *, schema: TableSchema) -> ScanPlan:
        """A plan for a reader that opens the files itself. Raises FixData TS1160 for a footer that is damaged."""
        plan = self.plan_scan(snapshot, schema=schema)
        self._footers.check(file.path for file in plan.files)
        return plan

    def read(self, plan: ScanPlan | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows of a plan (default: the newest snapshot)."""
        return read_plan(self.fileio, plan or self.plan_scan(), columns)

    def read_where(
        self, plan: ScanPlan, where: Iterable[Condition], columns: Sequence[str] | None = None
    ) -> pa.Table:
        """The rows for which all conditions hold; only files that can have any are opened. Raises FixRequest TS1395."""
        return read_matching(self.fileio, plan, parse_conditions(where, plan.schema), columns)

    def read_batches(self, plan: ScanPlan, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The same as a stream."""
        return read_batches(self.fileio, plan, columns)

    def find_rows(self, snapshot: Snapshot, keys: pa.Table) -> pa.Table:
        """The visible rows of these keys at a snapshot of a keyed table. See store.read.key_lookup."""
        return find_rows(self.fileio, self.plan_scan(snapshot), keys)

    def bucket_states(
        self, snapshot: Snapshot | None, wanted: Callable[[BucketId], bool] | None = None
    ) -> tuple[BucketState, ...]:
        """Live files of each bucket that has any: what writers in Spark tasks start from."""
        return tuple(self.parts.scanner.bucket_states(snapshot, self.schema, wanted).values())

    # ---- changes -------------------------------------------------------------------------------------------

    def count_changes(self, snapshot: Snapshot, takes: TakesBucket = every_bucket) -> int | None:
        """How many rows the snapshot changed, from metadata alone; None where that cannot be told."""
        return ChangelogReader(self.parts, takes).count(snapshot)

    def size_changes(self, snapshot: Snapshot) -> int:
        """About how many bytes of files hold what the snapshot changed."""
        return ChangelogReader(self.parts).bytes(snapshot)

    def has_changes(self, snapshot: Snapshot) -> bool:
        """Whether the snapshot can have changed rows."""
        return ChangelogReader(self.parts).has_changes(snapshot)

    def read_changes(
        self,
        snapshot: Snapshot,
        schema: TableSchema | None = None,
        columns: Sequence[str] | None = None,
        *,
        takes: TakesBucket = every_bucket,
    ) -> Iterator[ChangelogBatch]:
        """What one snapshot changed, in a fixed order, with the columns of `schema` (default: the snapshot's)."""
        return ChangelogReader(self.parts, takes).read(snapshot, schema, columns)

    def read_state(self, snapshot: Snapshot, takes: TakesBucket = every_bucket) -> Iterator[ChangelogBatch]:
        """All rows of a snapshot as inserts, in a fixed order."""
        return ChangelogReader(self.parts, takes).read_state(snapshot)

    def read_changes_between(self, after: int, until: int) -> Iterator[ChangelogBatch]:
        """What the snapshots in (after, until] changed."""
        return ChangelogReader(self.parts).read_between(after, until)

    # ---- versions ------------------------------------------------------------------------------------------

    @property
    def staging(self) -> Staging:
        """Staged snapshots of the table: list, publish, discard, outcomes of tests."""
        parts = self.parts
        return Staging(parts, committer_of(parts))

    def on_staged(self, name: str) -> TableStore:
        """A handle that reads a staged snapshot as if it were the newest. Raises NotFound TS1317."""
        staged_parts(self.parts, name)
        return replace(self, branch=staged_branch(name))

    @property
    def tags(self) -> TagStore:
        """Tags of this branch."""
        parts = self.parts
        return TagStore(parts.fileio, parts.layout, parts.snapshots)

    def delete_tag(self, name: str) -> None:
        """Remove a tag, and what only it kept. Raises NotFound TS1321."""
        delete_tag(self.parts, name)

    def expire(
        self, rules: Retention | None = None, *, log: Hold | None = None, dry_run: bool = False
    ) -> ExpireReport:
        """Let old snapshots go, by default as the table's options say. See store.expiry.expire_snapshots."""
        parts = self.parts
        if rules is None:
            rules = TableTraits(parts.latest_schema()).retention
        return expire_snapshots(parts, rules, log=log, dry_run=dry_run)

    def expire_partitions(self, *, dry_run: bool = False) -> PartitionReport:
        """Delete the rows of partitions that the table's options call old. See store.expiry.expire_partitions."""
        parts = self.parts
        return expire_partitions(parts, committer_of(parts), self.write, dry_run=dry_run)

    def orphans(self, request: OrphanRequest) -> OrphanReport:
        """Orphan files of the whole table, by default only listed. See store.orphan_files.clean_orphans."""
        layout = TableLayout(self.location)
        parts = Parts.of(
            self.fileio, layout, self.runtime, self.identity, self.runner
        )  # remembers nothing yet
        return clean_orphans(parts, request)

    def rollback(self, snapshot_id: int) -> int:
        """Make an earlier snapshot the newest; the number of deleted ones. Raises TS1302, TS1322."""
        return roll_back(self.parts, snapshot_id)

    def positions(self, snapshot: Snapshot | None = None) -> Mapping[str, str]:
        """How far a snapshot, by default the newest, has got in each source of its rows. Raises FixRequest TS1470."""
        parts = self.parts
        return positions_of(parts.snapshots, snapshot or parts.snapshots.find_latest())

    def restore(self, past: Snapshot) -> CommitReport:
        """The rows of an earlier snapshot as the next one; a table that has them already commits nothing.

        Raises NotFound TS1310; RetryError TS1324, FixRequest TS1343, and what a commit can.
        """
        parts, due = self.parts, CompactionRequest()
        if has_inbox_rows(parts, due):  # rows that other writers left count as committed, and go back too
            compact_table(parts, committer_of(parts), due)
        start = parts.snapshots.find_latest() or past
        back = steps_back(parts.snapshots, start, past)
        retries = TableTraits(parts.latest_schema()).retries_max
        return committer_of(parts).commit(
            RestoreWrite(parts, past, start),
            CommitIdentity.of(parts.runtime, None, None),
            properties=encode_steps(back) if back else None,
            retries_max=lambda: retries,
        )

    def rescale(self, buckets: int) -> CommitReport:
        """Another number of buckets, in one commit that changes no row. Raises FixRequest TS1344, as a commit."""
        parts = self.parts
        if has_inbox_rows(parts, CompactionRequest()):
            compact_table(parts, committer_of(parts), CompactionRequest())
        retries = TableTraits(parts.latest_schema()).retries_max
        return committer_of(parts).commit(
            RescaleWrite(parts, buckets),
            CommitIdentity.of(parts.runtime, None, None),
            retries_max=lambda: retries,
        )

    def verify(self, *, deep: bool = True) -> tuple[str, ...]:
        """Problems found on disk; () when every invariant holds."""
        return verify_table(self.parts, deep=deep)

    # ---- writing -------------------------------------------------------------------------------------------

    def write(self, request: WriteRequest) -> CommitReport:
        """Write rows of this process in one commit. See WriteRequest for what can be asked."""
        parts = self.parts
        return _commit(parts, lambda where, early: RowsWrite(where, request, early), request)

    def write_changes(self, make_changes: MakeChanges, request: WriteRequest) -> CommitReport:
        """Commit changes that `make_changes` writes for a base snapshot, again when the base moved beneath them."""
        parts = self.parts
        return _commit(parts, lambda where, early: ChangesWrite(where, request, make_changes, early), request)

    def alter(self, change: SchemaChange) -> TableSchema:
        """Change the schema by a snapshot of its own; the schema then. See store.alter."""
        parts = self.parts
        return alter_table(parts, committer_of(parts), change)

    def compact(
        self, *, full: bool = False, partition: Mapping[str, object] | None = None
    ) -> CompactionReport:
        """What is due, or with `full` every bucket into its best shape; each step is a COMPACT snapshot."""
        parts = self.parts
        return compact_table(parts, committer_of(parts), CompactionRequest(partition or {}, full))


def _commit(
    parts: Parts, write_on: Callable[[Parts, TaskReceiver | None], Plan], request: WriteRequest
) -> CommitReport:
    if request.identity is not None and request.identity != parts.guard.identity:
        raise table_gone(parts.layout.location, is_replaced=parts.guard.identity is not None)
    committer, stage = committer_of(parts), request.stage
    identity = CommitIdentity.of(parts.runtime, request.commit_user, request.commit_identifier)

    def retries_max() -> int:
        return TableTraits(parts.latest_schema()).retries_max

    if stage is not None and request.builds_on_stage and find_staged(parts, stage) is not None:
        plan = write_on(parts.on_branch(staged_branch(stage)), None)
        return write_more(More(parts, committer, stage, plan, identity, request.properties, retries_max()))
    early = request.early if stage is None else None  # what waits for tests is not visible
    return committer.commit(
        write_on(
            parts, None if early is None else with_commit(early, f"{identity.user}:{identity.identifier}")
        ),
        identity,
        destination=None
        if stage is None
        else StagedDestination(parts, stage, committer.main, takes_more=request.builds_on_stage),
        properties=request.properties,
        retries_max=retries_max,
    )


def committer_of(parts: Parts) -> Committer:
    """The commit loop of one branch."""
    return Committer(
        fileio=parts.fileio,
        layout=parts.layout,
        files=SnapshotFiles(parts.fileio, parts.layout, parts.manifests, parts.runtime),
        manifests=parts.manifests,
        main=MainDestination(parts.snapshots, parts.schemas, parts.guard, parts.sweeps, parts.runtime),
        runtime=parts.runtime,
    )
