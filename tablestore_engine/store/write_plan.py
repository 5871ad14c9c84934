"""From a request and a base snapshot to a plan: which buckets change, and how.

Names      WritePlanner     rows in the driver: called once per base by the committer
           ChangesPlanner   changes computed elsewhere (Spark tasks) for a base
Steps      schema → routed rows → extent → folds and level 0 first → one change per bucket → plan
           keyed: upserts; an overwrite is a difference, so that its changelog is exact (K2)
           append-only: new files; what an overwrite or a filter picks goes, equal rows stay (kind OVERWRITE)
           another bucket count: everything is written anew (kind OVERWRITE), no changelog
INVARIANT  all buckets of one partition have the same bucket count, except right after an overwrite.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tablestore_engine.errors import FixRequest, RetryError, Unsupported
from tablestore_engine.format.capability import check_writable
from tablestore_engine.format.layout import TableLayout
from tablestore_engine.format.schema import TableSchema
from tablestore_engine.format.snapshot import CommitKind, Snapshot
from tablestore_engine.store.bucket_state import BucketChange, BucketState
from tablestore_engine.store.bucket_writer import BucketWriter
from tablestore_engine.store.conflict import BucketId
from tablestore_engine.store.maintenance import plan_append_compaction, plan_preparation, run_buckets
from tablestore_engine.store.parts import Parts
from tablestore_engine.store.routing import RoutedRows, route_rows
from tablestore_engine.store.row_filter import RowFilter, RowPositions, SameKeys, check_positions
from tablestore_engine.store.schemas import is_same_schema
from tablestore_engine.store.snapshot_files import Planned
from tablestore_engine.store.table_traits import TableTraits
from tablestore_engine.store.write import (
    Extent,
    WriteMode,
    WriteRequest,
    checked_kinds,
    plan_extent,
    with_constants,
)

PlanChanges = Callable[[Snapshot | None, TableSchema], Sequence[BucketChange]]


@dataclass
class WritePlanner:
    """Plans one request; rows are routed once per schema. `claim` marks the schema files of this request."""

    parts: Parts
    request: WriteRequest
    claim: str = field(init=False)
    _routed: dict[int, tuple[RoutedRows, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.claim = self.parts.runtime.new_uuid()

    def __call__(self, base: Snapshot | None) -> Planned:
        """The plan on `base`. Raises TS1309, TS1312-TS1314, TS1127 and what rows can break."""
        check_unmoved(self.parts, base, self.request)
        schema = target_schema(self.parts, base, self.request, self.claim)
        routed = self._route(schema)
        extent = plan_extent(
            self.request.mode,
            schema,
            [(one.partition_bytes, one.bucket) for one in routed],
            self.request.partition,
            self._filter(),
        )
        joins_later = not schema.is_keyed and extent.picks is not None
        step = None if joins_later else plan_step(self.parts, base, extent)
        if step is not None:
            return step
        states = self.parts.scanner.bucket_states(base, schema, extent.covers)
        check_picks(extent, states)
        if check_bucket_count(self.parts, base, schema, extent, self._partitions(routed)):
            return self._plan_rescale(schema, routed, states, extent)
        plan_changes = self._keyed_changes if schema.is_keyed else self._append_changes
        changes = plan_changes(schema, routed, states, extent)
        made = planned(self.request, schema, extent, changes, self.claim)
        return self._after_joining(base, extent, made) if joins_later else made

    def _after_joining(self, base: Snapshot | None, extent: Extent, made: Planned) -> Planned:
        """The plan, or the joining of files that is due before it; nothing is joined for what changes nothing."""
        step = None if made.is_nothing else plan_step(self.parts, base, extent)
        if step is None:
            return made
        self._discard(made)
        return step

    def _filter(self) -> RowFilter | None:
        """The request's filter; keys are those of the rows when it names none."""
        asked, rows = self.request.replaces, self.request.rows
        return (
            asked.among(rows)
            if isinstance(asked, SameKeys) and asked.keys is None and rows is not None
            else asked
        )

    def _route(self, schema: TableSchema) -> tuple[RoutedRows, ...]:
        if schema.id not in self._routed:
            rows = self.request.rows
            if rows is None:
                rows = schema.arrow_schema().empty_table()
            kinds = checked_kinds(self.request, schema)
            if self.request.mode is WriteMode.OVERWRITE_STATIC:
                rows = with_constants(rows, schema, self.request.partition)
            self._routed[schema.id] = route_rows(rows, kinds, schema)
        return self._routed[schema.id]

    @staticmethod
    def _partitions(routed: Sequence[RoutedRows]) -> frozenset[bytes]:
        return frozenset(one.partition_bytes for one in routed)

    def _keyed_changes(
        self,
        schema: TableSchema,
        routed: Sequence[RoutedRows],
        states: Mapping[BucketId, BucketState],
        extent: Extent,
    ) -> list[BucketChange]:
        writer = self._writer(schema)
        work: list[tuple[BucketState, RoutedRows | None]] = []
        rest = dict(states)
        for one in routed:
            key = (one.partition_bytes, one.bucket)
            state = rest.pop(key, None) or self.parts.scanner.empty_state(schema, one.partition, one.bucket)
            work.append((state, one))
        if extent.picks is not None:
            work += [(state, None) for state in rest.values()]
        return run_buckets(
            self.parts, schema, lambda item: _upsert(writer, item[0], item[1], picks=extent.picks), work
        )

    def _append_changes(
        self,
        schema: TableSchema,
        routed: Sequence[RoutedRows],
        states: Mapping[BucketId, BucketState],
        extent: Extent,
    ) -> list[BucketChange]:
        writer = self._writer(schema)
        rest, picks = dict(states), extent.picks
        work: list[tuple[BucketState, RoutedRows | None]] = []
        for one in routed:
            empty = self.parts.scanner.empty_state(schema, one.partition, one.bucket)
            work.append((rest.pop((one.partition_bytes, one.bucket), empty), one))
        if picks is not None:
            work += [(state, None) for state in rest.values()]

        def change(item: tuple[BucketState, RoutedRows | None]) -> BucketChange:
            state, one = item
            if picks is not None:
                return writer.replace(state, None if one is None else one.rows, picks)
            assert one is not None
            first = state.next_sequence if schema.bucket_count > 0 else 0
            return writer.append(one.partition, one.bucket, one.rows, first)

        return run_buckets(self.parts, schema, change, work)

    def _plan_rescale(
        self,
        schema: TableSchema,
        routed: Sequence[RoutedRows],
        states: Mapping[BucketId, BucketState],
        extent: Extent,
    ) -> Planned:
        """All files of the extent written anew under the new bucket count."""
        fresh: dict[BucketId, BucketState] = {}
        if schema.is_keyed:
            changes = self._keyed_changes(schema, routed, fresh, extent)
            unused = [replace(change, added=()) for change in changes]
            self._discard(planned(self.request, schema, extent, unused, self.claim))
            changes = [replace(change, changelog=(), deletion_vectors=None) for change in changes]
        else:
            changes = self._append_changes(schema, routed, fresh, extent)
        made = planned(self.request, schema, extent, with_removals(changes, states), self.claim)
        return replace(made, kind=CommitKind.OVERWRITE)

    def _discard(self, plan: Planned) -> None:
        for path in plan.file_paths(self.parts.layout):
            self.parts.fileio.delete(path)

    def _writer(self, schema: TableSchema) -> BucketWriter:
        chosen = self.request.duplicates
        return self.parts.writer(schema, None if chosen is None else {"tablestore.duplicates": chosen})


@dataclass
class ChangesPlanner:
    """Plans a commit of changes that were computed for a base outside of this process.

    `plan_changes` writes with the given schema and returns one change for each bucket that has rows.
    Keyed overwrites: buckets of the extent without rows are emptied here. Append-only
    overwrites: the old files are removed here.
    """

    parts: Parts
    request: WriteRequest
    plan_changes: PlanChanges
    claim: str = field(init=False)

    def __post_init__(self) -> None:
        self.claim = self.parts.runtime.new_uuid()

    def __call__(self, base: Snapshot | None) -> Planned:
        """The plan on `base`; folds of all buckets come first, since the rows' buckets are not known before."""
        check_unmoved(self.parts, base, self.request)
        schema = target_schema(self.parts, base, self.request, self.claim)
        whole = plan_extent(WriteMode.OVERWRITE_TABLE, schema, (), {})
        step = plan_step(self.parts, base, whole)
        if step is not None:
            return step
        changes = list(self.plan_changes(base, schema))
        buckets = [(change.partition_bytes, change.bucket) for change in changes]
        extent = plan_extent(
            self.request.mode, schema, buckets, self.request.partition, self.request.replaces
        )
        states = self.parts.scanner.bucket_states(base, schema, extent.covers)
        check_picks(extent, states)
        partitions = frozenset(one for one, _ in buckets)
        if check_bucket_count(self.parts, base, schema, extent, partitions):
            raise FixRequest(
                "TS1313",
                "the bucket count cannot change in a distributed write",
                why="each bucket is written anew, which is done in one process",
                fix="write the rows as Arrow from the driver",
            )
        if extent.picks is not None:
            changes = self._with_replaced(schema, changes, states, extent.picks)
        return planned(self.request, schema, extent, changes, self.claim)

    def _with_replaced(
        self,
        schema: TableSchema,
        changes: list[BucketChange],
        states: Mapping[BucketId, BucketState],
        picks: RowFilter,
    ) -> list[BucketChange]:
        """Also what no task has seen: buckets without rows; the stored rows of append-only tables, uncompared."""
        writer = self.parts.writer(schema)
        if not schema.is_keyed:
            return [
                *run_buckets(
                    self.parts, schema, lambda state: writer.replace(state, None, picks), [*states.values()]
                ),
                *changes,
            ]
        seen = {(change.partition_bytes, change.bucket) for change in changes}
        rest = [state for key, state in states.items() if key not in seen]
        return changes + run_buckets(
            self.parts, schema, lambda state: _upsert(writer, state, None, picks=picks), rest
        )


def check_picks(extent: Extent, states: Mapping[BucketId, BucketState]) -> None:
    """Raises RetryError TS1386 when picked positions are no longer where they were."""
    if isinstance(extent.picks, RowPositions):
        check_positions(extent.picks, states.values())


def target_schema(parts: Parts, base: Snapshot | None, request: WriteRequest, claim: str) -> TableSchema:
    """The schema to write with, on this base. Raises Unsupported TS1127, TS1309, RetryError TS1307."""
    current, wanted = parts.schema_at(base), request.new_schema
    if wanted is None or is_same_schema(wanted, current):
        schema = current
    elif wanted.id != current.id + 1:
        raise _schema_changed(parts.layout, wanted, current)
    else:
        changed = replace(wanted, time_millis=parts.runtime.now_ms())
        schema = parts.schemas.numbered(changed, claim, above=current)
    check_writable(schema)
    if schema.is_keyed and not TableTraits(schema).has_inbox:
        raise Unsupported(
            "TS1309",
            f"{parts.layout.location} cannot be written",
            why="it has a primary key but no deletion vectors; writing needs deletion-vectors.enabled=true",
            fix="write it with the engine that made it, or copy it into a new table",
        )
    return schema


def check_unmoved(parts: Parts, base: Snapshot | None, request: WriteRequest) -> None:
    """Rows of an UPDATE, DELETE or MERGE are right on their snapshot only; folds since then change no row.

    Raises RetryError TS1324 when somebody committed rows meanwhile, or took that snapshot back.
    """
    start = request.computed_from
    if start is None:
        return
    newest = 0 if base is None else base.id
    if start > newest:
        raise _moved(parts, start, f"it was taken back, the newest is {newest or 'none'} now")
    if start and request.computed_from_unique is not None:
        found = parts.snapshots.find(start)
        if found is not None and found.unique != request.computed_from_unique:
            raise _moved(parts, start, "it was taken back, another one has its number now")
    for number in range(start + 1, newest + 1):
        snapshot = parts.snapshots.get(number)
        if snapshot.commit_kind is not CommitKind.COMPACT or snapshot.changelog_manifest_list is not None:
            raise _moved(parts, start, f"snapshot {number} came since")


def _moved(parts: Parts, start: int, why: str) -> RetryError:
    return RetryError(
        "TS1324",
        f"{parts.layout.location} changed while the statement ran",
        why=f"its rows were computed from snapshot {start}; {why}",
        fix="run the statement again",
    )


def _schema_changed(layout: TableLayout, wanted: TableSchema, current: TableSchema) -> RetryError:
    """TS1307: the new schema was made from one that is not the table's any more."""
    return RetryError(
        "TS1307",
        f"the schema of {layout.location} was changed by somebody else",
        why=f"this commit changes schema {wanted.id - 1}, the table has schema {current.id} now",
        fix="run the command again: it plans on the new schema",
    )


def plan_step(parts: Parts, base: Snapshot | None, extent: Extent) -> Planned | None:
    """Preparing work, always with the schema that exists; a new one belongs to the commit itself."""
    existing = parts.schema_at(base)
    if existing.is_keyed:
        return plan_preparation(parts, base, existing, extent.covers)
    if extent.rewrites or extent.needs_positions:
        return None
    return plan_append_compaction(parts, base, existing, lambda _: True)


def planned(
    request: WriteRequest, schema: TableSchema, extent: Extent, changes: Sequence[BucketChange], claim: str
) -> Planned:
    """The plan of these changes; append-only ones that take rows away are OVERWRITE, all else is APPEND."""
    removes = any(change.removed or change.deletion_vectors is not None for change in changes)
    claims_schema = schema.claim == claim
    return Planned(
        kind=CommitKind.OVERWRITE if removes and not schema.is_keyed else CommitKind.APPEND,
        schema=schema,
        changes=tuple(changes),
        scope=extent.scope,
        is_forced=claims_schema or request.always,
        claims_schema=claims_schema,
        operation=request.operation,
    )


def check_bucket_count(
    parts: Parts, base: Snapshot | None, schema: TableSchema, extent: Extent, partitions: frozenset[bytes]
) -> bool:
    """Whether the extent has to be rescaled. Raises FixRequest TS1314 where that is not possible."""
    if base is None or schema.bucket_count <= 0:
        return False
    others = {
        entry.total_buckets
        for entry in parts.scanner.live_entries(base)
        if entry.partition in partitions
        or (extent.rewrites and extent.covers((entry.partition, entry.bucket)))
    } - {schema.bucket_count}
    if not others:
        return False
    if not extent.rewrites or TableTraits(schema).has_log:
        raise FixRequest(
            "TS1314",
            f"rows cannot be written into {schema.bucket_count} buckets",
            why=f"the partition has files of {min(others)} buckets"
            + (" and the topic of the log has one partition per bucket" if extent.rewrites else ""),
            fix="overwrite the whole partition (tables without log), or set bucket back",
        )
    return True


def with_removals(
    changes: Sequence[BucketChange], states: Mapping[BucketId, BucketState]
) -> list[BucketChange]:
    """The changes, and all files of the states removed with their vectors."""
    removed = [
        BucketChange(
            state.partition_bytes,
            state.bucket,
            removed=tuple(file.meta for file in state.files),
            deletion_vectors={} if state.deletion_vectors else None,
            deleted=sum(file.meta.row_count - file.dead_count for file in state.files),
        )
        for state in states.values()
    ]
    return [*removed, *changes]


def _upsert(
    writer: BucketWriter, state: BucketState, routed: RoutedRows | None, *, picks: RowFilter | None
) -> BucketChange:
    rows = writer.schema.arrow_schema().empty_table() if routed is None else routed.rows
    return writer.upsert(state, rows, None if routed is None else routed.kinds, picks=picks)
