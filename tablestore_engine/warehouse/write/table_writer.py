"""One write from the front door to its snapshot: rows, schema, route, commit.

CHANGE     the steps of a write to a table
Steps      1 rows -> Incoming   2 plan_target: schema, created or changed   3 small rows come to the driver as Arrow,
           large ones are written by Spark tasks   4 one commit (main or staged)
INVARIANT  a table that this write creates has no snapshot until its rows are committed; when they are refused or
           the work is stopped, it is removed again, unless somebody else has used it by then.
INVARIANT  rows go to the table that they were planned for (its identity). Of several first writers at once each looks
           again when another one made or removed the table; a table with rows that is replaced meanwhile: TS1365.
CRASH      between creating the table and the commit: an empty table stays, which the next run fills.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from tablestore_engine.catalog.filesystem import FilesystemCatalog
from tablestore_engine.catalog.identifier import Identifier
from tablestore_engine.catalog.open_tables import OpenTables
from tablestore_engine.catalog.resolved_names import SnapshotRef
from tablestore_engine.catalog.seen_states import SeenStates
from tablestore_engine.errors import (
    Fenced,
    FixData,
    FixRequest,
    OutcomeUnknown,
    RetryError,
    Stopped,
    TablestoreError,
    Unsupported,
)
from tablestore_engine.format.capability import check_writable
from tablestore_engine.format.kind_column import check_kinds_once
from tablestore_engine.format.row_kind import ROW_KIND_COLUMN
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import Snapshot
from tablestore_engine.log.sink import RowLimit
from tablestore_engine.runtime.outside_world import Runtime
from tablestore_engine.spark.lazy_resolver import LazyResolver
from tablestore_engine.spark.task_outcomes import dump_receiver
from tablestore_engine.spark.write_job import WriteJob
from tablestore_engine.store.commit.commit import CommitReport
from tablestore_engine.store.files.bucket_state import BucketChange
from tablestore_engine.store.metadata.identity import identity_of
from tablestore_engine.store.metadata.seen_table import SeenTable
from tablestore_engine.store.metadata.source_positions import encode_steps
from tablestore_engine.store.rows.row_filter import EVERY_ROW, RowFilter
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.table_store import TableStore
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.store.tasks.prepublish_rows import TaskReceiver
from tablestore_engine.store.write.dynamic_buckets import expected_rows, find_assigner
from tablestore_engine.store.write.write_request import WriteMode, WriteRequest
from tablestore_engine.warehouse.log.logs import Logs
from tablestore_engine.warehouse.relations.relations import Relations
from tablestore_engine.warehouse.write.bucket_number import is_auto, with_bucket_number
from tablestore_engine.warehouse.write.incoming import (
    Incoming,
    LargeRows,
    check_rules,
    split_kinds,
    violation,
)
from tablestore_engine.warehouse.write.row_columns import check_columns, check_times
from tablestore_engine.warehouse.write.target_schema import TargetPlan, plan_log_start, plan_target
from tablestore_engine.warehouse.write.write_spec import OnSchemaChange, TableSpec, WriteSpec

_LOOKS_MAX = 5


@dataclass(frozen=True)
class TableWriter:
    catalog: FilesystemCatalog
    stores: OpenTables
    relations: Relations
    logs: Logs
    spark: LazyResolver
    runtime: Runtime

    def write(
        self,
        identifier: Identifier,
        incoming: Incoming,
        spec: WriteSpec,
        *,
        partition: dict[str, object] | None = None,
        computed_from: SnapshotRef | None = None,
        seen: SeenStates | None = None,
    ) -> CommitReport:
        """One commit. Raises TS10xx, TS11xx, TS13xx, TS15xx, TS16xx; then nothing was committed.

        `computed_from`: the only state that the rows are right on. `seen`: see write_incoming.
        """
        known = None if seen is None else seen.find(identifier)
        positions = encode_steps(spec.positions) if spec.positions else {}
        request = WriteRequest(
            partition=partition or {},
            computed_from=None if computed_from is None else computed_from.id,
            computed_from_unique=None if computed_from is None else computed_from.unique,
            **{**spec.commit_options(), "properties": {**spec.properties, **positions}},
        )
        for look in range(_LOOKS_MAX - 1):
            planned_on = known.find_seen() if known is not None and look == 0 else None
            report = self._try(identifier, incoming, spec, request, planned_on, is_last=False)
            if report is not None:
                return report
        report = self._try(identifier, incoming, spec, request, None, is_last=True)
        assert report is not None  # the last try raises
        return report

    def _try(
        self,
        identifier: Identifier,
        incoming: Incoming,
        spec: WriteSpec,
        request: WriteRequest,
        planned_on: TableContext | None,
        *,
        is_last: bool,
    ) -> CommitReport | None:
        """Steps 2 to 4; None when another first writer was quicker and the name has to be looked up again.

        `planned_on`: the table as the work has seen it; None: it is looked up.
        """
        store, seen = self.stores.open(identifier), planned_on or self.stores.find_seen(identifier)
        plan = self.target(identifier, incoming, spec, seen)
        if seen is None or plan.is_new:
            chooses = is_auto(spec.table)
            return self._create(
                identifier,
                incoming,
                plan,
                request,
                is_last=is_last,
                publishes=spec.publish,
                chooses_buckets=chooses,
            )
        if request.computed_from is None:
            check_kinds_once(plan.schema, str(identifier), has_kinds=incoming.has_kinds)
        identity, found = seen.guard.identity, _found(seen)
        if plan.is_changed:
            self.logs.check_kept(identifier, found.schema, plan.schema)
        self.logs.check(identifier, plan.schema if plan.is_changed else None, current=found.schema)
        if plan.gains_log:
            start = plan_log_start(plan.schema.options, store.snapshots.list_ids(), str(identifier))
            schema = replace(plan.schema, options={**plan.schema.options, **start.options})
            plan = replace(plan, schema=self.logs.prepare(identifier, schema, after_snapshot=start.after))
        new_schema = plan.schema if plan.is_changed else None
        planned = replace(request, identity=identity, new_schema=new_schema)
        try:
            return self._commit(identifier, incoming, plan.schema, planned, seen, publishes=spec.publish)
        except Stopped:
            raise
        except RetryError:
            if is_last or found.snapshot is not None or store.identity == identity:
                raise
            return None

    def _create(
        self,
        identifier: Identifier,
        incoming: Incoming,
        plan: TargetPlan,
        request: WriteRequest,
        *,
        is_last: bool,
        publishes: bool,
        chooses_buckets: bool,
    ) -> CommitReport | None:
        try:
            schema = self._create_table(identifier, plan.schema, makes_database=True)
            self.stores.make_branch(identifier)
        except (FixRequest, Fenced):  # the one that was quicker has the name, and may have the log
            if is_last or self.catalog.find_schema(identifier) is None:
                raise
            return None
        identity = identity_of(schema)
        try:
            first = replace(request, identity=identity)
            report = self._commit(identifier, incoming, schema, first, None, publishes=publishes)
        except (FixRequest, FixData, Unsupported, Stopped):
            self.relations.drop_unused(identifier, identity)
            raise
        return replace(report, chosen_buckets=schema.bucket_count) if chooses_buckets else report

    def _commit(
        self,
        identifier: Identifier,
        incoming: Incoming,
        schema: TableSchema,
        request: WriteRequest,
        seen: TableContext | None,
        *,
        publishes: bool,
    ) -> CommitReport:
        """Steps 3 and 4; a log that takes rows early gets them on the way, unless nothing is to be published."""
        is_early = publishes and request.stage is None
        publisher = self.logs.find_publisher(identifier, schema)
        early = publisher.sink.receive_early() if publisher is not None and is_early else None
        limit = self.logs.find_limit(identifier, schema)
        if publisher is None or early is None:
            return self._write(identifier, incoming, schema, request, seen, limit)
        try:
            report = self._write(identifier, incoming, schema, replace(request, early=early), seen, limit)
        except (Stopped, OutcomeUnknown):
            raise
        except TablestoreError:
            self.logs.take_back(identifier)
            raise
        publisher.remember(report)
        return report

    def _write(
        self,
        identifier: Identifier,
        incoming: Incoming,
        schema: TableSchema,
        request: WriteRequest,
        seen: TableContext | None,
        limit: RowLimit | None,
    ) -> CommitReport:
        store = self.stores.open(identifier)
        rows = incoming.read(schema)
        if not isinstance(rows, pa.Table):
            found = rows.find_violations()
            if found is not None:
                raise violation(str(identifier), *found)
            if schema.crosses_partitions and request.mode is WriteMode.OVERWRITE_PARTITIONS:
                named = expected_rows(rows.count_rows(schema.partition_keys), schema)
                request = replace(request, emptied=request.emptied | named.keys())
            return self._write_large(store, rows, request, limit, has_kinds=incoming.has_kinds)
        table, kinds = split_kinds(check_rules(rows, str(identifier)))
        if limit is not None:
            limit.check(table, schema)
        return store.write(replace(request, rows=table, kinds=kinds), seen)

    def create_empty(
        self, identifier: Identifier, incoming: Incoming, spec: TableSpec, *, makes_database: bool = False
    ) -> None:
        """Schema only; its log is prepared first. Raises FixRequest TS1415, Unsupported TS1127."""
        same = WriteSpec(spec, on_schema_change=OnSchemaChange.IGNORE)
        plan = self.target(identifier, incoming, same, self.stores.find_seen(identifier))
        if not plan.is_new:
            raise FixRequest(
                "TS1415", f"{identifier} exists already", why="a table has that name", fix="drop it first"
            )
        self._create_table(identifier, plan.schema, makes_database=makes_database)

    def _create_table(
        self, identifier: Identifier, schema: TableSchema, *, makes_database: bool
    ) -> TableSchema:
        """A schema that is refused leaves no topic and no database behind."""
        check_writable(schema, table=str(identifier))
        if schema.crosses_partitions:
            from tablestore_engine.store.write.moved_rows import check_can_move  # noqa: PLC0415 - few tables need it (decision 0137)

            check_can_move(TableTraits(schema), str(identifier))
        prepared = self.logs.prepare(identifier, schema)
        if makes_database and not self.catalog.has_database(identifier.database):
            self.catalog.create_database(identifier.database)
        return self.catalog.create_table(identifier, prepared)

    def target(
        self, identifier: Identifier, incoming: Incoming, spec: WriteSpec, seen: TableContext | None
    ) -> TargetPlan:
        """The schema that the write needs; nothing is written. `seen` None: a new table. Raises FixRequest TS1086."""
        table = None if seen is None else _found(seen).schema
        current = self._current_schema(identifier, spec, table)
        if current is not None:
            deletes = incoming.only_deletes
            check_columns(current, incoming.fields, spec, only_deletes=deletes, table=str(identifier))
        plan = plan_target(
            current,
            incoming.fields,
            with_bucket_number(spec.table, current, incoming),
            spec.on_schema_change,
            table=str(identifier),
            new_uuid=self.runtime.new_uuid(),
        )
        if plan.is_changed and incoming.size_bytes():
            check_times(plan.schema, current, str(identifier))
        if current is not None and plan.is_changed and current != table:
            raise _changed_twice(identifier, spec)
        return plan

    def _current_schema(
        self, identifier: Identifier, spec: WriteSpec, current: TableSchema | None
    ) -> TableSchema | None:
        """The table's, `current`; a write that builds on a stage finds the columns that the stage brings."""
        if current is None or spec.stage is None or not spec.builds_on_stage:
            return current
        store = self.stores.open(identifier)
        return current if store.staging.find(spec.stage) is None else store.on_staged(spec.stage).schema

    def _write_large(
        self,
        store: TableStore,
        rows: LargeRows,
        request: WriteRequest,
        limit: RowLimit | None,
        *,
        has_kinds: bool,
    ) -> CommitReport:
        """Their changes are computed again on the new base after a lost race."""
        asked, request = request, replace(request, replaces=rows.narrowed(request.replaces))
        stage = request.stage if request.builds_on_stage else None

        def run(
            base: Snapshot | None, target: TableSchema, early: TaskReceiver | None
        ) -> Sequence[BucketChange]:
            is_on_stage = stage is not None and store.staging.find(stage) is not None
            seen = store.on_staged(stage) if stage is not None and is_on_stage else store
            expected = None
            if target.is_keyed and target.bucket_count == -1:
                expected = expected_rows(rows.count_rows(target.partition_keys), target)
            assigner = find_assigner(
                seen.context, base, target, rewrites=request.forgets_keys, rows_expected=expected
            )
            places = None
            if target.crosses_partitions:
                from tablestore_engine.store.write.key_moves import find_moves  # noqa: PLC0415 - few tables need it (decision 0137)
                from tablestore_engine.store.write.moved_rows import covered_by  # noqa: PLC0415 - few tables need it (decision 0137)

                places = find_moves(seen.context, base, target, asked, covered_by(request, target), expected)
            job = WriteJob(
                fileio=store.fileio,
                layout=store.context.layout,
                schema=request.schema_of_rows(target, has_kinds=has_kinds),
                states={(one.partition_bytes, one.bucket): one for one in seen.bucket_states(base)},
                options=request.options_of_write,
                picks=_picks(request),
                kind_column=ROW_KIND_COLUMN if has_kinds else None,
                limit=limit,
                early=dump_receiver(early),
                assigner=assigner,
                places=places,
            )
            return rows.write(job, self.spark.session.scratch)

        return store.write_changes(run, request)


def _found(seen: TableContext) -> SeenTable:
    assert seen.seen is not None  # find_seen gives no other
    return seen.seen


def _changed_twice(identifier: Identifier, spec: WriteSpec) -> FixRequest:
    """Readers of the table get one new schema with a publication, and files of both would be in it."""
    return FixRequest(
        "TS1086",
        f"the columns or options of {identifier} would change a second time before they are published",
        why=f"staged snapshot {spec.stage}, on which this write builds, has changed them once",
        fix="publish or drop what is staged first (tablestore staged), then run this again",
    )


def _picks(request: WriteRequest) -> RowFilter | None:
    """The stored rows that give way to those of a distributed write."""
    if request.mode is WriteMode.REPLACE:
        return request.replaces
    return EVERY_ROW if request.mode.is_overwrite else None
