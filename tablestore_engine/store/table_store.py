"""One table's files: the handle that everything above uses.

Reading and writing rows, staging, expiry, compaction and repair of one branch. What an operation needs below is its
`context`: metadata files, file system, caches (table_context.py). Changelogs are read by changelog.ChangelogReader.

INVARIANT  the handle keeps no table state but caches of immutable files: any number of handles may be open.
INVARIANT  it stands for a name: when another table lies there, the next call begins with fresh caches, and a write
           that had begun is refused (TS1365). A handle with `pinned` stays with that one.
"""

# ruff: noqa: PLC0415 - imports in functions: a table that needs none of it loads none of it (decision 0137)
from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tablestore_engine.fileio.base import FileIO, find
from tablestore_engine.format.layout import MAIN_BRANCH, TableLayout
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.runtime.outside_world import SYSTEM, Runtime
from tablestore_engine.store.files.parquet_copies import as_parquet
from tablestore_engine.store.files.parquet_input import FooterChecks
from tablestore_engine.store.merge.lookup import KeyCache
from tablestore_engine.store.metadata.identity import find_identity, identity_by
from tablestore_engine.store.metadata.schemas import SchemaStore
from tablestore_engine.store.metadata.seen_table import SeenTable
from tablestore_engine.store.metadata.snapshots import SnapshotStore
from tablestore_engine.store.metadata.tags import TagStore
from tablestore_engine.store.read.filtered_read import read_matching, read_some
from tablestore_engine.store.read.scan import PartitionFilter, ScanPlan
from tablestore_engine.store.read.scan_rows import read_plan
from tablestore_engine.store.stage.staging import Staging, staged_context
from tablestore_engine.store.table_context import TableContext, committer_of
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.store.tasks.task_runner import run_tasks

if TYPE_CHECKING:
    from tablestore_engine.fileio.external_folders import ExternalFolders
    from tablestore_engine.store.alter import SchemaChange
    from tablestore_engine.store.commit.commit import CommitReport
    from tablestore_engine.store.expiry.expire_partitions import PartitionReport
    from tablestore_engine.store.expiry.expire_snapshots import ExpireReport
    from tablestore_engine.store.expiry.expiry_rules import Hold
    from tablestore_engine.store.files.bucket_state import BucketId, BucketState
    from tablestore_engine.store.orphan_files.clean_orphans import OrphanReport, OrphanRequest
    from tablestore_engine.store.retention import Retention
    from tablestore_engine.store.rows.row_condition import BoundCondition, RowCondition
    from tablestore_engine.store.tasks.task_runner import RunTasks
    from tablestore_engine.store.write.requested_compaction import CompactionReport
    from tablestore_engine.store.write.write_on_base import MakeChanges
    from tablestore_engine.store.write.write_request import WriteRequest


@dataclass(frozen=True)
class TableStore:
    """A table at `location` (absolute folder), on main or another branch.

    `runner` performs bucket tasks: in threads of this process, or as the caller has set. `pinned`: the context of all
    calls, with the state that they read if it has seen one. `reads_for`, `external`: see TableContext.of.
    """

    fileio: FileIO
    location: str
    runtime: Runtime = field(default=SYSTEM, compare=False)
    branch: str = MAIN_BRANCH
    runner: RunTasks = field(default=run_tasks, compare=False, repr=False)
    pinned: TableContext | None = field(default=None, compare=False, repr=False)
    reads_for: str = ""
    external: ExternalFolders | None = field(default=None, compare=False, repr=False)
    _held: list[TableContext] = field(default_factory=list, init=False, compare=False, repr=False)

    @property
    def context(self) -> TableContext:
        """The stores of this branch of the table that lies here now. One operation takes them once."""
        return self.pinned or self._context_of(find_identity(self.fileio, self.location))

    def find_seen(self) -> TableContext | None:
        """The same with what an operation needs at its begin, its newest snapshot and schema (`seen`), in three round
        trips; None when there is no table. Raises NotFound TS1310 for a damaged one.
        """
        if self.pinned is not None and self.pinned.seen is not None:
            return self.pinned
        layout = TableLayout(self.location, self.branch)
        looks: list[Callable[[], Any]] = [
            partial(find, self.fileio, TableLayout(self.location).schema_path(0)),
            SchemaStore(self.fileio, layout).list_ids,
            SnapshotStore(self.fileio, layout).read_latest_hint,
        ]
        first, ids, hint = self.fileio.run_together(looks)
        identity = identity_by(self.fileio, self.location, first)
        if identity is None:
            return None
        context = self._context_of(identity)
        if first is not None and self.branch == MAIN_BRANCH:
            context.schemas.remember(0, first)
        newest = context.snapshots.find_latest_from(hint)
        schema = context.find_schema_at(newest, ids)
        return None if schema is None else replace(context, seen=SeenTable(identity, newest, schema, ids[-1]))

    def _context_of(self, identity: str | None) -> TableContext:
        for held in self._held:
            if held.guard.identity == identity:
                return held
        layout = TableLayout(self.location, self.branch)
        made = self._made(self.fileio, layout, identity, self.reads_for)
        self._held[:] = [made]
        return made

    def _made(self, fileio: FileIO, layout: TableLayout, identity: str | None, of: str = "") -> TableContext:
        return TableContext.of(fileio, layout, self.runtime, identity, self.runner, of, self.external)

    @property
    def identity(self) -> str | None:
        """Which table lies here now; None when there is none."""
        return (
            find_identity(self.fileio, self.location) if self.pinned is None else self.pinned.guard.identity
        )

    @cached_property
    def _footers(self) -> FooterChecks:
        return FooterChecks(self.fileio)

    @property
    def snapshots(self) -> SnapshotStore:
        return self.context.snapshots

    @property
    def schema(self) -> TableSchema:
        """The table's schema: of its newest snapshot (see schemas). Raises NotFound TS1310."""
        return (self.find_seen() or self.context).latest_schema()

    def latest(self) -> Snapshot | None:
        return self.context.newest_snapshot()

    # ---- reading -------------------------------------------------------------------------------------------

    def plan_scan(
        self,
        snapshot: Snapshot | None = None,
        *,
        partitions: PartitionFilter | None = None,
        buckets: Collection[int] | None = None,
        schema: TableSchema | None = None,
        level_min: int = 0,
        rows_max: int | None = None,
    ) -> ScanPlan:
        """Files to read: of a given snapshot with its schema, or (None) of the newest one with the table's.

        `level_min`, `rows_max`: only these levels; the first files that have so many rows. See Scanner.plan_scan.
        """
        context = self.context if snapshot is not None else self.find_seen() or self.context
        if snapshot is None:
            snapshot = context.newest_snapshot()
            schema = schema or context.schema_at(snapshot)
        elif schema is None:
            schema = context.schemas.get(snapshot.schema_id)
        return context.scanner.plan_scan(
            snapshot,
            schema=schema,
            partitions=partitions,
            buckets=buckets,
            level_min=level_min,
            rows_max=rows_max,
        )

    def plan_native_scan(
        self, snapshot: Snapshot | None, *, schema: TableSchema, level_min: int = 0
    ) -> ScanPlan:
        """A plan for a reader that opens the files itself. Raises FixData TS1160 for a footer that is damaged."""
        plan = self.plan_scan(snapshot, schema=schema, level_min=level_min)
        plan = replace(plan, files=tuple(as_parquet(self.fileio, file) for file in plan.files))
        self._footers.check(file for file in plan.files if file.fileio is None or file.is_external)
        return plan

    def read(self, plan: ScanPlan | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows of a plan (default: the newest snapshot)."""
        return read_plan(self.fileio, plan or self.plan_scan(), columns)

    def read_matching(
        self, plan: ScanPlan, wanted: BoundCondition, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """The rows that the condition is TRUE of; only files that can have any are opened."""
        return read_matching(self.fileio, plan, wanted, columns, self._memory)

    def read_batches(
        self,
        plan: ScanPlan,
        columns: Sequence[str] | None = None,
        *,
        wanted: BoundCondition | None = None,
        limit: int | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Rows as a stream: those that a condition is TRUE of, and so many at most."""
        return read_some(self.fileio, plan, wanted, columns, limit, self._memory)

    def find_rows(self, snapshot: Snapshot, keys: pa.Table, columns: Sequence[str] | None = None) -> pa.Table:
        """The visible rows of these keys at a snapshot of a keyed table. See store.read.key_lookup."""
        from tablestore_engine.store.read.key_lookup import find_rows

        return find_rows(self.fileio, self.plan_scan(snapshot), keys, columns, cache=self._memory)

    @property
    def _memory(self) -> KeyCache | None:
        """What this handle remembers of data files, if it has looked at the table: their names are given once."""
        context = self.pinned or next(iter(self._held), None)
        return None if context is None else context.key_cache

    def bucket_states(
        self, snapshot: Snapshot | None, wanted: Callable[[BucketId], bool] | None = None
    ) -> tuple[BucketState, ...]:
        """Live files of each bucket that has any: what writers in Spark tasks start from."""
        return tuple(self.context.scanner.bucket_states(snapshot, self.schema, wanted).values())

    # ---- versions ------------------------------------------------------------------------------------------

    @property
    def staging(self) -> Staging:
        """Staged snapshots of the table: list, publish, discard, outcomes of tests."""
        context = self.context
        return Staging(context, committer_of(context))

    def on_staged(self, name: str) -> TableStore:
        """A handle that reads a staged snapshot as if it were the newest. Raises NotFound TS1317."""
        staged = staged_context(self.context, name)
        return replace(self, branch=staged.layout.branch, pinned=None if self.pinned is None else staged)

    def on_branch(self, name: str) -> TableStore:
        """A handle on a branch. Raises NotFound TS1346."""
        from tablestore_engine.store.branches.branch_list import check_branch

        check_branch(self.context, name)
        return replace(self, branch=name, pinned=None)

    @property
    def tags(self) -> TagStore:
        context = self.context
        return TagStore(context.fileio, context.layout, context.snapshots)

    def expire(
        self,
        rules: Retention | None = None,
        *,
        log: Hold | None = None,
        dry_run: bool = False,
        seen: SeenTable | None = None,
    ) -> ExpireReport:
        """Expire old snapshots, by default as the table's options say. See store.expiry.expire_snapshots.

        `seen`: what this operation saw of the table; None: look now.
        """
        from tablestore_engine.store.expiry.expire_snapshots import expire_snapshots

        context = self.context if seen is not None else self.find_seen() or self.context
        if seen is not None and seen.identity == context.guard.identity:
            context = replace(context, seen=seen)
        rules = rules or TableTraits(context.latest_schema()).retention
        return expire_snapshots(context, rules, log=log, dry_run=dry_run)

    def expire_partitions(
        self, where: RowCondition | None = None, *, dry_run: bool = False
    ) -> PartitionReport:
        """Delete the rows of partitions that the table's options call old, or that `where` is TRUE of."""
        from tablestore_engine.store.expiry.expire_partitions import drop_partitions, expire_partitions

        context = self.context
        if where is not None:
            return drop_partitions(context, committer_of(context), self.write, where, dry_run=dry_run)
        return expire_partitions(context, committer_of(context), self.write, dry_run=dry_run)

    def orphans(self, request: OrphanRequest) -> OrphanReport:
        """Orphan files of the whole table, by default only listed. See store.orphan_files.clean_orphans."""
        from tablestore_engine.fileio.object_cache import uncached
        from tablestore_engine.store.orphan_files.clean_orphans import clean_orphans

        layout = TableLayout(self.location)
        context = self._made(uncached(self.fileio), layout, self.identity)  # remembers nothing yet
        return clean_orphans(context, request)

    def rollback(self, snapshot_id: int) -> int:
        """Make an earlier snapshot the newest; the number of deleted ones. Raises TS1302, TS1322."""
        from tablestore_engine.store.rollback import roll_back

        return roll_back(self.context, snapshot_id)

    def positions(self, snapshot: Snapshot | None = None) -> Mapping[str, str]:
        """How far a snapshot, by default the newest, has got in each source of its rows. Raises FixRequest TS1470."""
        from tablestore_engine.store.metadata.source_positions import positions_of

        context = self.context
        return positions_of(context.snapshots, snapshot or context.newest_snapshot())

    def restore(self, past: Snapshot) -> CommitReport:
        """The rows of an earlier snapshot as the next one; a table that has them already commits nothing.

        Raises NotFound TS1310; RetryError TS1324, FixRequest TS1343, and what a commit can.
        """
        from tablestore_engine.store.commit.commit import CommitIdentity
        from tablestore_engine.store.metadata.source_positions import encode_steps, steps_back
        from tablestore_engine.store.write.requested_compaction import (
            CompactionRequest,
            compact_table,
            has_inbox_rows,
        )
        from tablestore_engine.store.write.restore_write import RestoreWrite

        context, due = self.context, CompactionRequest()
        if has_inbox_rows(context, due):  # rows that other writers left count as committed, and go back too
            compact_table(context, committer_of(context), due)
        start = context.snapshots.find_latest() or past
        back = steps_back(context.snapshots, start, past)
        return committer_of(context).commit(
            RestoreWrite(context, past, start),
            CommitIdentity.of(context.runtime, None, None),
            properties=encode_steps(back) if back else None,
            retries_max=lambda: TableTraits(context.latest_schema()).retries_max,
        )

    def rescale(self, buckets: int) -> CommitReport:
        """Another number of buckets, in one commit that changes no row. Raises FixRequest TS1344, as a commit."""
        from tablestore_engine.store.commit.commit import CommitIdentity
        from tablestore_engine.store.write.requested_compaction import (
            CompactionRequest,
            compact_table,
            has_inbox_rows,
        )
        from tablestore_engine.store.write.rescale_write import RescaleWrite

        context, due = self.context, CompactionRequest()
        if has_inbox_rows(context, due):
            compact_table(context, committer_of(context), due)
        return committer_of(context).commit(
            RescaleWrite(context, buckets),
            CommitIdentity.of(context.runtime, None, None),
            retries_max=lambda: TableTraits(context.latest_schema()).retries_max,
        )

    def convert(self, change: SchemaChange) -> CommitReport:
        """The schema that `change` makes of the table's, without a change of any row. See store.conversion."""
        from tablestore_engine.store.conversion import convert_table

        return convert_table(context := self.context, committer_of(context), change)

    def verify(self, *, deep: bool = True) -> tuple[str, ...]:
        """Problems found on disk; () when every invariant holds."""
        from tablestore_engine.fileio.object_cache import read_once, uncached
        from tablestore_engine.store.verify.table_check import verify_table

        context, direct = self.context, uncached(self.fileio)
        if direct is not self.fileio:  # what the store has counts, not what this process remembers of it
            context = self._made(read_once(direct), context.layout, context.guard.identity)
        return verify_table(context, deep=deep)

    # ---- writing -------------------------------------------------------------------------------------------

    def write(self, request: WriteRequest, seen: TableContext | None = None) -> CommitReport:
        """Write rows of this process in one commit. See WriteRequest for what can be asked.

        `seen`: what find_seen gave to this operation; its snapshot is the base of the first try.
        """
        from tablestore_engine.store.stage.commit_write import commit_write
        from tablestore_engine.store.write.write_on_base import RowsWrite

        context = seen or self.find_seen() or self.context
        return commit_write(context, lambda where, early: RowsWrite(where, request, early), request)

    def write_changes(self, make_changes: MakeChanges, request: WriteRequest) -> CommitReport:
        """Commit changes that `make_changes` writes for a base snapshot, again when the base moved beneath them."""
        from tablestore_engine.store.stage.commit_write import commit_write
        from tablestore_engine.store.write.write_on_base import ChangesWrite

        context = self.context
        return commit_write(
            context, lambda where, early: ChangesWrite(where, request, make_changes, early), request
        )

    def alter(self, change: SchemaChange) -> TableSchema:
        """Change the schema by a snapshot of its own; the schema then. See store.alter."""
        from tablestore_engine.store.alter import alter_table
        from tablestore_engine.store.iceberg_metadata.iceberg_sync import follow_alter

        context = self.context
        schema = alter_table(context, committer_of(context), change)
        follow_alter(context, schema)
        return schema

    def compact(self, *, expires: bool = True, **asked: object) -> CompactionReport:
        """What is due, or what fields of CompactionRequest ask for; `expires`: without records that are expired."""
        from tablestore_engine.store.expiry.expire_records import compact_records
        from tablestore_engine.store.write.requested_compaction import CompactionRequest

        context, request = self.context, CompactionRequest(**asked)  # type: ignore[arg-type]
        return compact_records(context, committer_of(context), self.write, request, expires=expires)
