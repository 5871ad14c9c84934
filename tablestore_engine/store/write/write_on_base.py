"""One write on one base, called by the committer until its claim is won: plan, perform, say what changes.

CHANGE     the plan of a write on its base snapshot
Steps      schema → routed rows → extent → a step before it, if due (compaction_step) → states → tasks (bucket_plan)
           → changes (TableContext.run) → what the snapshot changes
           keyed: an overwrite is a difference, so that its changelog is exact (decision 0002)
           append-only: new files; what an overwrite or a filter picks goes, equal rows stay (kind OVERWRITE)
           another bucket count: everything is written anew (kind OVERWRITE), no changelog
INVARIANT  what rows can break is found (routing) before the first file of theirs is written (P7).
INVARIANT  all buckets of one partition have the same bucket count, except right after an overwrite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from tablestore_engine.errors import FixRequest
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import CommitKind, Snapshot
from tablestore_engine.store.commit.snapshot_files import Planned
from tablestore_engine.store.files.bucket_state import BucketChange, BucketId, BucketState, HashChange
from tablestore_engine.store.rows.bucket_assigner import BucketAssigner
from tablestore_engine.store.rows.routing import Kinds, RoutedRows, route_rows
from tablestore_engine.store.rows.row_filter import RowFilter, SameKeys
from tablestore_engine.store.table_context import TableContext
from tablestore_engine.store.tasks.bucket_plan import plan_replaced, plan_rows, plan_write
from tablestore_engine.store.tasks.bucket_task import TaskTable
from tablestore_engine.store.tasks.prepublish_rows import TaskReceiver
from tablestore_engine.store.write.compaction_step import preparing_step
from tablestore_engine.store.write.dynamic_buckets import (
    find_assigner,
    partitions_of_new_keys,
    widened,
    with_hashes,
)
from tablestore_engine.store.write.write_checks import (
    check_bucket_count,
    check_log_takes,
    check_picks,
    check_unmoved,
    takes_rows_away,
    target_schema,
)
from tablestore_engine.store.write.write_request import (
    Extent,
    WriteMode,
    WriteRequest,
    checked_kinds,
    plan_extent,
    with_constants,
)

MakeChanges = Callable[[Snapshot | None, TableSchema, TaskReceiver | None], Sequence[BucketChange]]
"""The base None: into empty buckets, whatever lies there. The receiver gets the changelog rows of each change."""


@dataclass
class RowsWrite:
    """Rows are routed once per schema, however often others overtake. `claim` marks this request's schema files."""

    context: TableContext
    request: WriteRequest
    early: TaskReceiver | None = None
    claim: str = field(init=False)
    _routed: dict[object, tuple[RoutedRows, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.claim = self.context.runtime.new_uuid()

    def __call__(self, base: Snapshot | None) -> Planned:
        """The changes on `base`, or a step before. Raises TS1309, TS1312-TS1314, TS1127 and what rows can break."""
        check_unmoved(self.context, base, self.request)
        context = self.context.seeing(base)
        schema = target_schema(context, base, self.request, self.claim)
        if schema.crosses_partitions:
            return self._across_partitions(context, base, schema)
        assigner = find_assigner(context, base, schema, rewrites=self.request.forgets_keys)
        routed = self._route(schema, assigner, base)
        extent = self._extent(schema, [(one.partition_bytes, one.bucket) for one in routed])
        extent = widened(extent, partitions_of_new_keys(routed))
        # replaced rows are compared with stored ones: often nothing is left to do, and nothing may be joined then
        joins_later = not schema.is_keyed and extent.picks is not None
        step = None if joins_later else preparing_step(context, base, extent)
        if step is not None:
            return step
        states = self.context.scanner.bucket_states(base, schema, extent.covers)
        check_picks(extent, states)
        table = self._table(schema)
        if check_bucket_count(self.context, base, schema, extent, _partitions(routed)):
            changes = self.context.run(
                plan_rows(table, routed, {}, extent.picks)
            )  # not early: see _written_anew
            return _written_anew(self.context, self.request, schema, extent, changes, states, self.claim)
        changes = self.context.run(plan_write(table, routed, states, extent.picks), self.early)
        changes = with_hashes(changes, routed, assigner)
        made = _logged(self.context, _planned(self.request, schema, extent, changes, self.claim))
        return self._after_joining(base, extent, made) if joins_later else made

    def _after_joining(self, base: Snapshot | None, extent: Extent, made: Planned) -> Planned:
        """The changes, or the joining of files that is due before them; nothing is joined for what changes nothing.

        That has to be known first, so the files of the changes are written, and deleted when a step comes before.
        """
        step = None if made.is_nothing else preparing_step(self.context, base, extent)
        if step is None:
            return made
        _discard(self.context, made)
        return step

    def _across_partitions(
        self, context: TableContext, base: Snapshot | None, schema: TableSchema
    ) -> Planned:
        """The same of a table whose keys may be stored in other partitions than the rows say."""
        from tablestore_engine.store.write import moved_rows  # noqa: PLC0415 - few tables need it (decision 0137)
        from tablestore_engine.store.write.key_moves import find_moves  # noqa: PLC0415 - few tables need it (decision 0137)

        rows, kinds = self._rows(schema)
        named = moved_rows.partitions_of(rows, schema) if self.request.mode.is_overwrite else ()
        extent = self._extent(schema, [(one, 0) for one in named])
        moves = find_moves(context, base, schema, self.request, extent.covers)
        assert moves is not None
        routed = route_rows(rows, kinds, self._rules(schema), None, moves)
        wide = moved_rows.with_moved(extent, [(one.partition_bytes, one.bucket) for one in routed])
        step = preparing_step(context, base, wide)
        if step is not None:
            return step
        states = context.scanner.bucket_states(base, schema, wide.covers)
        check_picks(extent, states)
        inside, outside = moved_rows.split_moved(extent, routed)
        check_bucket_count(context, base, schema, replace(extent, picks=None), _partitions(outside))
        table = context.task_table(schema, moves.task_options)
        replaced = {key: state for key, state in states.items() if extent.covers(key)}
        if check_bucket_count(context, base, schema, extent, _partitions(inside)):
            moved_rows.check_nothing_moves(context, may_move=bool(outside))
            changes = context.run(plan_rows(table, inside, {}, extent.picks))
            return _written_anew(context, self.request, schema, wide, changes, replaced, self.claim)
        tasks = plan_write(table, inside, replaced, extent.picks) + plan_rows(table, outside, states, None)
        changes = context.run(tasks, self.early)
        return _logged(context, _planned(self.request, schema, wide, changes, self.claim))

    def _extent(self, schema: TableSchema, buckets: Sequence[BucketId]) -> Extent:
        emptied = [(one, 0) for one in self.request.emptied]
        request = self.request
        return plan_extent(request.mode, schema, [*buckets, *emptied], request.partition, self._filter())

    def _filter(self) -> RowFilter | None:
        """The request's filter; keys are those of the rows when it names none."""
        asked, rows = self.request.replaces, self.request.rows
        return (
            asked.among(rows)
            if isinstance(asked, SameKeys) and asked.keys is None and rows is not None
            else asked
        )

    def _route(
        self, schema: TableSchema, assigner: BucketAssigner | None, base: Snapshot | None
    ) -> tuple[RoutedRows, ...]:
        """Without dynamic buckets rows are routed once, whatever the base is."""
        known = schema.id if assigner is None else (schema.id, base and base.unique)
        if known not in self._routed:
            self._routed.clear()
            rows, kinds = self._rows(schema)
            self._routed[known] = route_rows(rows, kinds, self._rules(schema), assigner)
        return self._routed[known]

    def _rows(self, schema: TableSchema) -> tuple[pa.Table, Kinds | None]:
        rows = self.request.rows
        if rows is None:
            rows = schema.arrow_schema().empty_table()
        kinds = checked_kinds(self.request, schema)
        if self.request.mode is WriteMode.OVERWRITE_STATIC:
            rows = with_constants(rows, schema, self.request.partition)
        return rows, kinds

    def _rules(self, schema: TableSchema) -> TableSchema:
        return self.request.schema_of_rows(schema, has_kinds=self.request.kinds is not None)

    def _table(self, schema: TableSchema) -> TaskTable:
        return self.context.task_table(schema, self.request.options_of_write)


@dataclass
class ChangesWrite:
    """A commit of changes that were computed for a base outside of this process.

    `make_changes` writes with the given schema and returns one change for each bucket that has rows.
    Keyed overwrites: buckets of the extent without rows are emptied here. Append-only
    overwrites: the old files are removed here. A whole table or partition that gets another bucket count is written
    into empty buckets.
    """

    context: TableContext
    request: WriteRequest
    make_changes: MakeChanges
    early: TaskReceiver | None = None
    claim: str = field(init=False)

    def __post_init__(self) -> None:
        self.claim = self.context.runtime.new_uuid()

    def __call__(self, base: Snapshot | None) -> Planned:
        """The changes on `base`; all buckets are compacted first, since the rows' buckets are not known before."""
        check_unmoved(self.context, base, self.request)
        context = self.context.seeing(base)
        schema = target_schema(context, base, self.request, self.claim)
        whole = plan_extent(WriteMode.OVERWRITE_TABLE, schema, (), {})
        step = preparing_step(context, base, whole)
        if step is not None:
            return step
        is_anew = self._is_rescale(base, schema)
        self._check_anew(schema, is_anew=is_anew)
        early = None if is_anew else self.early  # _written_anew throws their changelog away
        changes = list(self.make_changes(None if is_anew else base, schema, early))
        # from here on files lie there: a refusal leaves them unnamed
        buckets = [(change.partition_bytes, change.bucket) for change in changes]
        crosses = schema.crosses_partitions
        named = [(one, 0) for one in self.request.emptied] if crosses else buckets
        extent = plan_extent(self.request.mode, schema, named, self.request.partition, self.request.replaces)
        states = self.context.scanner.bucket_states(base, schema, extent.covers)
        if is_anew:
            return _written_anew(self.context, self.request, schema, extent, changes, states, self.claim)
        check_picks(extent, states)
        partitions = self._partitions_inside(base, schema, extent, buckets)
        if check_bucket_count(self.context, base, schema, extent, partitions):
            raise FixRequest(
                "TS1313",
                "the bucket count of partitions cannot change in a distributed write of their rows",
                why="which partitions are overwritten is known when their rows are written already",
                fix="overwrite the whole table, or the partition by its name",
            )
        if extent.picks is not None:
            changes = self._with_replaced(schema, changes, states, extent.picks)
            if self.request.forgets_keys and schema.has_dynamic_buckets:
                changes = [_with_empty_index(change, frozenset(buckets)) for change in changes]
        extent = widened(extent, (one.partition_bytes for one in changes if one.hashes is not None))
        extent = _with_moved(extent, buckets) if crosses else extent
        return _logged(self.context, _planned(self.request, schema, extent, changes, self.claim))

    def _check_anew(self, schema: TableSchema, *, is_anew: bool) -> None:
        """Raises FixRequest TS1151."""
        if is_anew and schema.crosses_partitions:
            from tablestore_engine.store.write.moved_rows import check_nothing_moves  # noqa: PLC0415

            check_nothing_moves(self.context, may_move=self.request.mode is WriteMode.OVERWRITE_STATIC)

    def _partitions_inside(
        self, base: Snapshot | None, schema: TableSchema, extent: Extent, buckets: Sequence[BucketId]
    ) -> frozenset[bytes]:
        """Partitions of the buckets without those that keys only come out of. Raises FixRequest TS1314."""
        partitions = frozenset(one for one, _ in buckets)
        if schema.crosses_partitions:
            outside = frozenset(one[0] for one in buckets if not extent.covers(one))
            check_bucket_count(self.context, base, schema, replace(extent, picks=None), outside)
            partitions -= outside
        return partitions

    def _is_rescale(self, base: Snapshot | None, schema: TableSchema) -> bool:
        """Asked before a file is written, where the rows are not needed to know. Raises FixRequest TS1314."""
        mode = self.request.mode
        if not mode.is_overwrite or mode is WriteMode.REPLACE:
            return False
        if mode is WriteMode.OVERWRITE_PARTITIONS and schema.partition_keys:
            return False
        extent = plan_extent(mode, schema, (), self.request.partition)
        return check_bucket_count(self.context, base, schema, extent, frozenset())

    def _with_replaced(
        self,
        schema: TableSchema,
        changes: list[BucketChange],
        states: Mapping[BucketId, BucketState],
        picks: RowFilter,
    ) -> list[BucketChange]:
        """Also what no task has seen: buckets without rows; the stored rows of append-only tables, uncompared."""
        table, run = self.context.task_table(schema), self.context.run
        if not schema.is_keyed:  # what goes comes first, as in a write of the driver
            return [*run(plan_replaced(table, states.values(), picks)), *changes]
        seen = {(change.partition_bytes, change.bucket) for change in changes}
        rest = [state for key, state in states.items() if key not in seen]
        return changes + run(plan_replaced(table, rest, picks), self.early)


def _with_moved(extent: Extent, buckets: Sequence[BucketId]) -> Extent:
    from tablestore_engine.store.write.moved_rows import with_moved  # noqa: PLC0415 - few tables need it

    return with_moved(extent, buckets)


def _with_empty_index(change: BucketChange, came: frozenset[BucketId]) -> BucketChange:
    """The hash index of a bucket that all rows leave gets empty."""
    has_rows = (change.partition_bytes, change.bucket) in came
    return change if has_rows or change.is_empty else replace(change, hashes=HashChange(None))


def _partitions(routed: Iterable[RoutedRows]) -> frozenset[bytes]:
    return frozenset(one.partition_bytes for one in routed)


def _planned(
    request: WriteRequest, schema: TableSchema, extent: Extent, changes: Sequence[BucketChange], claim: str
) -> Planned:
    """The plan of these changes: APPEND, but OVERWRITE where rows go and no key and vector says which."""
    removes = takes_rows_away(schema, changes)
    claims_schema = schema.claim == claim
    return Planned(
        kind=CommitKind.OVERWRITE if removes else CommitKind.APPEND,
        schema=schema,
        changes=tuple(changes),
        scope=extent.scope,
        is_forced=claims_schema or request.always,
        claims_schema=claims_schema,
        operation=request.operation,
    )


def _logged(context: TableContext, plan: Planned) -> Planned:
    """The plan, when the table's log can tell it. Raises FixRequest TS1329; its files are gone then."""
    try:
        check_log_takes(context.layout, plan.schema, plan.changes)
    except FixRequest:
        _discard(context, plan)
        raise
    return plan


def _written_anew(
    context: TableContext,
    request: WriteRequest,
    schema: TableSchema,
    extent: Extent,
    changes: Sequence[BucketChange],
    states: Mapping[BucketId, BucketState],
    claim: str,
) -> Planned:
    """All files of the extent give way to these, of another bucket count: their tasks began with empty buckets."""
    if schema.is_keyed:
        # every row was put into an empty bucket, so every row is in this changelog: nobody may read it
        unused = [replace(change, added=()) for change in changes]
        _discard(context, _planned(request, schema, extent, unused, claim))
        changes = [replace(change, changelog=(), deletion_vectors=None) for change in changes]
    made = _planned(request, schema, extent, _with_removals(changes, states), claim)
    return replace(made, kind=CommitKind.OVERWRITE)


def _discard(context: TableContext, plan: Planned) -> None:
    context.fileio.delete_many(plan.file_paths(context.layout))


def _with_removals(
    changes: Sequence[BucketChange], states: Mapping[BucketId, BucketState]
) -> list[BucketChange]:
    """The changes, and all files of the states removed with their vectors."""
    removed = [
        BucketChange(
            state.partition_bytes,
            state.bucket,
            removed=tuple(file.meta for file in state.files),
            total_buckets=state.total_buckets,
            deletion_vectors={} if state.deletion_vectors else None,
            deleted=sum(file.meta.row_count - file.dead_count for file in state.files),
        )
        for state in states.values()
    ]
    return [*removed, *changes]
